//! Gives each command of the window its own permission, so that only what a capability names can be called.

/// In the order of `commands.rs`. A command that is missing here cannot be called at all.
const COMMANDS: &[&str] = &[
    "watch",
    "routes",
    "opening",
    "connector",
    "propose",
    "missing_program",
    "add",
    "replace",
    "set_enabled",
    "set_tool_enabled",
    "remove",
    "reconnect",
    "stop_trying",
    "try_tool",
    "cancel_try",
    "log_tail",
    "cancel_log",
    "set_secret",
    "forget_secret",
    "keep_until_quit",
    "look_at_keychain",
    "sign_in",
    "cancel_sign_in",
    "open_sign_in_again",
    "paste_sign_in",
    "sign_out",
    "answer_approval",
    "extend_approval",
    "open_approval_url",
    "approve_tools",
    "keep_tool_blocked",
    "approve_instructions",
    "answer_asleep",
    "approve_launches",
    "keep_blocked",
    "versions_of",
    "use_version",
    "clients",
    "change_client",
    "revoke_client",
    "open_pairing",
    "close_pairing",
    "answer_pairing",
    "askers",
    "set_asker",
    "pages",
    "set_page",
    "set_api_mode",
    "set_walk_in",
    "pause_all",
    "resume",
    "activity",
    "activity_days",
    "export_activity",
    "watch_activity",
    "answer_call",
    "draft_rule",
    "always_allow",
    "stop_asking",
    "let_ask",
    "allow_next_time",
    "answer_proposal",
    "rules",
    "save_rule",
    "withdraw_rule",
    "choose",
    "settings",
    "set_theme",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for input in ["src-tauri/capabilities", "tauri.conf.json", "ui/dist", "icons"] {
        println!("cargo:rerun-if-changed={input}");
    }
    let attributes = tauri_build::Attributes::new()
        .capabilities_path_pattern("src-tauri/capabilities/**/*")
        .app_manifest(tauri_build::AppManifest::new().commands(COMMANDS));
    tauri_build::try_build(attributes)?;
    Ok(())
}
