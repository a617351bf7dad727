"""Takes the README's pictures of the running app, in light and in dark: the list of connectors, and a question.

What they show is true: one connector has just run a tool, two are connected, one was listed in an earlier run and sleeps, one
lacks a key, one is turned off; and a program waits for the answer to what it asks.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from desktop import FILES, REPOSITORY, Desktop
from waiting import until
from webview import Webview

UPSTREAMS = REPOSITORY / "tests/upstreams"
PROGRAMS = [
    UPSTREAMS / ".venv/bin/mcp-server-git",
    UPSTREAMS / ".venv/bin/mcp-server-time",
    UPSTREAMS / "node_modules/.bin/mcp-server-memory",
]

SERVERS = {
    "files": FILES,
    "history": {"name": "Project history", "command": "~/bin/mcp-server-git", "args": ["--repository", "~/garden"]},
    "memory": {"name": "Memory", "command": "~/bin/mcp-server-memory", "env": {"MEMORY_FILE_PATH": "${env:HOME}/memory.jsonl"}},
    "time": {"name": "Time zones", "command": "~/bin/mcp-server-time"},
    "tracker": {"name": "Issue tracker", "url": "https://tracker.example.com/mcp", "auth": "token"},
    "calendar": {"name": "Calendar", "command": "uvx", "args": ["calendar-mcp@2.1.0"], "enabled": False},
}
ASKS = {"path": "garden-plan.md", "content": "# Garden\n\n- Sow the beans in May\n- Water every second day\n"}


def prepare(desktop):
    """A home with these programs, and a folder with a history."""
    desktop.unlock_keyring()
    (desktop.home / "bin").mkdir()
    for program in PROGRAMS:
        (desktop.home / "bin" / program.name).symlink_to(program)
    garden = desktop.home / "garden"
    subprocess.run(["git", "init", "--quiet", garden], env=desktop.env, check=True)
    shutil.copy(Path(__file__).with_name("calling.py"), desktop.home / "assistant.py")
    desktop.save(SERVERS)


def tidy(window):
    """Puts away what is said once at the start: no picture is about it."""
    while close := window.shown("//button[normalize-space(.)='Close']"):
        close.click()


def take(window, target, theme):
    # The pointer rests where nothing lights up under it.
    window.find("//h1").click()
    picture = target if theme == "light" else target.with_stem(f"{target.stem}-dark")
    window.screenshot(picture)
    print(os.path.relpath(picture))


def main(target):
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    for theme in ["light", "dark"]:
        with Desktop() as desktop:
            prepare(desktop)
            with Webview(desktop) as window:
                window.allow_launches()
                for connector, tool in [("time", "get_current_time"), ("history", "git_log"), ("memory", "read_graph")]:
                    window.go_to(f"#/connectors/{connector}/tools")
                    window.sees(tool)
            with Webview(desktop) as window:
                window.run("window.__TAURI_INTERNALS__.invoke('set_theme', { theme: arguments[0] })", theme)
                window.run("window.before = true; location.reload()")
                until("the page is new", lambda: not window.run("return window.before ?? false"))
                for connector in ["history", "memory"]:
                    window.go_to(f"#/connectors/{connector}")
                    window.button("Connect now").click()
                    window.sees("Connected")
                window.go_to("#/connectors/files/tools/list_directory")
                window.field("path").type(".")
                window.button("Try it").click()
                window.sees("welcome.md")
                window.go_to("#/connectors")
                window.sees("used just now")
                tidy(window)
                take(window, target, theme)
                call = [sys.executable, "assistant.py", desktop.api(), "mcp__files__write_file", json.dumps(ASKS)]
                desktop.helper(call)
                window.go_to("#/approvals")
                window.sees("wants to create a file")
                window.awake("Allow once")
                tidy(window)
                take(window, target.with_stem("question"), theme)


if __name__ == "__main__":
    main(sys.argv[1])
