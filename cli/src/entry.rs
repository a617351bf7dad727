//! What `add` is given, made into bodies of `POST /mcp/servers/add`. Pure.

use neuron_bridge::ids::ConnectorId;
use serde_json::{Map, Value, json};

use crate::args::AddArgs;

/// The bodies to post, in order, each with its id.
///
/// `stdin` is what standard input says, where the arguments ask for it.
pub(crate) fn bodies(args: &AddArgs, stdin: Option<&str>) -> Result<Vec<(ConnectorId, Value)>, String> {
    let whole = match (stdin, args.name.trim_start().starts_with('{')) {
        (Some(text), _) if args.name == "-" => Some(text),
        (_, true) => Some(args.name.as_str()),
        _ => None,
    };
    if let Some(text) = whole {
        no_extras(args, "a JSON object says it all")?;
        if args.source.is_some() || !args.command.is_empty() {
            return Err("Give either a JSON object, or a name with an address or a command, not both.".to_owned());
        }
        return from_json(text);
    }
    let id = id(&args.name)?;
    let entry = match (args.source.as_deref(), args.command.as_slice()) {
        (Some(source), _) if source == "-" || source.trim_start().starts_with('{') => {
            no_extras(args, "the JSON object says it all")?;
            let text = if source == "-" {
                stdin.unwrap_or_default()
            } else {
                source
            };
            read_object(text)?
        }
        (Some(url), _) => http(args, url)?,
        (None, [program, rest @ ..]) => stdio(args, program, rest)?,
        (None, []) => {
            return Err(format!(
                "Say what {id} is: an address (neuron-connectd add {id} https://…) or a command (neuron-connectd add {id} -- program …)."
            ));
        }
    };
    Ok(vec![body(id, entry)])
}

fn http(args: &AddArgs, url: &str) -> Result<Map<String, Value>, String> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(format!(
            "\"{url}\" is no address: it must begin with https:// (or http://). A command goes after --."
        ));
    }
    if !args.env.is_empty() {
        return Err("-e is for programs: a server on the network gets headers (-H 'Name: value').".to_owned());
    }
    let mut entry = Map::new();
    entry.insert(
        "transport".to_owned(),
        args.transport.as_deref().unwrap_or("http").into(),
    );
    entry.insert("url".to_owned(), url.into());
    let headers = named(&args.header, ':', "-H", "'Name: value'")?;
    if !headers.is_empty() {
        entry.insert("headers".to_owned(), headers.into());
    }
    Ok(entry)
}

fn stdio(args: &AddArgs, program: &str, rest: &[String]) -> Result<Map<String, Value>, String> {
    if !args.header.is_empty() || args.transport.is_some() {
        return Err("-H and --transport are for addresses: a program gets variables (-e KEY=VALUE).".to_owned());
    }
    let mut entry = Map::new();
    entry.insert("transport".to_owned(), "stdio".into());
    entry.insert("command".to_owned(), program.into());
    entry.insert("args".to_owned(), json!(rest));
    let env = named(&args.env, '=', "-e", "KEY=VALUE")?;
    if !env.is_empty() {
        entry.insert("env".to_owned(), env.into());
    }
    Ok(entry)
}

fn named(given: &[String], separator: char, option: &str, form: &str) -> Result<Map<String, Value>, String> {
    let mut out = Map::new();
    for text in given {
        let (name, value) = text
            .split_once(separator)
            .map(|(name, value)| (name.trim(), value))
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| format!("\"{text}\" is nothing for {option}: write {form}."))?;
        let value = if separator == ':' { value.trim() } else { value };
        if out.insert(name.to_owned(), value.into()).is_some() {
            return Err(format!("{option} gives {name} twice: give it once."));
        }
    }
    Ok(out)
}

/// `{"id", …entry}`, or other apps' `{"mcpServers": {name: entry}}`, or `{name: entry}`.
fn from_json(text: &str) -> Result<Vec<(ConnectorId, Value)>, String> {
    let mut object = read_object(text)?;
    if let Some(given) = object.remove("id") {
        let given = given.as_str().ok_or("\"id\" must be a text.")?;
        return Ok(vec![body(id(given)?, object)]);
    }
    for key in ["mcpServers", "servers"] {
        if let Some(Value::Object(servers)) = object.remove(key) {
            object = servers;
            break;
        }
    }
    if object.is_empty() {
        return Err("There is no connector in this JSON.".to_owned());
    }
    object
        .into_iter()
        .map(|(name, entry)| match entry {
            Value::Object(entry) => Ok(body(id(&name)?, entry)),
            _ => Err(format!(
                "This JSON names no connector: add \"id\", or put the entry under its name. (\"{name}\" is no entry.)"
            )),
        })
        .collect()
}

fn read_object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|e| format!("This is no JSON object: {e}."))
}

