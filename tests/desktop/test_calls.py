"""Calls that wait for the person, on the built app: once, always under conditions, and never."""

import contextlib
import json
import subprocess
import sys
import unittest
from pathlib import Path

import changing_server
from desktop import FILES, Desktop
from waiting import until
from webview import Webview

CALLING = Path(__file__).with_name("calling.py")


class Call:
    """A program of the person that calls a tool and waits for the answer; use as a context manager."""

    def __init__(self, desktop, name, given):
        command = [sys.executable, str(CALLING), desktop.api(), name, json.dumps(given)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def is_waiting(self):
        return self._process.poll() is None

    def answer(self):
        """Waits for the HTTP status and the answer."""
        out, _ = self._process.communicate(timeout=60)
        status, answer = json.loads(out)
        return status, answer


class Calls(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.desktop.unlock_keyring()
        args = [changing_server.__file__, str(self.desktop.folder), "notes"]
        self.desktop.save({"files": FILES, "notes": {"name": "Notes", "command": sys.executable, "args": args}})
        self.runs_of_the_app = self.enterContext(contextlib.ExitStack())
        self.window = self.runs_of_the_app.enter_context(Webview(self.desktop))
        self.window.allow_launches()
        until("its tools are offered", lambda: "mcp__notes__write_note" in self.desktop.offered())

    def leave_and_come_back(self):
        """Ends the app and starts it again."""
        self.runs_of_the_app.close()
        self.window = self.runs_of_the_app.enter_context(Webview(self.desktop))

    def write(self, title, text):
        return self.enterContext(Call(self.desktop, "mcp__notes__write_note", {"title": title, "text": text}))

    def question(self):
        """Waits for the question, wherever the window is."""
        self.window.sees("wants to use “write_note”")

    def runs(self, call):
        status, answer = call.answer()
        self.assertEqual((status, answer["ok"]), (200, True), answer)

    def is_denied(self, call):
        status, answer = call.answer()
        self.assertEqual((status, answer["code"]), (403, "denied"), answer)

    def test_a_yes_for_once_lets_exactly_one_call_run(self):
        window = self.window
        call = self.write("shopping", "milk")
        self.question()
        # All of it is there to be read: who, where, and every argument.
        for words in ["calling.py", "Notes", "on this computer", "shopping", "milk"]:
            window.sees(words)
        self.assertTrue(call.is_waiting())
        window.awake("Allow once").click()
        self.runs(call)
        window.gone("wants to use")

        again = self.write("shopping", "milk")
        self.question()
        window.awake("Deny").click()
        self.is_denied(again)

    def test_always_under_conditions_covers_what_they_say_until_the_rule_is_withdrawn(self):
        window = self.window
        first = self.write("shopping", "milk")
        self.question()
        window.awake("Always allow…").click()
        window.sees("Always allow this?")
        window.field("title").choose("is exactly this")
        window.field("text").choose("may be anything")
        window.sees("may use write_note of “Notes” without asking, if “title” is \"shopping\"")
        window.find("//dialog//button[normalize-space(.)='Always allow']").click()
        self.runs(first)
        window.gone("wants to use")

        self.runs(self.write("shopping", "bread"))
        other = self.write("diary", "secret")
        self.question()
        window.awake("Deny").click()
        self.is_denied(other)

        window.go_to("#/approvals")
        window.sees("used once")
        window.find("//button[starts-with(@aria-label, 'Withdraw: ')]").click()
        window.sees("From then on you are asked again.")
        window.find("//dialog//button[normalize-space(.)='Withdraw']").click()
        window.sees("There are no rules yet.")
        asked = self.write("shopping", "eggs")
        self.question()
        window.awake("Deny").click()
        self.is_denied(asked)

    def test_what_is_allowed_until_quitting_is_asked_again_after_the_next_start(self):
        call = self.write("one", "x")
        self.question()
        self.window.awake("Allow until I quit").click()
        self.runs(call)
        self.runs(self.write("two", "y"))
        self.leave_and_come_back()
        asked = self.write("three", "z")
        self.question()
        self.window.awake("Deny").click()
        self.is_denied(asked)

    def test_blocking_a_tool_for_a_program_refuses_it_from_then_on(self):
        call = self.write("one", "x")
        self.question()
        self.window.awake("Deny and block").click()
        self.is_denied(call)
        self.is_denied(self.write("two", "y"))
        self.window.go_to("#/approvals")
        self.window.sees("may never use write_note of “Notes”")
        # What happened says who it was, and what stood in the way; the question is no line of its own.
        self.window.go_to("#/activity")
        self.window.sees("You made a rule: calling.py may never use write_note of “Notes”.")
        self.window.sees("Blocked by your rule")
        self.window.sees("calling.py (python")
        self.assertNotIn("A program", self.window.text())

    def test_a_block_is_told_and_taken_back_with_one_click(self):
        window = self.window
        call = self.write("one", "x")
        self.question()
        window.awake("Deny and block").click()
        self.is_denied(call)
        window.sees("Denied, and blocked from now on: write_note for calling.py")
        window.button("Undo").click()
        window.sees("Taken back. You are asked again.")
        asked = self.write("two", "y")
        self.question()
        window.awake("Deny").click()
        self.is_denied(asked)
        window.sees("Denied: write_note for calling.py")

    def test_identical_questions_are_allowed_together_only_by_the_button_that_says_so(self):
        calls = [self.write("same", "x") for _ in range(3)]
        window = self.window
        self.question()
        window.sees("3 identical questions wait.")
        window.awake("Allow once").click()
        window.sees("2 identical questions wait.")
        until("one has run", lambda: sum(call.is_waiting() for call in calls) == 2)
        window.awake("Allow all 2 once").click()
        for call in calls:
            self.runs(call)

    def test_adding_ends_with_the_choice_of_what_needs_no_question(self):
        window = self.window
        window.add_program(f"{sys.executable} {changing_server.__file__} {self.desktop.folder} diary", "diary")
        window.sees("What may assistants do without asking you?")
        # Nothing is chosen for the person.
        window.button("Ask me each time")
        window.find("//label[contains(., 'Look things up (1 tool)')]").click()
        window.button("Allow these without asking").click()
        window.gone("What may assistants do without asking you?")

        self.runs(self.enterContext(Call(self.desktop, "mcp__diary__read_note", {"title": "one"})))
        asked = self.enterContext(Call(self.desktop, "mcp__diary__write_note", {"title": "one", "text": "x"}))
        self.question()
        window.awake("Deny").click()
        self.is_denied(asked)

    def test_the_keyboard_alone_answers_a_question(self):
        window = self.window
        call = self.write("shopping", "milk")
        self.question()
        window.awake("Allow once")
        window.tab_to("Allow once")
        window.press("Space")
        self.runs(call)
        until("the focus is somewhere", window.focused, report=window.text)

    def test_a_question_tells_what_the_built_in_files_connector_would_do_in_words(self):
        call = self.enterContext(
            Call(self.desktop, "mcp__files__write_file", {"path": "today.md", "content": "x" * 2_000})
        )
        window = self.window
        window.sees("wants to create a file")
        window.sees("today.md")
        # What is long is folded, with its size.
        window.sees("2,000 characters")
        window.awake("Deny").click()
        self.is_denied(call)
        self.assertFalse((self.desktop.home / "neuron-connectd-sandbox/today.md").exists())


if __name__ == "__main__":
    unittest.main()
