"""Keys and the keychain on the built app."""

import unittest

from authority import Authority
from desktop import Desktop
from waiting import until
from webview import Webview


class Keys(unittest.TestCase):
    def needs_a_key(self, bare=False):
        self.desktop = self.enterContext(Desktop(bare))
        authority = self.enterContext(Authority(open="true"))
        url = f"{authority.base}/mcp"
        self.desktop.save({"team": {"name": "Team", "url": url, "headers": {"X-Key": "${secret:TEAM_KEY}"}}})

    def test_a_key_that_is_entered_lies_in_the_keyring_alone_and_the_connector_works(self):
        self.needs_a_key()
        self.desktop.unlock_keyring()
        window = self.enterContext(Webview(self.desktop))
        window.allow_launches()
        window.go_to("#/connectors")
        window.button("Enter key: Team").click()
        window.sees("Kept in this computer’s keychain")
        window.field("TEAM_KEY").type("SENTINEL-key")
        window.button("Save key").click()
        window.sees("Connected")
        self.assertIn("SENTINEL-key", self.desktop.secrets()["team:secret:TEAM_KEY"])
        for path in self.desktop.neuron_home.rglob("*"):
            if path.is_file():
                self.assertNotIn(b"SENTINEL", path.read_bytes(), path)
        self.assertNotIn("SENTINEL", window.run("return document.documentElement.outerHTML"))

        window.go_to("#/connectors/team/settings")
        window.button("Remove TEAM_KEY").click()
        window.find("//dialog//button[normalize-space(.)='Remove']").click()
        window.sees("Removed.")
        until("it is gone", lambda: "team:secret:TEAM_KEY" not in self.desktop.secrets())

    def test_a_locked_keyring_is_told_with_what_to_do(self):
        self.needs_a_key()
        self.desktop.unlock_keyring()
        with Webview(self.desktop) as window:
            window.allow_launches()
            window.go_to("#/connectors/team")
            window.field("TEAM_KEY").type("SENTINEL-key")
            window.button("Save key").click()
            window.sees("Connected")
        self.desktop.lock_keyring()
        with Webview(self.desktop) as window:
            window.go_to("#/connectors")
            window.sees("Your keychain is locked")
            # What was allowed is known by the keychain alone: nothing runs, and nothing is asked anew.
            window.sees("until then only the built-in Files connector works")
            window.sees("Keychain locked or missing")
            self.assertIsNone(window.shown("//*[@aria-label='Review: Team']"))
            window.button("Keep secrets until I quit…")

    def test_without_a_keychain_it_is_explained_and_keys_are_kept_until_quitting_only_by_choice(self):
        self.needs_a_key(bare=True)
        window = self.enterContext(Webview(self.desktop))
        window.go_to("#/connectors")
        window.sees("No keychain was found")
        window.button("Keep secrets until I quit…").click()
        window.sees("forgotten when you quit")
        window.button("Keep until I quit").click()
        window.allow_launches()
        window.go_to("#/connectors/team")
        window.sees("Kept in memory until you quit")
        window.field("TEAM_KEY").type("SENTINEL-key")
        window.button("Save key").click()
        window.sees("Connected")

    def test_a_keyring_that_starts_late_is_found_with_a_click(self):
        self.needs_a_key(bare=True)
        window = self.enterContext(Webview(self.desktop))
        window.go_to("#/connectors/team")
        window.sees("No keychain was found")
        self.desktop.unlock_keyring()
        # It may find the keyring by itself before the click.
        window.run("[...document.querySelectorAll('button')].find((b) => b.innerText.trim() === 'Try again')?.click()")
        # Nothing was allowed here before.
        window.sees("Needs your review")
        window.allow_launches()
        window.sees("Key needed")


if __name__ == "__main__":
    unittest.main()
