"""Takes the README's pictures of the running app: the list of connectors, in light and in dark.

What they show is true: one connector has just run a tool, one was listed in an earlier run and sleeps, one lacks a key, one
is turned off.
"""

import os
import sys
from pathlib import Path

from desktop import FILES, REPOSITORY, Desktop
from waiting import until
from webview import Webview

TIME = REPOSITORY / "tests/upstreams/.venv/bin/mcp-server-time"

SERVERS = {
    "files": FILES,
    "time": {"name": "Time zones", "command": "~/bin/mcp-server-time"},
    "tracker": {
        "name": "Issue tracker",
        "url": "https://tracker.example.com/mcp",
        "headers": {"Authorization": "Bearer ${env:TRACKER_KEY}"},
    },
    "calendar": {"name": "Calendar", "command": "uvx", "args": ["calendar-mcp@2.1.0"], "enabled": False},
}


def main(target):
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    for theme in ["light", "dark"]:
        with Desktop() as desktop:
            (desktop.home / "bin").mkdir()
            (desktop.home / "bin" / TIME.name).symlink_to(TIME)
            desktop.save(SERVERS)
            with Webview(desktop) as window:
                window.go_to("#/connectors/time/tools")
                window.sees("get_current_time")
            with Webview(desktop) as window:
                window.run("window.__TAURI_INTERNALS__.invoke('set_theme', { theme: arguments[0] })", theme)
                window.run("window.before = true; location.reload()")
                until("the page is new", lambda: not window.run("return window.before ?? false"))
                window.go_to("#/connectors/files/tools/list_directory")
                window.field("path").type(".")
                window.button("Try it").click()
                window.sees("welcome.md")
                window.go_to("#/connectors")
                window.sees("TRACKER_KEY is not set")
                window.sees("used now")
                # What is said once at the start is not what the picture is about.
                while close := window.shown("//button[normalize-space(.)='Close']"):
                    close.click()
                picture = target if theme == "light" else target.with_stem(f"{target.stem}-dark")
                window.screenshot(picture)
                print(os.path.relpath(picture))


if __name__ == "__main__":
    main(sys.argv[1])
