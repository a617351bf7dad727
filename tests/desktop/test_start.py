"""Starting the app while an earlier instance of it is about to end."""

import json
import os
import signal
import sys
import unittest

from desktop import FILES, Desktop
from waiting import until
from webview import Webview

# Takes a name on the session bus, and goes without a word when it is called, as an instance does that is killed just then.
DYING = """
import os, sys
import gi
gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib

def seen(bus, message, incoming):
    if incoming and message.get_member() == "ExecuteCallback":
        open(sys.argv[2], "w").close()
        os._exit(0)
    return message

bus = Gio.bus_get_sync(Gio.BusType.SESSION)
bus.add_filter(seen)
call = GLib.Variant("(su)", (sys.argv[1], 4))
bus.call_sync("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName", call, None, 0, -1, None)
GLib.MainLoop().run()
"""
# Ends only when it is killed, which takes the app more than two seconds.
STUBBORN = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()"


class Start(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.desktop.unlock_keyring()

    def instances(self):
        """The names on the bus that instances of the app are found by."""
        return [name for name in self.desktop.names() if name.endswith(".SingleInstance")]

    def running(self):
        """The process id of the app that can be asked; none while there is no such."""
        try:
            pid = json.loads((self.desktop.neuron_home / "connect/api.json").read_text())["pid"]
            os.kill(pid, 0)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return None
        return pid

    def test_a_start_waits_for_an_instance_that_goes_without_a_word_and_takes_its_place(self):
        self.desktop.used_before()
        with self.desktop.app() as first:
            first.window()
            [name] = self.instances()
        called = self.desktop.folder / "called"
        self.desktop.helper(["/usr/bin/python3", "-c", DYING, name, str(called)])
        until("the dying one is on the bus", lambda: name in self.instances())
        with self.desktop.app() as app:
            app.window()
            self.assertEqual(app.until("it can be asked", self.running), app.pid)
        self.assertTrue(called.exists())

    def test_what_is_started_while_it_quits_is_there_again_once_it_has(self):
        slow = {"name": "Slow", "command": sys.executable, "args": ["-c", STUBBORN]}
        self.desktop.save({"files": FILES, "slow": slow})
        with Webview(self.desktop) as window:
            window.allow_launches()
        with self.desktop.app() as first:
            first.window()
            until("the slow one runs", lambda: any("python" in name for name in first.descendants().values()))
            first.process.terminate()
            self.desktop.start_again()
            self.assertEqual(first.has_ended(), 0)
        again = until("it is there again", self.running, report=first.log)
        self.addCleanup(os.kill, again, signal.SIGTERM)
        self.assertNotEqual(again, first.pid)
        until("its window", self.desktop.windows)


if __name__ == "__main__":
    unittest.main()
