//! The JSON of other clients (and our own): where its servers are, and each as an entry of ours.

use serde_json::{Map, Value};

use super::{Draft, command, names, note_sse_path};
use crate::config::{MAX_DESCRIPTION, json};

/// Objects that hold servers by name, in the order in which they are looked for.
const CONTAINERS: [&str; 5] = ["mcpServers", "servers", "context_servers", "mcp_servers", "mcp"];

/// Members that only an entry has.
const MARKS: [&str; 8] = [
    "command",
    "cmd",
    "url",
    "httpUrl",
    "serverUrl",
    "uri",
    "transport",
    "type",
];

/// Lists of what may run without asking; never taken over unseen.
const APPROVALS: [&str; 6] = [
    "alwaysAllow",
    "always_allow",
    "autoApprove",
    "autoAllow",
    "autoApproved",
    "trust",
];

/// Members that mean nothing without their client, not worth a note each.
const SILENT: [&str; 6] = ["type", "transport", "source", "$schema", "id", "gallery"];

pub(super) fn read(text: &str) -> Result<Vec<Draft>, String> {
    let unreadable = |fault: json::Fault| format!("The JSON cannot be read ({fault}); correct it and paste it again.");
    let tree = json::tree(text)
        .map_err(unreadable)?
        .ok_or("There are only comments; paste the JSON as well.".to_owned())?;
    if let Some((name, first, second)) = json::repeated_key(&tree) {
        let (first, second) = (json::Place::of(text, first), json::Place::of(text, second));
        return Err(format!(
            "\"{}\" stands twice, at {first} and at {second}; remove one and paste again.",
            name.escape_debug()
        ));
    }
    let root = match json::to_value(&tree) {
        Value::Object(root) => root,
        Value::Array(items) => return list(items),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err("This is a single value; paste an object with a server in it.".to_owned());
        }
    };
    let inputs = inputs(&root);
    let drafts: Vec<Draft> = match container(&root) {
        Some(servers) => servers
            .iter()
            .map(|(name, entry)| named(name, entry, &inputs))
            .collect(),
        None if is_entry(&root) => vec![unnamed(&root, &inputs)],
        None if !root.is_empty() && root.values().all(|value| value.as_object().is_some_and(is_entry)) => {
            root.iter().map(|(name, entry)| named(name, entry, &inputs)).collect()
        }
        None => {
            return Err("No server was found in the JSON; it should have \"mcpServers\", \"servers\" or an entry with \"command\" or \"url\".".to_owned());
        }
    };
    if drafts.is_empty() {
        Err("The list of servers is empty; there is nothing to add.".to_owned())
    } else {
        Ok(drafts)
    }
}

fn list(items: Vec<Value>) -> Result<Vec<Draft>, String> {
    let entries: Option<Vec<_>> = items
        .iter()
        .map(|item| item.as_object().filter(|entry| is_entry(entry)))
        .collect();
    match entries {
        Some(entries) if !entries.is_empty() => Ok(entries.into_iter().map(|entry| unnamed(entry, &[])).collect()),
        Some(_) | None => Err("The list holds something that is no server; paste one server as an object.".to_owned()),
    }
}

fn container(root: &Map<String, Value>) -> Option<&Map<String, Value>> {
    // A `servers` beside `mcp` belongs to the latter's neighbour, and VS Code's settings nest them.
    for name in CONTAINERS {
        let Some(found) = root.get(name).and_then(Value::as_object) else {
            continue;
        };
        if name == "mcp" {
            let nested = found
                .get("servers")
                .or_else(|| found.get("mcpServers"))
                .and_then(Value::as_object);
            if nested.is_some() {
                return nested;
            }
            if is_entry(root) || !found.values().any(|value| value.as_object().is_some_and(is_entry)) {
                continue;
            }
        }
        return Some(found);
    }
    None
}