fn body(id: ConnectorId, entry: Map<String, Value>) -> (ConnectorId, Value) {
    let entry = in_our_words(entry);
    let mut body = Map::new();
    body.insert("id".to_owned(), id.as_str().into());
    body.extend(entry);
    // The id from the command line wins over one inside the entry.
    body.insert("id".to_owned(), id.as_str().into());
    (id, Value::Object(body))
}

/// Other apps' words for `transport` and `enabled`.
fn in_our_words(mut entry: Map<String, Value>) -> Map<String, Value> {
    let transport = match entry.get("type").and_then(Value::as_str) {
        Some("stdio") => Some("stdio"),
        Some("http" | "streamable-http" | "streamableHttp") => Some("http"),
        Some("sse") => Some("sse"),
        _ => None,
    };
    if let Some(transport) = transport {
        entry.shift_remove("type");
        entry.entry("transport").or_insert_with(|| transport.into());
    }
    if let Some(Value::Bool(disabled)) = entry.get("disabled") {
        let enabled = !disabled;
        entry.shift_remove("disabled");
        entry.entry("enabled").or_insert_with(|| enabled.into());
    }
    entry
}

fn id(text: &str) -> Result<ConnectorId, String> {
    ConnectorId::parse(text).map_err(|e| format!("{e}."))
}

fn no_extras(args: &AddArgs, why: &str) -> Result<(), String> {
    if args.env.is_empty() && args.header.is_empty() && args.transport.is_none() {
        Ok(())
    } else {
        Err(format!("-e, -H and --transport cannot be used here: {why}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, ClientCommand, Command};
    use clap::Parser as _;

    fn add(words: &[&str], stdin: Option<&str>) -> Result<Vec<Value>, String> {
        let cli = Cli::try_parse_from(["neuron-connectd", "add"].iter().chain(words)).unwrap();
        let Command::Client(ClientCommand::Add(args)) = cli.command else {
            panic!("not add")
        };
        Ok(bodies(&args, stdin)?.into_iter().map(|(_, body)| body).collect())
    }

    #[test]
    fn a_command_becomes_a_stdio_entry_word_for_word() {
        let words = ["t", "-e", "A=b=c", "-e", "E=", "--", "npx", "-y", "a b", "$HOME"];
        assert_eq!(
            add(&words, None).unwrap(),
            [json!({
                "id": "t", "transport": "stdio", "command": "npx", "args": ["-y", "a b", "$HOME"],
                "env": {"A": "b=c", "E": ""},
            })]
        );
    }

    #[test]
    fn an_address_becomes_an_http_entry_with_its_headers() {
        let words = [
            "d",
            "https://x.example/mcp",
            "-H",
            "X-Key: ${secret:K}",
            "--transport",
            "sse",
        ];
        assert_eq!(
            add(&words, None).unwrap(),
            [json!({
                "id": "d", "transport": "sse", "url": "https://x.example/mcp", "headers": {"X-Key": "${secret:K}"},
            })]
        );
    }

    #[test]
    fn json_is_taken_with_an_id_under_a_name_or_from_another_app() {
        let entry = [json!({"id": "a", "command": "x"})];
        for (words, stdin) in [
            (vec![r#"{"id": "a", "command": "x"}"#], None),
            (vec!["--json", r#"{"a": {"command": "x"}}"#], None),
            (vec!["a", r#"{"command": "x"}"#], None),
            (vec!["-"], Some(r#"{"mcpServers": {"a": {"command": "x"}}}"#)),
            (vec!["a", "-"], Some(r#"{"command": "x"}"#)),
        ] {
            assert_eq!(add(&words, stdin).unwrap(), entry, "{words:?}");
        }
        let foreign = r#"{"a": {"type": "streamable-http", "url": "https://a", "disabled": true}}"#;
        assert_eq!(
            add(&[foreign], None).unwrap(),
            [json!({"id": "a", "url": "https://a", "transport": "http", "enabled": false})]
        );
        let two = r#"{"servers": {"b": {"url": "https://b"}, "a": {"command": "x"}}}"#;
        assert_eq!(add(&["-"], Some(two)).unwrap().len(), 2);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_write() {
        for (words, says) in [
            (vec!["my server", "https://x"], "my-server"),
            (vec!["a"], "Say what a is"),
            (vec!["a", "example.com"], "https://"),
            (vec!["a", "https://x", "-e", "A=b"], "-H"),
            (vec!["a", "-H", "X: y", "--", "prog"], "-e KEY=VALUE"),
            (vec!["a", "-e", "novalue", "--", "prog"], "KEY=VALUE"),
            (vec!["a", "https://x", "-H", "no header"], "Name: value"),
            (vec!["a", "https://x", "-H", "X: 1", "-H", "X: 2"], "twice"),
            (vec!["{"], "no JSON object"),
            (vec![r#"{"command": "x"}"#], "add \"id\""),
            (vec!["{}"], "no connector"),
            (vec!["a", "{}", "-e", "A=b"], "cannot be used"),
        ] {
            let why = add(&words, None).unwrap_err();
            assert!(why.contains(says), "{words:?}: {why}");
        }
    }
}
