"""Signing in on the built app: the browser, the way back by a link, the keyring, and what the window says."""

import json
import unittest

from authority import Authority, follow, query, visit
from desktop import Desktop
from notifications import Notifications
from tray_host import TrayHost
from waiting import until
from webview import Webview

LINK = "neuron-connect://oauth/callback"
# Moves the page's clock, which is what it counts the twenty seconds by.
LATER = "const now = Date.now; Date.now = () => now() + 21_000;"


class SignIn(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.browser = self.desktop.browser()
        self.desktop.unlock_keyring()
        self.allowed = False

    def authority(self, **options):
        authority = self.enterContext(Authority(**options))
        self.desktop.save({"notes": authority.entry})
        self.allowed = False
        return authority

    def window(self):
        """The app with its window, once links reach it."""
        window = self.enterContext(Webview(self.desktop))
        self.links_reach_it()
        if self.desktop.config()["servers"] and not self.allowed:
            window.allow_launches()
            self.allowed = True
        return window

    def links_reach_it(self):
        defaults = self.desktop.home / ".config/mimeapps.list"
        until("the scheme is registered", lambda: defaults.exists() and "neuron-connect" in defaults.read_text())

    def begin(self, window):
        window.go_to("#/connectors")
        window.button("Sign in: Notes").click()

    def is_signed_in(self, window):
        window.sees("You are signed in.")
        window.sees("Connected")

    def test_a_click_signs_in_and_the_tokens_lie_in_the_keyring(self):
        authority = self.authority(scopes="read")
        window = self.window()
        self.begin(window)
        window.sees("Waiting for your browser")
        page = self.browser.page()
        self.assertTrue(page.startswith(f"{authority.base}/authorize?"), page)
        self.assertEqual(query(page)["redirect_uri"], LINK)
        back = follow(page)
        self.assertTrue(back.startswith(f"{LINK}?"), back)
        self.desktop.start_again(back)
        self.is_signed_in(window)
        window.sees("read")

        secrets = self.desktop.secrets()
        self.assertIn("at.", secrets["notes:oauth"])
        self.assertIn("client-1", secrets["notes:client"])
        everywhere = "".join(
            path.read_text(errors="replace") for path in self.desktop.neuron_home.rglob("*") if path.is_file()
        )
        self.assertNotIn("at.ey", everywhere)
        self.assertNotIn(query(back)["code"], everywhere)

        # The same link once more changes nothing.
        issued = authority.count("issued")
        self.desktop.start_again(back)
        self.is_signed_in(window)
        self.assertEqual(authority.count("issued"), issued)

        window.button("Sign out…").click()
        window.button("Sign out").click()
        window.sees("Sign in to Notes")
        self.assertNotIn("at.", self.desktop.secrets().get("notes:oauth", ""))

    def test_a_first_start_by_the_link_ends_the_sign_in_of_the_run_before(self):
        self.authority()
        with Webview(self.desktop) as window:
            self.links_reach_it()
            window.allow_launches()
            self.begin(window)
            back = follow(self.browser.page())
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        with self.desktop.app(back) as app:
            app.until("connected", lambda: "Connected" in tray.line("Notes ·").label)
            app.window()
            self.assertIn("at.", self.desktop.secrets()["notes:oauth"])
            self.assertNotIn(query(back)["code"], app.log())

    def test_two_sign_ins_that_end_within_a_second_both_count(self):
        one = self.enterContext(Authority())
        other = self.enterContext(Authority())
        self.desktop.save({"one": one.entry | {"name": "One"}, "other": other.entry | {"name": "Other"}})
        window = self.window()
        for name in ["One", "Other"]:
            window.go_to("#/connectors")
            window.button(f"Sign in: {name}").click()
            window.sees("Waiting for your browser")
        links = [follow(self.browser.page(number)) for number in (1, 2)]
        with self.desktop.app(links[0]) as first, self.desktop.app(links[1]) as second:
            self.assertEqual([first.has_ended(), second.has_ended()], [0, 0])
        for key in ["one", "other"]:
            window.go_to(f"#/connectors/{key}")
            self.is_signed_in(window)

    def test_a_server_that_refuses_such_links_when_the_app_registers_gets_another_way_back_by_itself(self):
        for refusal in ["refuses-scheme", "drops-scheme"]:
            with self.subTest(refusal):
                desktop = self.desktop = self.enterContext(Desktop())
                self.browser = desktop.browser()
                desktop.unlock_keyring()
                self.authority(registration=refusal)
                window = self.window()
                self.begin(window)
                page = self.browser.page()
                self.assertRegex(query(page)["redirect_uri"], r"^http://127\.0\.0\.1:\d+/mcp/oauth/callback$")
                self.assertIn("Neuron Connect", visit(page))
                self.is_signed_in(window)

    def test_a_server_that_refuses_such_links_only_at_the_end_is_answered_the_other_way_which_is_remembered(self):
        self.authority(authorize="refuses-scheme")
        window = self.window()
        self.begin(window)
        window.sees("Waiting for your browser")
        self.assertIsNone(follow(self.browser.page()))
        self.assertNotIn("Try the other way", window.text())
        window.run(LATER)
        window.button("Try the other way").click()
        visit(self.browser.page(2))
        self.is_signed_in(window)

        window.button("Sign out…").click()
        window.button("Sign out").click()
        window.button("Sign in").click()
        visit(self.browser.page(3))
        self.is_signed_in(window)

    def test_a_pasted_final_address_ends_the_sign_in(self):
        self.authority()
        window = self.window()
        self.begin(window)
        window.sees("Waiting for your browser")
        back = follow(self.browser.page())
        window.run(LATER)
        window.field("Or paste the address").type(back)
        window.button("Use this address").click()
        self.is_signed_in(window)

    def test_an_unsafe_page_is_never_opened(self):
        authority = self.authority()
        window = self.window()
        for address in [
            r"a:$(cmd.exe /c whoami > c:\temp\pwned.txt)",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "ms-msdt:/id PCWDiagnostic",
            "http://h$(x)/",
            "https://user:secret@127.0.0.1/authorize",
            "http://auth.example.com/authorize",
            "https://169.254.169.254/authorize",
        ]:
            with self.subTest(address):
                authority.set(**{"authorization-endpoint": address})
                self.begin(window)
                window.sees("sign-in page is not safe to open")
                window.button("Close").click()
        self.assertEqual(self.browser.opened(), [])

    def test_a_refusal_says_so_and_can_be_tried_again(self):
        authority = self.authority(authorize="deny")
        window = self.window()
        self.begin(window)
        self.desktop.start_again(follow(self.browser.page()))
        window.sees("The sign-in was turned down")
        authority.set(authorize="ok")
        window.button("Try again").click()
        self.desktop.start_again(follow(self.browser.page(2)))
        self.is_signed_in(window)

    def test_a_server_that_registers_nobody_is_told_of_the_app_by_hand(self):
        self.authority(registration="absent", client_id="by-hand", client_secret="s3cret",
                       auth_methods="client_secret_basic")
        window = self.window()
        self.begin(window)
        window.sees("wants to know Neuron Connect first")
        redirect = window.run("return document.querySelector('ol code').textContent")
        window.field("Client ID").type("by-hand")
        window.field("Client secret").type("s3cret")
        window.button("Save and sign in").click()
        page = self.browser.page()
        self.assertEqual((query(page)["client_id"], query(page)["redirect_uri"]), ("by-hand", redirect))
        back = follow(page)
        if back.startswith(LINK):
            self.desktop.start_again(back)
        else:
            visit(back)
        self.is_signed_in(window)
        self.assertNotIn("s3cret", json.dumps(self.desktop.config()))
        self.assertIn("s3cret", self.desktop.secrets()["notes:secret:CLIENT_SECRET"])

    def test_a_server_without_the_usual_protection_is_signed_in_to_only_after_a_word(self):
        self.authority(pkce="none")
        window = self.window()
        self.begin(window)
        window.sees("This sign-in is less protected than usual")
        self.assertEqual(self.browser.opened(), [])
        window.button("Sign in all the same").click()
        self.desktop.start_again(follow(self.browser.page()))
        self.is_signed_in(window)
        self.assertIs(self.desktop.config()["servers"]["notes"]["oauth"]["allowMissingPkce"], True)

    def test_who_does_not_look_at_the_window_is_told_by_a_notification_without_a_secret(self):
        told = self.enterContext(Notifications(self.desktop.bus_address))
        self.authority(registration="refuses-scheme")
        window = self.window()
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        self.begin(window)
        page = self.browser.page()
        # Nobody looks at a window that is closed.
        self.desktop.close_window(until("the window", self.desktop.windows)[0])
        until("the window is gone", lambda: not self.desktop.windows())
        visit(page)
        until("the notification", lambda: told.shown)
        self.assertEqual((told.shown, told.actions), (["Neuron Connect: You are signed in to Notes."], []))
        until("connected", lambda: "Connected" in tray.line("Notes ·").label)
        tray.line("Quit").click()

    def test_from_an_address_to_a_connected_connector(self):
        authority = self.enterContext(Authority())
        self.desktop.save({})
        window = self.window()
        window.go_to("#/add")
        window.field("Paste an address").type(f"{authority.base}/mcp")
        window.field("Short name").type("notes")
        window.button("Add").click()
        window.button("Sign in").click()
        self.desktop.start_again(follow(self.browser.page()))
        self.is_signed_in(window)
        window.button("Try a tool").click()

    def test_other_links_and_arguments_only_show_the_window(self):
        authority = self.authority()
        window = self.window()
        self.begin(window)
        window.sees("Waiting for your browser")
        back = follow(self.browser.page())
        for arguments in [[f"{back}&state=x"], [back, back], ["--x", back], ["neuron-connect://add?name=x"],
                          [f"{LINK}?code=c&state=guess"], ["x" * 100_000]]:
            self.desktop.start_again(*arguments)
        self.assertEqual(authority.count("issued"), 0)
        self.assertEqual(list(self.desktop.config()["servers"]), ["notes"])
        window.sees("Waiting for your browser")
        self.desktop.start_again(back)
        self.is_signed_in(window)


if __name__ == "__main__":
    unittest.main()
