"""Takes the README's pictures of the running app: the list of connectors, in light and in dark."""

import os
import sys
from pathlib import Path

from desktop import FILES, Desktop
from webview import Webview

SERVERS = {
    "files": FILES,
    "calendar": {"name": "Calendar", "command": "uvx", "args": ["calendar-mcp@2.1.0"], "enabled": False},
    "tracker": {"name": "Issue tracker", "url": "https://tracker.example.com/mcp", "enabled": False},
}


def main(target):
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    for theme in ["light", "dark"]:
        with Desktop() as desktop:
            desktop.save(SERVERS)
            with Webview(desktop) as window:
                window.run("window.__TAURI_INTERNALS__.invoke('set_theme', { theme: arguments[0] })", theme)
                window.run("location.reload()")
                window.go_to("#/connectors")
                window.sees("Issue tracker")
                # What is said once at the start is not what the picture is about.
                while close := window.shown("//button[normalize-space(.)='Close']"):
                    close.click()
                picture = target if theme == "light" else target.with_stem(f"{target.stem}-dark")
                window.screenshot(picture)
                print(os.path.relpath(picture))


if __name__ == "__main__":
    main(sys.argv[1])
