"""How many questions a person sees of one busy assistant, before and after the choice with which adding a connector ends."""

import json
import subprocess
import sys
import time
import unittest
from pathlib import Path

import changing_server
from desktop import FILES, Desktop
from waiting import until
from webview import Webview

BUSY = Path(__file__).with_name("busy_assistant.py")


def tool(name, **hints):
    properties = {"title": {"type": "string"}}
    return {
        "name": name, "description": f"The tool {name}.", "annotations": hints,
        "inputSchema": {"type": "object", "properties": properties, "required": ["title"]},
    }


TOOLS = [*(tool(f"read_{n}", readOnlyHint=True) for n in range(6)), tool("write", readOnlyHint=False)]
# Thirty different ones, of which every fifth writes.
CALLS = ["write" if n % 5 == 4 else f"read_{n % 6}" for n in range(30)]


class Assistant:
    """One program that makes one call after the other; use as a context manager."""

    def __init__(self, desktop):
        self._told = desktop.folder / "answers"
        with open(self._told, "wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, str(BUSY), desktop.api()], stdin=subprocess.PIPE, stdout=out, text=True
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def call(self, name, given):
        self._process.stdin.write(json.dumps([name, given]) + "\n")
        self._process.stdin.flush()

    def answers(self):
        """All so far, each a status and what was said."""
        lines = self._told.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]


class Choice(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.desktop.unlock_keyring()
        self.desktop.save({"files": FILES})
        self.window = self.enterContext(Webview(self.desktop))

    def add(self, name, choice, button):
        """Adds a connector by clicking, and ends with this choice."""
        (self.desktop.folder / f"{name}.tools.json").write_text(json.dumps(TOOLS))
        window = self.window
        window.add_program(f"{sys.executable} {changing_server.__file__} {self.desktop.folder} {name}", name)
        window.sees("What may assistants do without asking you?")
        window.find(f"//label[contains(., '{choice}')]").click()
        window.button(button).click()
        window.gone("What may assistants do without asking you?")

    def questions_of_a_busy_minute(self, server, button):
        """How many questions the person sees, who answers each with this button."""
        window, questions = self.window, 0
        begin = time.monotonic()
        with Assistant(self.desktop) as assistant:
            for number, name in enumerate(CALLS):
                title = f"note-{number:02}"
                assistant.call(f"mcp__{server}__{name}", {"title": title})
                has_ended = lambda: len(assistant.answers()) > number
                until("an end or a question", lambda: has_ended() or title in window.text(), report=window.text)
                if not has_ended():
                    questions += 1
                    window.awake(button).click()
                    until("the answer", has_ended, report=window.text)
                    window.gone(title)
            statuses = [status for status, _ in assistant.answers()]
        self.assertEqual(statuses, [200] * len(CALLS))
        print(f"{server}, {button}: {questions} questions, {time.monotonic() - begin:.0f} s", file=sys.stderr)
        return questions

    def test_thirty_calls_ask_once_for_each_tool_and_after_the_choice_only_about_the_one_that_writes(self):
        for server, choice, ends_with, once, until_quit in [
            ("careful", "Nothing", "Ask me each time", 30, 7),
            ("handy", "Look things up (6 tools)", "Allow these without asking", 6, 1),
        ]:
            with self.subTest(choice=choice):
                self.add(server, choice, ends_with)
                self.assertEqual(self.questions_of_a_busy_minute(server, "Allow once"), once)
                self.assertEqual(self.questions_of_a_busy_minute(server, "Allow until I quit"), until_quit)


if __name__ == "__main__":
    unittest.main()
