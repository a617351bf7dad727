"""What the window is allowed, read from the files that say so."""

import json
import re
import unittest

from desktop import REPOSITORY

CONFIG = json.loads((REPOSITORY / "tauri.conf.json").read_text())
CAPABILITIES = {path.name: json.loads(path.read_text()) for path in (REPOSITORY / "src-tauri/capabilities").iterdir()}
BUILD = (REPOSITORY / "src-tauri/build.rs").read_text()
MANIFEST = (REPOSITORY / "Cargo.toml").read_text()


class Rules(unittest.TestCase):
    def test_the_page_gets_no_global_object_and_a_strict_policy(self):
        app = CONFIG["app"]
        self.assertIs(app["withGlobalTauri"], False)
        security = app["security"]
        self.assertIs(security["freezePrototype"], True)
        self.assertIs(security["dangerousDisableAssetCspModification"], False)
        self.assertIs(security["assetProtocol"]["enable"], False)
        policy = dict(rule.strip().split(" ", 1) for rule in security["csp"].split(";"))
        self.assertEqual(policy["default-src"], "'self'")
        self.assertEqual(policy["script-src"], "'self'")
        self.assertEqual(policy["style-src"], "'self'")
        self.assertEqual(policy["connect-src"], "ipc: http://ipc.localhost")
        for none in ["object-src", "frame-src", "base-uri", "form-action", "frame-ancestors"]:
            self.assertEqual(policy[none], "'none'", none)
        self.assertNotIn("unsafe", security["csp"])

    def test_one_capability_for_one_window_names_exactly_our_own_commands(self):
        self.assertEqual(list(CAPABILITIES), ["main.json"])
        capability = CAPABILITIES["main.json"]
        self.assertEqual(CONFIG["app"]["security"]["capabilities"], [capability["identifier"]])
        self.assertEqual(capability["windows"], ["main"])
        self.assertNotIn("remote", capability)
        commands = re.findall(r'^    "([a-z_]+)",$', BUILD, re.MULTILINE)
        self.assertEqual(capability["permissions"], [f"allow-{name.replace('_', '-')}" for name in commands])

    def test_an_installed_app_gets_its_links_and_nobody_else_does(self):
        linux = CONFIG["bundle"]["linux"]
        for kind in ["deb", "rpm"]:
            template = (REPOSITORY / linux[kind]["desktopTemplate"]).read_text().splitlines()
            self.assertIn("Exec={{exec}} %u", template, kind)
            self.assertIn("MimeType=x-scheme-handler/neuron-connect;", template, kind)

    def test_a_link_never_reaches_the_page(self):
        sources = {path.name: path.read_text() for path in (REPOSITORY / "src-tauri/src").rglob("*.rs")}
        for name, source in sources.items():
            self.assertNotIn("Emitter", source, name)
        self.assertNotIn("Channel", sources["deep_link.rs"])

    def test_no_plugin_reaches_the_system_and_no_inspector_is_shipped(self):
        plugins = re.findall(r"^tauri-plugin-([a-z-]+)", MANIFEST, re.MULTILINE)
        self.assertEqual(plugins, ["single-instance"])
        sources = "".join(path.read_text() for path in (REPOSITORY / "src-tauri/src").rglob("*.rs"))
        self.assertEqual(sources.count(".plugin("), 1)
        self.assertNotIn("devtools", MANIFEST)
        self.assertIn('tauri = { version = "=2.', MANIFEST)


if __name__ == "__main__":
    unittest.main()
