//! A command line, as it stands in a README.

use serde_json::{Map, Value};

use super::{Draft, address, names};

/// Programs that add a server to another client; what follows tells what to run.
const OTHER_CLIENTS: [&str; 3] = ["claude", "codex", "gemini"];

pub(super) fn read(text: &str) -> Result<Draft, String> {
    let line = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let line = line.trim().trim_start_matches("$ ").trim();
    if line.lines().count() > 1 {
        return Err("These are several lines; paste one command line, one address, or JSON.".to_owned());
    }
    let words = split(line)?;
    if let Some(operator) = words
        .iter()
        .find(|word| matches!(word.as_str(), "&&" | "||" | "|" | ";" | ">" | "<" | "&"))
    {
        return Err(format!(
            "The command line contains \"{operator}\", which only a shell understands; paste just the command that starts the server."
        ));
    }
    match words.as_slice() {
        [client, mcp, add, rest @ ..] if OTHER_CLIENTS.contains(&client.as_str()) && mcp == "mcp" && add == "add" => {
            added_to_client(client, rest)
        }
        _ => program(words),
    }
}

/// As a shell splits; a Windows path keeps its backslashes.
fn split(line: &str) -> Result<Vec<String>, String> {
    let bare = line.trim_start_matches('"');
    let windows = bare.as_bytes().get(1..3) == Some(b":\\") || bare.starts_with("\\\\");
    let line = if windows {
        line.replace('\\', "\\\\")
    } else {
        line.to_owned()
    };
    shell_words::split(&line)
        .map_err(|_unclosed| "The command line has a quote that is never closed; close it.".to_owned())
}

fn program(words: Vec<String>) -> Result<Draft, String> {
    let mut env = Map::new();
    let mut words = words.into_iter().peekable();
    words.next_if(|word| word == "env");
    while let Some(word) = words.next_if(|word| assignment(word).is_some()) {
        if let Some((name, value)) = assignment(&word) {
            env.insert(name.to_owned(), value.into());
        }
    }
    let command = words
        .next()
        .ok_or("The command line names no program; paste the whole line.".to_owned())?;
    let args: Vec<String> = words.collect();
    let mut draft = launch(&command, &args);
    if !env.is_empty() {
        if draft.entry.contains_key("command") {
            draft.entry.insert("env".to_owned(), Value::Object(env));
        } else {
            draft
                .notes
                .push("The variables in front of the command were left out.".to_owned());
        }
    }
    Ok(draft)
}

/// The entry for a program, under a name guessed from what it runs.
pub(super) fn launch(command: &str, args: &[String]) -> Draft {
    if let Some(url) = bridged_address(command, args)
        && let Ok(mut draft) = address(url)
    {
        draft
            .notes
            .push("\"mcp-remote\" only passes on to this address, which is connected to directly instead.".to_owned());
        return draft;
    }
    let mut draft = Draft {
        name: guess(command, args),
        ..Draft::default()
    };
    draft.entry.insert("command".to_owned(), command.into());
    if !args.is_empty() {
        draft.entry.insert("args".to_owned(), args.into());
    }
    let variable = args.iter().find(|arg| {
        arg.split('$')
            .skip(1)
            .any(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
    });
    if let Some(arg) = variable {
        draft.notes.push(format!(
            "\"{}\" is passed on as it stands; to fill in a variable write ${{env:NAME}}.",
            arg.chars().take(64).collect::<String>().escape_debug()
        ));
    }
    draft
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).then_some((name, value))
}

/// The address behind `npx mcp-remote ADDRESS` without further arguments.
fn bridged_address<'a>(command: &str, args: &'a [String]) -> Option<&'a str> {
    if !matches!(base(command).as_str(), "npx" | "bunx" | "pnpx") {
        return None;
    }
    match args
        .iter()
        .filter(|arg| !matches!(arg.as_str(), "-y" | "--yes"))
        .collect::<Vec<_>>()
        .as_slice()
    {
        [package, url] if package.split('@').next() == Some("mcp-remote") && url.contains("://") => Some(url),
        _ => None,
    }
}

