"""What happened, on the built app: each use of a tool shows while one looks, and is saved as a file."""

import csv
import json
import unittest
from pathlib import Path

from desktop import FILES, Desktop
from webview import Webview


class Activity(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.desktop.unlock_keyring()
        self.desktop.save({"files": FILES})
        self.window = self.enterContext(Webview(self.desktop))

    def use(self, tool, **given):
        """Uses a tool as the person does, wherever the window is."""
        self.window.run(
            """
            const [name, input, ticket] = [arguments[0], arguments[1], String(Math.random())];
            void window.__TAURI_INTERNALS__.invoke("try_tool", { ticket, name, input });
            """,
            f"mcp__files__{tool}",
            json.dumps(given),
        )

    def saved(self):
        """Waits until the window says where it saved, and returns that place."""
        line = self.window.find("//p[@role='status'][starts-with(normalize-space(.), 'Saved ')]").text()
        return Path(line.split(" in ", 1)[1])

    def test_a_use_of_a_tool_shows_while_one_looks_and_is_saved_as_a_file(self):
        window = self.window
        window.go_to("#/activity")
        window.sees("Nothing has happened yet")
        self.use("list_directory", path="SENTINEL-folder")
        window.sees("Files · list_directory")
        self.use("list_allowed_directories")
        window.sees("Files · list_allowed_directories")
        window.sees("Went well")
        # Of what was sent, names and sizes are kept and not contents.
        window.sees("path (15 characters)")
        self.assertNotIn("SENTINEL", window.text())

        window.button("Save as table (CSV)").click()
        path = self.saved()
        self.assertEqual((path.parent, path.suffix), (self.desktop.home, ".csv"))
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        text = path.read_text()
        self.assertIn("list_allowed_directories", text)
        self.assertNotIn("SENTINEL", text)
        self.assertEqual(len(list(csv.reader(text.splitlines()))) - 1, len(window.run("return [...document.querySelectorAll('main li')]")))

    def test_a_choice_narrows_what_is_shown_and_what_is_saved(self):
        window = self.window
        self.use("list_directory", path="no such folder")
        self.use("list_allowed_directories")
        window.go_to("#/activity")
        window.sees("Files · list_allowed_directories")
        window.sees("Files · list_directory")
        window.field("How it ended").choose("Failed")
        window.gone("list_allowed_directories")
        window.sees("Files · list_directory")
        window.button("Save as JSON lines").click()
        saved = [json.loads(line) for line in self.saved().read_text().splitlines()]
        self.assertEqual([entry["outcome"] for entry in saved], ["failed"])


if __name__ == "__main__":
    unittest.main()
