"""The app's window: what a person does in it, and what its page refuses."""

import sys
import unittest
from pathlib import Path

from desktop import FILES, REPOSITORY, Desktop
from waiting import until
from webview import Webview

HOSTILE = Path(__file__).with_name("hostile_server.py")
EVERYTHING = REPOSITORY / "tests/upstreams/node_modules/.bin/mcp-server-everything"


class Connectors(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.desktop.unlock_keyring()
        self.window = self.enterContext(Webview(self.desktop))

    def test_a_pasted_command_becomes_a_connector_whose_tools_work(self):
        self.assertTrue(EVERYTHING.exists(), "the test upstreams are not installed: run `make setup`")
        window = self.window
        window.add_program(f"{EVERYTHING} stdio", "everything")

        servers = lambda: self.config()["servers"]
        until("the entry in connectors.json", lambda: "everything" in servers())
        self.assertEqual(servers()["everything"]["command"], str(EVERYTHING))
        # Adding leads to the new connector by itself.
        window.sees("Overview")

        window.go_to("#/connectors/everything/tools/echo")
        window.field("message").type("hello from a person")
        window.button("Try it").click()
        window.sees("Echo: hello from a person")

        window.go_to("#/connectors")
        window.sees("Connected")
        switch = window.button("Use everything")
        self.assertEqual(switch.attribute("aria-checked"), "true")
        switch.click()
        until("off in connectors.json", lambda: servers()["everything"].get("enabled") is False)
        until("its processes end", lambda: not self.upstreams())

    def test_a_sentence_that_names_no_program_is_told_so_before_it_is_added(self):
        window = self.window
        window.go_to("#/add")
        window.field("Paste an address").type("no-such-program-here I want to connect my calendar")
        window.sees("No program named “no-such-program-here” was found on this computer.")
        window.button("Add all the same")

    def test_an_edit_of_the_file_shows_in_the_window_and_a_mistake_shows_with_its_place(self):
        window = self.window
        by_hand = lambda name: {"one": {"name": name, "command": "true", "enabled": False}}
        self.desktop.save(by_hand("Written by hand"))
        window.go_to("#/connectors")
        window.sees("Written by hand")
        self.desktop.save(by_hand("Renamed by hand"))
        window.sees("Renamed by hand")
        self.desktop.save('{"servers": {\n  "one": nonsense\n}}')
        window.sees("line 2")
        window.sees("Renamed by hand")

    def test_what_an_upstream_is_called_never_becomes_markup(self):
        name = '<img src=x onerror="window.injected = true"><b>bold</b>'
        self.desktop.save({"one": {"name": name, "command": "true", "enabled": False}})
        self.window.go_to("#/connectors")
        self.window.sees("<b>bold</b>")
        self.assertIsNone(self.window.run("return window.injected ?? null"))

    def test_a_tool_of_a_connector_that_sleeps_answers_the_first_try(self):
        self.desktop.save({"files": FILES})
        window = self.window
        window.go_to("#/connectors/files/tools/list_allowed_directories")
        window.sees("Ready, starts when used")
        window.button("Try it").click()
        window.sees("Done in")
        window.sees("Connected")
        window.sees("neuron-connectd-sandbox")

    def test_what_an_upstream_says_never_becomes_markup(self):
        self.desktop.save({"one": {"command": sys.executable, "args": [str(HOSTILE)]}})
        window = self.window
        window.allow_launches()
        window.go_to("#/connectors/one/tools/greet")
        window.sees('description <img src=x onerror="window.injected = true">')
        window.field("name").type("x")
        window.button("Try it").click()
        window.sees('result <img src=x onerror="window.injected = true">')
        self.assertEqual(window.run("return document.querySelectorAll('img, script[src=x], b').length"), 0)
        self.assertIsNone(window.run("return window.injected ?? null"))

    def config(self):
        try:
            return self.desktop.config()
        except FileNotFoundError:
            return {"servers": {}}

    def upstreams(self):
        return [pid for pid, name in self.window.app_processes().items() if name.startswith("node")]


class Keyboard(unittest.TestCase):
    """All of it without a mouse, and the focus never lost."""

    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.desktop.unlock_keyring()
        self.desktop.save({"files": FILES})
        self.window = self.enterContext(Webview(self.desktop))
        self.window.sees("Ready, starts when used")

    def test_the_keyboard_alone_adds_a_connector_tries_a_tool_and_turns_it_off(self):
        self.assertTrue(EVERYTHING.exists(), "the test upstreams are not installed: run `make setup`")
        window = self.window
        window.tab_to("Add connector")
        window.press("Enter")
        self.focus_is("Add a connector")
        window.tab_to("Paste an address")
        window.press(*f"{EVERYTHING} stdio")
        window.sees("Will run")
        window.tab_to("Add")
        window.press("Enter")
        window.sees("Assistants can use its")
        self.focus_is("everything")

        window.tab_to("Try a tool")
        window.press("Enter")
        window.sees("Choose a tool")
        window.tab_to("Echo Tool")
        window.press("Enter")
        window.tab_to("message")
        window.press(*"typed")
        window.tab_to("Try it")
        window.press("Space")
        window.sees("Echo: typed")
        self.assertEqual(window.focused(), "Try it")

        window.tab_to("Use everything")
        window.press("Space")
        until("off in connectors.json", lambda: self.desktop.config()["servers"]["everything"].get("enabled") is False)
        self.assertEqual(window.focused(), "Use everything")

    def test_escape_leaves_the_question_before_removing_and_gives_the_focus_back(self):
        window = self.window
        window.go_to("#/connectors/files/settings")
        window.sees("Remove this connector")
        window.tab_to("Remove…")
        window.press("Enter")
        window.sees("Remove Files?")
        self.focus_is("Cancel")
        window.press("Escape")
        until("the question is gone", lambda: "Remove Files?" not in window.text())
        self.focus_is("Remove…")
        self.assertIn("files", self.desktop.config()["servers"])

        window.press("Enter")
        self.focus_is("Cancel")
        window.press("Tab", "Enter")
        window.sees("No connectors yet")
        self.focus_is("Connectors")
        self.assertEqual(self.desktop.config()["servers"], {})

    def test_removing_items_of_a_list_leaves_the_focus_in_the_list(self):
        window = self.window
        window.go_to("#/add/hand")
        window.sees("Command")
        window.tab_to("Add argument")
        window.press("Enter")
        self.focus_is("Item 1")
        window.press("a", "Enter")
        self.focus_is("Item 2")
        window.press("b", "Tab")
        self.focus_is("Remove b")
        window.press("Enter")
        self.focus_is("Remove a")
        window.press("Enter")
        self.focus_is("Add argument")

    def focus_is(self, name):
        until(f"the focus is on “{name}”", lambda: self.window.focused() == name, report=lambda: str(self.window.focused()))


class Page(unittest.TestCase):
    def setUp(self):
        self.desktop = self.enterContext(Desktop())
        self.window = self.enterContext(Webview(self.desktop))

    def test_a_page_has_no_tauri_object_and_cannot_call_what_no_capability_names(self):
        self.assertEqual(self.window.run("return typeof window.__TAURI__"), "undefined")
        self.window.run(
            """
            const commands = ["opening", "plugin:event|listen", "plugin:window|close",
                              "plugin:webview|create_webview_window", "plugin:path|resolve_directory",
                              "plugin:app|version", "no_such_command"];
            const call = (name) => window.__TAURI_INTERNALS__.invoke(name, {}).then(() => name, () => null);
            window.answered = null;
            Promise.all(commands.map(call)).then((names) => { window.answered = names.filter(Boolean); });
            """
        )
        answered = until("the answers", lambda: self.window.run("return window.answered"))
        self.assertEqual(answered, ["opening"])

    def test_a_page_runs_no_inline_script_and_reaches_no_server(self):
        self.window.run(
            """
            window.violations = [];
            document.addEventListener("securitypolicyviolation", (e) => window.violations.push(e.effectiveDirective));
            const picture = document.createElement("div");
            picture.innerHTML = '<img src="x" onerror="window.injected = true">';
            document.body.append(picture);
            const script = document.createElement("script");
            script.textContent = "window.injected = true";
            document.body.append(script);
            fetch("http://127.0.0.1:7771/healthz").catch(() => {});
            """
        )
        blocked = lambda: self.window.run("return window.violations")
        until("three refusals", lambda: len(blocked()) >= 3, report=lambda: str(blocked()))
        self.assertIn("connect-src", blocked())
        self.assertIsNone(self.window.run("return window.injected ?? null"))

    def test_the_apps_own_page_breaks_none_of_its_rules(self):
        self.window.run(
            """
            window.violations = [];
            document.addEventListener("securitypolicyviolation", (e) =>
              window.violations.push(`${e.effectiveDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`));
            """
        )
        for place, shown in [("#/add", "Add a connector"), ("#/add/hand", "Command"), ("#/settings", "Appearance"),
                             ("#/connectors/filesystem/tools", "Choose a tool"), ("#/connectors", "Add connector")]:
            self.window.go_to(place)
            self.window.sees(shown)
        self.assertEqual(self.window.run("return window.violations"), [])

    def test_a_page_leads_nowhere_else(self):
        before = self.window.run("return location.href")
        self.window.run("location.href = 'https://example.com/'; window.open('https://example.com/')")
        self.window.run("document.title = 'still here'")
        self.assertEqual(self.window.run("return [location.href, document.title]"), [before, "still here"])
        self.assertEqual(len(self.window.tabs()), 1)


if __name__ == "__main__":
    unittest.main()