/// A name for what a runner runs, else for the program.
pub(super) fn guess(command: &str, args: &[String]) -> String {
    let program = base(command);
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let package = match (program.as_str(), words.as_slice()) {
        ("npx" | "bunx" | "pnpx", rest) => first_operand(rest, &["-p", "--package", "-c", "--call"]),
        ("pnpm" | "yarn", ["dlx", rest @ ..]) | ("bun", ["x", rest @ ..]) => first_operand(rest, &["-p", "--package"]),
        ("uvx", rest) | ("uv", ["tool", "run", rest @ ..]) | ("pipx", ["run", rest @ ..]) => {
            first_operand(rest, &["--from", "--with", "--python", "-p", "--spec", "--index-url"])
        }
        ("docker" | "podman", ["run", rest @ ..]) => first_operand(
            rest,
            &[
                "-e",
                "--env",
                "-v",
                "--volume",
                "--name",
                "-p",
                "--publish",
                "--network",
                "--mount",
                "--env-file",
                "-u",
                "--user",
                "-w",
                "--workdir",
                "--entrypoint",
                "--platform",
            ],
        ),
        ("python" | "python3" | "py", ["-m", module, ..]) => Some(*module),
        ("uv", ["run", rest @ ..]) => {
            let inner = first_operand(
                rest,
                &["--with", "--directory", "--project", "--python", "-p", "--from"],
            );
            return match inner {
                Some(inner) if base(inner) != "uv" => {
                    let after = args
                        .iter()
                        .position(|arg| arg == inner)
                        .map_or(args.len(), |index| index + 1);
                    guess(inner, &args[after..])
                }
                Some(_) | None => names::of_file(command),
            };
        }
        ("node" | "python" | "python3" | "py" | "deno" | "bun" | "bash" | "sh" | "ruby" | "php", rest) => {
            let script = rest.iter().find(|word| !word.starts_with('-') && **word != "run");
            return names::of_file(script.copied().unwrap_or(command));
        }
        (_, _) => None,
    };
    package.map_or_else(|| names::of_file(command), names::of_package)
}

/// The first word that is neither an option nor the value of one of `valued`.
fn first_operand<'a>(words: &[&'a str], valued: &[&str]) -> Option<&'a str> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if valued.contains(word) {
            words.next();
        } else if !word.starts_with('-') {
            return Some(word);
        }
    }
    None
}

fn base(command: &str) -> String {
    let name = command
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(command)
        .to_ascii_lowercase();
    let stem = [".exe", ".cmd", ".bat"].iter().find_map(|end| name.strip_suffix(end));
    stem.unwrap_or(&name).to_owned()
}

/// `claude mcp add [options] NAME [--] COMMAND…` or with an address in its place.
fn added_to_client(client: &str, words: &[String]) -> Result<Draft, String> {
    let (mut env, mut headers, mut transport) = (Map::new(), Map::new(), None);
    let mut operands = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (option, inline) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
            Some(_) | None => (word.as_str(), None),
        };
        let mut value = || inline.clone().or_else(|| words.next().cloned()).unwrap_or_default();
        match option {
            "--" => {
                operands.extend(words.by_ref().cloned());
            }
            // The program's own options begin after its name.
            _ if operands.len() >= 2 => operands.push(word.clone()),
            "-e" | "--env" => {
                if let Some((name, value)) = value().split_once('=') {
                    env.insert(name.to_owned(), value.into());
                }
            }
            "-H" | "--header" => {
                if let Some((name, value)) = value().split_once(':') {
                    headers.insert(name.trim().to_owned(), value.trim().into());
                }
            }
            "-t" | "--transport" => transport = Some(value()),
            "--url" => operands.push(value()),
            "-s" | "--scope" => drop(value()),
            _ if option.starts_with('-') => {}
            _ => operands.push(word.clone()),
        }
    }
    let [name, target, args @ ..] = operands.as_slice() else {
        return Err(format!(
            "\"{client} mcp add\" needs a name and a command or address; paste the whole line."
        ));
    };
    let mut draft = if target.contains("://") {
        address(target)?
    } else {
        launch(target, args)
    };
    draft.name.clone_from(name);
    if transport.as_deref() == Some("sse") && draft.entry.contains_key("url") {
        draft.entry.insert("transport".to_owned(), "sse".into());
        draft.notes.clear();
    }
    let kept = if draft.entry.contains_key("url") {
        ("headers", headers)
    } else {
        ("env", env)
    };
    if !kept.1.is_empty() {
        draft.entry.insert(kept.0.to_owned(), Value::Object(kept.1));
    }
    Ok(draft)
}
