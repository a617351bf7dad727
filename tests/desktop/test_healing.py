"""Connections that heal, as a person sees them: attempts that count down, a slow start, a log that goes on."""

import re
import socket
import sys
import unittest
from pathlib import Path

from desktop import Desktop
from tray_host import TrayHost
from waiting import until
from webview import Webview

CHATTY = Path(__file__).with_name("chatty_server.py")
ATTEMPT = re.compile(r"Attempt (\d) of 5, in (\d+)\ss")


def nobody():
    """An address where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/mcp"


class Attempts(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.desktop.save({"far": {"name": "Far away", "url": nobody()}})
        self.desktop.unlock_keyring()
        with Webview(self.desktop) as window:
            window.allow_launches()

    def test_an_attempt_counts_down_and_can_be_given_up_and_made_at_once(self):
        window = self.enterContext(Webview(self.desktop))
        window.go_to("#/connectors")
        # The later ones leave time to look.
        number, seconds = until(
            "an attempt far enough away", lambda: self.attempt(window, at_least=4), report=window.text
        )
        until("the next second", lambda: self.attempt(window, number=number, below=seconds), report=window.text)

        window.button("Stop trying: Far away").click()
        window.sees("Stopped trying")
        self.assertIsNone(window.shown("//button[contains(., 'Stop')]"))
        window.button("Try again: Far away").click()
        until("the attempts begin anew", lambda: self.attempt(window, number=1), report=window.text)

        window.go_to("#/connectors/far")
        window.sees("nothing listens at its address")
        window.button("Try now").click()
        until("the attempts begin anew", lambda: self.attempt(window), report=window.text)
        window.button("Stop trying").click()
        window.sees("Stopped trying")

    def test_the_keyboard_alone_gives_the_attempts_up(self):
        window = self.enterContext(Webview(self.desktop))
        window.go_to("#/connectors")
        until("an attempt far enough away", lambda: self.attempt(window, at_least=4), report=window.text)
        window.tab_to("Stop trying: Far away")
        window.press("Enter")
        window.sees("Stopped trying")
        # A frame after its button went, the focus is on the neighbour.
        until("the focus is somewhere", window.focused, report=window.text)

    def test_a_start_that_takes_long_can_be_stopped(self):
        self.desktop.save({"slow": {"name": "Slow", "command": "sleep", "args": ["300"]}})
        window = self.enterContext(Webview(self.desktop))
        window.allow_launches()
        window.go_to("#/connectors/slow")
        window.sees("Connecting…")
        window.button("Stop").click()
        window.sees("Stopped trying")
        until("its process ends", lambda: "sleep" not in window.app_processes().values())

    def test_the_trays_menu_shows_the_attempt_and_gives_it_up(self):
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        self.enterContext(self.desktop.app())
        tray.line("Far away: attempt 4 of 5")
        tray.line("Stop trying").click()
        tray.line("Far away: Not working")
        self.assertFalse([line for line in tray.menu() if "attempt" in line.label])

    def attempt(self, window, number=None, at_least=0, below=1_000):
        """The attempt that is shown and its seconds, where they are as asked for."""
        shown = ATTEMPT.search(window.text())
        if not shown:
            return None
        found, seconds = int(shown[1]), int(shown[2])
        return (found, seconds) if number in (None, found) and at_least <= seconds < below else None


class Log(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.desktop.save({"chatty": {"name": "Chatty", "command": sys.executable, "args": [str(CHATTY)]}})
        self.desktop.unlock_keyring()
        self.window = self.enterContext(Webview(self.desktop))
        self.window.allow_launches()

    def test_the_log_goes_on_by_itself_without_secrets_and_without_markup(self):
        window = self.window
        window.go_to("#/connectors/chatty/log")
        window.sees("chatty is ready")
        window.sees("connected to chatty")
        self.write('first <img src=x onerror="window.injected = true">')
        window.sees('first <img src=x onerror="window.injected = true">')
        self.write("refused: API_KEY=hunter2")
        window.sees("refused: API_KEY=[REDACTED]")
        self.assertNotIn("hunter2", window.text())
        self.assertIsNone(window.run("return window.injected ?? null"))

    def test_the_log_stays_where_somebody_reads_until_they_jump_to_its_end(self):
        window = self.window
        window.go_to("#/connectors/chatty/log")
        window.sees("chatty is ready")
        self.write("\n".join(f"line {number}" for number in range(200)))
        window.sees("line 199")
        is_at_end = "const log = document.querySelector('.log'); return log.scrollHeight - log.scrollTop - log.clientHeight < 24"
        until("the end is shown", lambda: window.run(is_at_end))

        window.run("document.querySelector('.log').scrollTop = 0")
        window.button("Jump to newest")
        self.write("while reading")
        window.sees("while reading")
        self.assertEqual(window.run("return document.querySelector('.log').scrollTop"), 0)
        window.button("Jump to newest").click()
        until("the end is shown", lambda: window.run(is_at_end))
        self.assertIsNone(window.shown("//button[normalize-space(.)='Jump to newest']"))

    def write(self, line):
        """Has the connector write to its standard error, as a call of its tool does."""
        self.window.run(
            """
            const [input, ticket] = [JSON.stringify({ line: arguments[0] }), String(Math.random())];
            void window.__TAURI_INTERNALS__.invoke("try_tool", { ticket, name: "mcp__chatty__write", input });
            """,
            line,
        )


if __name__ == "__main__":
    unittest.main()
