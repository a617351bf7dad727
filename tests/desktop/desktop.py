"""A private desktop: its own X server, session bus, home and runtime folder, and the app under test in it."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from waiting import until
import x11

REPOSITORY = Path(__file__).resolve().parents[2]
# Where the built programs lie; the Makefile says so.
PROGRAMS = Path(os.environ.get("NEURON_TEST_PROGRAMS", REPOSITORY / "target/debug")).resolve()
# Quitting has to be done by then (DESIGN: no process left within five seconds), plus a busy machine's share.
QUIT_DEADLINE = 10.0

FILES = {"name": "Files", "command": "neuron-connectd", "args": ["files", "~/neuron-connectd-sandbox"]}


# A session bus that starts nothing by itself.
BARE_BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><policy context="default">
  <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
</policy></busconfig>
"""


class Desktop:
    """Use as a context manager. Everything it starts ends with it. A bare one has no keyring that starts when asked."""

    def __init__(self, bare=False):
        self._bare = bare

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="neuron-desktop-"))
        self.home = self.folder / "home"
        self.home.mkdir()
        runtime = self.folder / "run"
        runtime.mkdir(mode=0o700)
        self.env = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(runtime),
            "TMPDIR": str(self.folder),
            "GDK_BACKEND": "x11",
            "NO_AT_BRIDGE": "1",
            "GSETTINGS_BACKEND": "memory",
            "NEURON_CONNECTD_PORT": "0",
        }
        self._helpers = []
        try:
            display = self._first_line(
                lambda fd: ["Xvfb", "-displayfd", str(fd), "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"]
            )
            self.env["DISPLAY"] = f":{display}"
            config = self.folder / "bus.conf"
            config.write_text(BARE_BUS)
            kind = f"--config-file={config}" if self._bare else "--session"
            self.env["DBUS_SESSION_BUS_ADDRESS"] = self._first_line(
                lambda fd: ["dbus-daemon", kind, "--nofork", "--nopidfile", f"--print-address={fd}",
                            f"--address=unix:dir={runtime}"]
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for helper in reversed(self._helpers):
            helper.terminate()
            try:
                helper.wait(5)
            except subprocess.TimeoutExpired:
                helper.kill()
                helper.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def bus_address(self):
        return self.env["DBUS_SESSION_BUS_ADDRESS"]

    @property
    def neuron_home(self):
        return self.home / ".neuron"

    def used_before(self):
        """Makes this home one that the app has seen, with the built-in files connector in its file."""
        self.save({"files": FILES})

    def save(self, servers):
        """Saves the person's file as editors do: beside it, then over it. `servers` may be any text, for mistakes."""
        text = servers if isinstance(servers, str) else json.dumps({"servers": servers}, indent=2)
        self.neuron_home.mkdir(mode=0o700, exist_ok=True)
        beside = self.neuron_home / "connectors.json.new"
        beside.write_text(text)
        beside.chmod(0o600)
        os.replace(beside, self.config_file)

    @property
    def config_file(self):
        return self.neuron_home / "connectors.json"

    def config(self):
        """What the person's file says at this moment."""
        return json.loads(self.config_file.read_text())

    def app(self, *arguments, programs=PROGRAMS):
        """Starts the app that lies in this folder; use as a context manager."""
        return App(self, arguments, programs)

    def start_again(self, *arguments):
        """Starts the app a second time, as a desktop does for a link; it has handed over by then."""
        with self.app(*arguments) as second:
            assert second.has_ended() == 0, second.log()

    def unlock_keyring(self):
        """Starts the keyring of this desktop, unlocked."""
        self._keyring(["--unlock"], b"test")

    def lock_keyring(self):
        """Locks the keyring, so that it waits for its password."""
        self._ask_bus(
            "'org.freedesktop.secrets', '/org/freedesktop/secrets', 'org.freedesktop.Secret.Service', 'Lock',"
            "GLib.Variant('(ao)', (['/org/freedesktop/secrets/collection/login'],))"
        )

    def _keyring(self, arguments, password):
        # Without a display it never asks: nobody could answer here.
        env = {name: value for name, value in self.env.items() if name != "DISPLAY"}
        log = open(self.folder / "keyring.log", "wb")
        process = subprocess.Popen(
            ["gnome-keyring-daemon", "--foreground", "--components=secrets", *arguments], env=env,
            stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self.home,
        )
        log.close()
        process.stdin.write(password)
        process.stdin.close()
        self._helpers.append(process)
        # Whoever asks for a secret before that has the bus start another keyring, which is locked.
        until("the keyring is on the bus", self._has_keyring)
        until("the keyring answers", lambda: self.secrets() is not None)

    def _has_keyring(self):
        owner = self._ask_bus(
            "'org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'NameHasOwner',"
            "GLib.Variant('(s)', ('org.freedesktop.secrets',))"
        )
        return "true" in owner.lower()

    def names(self):
        """Who is on the session bus at this moment, by name."""
        told = self._ask_bus("'org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'ListNames', None")
        return told.split("'")[1::2]

    def _ask_bus(self, call):
        script = (
            "import gi; gi.require_version('Gio', '2.0'); from gi.repository import Gio, GLib;"
            f"print(Gio.bus_get_sync(Gio.BusType.SESSION).call_sync({call}, None, 0, 10000, None))"
        )
        asked = ["/usr/bin/python3", "-c", script]
        return subprocess.run(asked, env=self.env, check=True, timeout=20, capture_output=True, text=True).stdout

    def secrets(self):
        """What this app keeps in the keyring, account to value; none while no keyring answers."""
        found = subprocess.run(
            ["secret-tool", "search", "--all", "--unlock", "service", "ai.neuron.connect"], env=self.env,
            capture_output=True, text=True, timeout=20,
        )
        # It writes the values to one stream and the attributes to the other.
        if "not provided" in found.stderr or "Cannot" in found.stderr:
            return None
        values = [line[len("secret = "):] for line in found.stdout.splitlines() if line.startswith("secret = ")]
        lines = (found.stderr + found.stdout).splitlines()
        accounts = [line.split(" = ", 1)[1] for line in lines if line.startswith("attribute.username = ")]
        return dict(zip(accounts, values, strict=True))

    def api(self):
        """Where the app that runs can be asked, as it says itself."""
        port = json.loads((self.neuron_home / "connect/api.json").read_text())["port"]
        return f"http://127.0.0.1:{port}"

    def offered(self, kind="tools"):
        """Names of the tools, or prompts, that assistants are given at this moment; none while no app can be asked."""
        try:
            with urllib.request.urlopen(f"{self.api()}/mcp/{kind}", timeout=20) as answer:
                return {one["name"] for one in json.load(answer)[kind]}
        except (FileNotFoundError, ConnectionError, urllib.error.URLError):
            return set()

    def browser(self):
        """Puts a browser on this desktop that only writes down what it was asked to open."""
        return Browser(self)

    def helper(self, command, **more_env):
        """Starts a program that lives as long as this desktop."""
        log = open(self.folder / f"{Path(command[0]).name}.log", "wb")
        process = subprocess.Popen(
            command, env=self.env | more_env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home
        )
        log.close()
        self._helpers.append(process)
        return process

    def windows(self):
        """Visible windows of the app, by X window id."""
        return x11.windows(self.env["DISPLAY"], "Neuron Connect")

    def close_window(self, window):
        """What a click on the title bar's cross does."""
        x11.ask_to_close(self.env["DISPLAY"], window)

    def _first_line(self, command):
        """Starts a helper that writes one line to the file descriptor it is given, and returns that line."""
        read, write = os.pipe()
        with os.fdopen(read) as reader:
            process = subprocess.Popen(
                command(write), env=self.env, pass_fds=[write], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            self._helpers.append(process)
            os.close(write)
            line = reader.readline().strip()
        assert line, f"{process.args[0]} did not start"
        return line


class App:
    """The tray app in a desktop."""

    def __init__(self, desktop, arguments, programs):
        self.desktop = desktop
        self._arguments = arguments
        self._programs = programs

    def __enter__(self):
        self._log = open(self.desktop.folder / "app.log", "ab")
        self.process = subprocess.Popen(
            [self._programs / "neuron-connect", *self._arguments], env=self.desktop.env, stdin=subprocess.DEVNULL, stdout=self._log,
            stderr=self._log, cwd=self.desktop.home, start_new_session=True,
        )
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(QUIT_DEADLINE)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self._log.close()

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        """All it wrote so far."""
        return (self.desktop.folder / "app.log").read_text(errors="replace")

    def window(self):
        """Waits for the one window."""
        windows = self.until("the window", self.desktop.windows)
        assert len(windows) == 1, f"one window was expected, not {len(windows)}"
        return windows[0]

    def web_processes(self):
        """Its WebKit processes that hold a page."""
        return [pid for pid, name in self.descendants().items() if name.startswith("WebKitWebProc")]

    def descendants(self):
        """Process id to name, of everything it started and what those started."""
        return descendants(self.pid)

    def has_ended(self):
        """Waits until it has ended by itself and returns its exit code."""
        self.until("the app ends", lambda: self.process.poll() is not None, QUIT_DEADLINE)
        return self.process.returncode

    def until(self, what, condition, deadline=None):
        """As [`waiting.until`], with the app's log in the failure."""
        report = lambda: f"the app's log:\n{self.log()}"
        return until(what, condition, report=report) if deadline is None else until(what, condition, deadline, report)


class Browser:
    """Stands in for `xdg-open`, the first thing that opens a page on a desktop."""

    def __init__(self, desktop):
        folder = desktop.folder / "browser"
        folder.mkdir()
        self._record = folder / "opened"
        handler = folder / "xdg-open"
        # One write, so that a reader never sees half a line.
        handler.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{self._record}"\n')
        handler.chmod(0o755)
        desktop.env["PATH"] = f"{folder}:{desktop.env['PATH']}"

    def opened(self):
        """Every address so far."""
        return self._record.read_text().splitlines() if self._record.exists() else []

    def page(self, number=1):
        """Waits for this page and returns its address."""
        return until(f"page {number} in the browser", lambda: self.opened()[number - 1:number])[0]


def descendants(root):
    """Process id to name, of everything that `root` started and what those started."""
    parents, names = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1:].rsplit(")", 1)
        state, parent = rest.split()[:2]
        if state != "Z" or has_threads(stat.parent):
            pid = int(stat.parent.name)
            parents[pid], names[pid] = int(parent), name
    found, frontier = {}, [root]
    while frontier:
        above = frontier.pop()
        below = [pid for pid, parent in parents.items() if parent == above]
        found |= {pid: names[pid] for pid in below}
        frontier += below
    return found


def has_threads(process):
    """Whether threads live on that hold its files and its places on the bus, though the first one has ended."""
    try:
        return len(os.listdir(process / "task")) > 1
    except OSError:
        return False