fn is_entry(value: &Map<String, Value>) -> bool {
    MARKS.iter().any(|mark| match value.get(*mark) {
        Some(Value::Object(inner)) => matches!(*mark, "command" | "transport") && !inner.is_empty(),
        Some(Value::Array(_)) => *mark == "command",
        Some(Value::String(_)) => true,
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => false,
    })
}

/// VS Code's questions: id and what it asks.
fn inputs(root: &Map<String, Value>) -> Vec<(String, String)> {
    let list = root
        .get("inputs")
        .or_else(|| root.get("mcp").and_then(|mcp| mcp.get("inputs")));
    let text = |input: &Value, name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    let one = |input: &Value| Some((text(input, "id")?, text(input, "description").unwrap_or_default()));
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(one)
        .collect()
}

fn unnamed(entry: &Map<String, Value>, inputs: &[(String, String)]) -> Draft {
    let mut draft = Conversion::new(inputs).run(entry);
    if let Some(name) = ["id", "name"]
        .iter()
        .find_map(|name| entry.get(*name).and_then(Value::as_str))
    {
        name.clone_into(&mut draft.name);
        draft.entry.shift_remove("name");
    }
    draft
}

fn named(name: &str, entry: &Value, inputs: &[(String, String)]) -> Draft {
    let mut draft = match entry {
        Value::Object(entry) => Conversion::new(inputs).run(entry),
        _ => Draft {
            problem: Some("It is no object; it needs \"command\" or \"url\".".to_owned()),
            ..Draft::default()
        },
    };
    name.clone_into(&mut draft.name);
    draft
}

/// One entry on its way to ours.
struct Conversion<'i> {
    inputs: &'i [(String, String)],
    draft: Draft,
    transport: Option<&'static str>,
}

impl<'i> Conversion<'i> {
    fn new(inputs: &'i [(String, String)]) -> Self {
        Self {
            inputs,
            draft: Draft::default(),
            transport: None,
        }
    }

    fn run(mut self, entry: &Map<String, Value>) -> Draft {
        let flat = match entry.get("transport") {
            Some(Value::Object(nested)) => {
                self.note("What stood under \"transport\" was moved up to the entry.".to_owned());
                let mut flat = entry.clone();
                flat.shift_remove("transport");
                flat.extend(nested.clone());
                flat
            }
            Some(_) | None => entry.clone(),
        };
        self.read_transport(&flat);
        for (name, value) in &flat {
            self.member(name, value);
        }
        self.complete()
    }

    fn note(&mut self, note: String) {
        if !self.draft.notes.contains(&note) {
            self.draft.notes.push(note);
        }
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.draft.entry.insert(name.to_owned(), value.into());
    }

