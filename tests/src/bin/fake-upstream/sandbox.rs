//! A server whose sandboxes belong to the session that made them: another session, also a new one of the same client,
//! sees none of them. A sandbox is a folder on disk, so that a test can count what is left over.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::protocol::{Reply, member};

const TOOLS: [&str; 8] = [
    "create", "status", "exec", "upload", "download", "list", "exists", "delete",
];

/// Every session's sandboxes: name → folder.
pub(crate) struct Sandboxes {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    made: usize,
    owned: HashMap<String, HashMap<String, PathBuf>>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl Sandboxes {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            state: Mutex::default(),
        }
    }

    pub(crate) fn capabilities() -> Value {
        json!({"tools": {}, "resources": {}})
    }

    /// Answers what concerns sandboxes.
    pub(crate) fn answer(&self, session: &str, method: &str, params: Option<&RawValue>) -> Option<Reply> {
        Some(match method {
            "tools/list" => {
                let tools = TOOLS.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
                Reply::Result(json!({ "tools": tools }).to_string())
            }
            "tools/call" => match params.and_then(|params| serde_json::from_str::<Call>(params.get()).ok()) {
                Some(call) => self.call(session, &call),
                None => Reply::Error(-32602, "no such call"),
            },
            "resources/list" => Reply::Result(json!({ "resources": self.resources(session) }).to_string()),
            "resources/templates/list" => Reply::Result(r#"{"resourceTemplates":[]}"#.to_owned()),
            "resources/read" => self.read(session, &member(params, "uri").unwrap_or_default()),
            _ => return None,
        })
    }

    fn call(&self, session: &str, call: &Call) -> Reply {
        let argument = |name: &str| call.arguments[name].as_str().unwrap_or_default();
        if call.name == "create" {
            return text(&self.create(session));
        }
        let id = argument("id");
        let Some(folder) = self.folder_of(session, id) else {
            return match call.name.as_str() {
                "exists" => text("false"),
                _ => failed("this session has no such sandbox"),
            };
        };
        let Some(file) = inside(&folder, argument("name")) else {
            return failed("a file's name is one word");
        };
        match call.name.as_str() {
            "status" => text("running"),
            "exists" => text("true"),
            "exec" => match Command::new("sh")
                .args(["-c", argument("command")])
                .current_dir(&folder)
                .output()
            {
                Ok(output) => text(&String::from_utf8_lossy(&output.stdout)),
                Err(error) => failed(&error.to_string()),
            },
            "upload" => match BASE64_STANDARD
                .decode(argument("content"))
                .map(|bytes| fs::write(&file, bytes))
            {
                Ok(Ok(())) => text("uploaded"),
                _ => failed("not uploaded"),
            },
            "download" => Reply::Result(
                json!({"content": [{
                    "type": "resource_link",
                    "uri": format!("sandbox://{id}/{}", argument("name")),
                    "name": argument("name"),
                }]})
                .to_string(),
            ),
            "list" => text(&names(&folder).join("\n")),
            "delete" => {
                let mut state = self.state.lock().expect("no holder panics");
                if let Some(owned) = state.owned.get_mut(session) {
                    owned.remove(id);
                }
                match fs::remove_dir_all(&folder) {
                    Ok(()) => text("deleted"),
                    Err(error) => failed(&error.to_string()),
                }
            }
            _ => Reply::Error(-32602, "no such tool"),
        }
    }

    fn create(&self, session: &str) -> String {
        let mut state = self.state.lock().expect("no holder panics");
        state.made += 1;
        let id = format!("box-{}", state.made);
        let folder = self.folder.join(format!("{}-{session}-{id}", std::process::id()));
        fs::create_dir_all(&folder).expect("the folder can be made");
        state
            .owned
            .entry(session.to_owned())
            .or_default()
            .insert(id.clone(), folder);
        id
    }

    fn folder_of(&self, session: &str, id: &str) -> Option<PathBuf> {
        let state = self.state.lock().expect("no holder panics");
        state.owned.get(session)?.get(id).cloned()
    }

    fn resources(&self, session: &str) -> Vec<Value> {
        let state = self.state.lock().expect("no holder panics");
        let owned = state.owned.get(session).into_iter().flatten();
        owned
            .flat_map(|(id, folder)| {
                let names = names(folder).into_iter();
                names.map(move |name| json!({"uri": format!("sandbox://{id}/{name}"), "name": name}))
            })
            .collect()
    }

    fn read(&self, session: &str, uri: &str) -> Reply {
        let place = uri.strip_prefix("sandbox://").and_then(|rest| rest.split_once('/'));
        let file = place.and_then(|(id, name)| inside(&self.folder_of(session, id)?, name));
        match file.and_then(|file| fs::read(file).ok()) {
            Some(bytes) => {
                let blob = BASE64_STANDARD.encode(bytes);
                Reply::Result(json!({"contents": [{"uri": uri, "blob": blob}]}).to_string())
            }
            None => Reply::Error(-32002, "this session has no such file"),
        }
    }
}

fn inside(folder: &Path, name: &str) -> Option<PathBuf> {
    (!name.contains(['/', '\\']) && name != "..").then(|| folder.join(name))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn text(text: &str) -> Reply {
    Reply::Result(json!({"content": [{"type": "text", "text": text}]}).to_string())
}

fn failed(why: &str) -> Reply {
    Reply::Result(json!({"content": [{"type": "text", "text": why}], "isError": true}).to_string())
}
