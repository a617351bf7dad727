"""The built app's own window, driven by the WebDriver protocol.

Spoken to WebKitWebDriver itself: tauri-driver only renames two options on the way to it, and its connection pool loses
requests when WebKitWebDriver closes an idle connection.
"""

import base64
import json
import socket
import urllib.error
import urllib.request
from pathlib import Path

from desktop import PROGRAMS, descendants
from waiting import until

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_DRIVER = "/usr/bin/WebKitWebDriver"
# The WebDriver protocol's codes for keys that write nothing.
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Shift": "\ue008", "Escape": "\ue00c", "Space": " "}
# No screen of the tests has more to pass.
MOST_TABS = 60
# Starting the app and its first page is part of one request.
_REQUEST_DEADLINE = 120


class Failed(Exception):
    """The driver's own word for what went wrong, such as `no such element`."""

    def __init__(self, status, value):
        super().__init__(f"{value.get('error', status)}: {value.get('message', '')}")
        self.error = value.get("error")


class Webview:
    """Starts the app in a desktop with its window under control; use as a context manager."""

    def __init__(self, desktop):
        self._desktop = desktop
        self._session = None

    def __enter__(self):
        port = _free_port()
        self._address = f"http://127.0.0.1:{port}"
        # The variable makes the app give its window over to the driver that started it.
        self._driver = self._desktop.helper([_DRIVER, f"--port={port}"], TAURI_WEBVIEW_AUTOMATION="true")
        until("WebKitWebDriver answers", lambda: _listens(port))
        options = {"binary": str(PROGRAMS / "neuron-connect"), "args": []}
        wanted = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}}
        self._session = self._request("POST", "/session", wanted)["sessionId"]
        return self

    def __exit__(self, *_):
        if self._session:
            try:
                self._command("DELETE", "")
            except (Failed, OSError):
                pass  # The app may have quit already, and its session with it.
            # Another start before that would hand over to an app that is on its way out.
            until("the app has ended", lambda: "neuron-connect" not in self.app_processes().values())

    def run(self, script, *arguments):
        """Runs JavaScript as a function body in the page and gives back what it returns."""
        return self._command("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def allow_launches(self):
        """Allows every launch that waits for a look, as the window's own button does, and begins its page anew."""
        self.run(
            """
            const { invoke, transformCallback } = window.__TAURI_INTERNALS__;
            return new Promise((done, failed) => {
              let asked = false;
              const told = transformCallback(({ message }) => {
                const ids = (message?.reviews?.launches ?? []).map((launch) => launch.id);
                if (asked || ids.length === 0) return;
                asked = true;
                invoke("approve_launches", { ids, keep: [] }).then(done, failed);
              });
              invoke("watch", { channel: `__CHANNEL__:${told}` }).catch(failed);
            });
            """
        )
        # Whoever watches last is told; the page has to watch again.
        self.run("window.before = true; location.reload()")
        until("the page is new", lambda: not self.run("return window.before ?? false"))

    def decide(self, command, **given):
        """Has the window send this to the app, and waits for its yes."""
        self.run("return window.__TAURI_INTERNALS__.invoke(arguments[0], arguments[1]).then(() => null)", command, given)

    def find(self, xpath):
        """Waits for the first element of this XPath that is shown."""
        return until(f"an element {xpath}", lambda: self.shown(xpath), report=self.text)

    def shown(self, xpath):
        """The first element of this XPath that is shown at this moment, or none."""
        found = self._command("POST", "/elements", {"using": "xpath", "value": xpath})
        elements = (Element(self, each[_ELEMENT]) for each in found)
        return next((element for element in elements if element.is_shown()), None)

    def button(self, name):
        """Waits for the button or link of this accessible name or text."""
        name = _quoted(name)
        return self.find(
            f"//*[self::button or self::a or @role='button' or @role='tab' or @role='switch']"
            f"[normalize-space(.)={name} or @aria-label={name}]"
        )

    def awake(self, name):
        """Waits for the button until it may be pressed: those that decide sleep until they could be read."""
        button = self.button(name)
        until(f"“{name}” is awake", lambda: button.attribute("aria-disabled") == "false")
        return button

    def field(self, label):
        """Waits for the field whose label starts so."""
        starts = f"starts-with(normalize-space(.), {_quoted(label)})"
        fields = "self::input or self::textarea or self::select"
        return self.find(f"//*[{fields}][@aria-label={_quoted(label)} or @id=//label[{starts}]/@for]")

    def press(self, *keys):
        """Presses these keys one after the other, as the keyboard does; names of keys are in [`KEYS`]."""
        steps = []
        for key in keys:
            held = ["Shift", "Tab"] if key == "Shift+Tab" else [key]
            codes = [KEYS.get(name, name) for name in held]
            steps += [{"type": "keyDown", "value": code} for code in codes]
            steps += [{"type": "keyUp", "value": code} for code in reversed(codes)]
        self._command("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": steps}]})

    def focused(self):
        """What a screen reader calls the thing that has the focus: its label, else its text; none on nothing."""
        return self.run(
            """
            const one = document.activeElement;
            if (!one || one === document.body) return null;
            const named = one.getAttribute("aria-label") ?? one.labels?.[0]?.innerText ?? one.innerText ?? "";
            return named.trim();
            """
        )

    def tab_to(self, name):
        """Presses Tab until the thing of this name has the focus. It may start with the name, as a field's label does."""
        passed = []
        for _ in range(MOST_TABS):
            self.press("Tab")
            passed.append(self.focused())
            if (passed[-1] or "").split("\n")[0].startswith(name):
                return
        raise AssertionError(f"Tab does not reach “{name}”; it passes {passed}")

    def side(self, title):
        """What the first comparison shows on this side."""
        return self.find(f"//p[normalize-space(.)={_quoted(title)}]/following-sibling::pre").text()

    def sees(self, text):
        """Waits until the page shows this text."""
        until(f"the text “{text}”", lambda: text in self.text(), report=self.text)

    def gone(self, text):
        """Waits until the page shows this text no more."""
        until(f"“{text}” is gone", lambda: text not in self.text(), report=self.text)

    def text(self):
        """All text of the page."""
        return self.run("return document.body ? document.body.innerText : ''")

    def go_to(self, fragment):
        """Shows the place after `#`, such as `#/add`."""
        self.run("location.hash = arguments[0]", fragment)

    def add_program(self, command, name):
        """Adds a connector by pasting the command that runs it, under this name."""
        self.go_to("#/add")
        self.field("Paste an address").type(command)
        self.sees("This runs a program that can read everything you can.")
        self.field("Short name").type(name)
        self.button("Add").click()

    def tabs(self):
        """Handles of all windows."""
        return self._command("GET", "/window/handles")

    def screenshot(self, path):
        """Writes a PNG of the page as it is once its last change is painted."""
        self.run(
            "window.painted = false;"
            "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => { window.painted = true; })));"
        )
        until("the page is painted", lambda: self.run("return window.painted"))
        Path(path).write_bytes(base64.b64decode(self._command("GET", "/screenshot")))

    def app_processes(self):
        """Process id to name, of the app and all that it started."""
        return descendants(self._driver.pid)

    def _command(self, method, path, body=None):
        return self._request(method, f"/session/{self._session}{path}", body)

    def _request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._address + path, data, {"Content-Type": "application/json", "Connection": "close"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=_REQUEST_DEADLINE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as failure:
            raise Failed(failure.code, json.load(failure).get("value") or {}) from None


class Element:
    """An element of the page as it was when it was found."""

    def __init__(self, webview, reference):
        self._webview, self._reference = webview, reference

    def click(self):
        self._post("/click", {})

    def type(self, text):
        """Replaces what the field holds."""
        self._post("/clear", {})
        self._post("/value", {"text": text})

    def choose(self, option):
        """Picks the option of this text in a list to choose from."""
        self._webview.run(
            """
            const [list, words] = arguments;
            list.value = [...list.options].find((one) => one.text.trim() === words).value;
            list.dispatchEvent(new Event("change", { bubbles: true }));
            """,
            {_ELEMENT: self._reference},
            option,
        )

    def text(self):
        return self._webview._command("GET", f"/element/{self._reference}/text")

    def value(self):
        """What the field holds."""
        return self._webview._command("GET", f"/element/{self._reference}/property/value")

    def attribute(self, name):
        return self._webview._command("GET", f"/element/{self._reference}/attribute/{name}")

    def is_shown(self):
        try:
            return self._webview._command("GET", f"/element/{self._reference}/displayed")
        except Failed as failure:
            if failure.error == "stale element reference":
                return False
            raise

    def _post(self, path, body):
        return self._webview._command("POST", f"/element/{self._reference}{path}", body)


def _quoted(text):
    """An XPath string; XPath knows no escapes."""
    if '"' not in text:
        return f'"{text}"'
    assert "'" not in text, "a text with both quotes"
    return f"'{text}'"


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _listens(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