    fn read_transport(&mut self, entry: &Map<String, Value>) {
        let Some(word) = ["transport", "type"]
            .iter()
            .find_map(|name| entry.get(*name).and_then(Value::as_str))
        else {
            return;
        };
        match word.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "stdio" | "local" | "command" => self.transport = Some("stdio"),
            "http" | "streamablehttp" | "remote" => self.transport = Some("http"),
            "sse" => self.transport = Some("sse"),
            _ => {
                let shown: String = word.chars().take(64).collect();
                self.draft.problem = Some(format!(
                    "Its type \"{}\" is not supported; only programs (stdio) and addresses (http, sse) are.",
                    shown.escape_debug()
                ));
            }
        }
    }

    fn member(&mut self, name: &str, value: &Value) {
        match (name, value) {
            ("command" | "cmd", Value::Array(words)) => {
                let mut words = self.texts("command", words).into_iter();
                self.set("command", words.next().unwrap_or_default());
                self.set("args", words.collect::<Vec<_>>());
            }
            ("command", Value::Object(nested)) => {
                for (name, value) in nested {
                    self.member(if name == "path" { "command" } else { name }, value);
                }
            }
            ("command" | "cmd", Value::String(command)) => self.set("command", command.as_str()),
            ("args", Value::Array(args)) => {
                let args = self.texts("args", args);
                // A command given as a list brought its own.
                if !args.is_empty() || !self.draft.entry.contains_key("args") {
                    self.set("args", args);
                }
            }
            ("env" | "environment" | "envs", Value::Object(env)) => self.text_map("env", env),
            ("headers" | "http_headers", Value::Object(headers)) => self.text_map("headers", headers),
            ("url" | "httpUrl" | "serverUrl" | "uri", Value::String(url)) => self.url(url),
            ("cwd", Value::String(path)) => self.path("cwd", path),
            ("envFile" | "env_file", Value::String(path)) => self.path("envFile", path),
            ("disabled", Value::Bool(disabled)) => self.enabled(!disabled),
            ("enabled", Value::Bool(enabled)) => self.enabled(*enabled),
            ("name", Value::String(_)) => self.set("name", value.clone()),
            ("description", Value::String(text)) if text.chars().count() <= MAX_DESCRIPTION => {
                self.set("description", value.clone());
            }
            ("disabledTools" | "excludeTools" | "disabled_tools", Value::Array(tools)) => {
                let tools = self.texts("disabledTools", tools);
                self.set("disabledTools", tools);
            }
            ("oauth", Value::Object(oauth)) => self.oauth(oauth),
            ("timeouts", Value::Object(_)) | ("start" | "auth", Value::String(_)) => self.set(name, value.clone()),
            (_, Value::Bool(false) | Value::Null) => {}
            (_, Value::Array(items)) if items.is_empty() => {}
            (name, _) if APPROVALS.contains(&name) => self.note(format!(
                "\"{name}\" was left out: what may run without asking is decided here."
            )),
            ("timeout" | "request_timeout", _) => self.note(format!(
                "\"{name}\" was left out, because its unit differs between programs; set \"timeouts\" if needed."
            )),
            (name, _) if SILENT.contains(&name) => {}
            (name, _) => self.note(format!(
                "\"{}\" was left out.",
                name.chars().take(64).collect::<String>().escape_debug()
            )),
        }
    }

    fn enabled(&mut self, enabled: bool) {
        if !enabled {
            self.set("enabled", false);
        }
    }

    fn url(&mut self, url: &str) {
        let mut url = self.references(url);
        // `${VAR:-https://host}/path`: the server has to be named in plain.
        if let Some((default, rest)) = url
            .strip_prefix("${env:")
            .and_then(|rest| rest.split_once(":-"))
            .and_then(|(_, rest)| rest.split_once('}'))
        {
            url = format!("{default}{rest}");
            self.draft.notes.retain(|note| !note.contains("filled in from"));
            self.note("The variable in front of the address was replaced by its default.".to_owned());
        }
        self.set("url", url);
    }

    fn path(&mut self, name: &str, path: &str) {
        match path.strip_prefix("${userHome}") {
            Some(rest) => self.set(name, format!("~{rest}")),
            None => {
                self.note_workspace(path);
                self.set(name, path);
            }
        }
    }

    fn oauth(&mut self, theirs: &Map<String, Value>) {
        const KEPT: [&str; 11] = [
            "clientId",
            "clientSecret",
            "scopes",
            "issuer",
            "redirect",
            "grant",
            "clientAuth",
            "privateKey",
            "algorithm",
            "clientMetadataUrl",
            "allowMissingPkce",
        ];
        let mut ours = Map::new();
        for (name, value) in theirs {
            match value {
                Value::String(text) if KEPT.contains(&name.as_str()) => {
                    let text = self.references(text);
                    ours.insert(name.clone(), text.into());
                }
                value if KEPT.contains(&name.as_str()) => {
                    ours.insert(name.clone(), value.clone());
                }
                _ if name == "enabled" => {}
                _ => self.note(format!("\"oauth.{}\" was left out.", name.escape_debug())),
            }
        }
        if !ours.is_empty() {
            self.set("oauth", Value::Object(ours));
        }
    }

    fn texts(&mut self, field: &str, items: &[Value]) -> Vec<String> {
        items.iter().filter_map(|item| self.text(field, item)).collect()
    }

    fn text_map(&mut self, field: &str, map: &Map<String, Value>) {
        let mut texts = Map::new();
        for (name, value) in map {
            if let Some(text) = self.text(&format!("{field}.{name}"), value) {
                texts.insert(name.clone(), text.into());
            }
        }
        if !texts.is_empty() {
            self.set(field, Value::Object(texts));
        }
    }

    fn text(&mut self, field: &str, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(self.references(text)),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                self.note(format!(
                    "A part of \"{}\" is no text and was left out.",
                    field.escape_debug()
                ));
                None
            }
        }
    }

    /// References of other clients in our spelling: `${NAME}`, `${input:id}`, `{env:NAME}`.
    fn references(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let dollar = rest[..start].ends_with('$');
            let Some(length) = rest[start..].find('}') else {
                break;
            };
            let inner = &rest[start + 1..start + length];
            out.push_str(&rest[..if dollar { start - 1 } else { start }]);
            let whole = &rest[if dollar { start - 1 } else { start }..=start + length];
            out.push_str(&self.reference(inner, dollar).unwrap_or_else(|| whole.to_owned()));
            rest = &rest[start + length + 1..];
        }
        out.push_str(rest);
        self.note_workspace(&out);
        out
    }

    fn reference(&mut self, inner: &str, dollar: bool) -> Option<String> {
        if let Some(id) = inner.strip_prefix("input:").filter(|_| dollar) {
            let legal = |c: char| {
                if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') {
                    c
                } else {
                    '_'
                }
            };
            let name: String = id.chars().map(legal).collect();
            let asks = self.inputs.iter().find(|(known, text)| known == id && !text.is_empty());
            let asks = asks.map_or_else(String::new, |(_, text)| {
                format!(" ({})", text.chars().take(200).collect::<String>())
            });
            self.note(format!("The secret \"{name}\"{asks} is asked for when it is added."));
            return Some(format!("${{secret:{name}}}"));
        }
        let (name, default) = inner
            .split_once(":-")
            .map_or((inner, None), |(name, default)| (name, Some(default)));
        let variable = match (dollar, name.strip_prefix("env:")) {
            (true, None) => name,
            (false, Some(name)) => name,
            (true, Some(_)) | (false, None) => return None,
        };
        let legal = variable.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && variable
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        if !legal {
            return None;
        }
        self.note(format!(
            "{variable} is filled in from the environment variable of that name."
        ));
        Some(default.map_or_else(
            || format!("${{env:{variable}}}"),
            |default| format!("${{env:{variable}:-{default}}}"),
        ))
    }

    fn note_workspace(&mut self, text: &str) {
        for word in [
            "${workspaceFolder",
            "${workspaceRoot",
            "${userHome",
            "${file",
            "${extensionPath",
        ] {
            if text.contains(word) {
                self.note(format!(
                    "{word}}} means nothing here; put the folder's path in its place."
                ));
                self.draft.problem.get_or_insert_with(|| {
                    format!("It names {word}}}, which only an editor knows; write the folder's path instead.")
                });
            }
        }
    }

    fn complete(mut self) -> Draft {
        let url = self.draft.entry.get("url").and_then(Value::as_str).map(str::to_owned);
        match (self.transport, &url) {
            (Some("sse"), Some(_)) => {
                self.draft.entry.shift_insert(0, "transport".to_owned(), "sse".into());
            }
            (_, Some(url)) => note_sse_path(url, &mut self.draft.notes),
            (_, None) => {}
        }
        if self
            .draft
            .entry
            .get("args")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            self.draft.entry.shift_remove("args");
        }
        self.draft.name = match &url {
            Some(url) => names::of_url(url),
            None => {
                let text = |value: &Value| value.as_str().map(str::to_owned);
                let command = self.draft.entry.get("command").and_then(text).unwrap_or_default();
                let args = self
                    .draft
                    .entry
                    .get("args")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                command::guess(&command, &args.filter_map(text).collect::<Vec<_>>())
            }
        };
        self.draft
    }
}
