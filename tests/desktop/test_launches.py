"""What the person's file asks to run, on the built app: nothing of it runs before they have looked at it."""

import sys
import unittest
from pathlib import Path

from desktop import FILES, Desktop
from waiting import until
from webview import Webview

CHANGING = Path(__file__).with_name("changing_server.py")


class Launches(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.desktop.unlock_keyring()
        self.marks = self.desktop.folder / "marks"
        self.marks.mkdir()

    def entry(self, name, marks=None, **more):
        """A program that leaves a mark of this name whenever it is started."""
        return {"name": name.title(), "command": sys.executable, "args": [str(CHANGING), str(marks or self.marks), name], **more}

    def has_run(self, name):
        return (self.marks / f"{name}.started").exists()

    def allowed(self, *names):
        """A home in which these programs have been allowed and have run."""
        self.desktop.save({name: self.entry(name) for name in names})
        with Webview(self.desktop) as window:
            window.allow_launches()
            for name in names:
                until(f"{name} runs", lambda: self.has_run(name))

    def test_what_lies_in_the_file_at_the_first_start_is_one_list_and_one_button(self):
        self.desktop.save({"one": self.entry("one"), "two": self.entry("two"), "three": self.entry("three")})
        window = self.enterContext(Webview(self.desktop))
        window.go_to("#/connectors")
        window.button("Review: One").click()
        window.sees("These 3 connectors are in your file")
        # The whole command is there to be read before the answer.
        for name in ["one", "two", "three"]:
            window.sees(f"{CHANGING} {self.marks} {name}")
            self.assertFalse(self.has_run(name), name)
        window.awake("Allow all 3").click()
        window.sees("Nothing waits for your review.")
        for name in ["one", "two", "three"]:
            until(f"{name} runs", lambda: self.has_run(name))
        window.go_to("#/connectors/two/tools/read_note")
        window.field("title").type("first")
        window.button("Try it").click()
        window.sees("done:")

    def test_only_what_is_ticked_is_allowed_and_the_rest_goes_on_waiting(self):
        self.desktop.save({"one": self.entry("one"), "two": self.entry("two")})
        window = self.enterContext(Webview(self.desktop))
        window.go_to("#/review")
        window.field("Allow Two").click()
        window.awake("Allow the one that is ticked").click()
        window.sees("Two is new")
        until("one runs", lambda: self.has_run("one"))
        self.assertFalse(self.has_run("two"))

    def test_a_program_given_on_the_command_line_is_never_ticked_by_itself(self):
        shell = {"command": "bash", "args": ["-c", f"touch {self.marks}/shell.started"]}
        self.desktop.save({"one": self.entry("one"), "shell": shell})
        window = self.enterContext(Webview(self.desktop))
        window.go_to("#/review")
        window.sees("runs a script that is written into the command itself")
        self.assertFalse(window.run("return document.querySelector('[aria-label=\"Allow shell\"]').checked"))
        window.awake("Allow the one that is ticked").click()
        window.sees("shell is new")
        self.assertFalse(self.has_run("shell"))

    def test_a_command_that_changed_while_the_app_was_closed_is_shown_beside_the_one_before(self):
        self.allowed("one")
        elsewhere = self.desktop.folder / "elsewhere"
        elsewhere.mkdir()
        self.desktop.save({"one": self.entry("one", marks=elsewhere)})
        window = self.enterContext(Webview(self.desktop))
        window.go_to("#/review")
        window.sees("One has changed")
        self.assertIn(str(self.marks), window.side("Approved before"))
        self.assertFalse((elsewhere / "one.started").exists())
        window.awake("Allow to run").click()
        window.sees("Nothing waits for your review.")
        until("it runs as it is now", lambda: (elsewhere / "one.started").exists())

    def test_what_is_kept_blocked_is_turned_off_and_never_runs(self):
        self.desktop.save({"files": FILES, "one": self.entry("one")})
        with Webview(self.desktop) as window:
            window.go_to("#/review")
            window.sees("One is new")
            window.awake("Keep blocked").click()
            window.sees("Nothing waits for your review.")
            until("off in the file", lambda: self.desktop.config()["servers"]["one"].get("enabled") is False)
        with Webview(self.desktop) as window:
            window.go_to("#/connectors")
            window.sees("Off")
            # Turning it on asks the same question anew.
            window.button("Use One").click()
            window.button("Review: One").click()
            window.sees("One is new")
        self.assertFalse(self.has_run("one"))

    def test_an_edit_back_to_what_was_allowed_asks_nothing(self):
        self.allowed("one")
        window = self.enterContext(Webview(self.desktop))
        self.desktop.save({"one": self.entry("one", env={"X": "1"})})
        window.go_to("#/review")
        window.sees("One has changed")
        self.desktop.save({"one": self.entry("one")})
        window.sees("Nothing waits for your review.")

    def test_the_keyboard_alone_looks_at_a_program_and_allows_it(self):
        self.desktop.save({"files": FILES, "one": self.entry("one")})
        window = self.enterContext(Webview(self.desktop))
        window.sees("Needs your review")
        window.tab_to("Review: One")
        window.press("Enter")
        until("the focus is on what it is about", lambda: window.focused() == "One is new", report=window.text)
        window.awake("Allow to run")
        window.tab_to("Allow to run")
        self.assertFalse(self.has_run("one"))
        window.press("Enter")
        until("it runs", lambda: self.has_run("one"))
        until("the focus is somewhere", window.focused, report=window.text)


if __name__ == "__main__":
    unittest.main()
