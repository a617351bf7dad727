"""Questions of upstreams on the built app: a card, an answer by clicking, and a page that opens by a click alone."""

import sys
import unittest
from pathlib import Path

from desktop import PROGRAMS, Desktop
from notifications import Notifications
from tray_host import TrayHost
from waiting import until
from webview import Webview

ASKING = Path(__file__).with_name("asking_server.py")


class Questions(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.browser = self.desktop.browser()
        self.desktop.save({"pg": {"name": "Postgres", "command": sys.executable, "args": [str(ASKING)]}})
        self.desktop.unlock_keyring()
        with Webview(self.desktop) as window:
            window.allow_launches()
            until("its tools are offered", lambda: "mcp__pg__form" in self.desktop.offered())
            # What is about here is what the connector asks, not who may call it.
            window.decide("choose", server="pg", choice="these", tools=["form", "page"])

    def ask(self, what):
        window = self.enterContext(Webview(self.desktop))
        window.go_to(f"#/connectors/pg/tools/{what}")
        window.button("Try it").click()
        window.sees("A question from Postgres (not from Neuron Connect)")
        return window

    def call_form(self):
        """An assistant calls the tool, as soon as it is known."""
        until("the tool is known", lambda: "mcp__pg__form" in self.desktop.offered())
        self.desktop.helper([PROGRAMS / "neuron-connectd", "call", "mcp__pg__form"])

    def test_a_form_is_filled_and_sent_by_clicking(self):
        window = self.ask("form")
        window.sees("Which <b>table</b> do you mean?")
        self.assertEqual(window.field("Table").value(), "users")
        window.field("At most").type("7")
        window.awake("Send").click()
        window.sees('you said {"action": "accept"')
        window.sees('"limit": 7')
        window.sees('"table": "users"')
        self.assertNotIn("(not from Neuron Connect)", window.text())

    def test_no_is_an_answer_too(self):
        window = self.ask("form")
        window.awake("Decline").click()
        window.sees('you said {"action": "decline"')

    def test_a_page_opens_by_a_click_alone(self):
        window = self.ask("page")
        window.sees("https://xn--pple-43d.example/confirm?session=1")
        window.sees("letters that can look like others")
        self.assertEqual(self.browser.opened(), [])
        window.awake("Open this page").click()
        self.assertEqual(self.browser.page(), "https://xn--pple-43d.example/confirm?session=1")
        window.awake("Done").click()
        window.sees('you said {"action": "accept"')

    def test_the_page_cannot_name_an_address_itself(self):
        window = self.ask("form")
        window.run(
            """
            const invoke = window.__TAURI_INTERNALS__.invoke;
            window.refused = [];
            for (const [name, given] of [["open_approval_url", { id: "https://evil.example/" }],
                                         ["open_approval_url", { id: "x", url: "https://evil.example/" }],
                                         ["open_sign_in_again", { id: "https://evil.example/" }],
                                         ["plugin:opener|open_url", { url: "https://evil.example/" }]])
              invoke(name, given).then(() => {}, () => window.refused.push(name));
            """
        )
        until("four refusals", lambda: len(window.run("return window.refused")) == 4)
        self.assertEqual(self.browser.opened(), [])

    def test_a_question_to_somebody_who_does_not_look_is_told_without_its_words(self):
        told = self.enterContext(Notifications(self.desktop.bus_address))
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        app = self.enterContext(self.desktop.app())
        tray.line("Postgres ·")
        self.call_form()
        app.until("the notification", lambda: told.shown)
        self.assertEqual((told.shown, told.actions), (["Neuron Connect: Postgres asks you something."], []))
        self.assertEqual(self.browser.opened(), [])
        tray.line("Pending approvals (1)")

    def test_without_a_tray_a_question_brings_the_window_back(self):
        app = self.enterContext(self.desktop.app())
        self.desktop.close_window(app.window())
        app.until("the window is gone", lambda: not self.desktop.windows())
        self.call_form()
        app.window()

    def test_the_tray_leads_to_what_waits(self):
        window = self.enterContext(Webview(self.desktop))
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        window.go_to("#/settings")
        self.call_form()
        window.sees("Postgres asks you something")
        tray.line("Pending approvals").click()
        window.sees("Nothing happens before you answer.")
        window.awake("Decline").click()
        window.sees("Nothing waits for you.")


if __name__ == "__main__":
    unittest.main()
