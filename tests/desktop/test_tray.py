"""The app as a desktop sees it: tray, window, and the way out."""

import os
import shutil
import signal
import unittest

from desktop import FILES, PROGRAMS, Desktop
from tray_host import TrayHost


class Tray(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())

    def test_a_first_start_opens_the_window_and_a_later_one_only_the_tray(self):
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        with self.desktop.app() as app:
            app.window()
        with self.desktop.app() as app:
            app.until("the app's icon in the tray", tray.present)
            tray.line("Open Neuron Connect")
            self.assertEqual(self.desktop.windows(), [])
            self.assertEqual([n for n in app.descendants().values() if n.startswith("WebKit")], [])

    def test_the_menu_opens_the_window_and_closing_it_leaves_the_tray_and_no_page(self):
        self.desktop.used_before()
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        app = self.enterContext(self.desktop.app())
        self.assertTrue(tray.line("Files ·").checked)
        for _ in range(2):
            tray.line("Open Neuron Connect").click()
            window = app.window()
            app.until("the window's page", lambda: len(app.web_processes()) == 1)
            self.desktop.close_window(window)
            app.until("no page is left", lambda: not app.web_processes())
            self.assertEqual(self.desktop.windows(), [])
            self.assertIsNone(app.process.poll())
        left = [n for n in app.descendants().values() if n.startswith("WebKit")]
        self.assertLessEqual(len(left), 1, left)

    def test_a_toggle_in_the_menu_turns_the_connector_off_and_on(self):
        self.desktop.used_before()
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        app = self.enterContext(self.desktop.app())
        tray.line("Files ·").click()
        app.until("Files is off", lambda: tray.line("Files ·").label == "Files · Off")
        self.assertIs(tray.line("Files ·").checked, False)
        self.assertIs(self.desktop.config()["servers"]["files"]["enabled"], False)
        tray.line("Files ·").click()
        app.until("Files is on", lambda: tray.line("Files ·").label != "Files · Off")
        self.assertIs(tray.line("Files ·").checked, True)
        self.assertIsNot(self.desktop.config()["servers"]["files"].get("enabled"), False)

    def test_a_mistake_in_the_file_calls_for_attention_and_its_line_opens_the_window(self):
        self.desktop.used_before()
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        app = self.enterContext(self.desktop.app())
        tray.line("Files ·")
        calm = tray.icon()
        self.desktop.save({"files": FILES, "Bad": {"command": "x", "url": "https://example.com/mcp"}})
        line = tray.line("Bad: Has a mistake in the file")
        app.until("another icon", lambda: tray.icon() != calm)
        line.click()
        app.window()

    def test_a_second_start_opens_the_window_of_the_first_and_ends(self):
        self.desktop.used_before()
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        app = self.enterContext(self.desktop.app())
        tray.line("Quit")
        self.assertEqual(self.desktop.windows(), [])
        with self.desktop.app() as second:
            self.assertEqual(second.has_ended(), 0)
        app.window()

    def test_quit_in_the_menu_ends_everything(self):
        tray = self.enterContext(TrayHost(self.desktop.bus_address))
        app = self.enterContext(self.desktop.app())
        app.window()
        started = list(app.descendants())
        tray.line("Quit").click()
        self.assertEqual(app.has_ended(), 0)
        app.until("nothing is left", lambda: not any(map(is_alive, started)))
        self.assertFalse(tray.present())

    def test_a_terminate_signal_ends_everything(self):
        app = self.enterContext(self.desktop.app())
        app.window()
        started = list(app.descendants())
        app.process.send_signal(signal.SIGTERM)
        self.assertEqual(app.has_ended(), 0)
        app.until("nothing is left", lambda: not any(map(is_alive, started)))

    def test_without_a_tray_host_the_window_opens_and_a_later_start_brings_it_back(self):
        self.desktop.used_before()
        app = self.enterContext(self.desktop.app())
        self.desktop.close_window(app.window())
        app.until("the window is gone", lambda: not self.desktop.windows())
        with self.desktop.app() as second:
            self.assertEqual(second.has_ended(), 0)
        app.window()

    def test_a_bridge_that_cannot_start_is_told_in_a_window_and_ends_the_app(self):
        alone = self.desktop.folder / "alone"
        alone.mkdir()
        shutil.copy(PROGRAMS / "neuron-connect", alone)
        with self.desktop.app(programs=alone) as app:
            self.desktop.close_window(app.window())
            self.assertEqual(app.has_ended(), 1)
            self.assertIn("neuron-connectd is missing", app.log())

    def test_without_a_display_it_says_what_to_run_instead(self):
        del self.desktop.env["DISPLAY"]
        with self.desktop.app() as app:
            self.assertEqual(app.has_ended(), 1)
            self.assertIn("neuron-connectd serve", app.log())


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] != "Z"


if __name__ == "__main__":
    unittest.main()
