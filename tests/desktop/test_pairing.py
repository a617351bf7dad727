"""Pairing an assistant on the built app: it shows a code, the person types it, and says what it may do."""

import unittest
import urllib.error
import urllib.request

from calling import post
from desktop import FILES, Desktop
from waiting import until
from webview import Webview


class Pairing(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.desktop.unlock_keyring()
        self.desktop.save({"files": FILES})
        self.window = self.enterContext(Webview(self.desktop))
        self.window.go_to("#/assistants")

    def pair(self, **body):
        """What an assistant sends to be paired, and the answer."""
        return post(f"{self.desktop.api()}/mcp/clients/pair", body)

    def status(self, token):
        """Whether this token still opens the list of tools."""
        return self.answers({"Authorization": f"Bearer {token}"})

    def answers(self, headers):
        """The status of the list of tools, asked for with these headers."""
        request = urllib.request.Request(f"{self.desktop.api()}/mcp/tools", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as refusal:
            return refusal.code

    def test_nobody_is_paired_unless_the_person_has_asked_for_it(self):
        self.window.sees("No assistant is paired yet.")
        status, answer = self.pair(name="Uninvited")
        self.assertGreaterEqual(status, 400, answer)
        self.assertNotIn("Uninvited", self.window.text())

    def test_the_code_that_the_assistant_shows_is_typed_and_its_token_works_until_it_is_removed(self):
        window = self.window
        window.button("Pair an assistant…").click()
        window.button("Start the two minutes").click()
        window.sees("Waiting for an assistant")
        status, shown = self.pair(name="Test assistant")
        self.assertEqual(status, 200, shown)
        window.sees("An assistant that calls itself “Test assistant” wants to be paired")
        # The code is on the assistant's side alone; the window says which program it is.
        window.sees("/usr/bin/python3")
        self.assertNotIn(shown["code"], window.text())

        wrong = f"{(int(shown['code']) + 1) % 1_000_000:06}"
        code = window.field("The six digits that it shows")
        code.type(wrong)
        window.button("Pair").click()
        window.sees("That was not its code. 2 tries are left.")
        _, waiting = self.pair(pairing_id=shown["pairing_id"])
        self.assertIsNone(waiting.get("token"))

        window.field("The six digits that it shows").type(shown["code"])
        window.button("Pair").click()
        window.find("//ul[@aria-labelledby='clients']//*[contains(., 'Test assistant')]")
        token = until("its token", lambda: self.pair(pairing_id=shown["pairing_id"])[1].get("token"))
        self.assertEqual(self.status(token), 200)
        # It is handed over once.
        self.assertIsNone(self.pair(pairing_id=shown["pairing_id"])[1].get("token"))

        window.find("//ul[@aria-labelledby='clients']//button[normalize-space(.)='Remove']").click()
        window.sees("Remove Test assistant?")
        window.find("//dialog//button[normalize-space(.)='Remove']").click()
        window.sees("No assistant is paired yet.")
        self.assertEqual(self.status(token), 401)

    def test_a_web_page_may_use_connectors_from_its_permission_until_that_is_taken_back(self):
        window, page = self.window, {"Origin": "https://app.example.com"}
        self.assertEqual(self.answers(page), 403)
        window.find("//summary[normalize-space(.)='Allow a page…']").click()
        window.field("Where the page comes from").type("not a page")
        window.button("Allow").click()
        window.sees("is not the origin of a page")
        window.field("Where the page comes from").type("https://App.example.com/")
        window.button("Allow").click()
        window.button("Remove: https://app.example.com")
        self.assertEqual(self.answers(page), 200)
        self.assertEqual(self.answers({"Origin": "https://other.example.com"}), 403)
        window.button("Remove: https://app.example.com").click()
        until("it may no more", lambda: self.answers(page) == 403, report=window.text)


if __name__ == "__main__":
    unittest.main()
