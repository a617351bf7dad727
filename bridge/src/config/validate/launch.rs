//! What an entry runs or contacts: the members that decide it, and which of them belong together.

use http::{HeaderName, HeaderValue};
use indexmap::IndexMap;
use jsonc_parser::{ast::ObjectProp, common::Ranged as _};
use url::Url;

use super::members::{Reader, References};
use crate::{
    config::{
        Auth, HttpLaunch, Launch, StdioLaunch,
        json::{key, key_range},
        reference::{self, Piece},
    },
    snapshot::{Notice, TransportKind},
};

/// Our own binary's name; it resolves to this program and runs nothing but the built-in files server.
const OWN_PROGRAM: &str = "neuron-connectd";

/// Headers that the protocol itself writes.
const RESERVED: [&str; 7] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
];

/// Headers that the protocol writes too, and that examples on the web like to repeat.
const SUPERFLUOUS: [&str; 2] = ["accept", "content-type"];

/// The members of an entry that decide its launch, as they stand in the tree.
#[derive(Default)]
pub(super) struct LaunchMembers<'p, 'a> {
    pub(super) transport: Option<&'p ObjectProp<'a>>,
    pub(super) command: Option<&'p ObjectProp<'a>>,
    pub(super) args: Option<&'p ObjectProp<'a>>,
    pub(super) env: Option<&'p ObjectProp<'a>>,
    pub(super) cwd: Option<&'p ObjectProp<'a>>,
    pub(super) env_file: Option<&'p ObjectProp<'a>>,
    pub(super) url: Option<&'p ObjectProp<'a>>,
    pub(super) headers: Option<&'p ObjectProp<'a>>,
    pub(super) auth: Option<&'p ObjectProp<'a>>,
    pub(super) oauth: Option<&'p ObjectProp<'a>>,
}

/// `start` is the byte where the entry begins.
pub(super) fn read(reader: &mut Reader<'_>, start: usize, members: &LaunchMembers<'_, '_>) -> Result<Launch, Notice> {
    match (transport(reader, start, members)?, members.command, members.url) {
        (TransportKind::Stdio, Some(command), None) => stdio(reader, command, members).map(Launch::Stdio),
        (TransportKind::Stdio, _, Some(url)) => Err(reader.fault(
            key_range(url).start,
            "transport \"stdio\" runs a program and cannot have a \"url\"; write \"command\" instead, or use transport \"http\"",
        )),
        (TransportKind::Stdio, None, None) => {
            Err(reader.fault(start, "transport \"stdio\" needs a \"command\", the program to run; add it"))
        }
        (kind @ (TransportKind::Http | TransportKind::Sse), None, Some(url)) => {
            http(reader, url, members, kind == TransportKind::Sse).map(Launch::Http)
        }
        (TransportKind::Http | TransportKind::Sse, Some(command), _) => Err(reader.fault(
            key_range(command).start,
            "transport \"http\" contacts an address and cannot have a \"command\"; write \"url\" instead, or use transport \"stdio\"",
        )),
        (TransportKind::Http | TransportKind::Sse, None, None) => {
            Err(reader.fault(start, "transport \"http\" needs a \"url\", the address to contact; add it"))
        }
    }
}

fn transport(reader: &mut Reader<'_>, start: usize, members: &LaunchMembers<'_, '_>) -> Result<TransportKind, Notice> {
    if let (Some(command), Some(url)) = (members.command, members.url) {
        return Err(reader.fault(
            key_range(command).start.max(key_range(url).start),
            "an entry has either \"command\" or \"url\", not both; remove one",
        ));
    }
    let choices = [
        ("stdio", TransportKind::Stdio),
        ("http", TransportKind::Http),
        ("sse", TransportKind::Sse),
    ];
    let written = members
        .transport
        .map(|property| reader.choice(property, "transport", &choices))
        .transpose()?;
    match (written, members.command, members.url) {
        (Some(kind), _, _) => {
            if let (TransportKind::Sse, Some(property)) = (kind, members.transport) {
                reader.inform(
                    property.value.start(),
                    "transport \"sse\" is deprecated; use \"http\" if the server offers it",
                );
            }
            Ok(kind)
        }
        (None, Some(_), _) => Ok(TransportKind::Stdio),
        (None, None, Some(_)) => Ok(TransportKind::Http),
        (None, None, None) => Err(reader.fault(
            start,
            "it has neither \"command\" (a program to run) nor \"url\" (an address to contact); add one",
        )),
    }
}

fn stdio(
    reader: &mut Reader<'_>,
    command_member: &ObjectProp<'_>,
    members: &LaunchMembers<'_, '_>,
) -> Result<StdioLaunch, Notice> {
    for property in [members.headers, members.auth, members.oauth].into_iter().flatten() {
        reader.without_effect(property, "stdio");
    }
    let offset = command_member.value.start();
    let mut command = reader.nonempty(command_member, "command")?;
    let mut args = match members.args {
        Some(property) => reader.texts(property, "args", References::Filled)?,
        None => Vec::new(),
    };
    if members.args.is_none()
        && let Some((program, rest)) = split_command(reader, offset, &command)?
    {
        (command, args) = (program, rest);
    }
    if command.contains("${") {
        return Err(reader.fault(
            offset,
            "\"command\" is run as written and cannot contain \"${…}\"; write the path out, or begin it with \"~/\"",
        ));
    }
    if command == OWN_PROGRAM && (args.first().map(String::as_str) != Some("files") || args.len() < 2) {
        return Err(reader.fault(
            offset,
            format!("\"{OWN_PROGRAM}\" can only be used for the built-in files server; write \"args\": [\"files\", \"~/a-folder\"]"),
        ));
    }
    let env = match members.env {
        Some(property) => environment(reader, property)?,
        None => IndexMap::new(),
    };
    let mut path = |member: Option<&ObjectProp<'_>>, name: &str| {
        member
            .map(|property| reader.referring(property, name, References::Literal))
            .transpose()
    };
    Ok(StdioLaunch {
        cwd: path(members.cwd, "cwd")?,
        env_file: path(members.env_file, "envFile")?,
        command,
        args,
        env,
    })
}

/// `"npx -y x"` as program and arguments; `None` where it is one word or a Windows path, whose backslashes and spaces
/// a shell would take for something else.
fn split_command(
    reader: &mut Reader<'_>,
    offset: usize,
    command: &str,
) -> Result<Option<(String, Vec<String>)>, Notice> {
    let windows_path = matches!(command.as_bytes(), [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic())
        || command.starts_with("\\\\");
    if windows_path || !command.contains(char::is_whitespace) {
        return Ok(None);
    }
    let mut words = shell_words::split(command)
        .map_err(|_unclosed| {
            reader.fault(
                offset,
                "\"command\" has a quote that is never closed; close it, or put the arguments into \"args\"",
            )
        })?
        .into_iter();
    let Some(program) = words.next().filter(|word| !word.is_empty()) else {
        return Err(reader.fault(offset, "\"command\" names no program; write one"));
    };
    let args: Vec<String> = words.collect();
    for (index, arg) in args.iter().enumerate() {
        reader.check_references(offset, arg, &format!("args[{index}]"), References::Filled)?;
    }
    reader.warn(
        offset,
        format!(
            "\"command\" was split into the program \"{}\" and {} argument(s); write the arguments as \"args\": […], or add \"args\": [] if it is one path with spaces",
            program.escape_debug(),
            args.len()
        ),
    );
    Ok(Some((program, args)))
}

fn environment(reader: &mut Reader<'_>, property: &ObjectProp<'_>) -> Result<IndexMap<String, String>, Notice> {
    let env = reader.text_map(property, "env")?;
    match env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        Some(name) => Err(reader.fault(
            property.value.start(),
            format!(
                "\"{}\" in \"env\" cannot be a variable's name; use letters, digits and \"_\"",
                name.escape_debug()
            ),
        )),
        None => Ok(env),
    }
}

fn http(
    reader: &mut Reader<'_>,
    url_member: &ObjectProp<'_>,
    members: &LaunchMembers<'_, '_>,
    sse: bool,
) -> Result<HttpLaunch, Notice> {
    let word = if sse { "sse" } else { "http" };
    for property in [members.args, members.env, members.cwd, members.env_file]
        .into_iter()
        .flatten()
    {
        reader.without_effect(property, word);
    }
    let url = reader.referring(url_member, "url", References::Filled)?;
    check_url(&url).map_err(|what| reader.fault(url_member.value.start(), format!("\"url\" {what}")))?;
    let headers = match members.headers {
        Some(property) => headers(reader, property)?,
        None => IndexMap::new(),
    };
    let choices = [("none", Auth::None), ("token", Auth::Token), ("oauth", Auth::OAuth)];
    let auth = members
        .auth
        .map(|property| reader.choice(property, "auth", &choices))
        .transpose()?;
    let oauth = members
        .oauth
        .map(|property| super::oauth::read(reader, property))
        .transpose()?;
    Ok(HttpLaunch {
        url,
        headers,
        auth,
        oauth,
        sse,
    })
}

/// Why a text is no address of a server, as the end of a sentence that begins with `"url"`.
fn check_url(url: &str) -> Result<(), &'static str> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("must be a whole address, such as \"https://example.com/mcp\"");
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err("must begin with https:// or http://");
    }
    let authority = &rest[..rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len())];
    if authority.contains("${") {
        return Err("must name its server in plain; ${…} can stand only in the path and after \"?\"");
    }
    if authority.is_empty() {
        return Err("names no server; write it as \"https://example.com/mcp\"");
    }
    if authority.contains('@') {
        return Err("must not hold a user name or password; put them into \"headers\" with ${secret:NAME}");
    }
    let mut sample = String::new();
    for piece in reference::pieces(url).unwrap_or_default() {
        match piece {
            Piece::Text(text) if text.contains('#') => {
                return Err("must not have a \"#\" part, which servers never see; remove it");
            }
            Piece::Text(text) if text.contains(|c: char| c.is_whitespace() || c.is_control()) => {
                return Err("must not contain spaces; remove them or write %20");
            }
            Piece::Text(text) => sample.push_str(text),
            Piece::Env { .. } | Piece::Secret { .. } => sample.push('x'),
        }
    }
    match Url::parse(&sample) {
        Ok(_) => Ok(()),
        Err(_) => Err("is no valid address; write it as \"https://example.com/mcp\""),
    }
}

fn headers(reader: &mut Reader<'_>, property: &ObjectProp<'_>) -> Result<IndexMap<String, String>, Notice> {
    let mut headers = reader.text_map(property, "headers")?;
    let object = reader.object(property, "headers")?;
    let mut seen: Vec<String> = Vec::new();
    for member in &object.properties {
        let (name, offset) = (key(member), key_range(member).start);
        let shown = name.escape_debug();
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(reader.fault(
                offset,
                format!("\"{shown}\" cannot be a header's name; use letters, digits and \"-\""),
            ));
        }
        let lower = name.to_ascii_lowercase();
        if seen.contains(&lower) {
            return Err(reader.fault(offset, format!("the header \"{shown}\" stands twice; remove one")));
        }
        if RESERVED.contains(&lower.as_str()) {
            return Err(reader.fault(
                offset,
                format!("the header \"{shown}\" is written by the connection itself; remove it"),
            ));
        }
        if SUPERFLUOUS.contains(&lower.as_str()) {
            reader.warn(
                offset,
                format!("the header \"{shown}\" is written by the connection itself; yours is left out"),
            );
            headers.shift_remove(name);
        }
        seen.push(lower);
        if headers
            .get(name)
            .is_some_and(|value| HeaderValue::from_bytes(value.as_bytes()).is_err())
        {
            return Err(reader.fault(
                member.value.start(),
                format!("the header \"{shown}\" contains a line break or control character; remove it"),
            ));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers_are_told_from_other_texts() {
        for good in [
            "https://example.com",
            "HTTPS://example.com/mcp?x=${env:X:-a/b#c d}&y=1",
            "http://127.0.0.1:8080/${secret:PATH}/mcp",
            "http://[::1]:1/",
            "https://bücher.example/${HOME}",
        ] {
            check_url(good).unwrap_or_else(|what| panic!("{good}: {what}"));
        }
        for bad in [
            "",
            "example.com/mcp",
            "https:example.com",
            "ftp://example.com",
            "javascript://x/%0aalert(1)",
            "file:///etc/passwd",
            "https://",
            "https:///mcp",
            "https://${env:HOST}/mcp",
            "https://a.${secret:B}/mcp",
            "https://a${x}.b/",
            "https://user:pass@example.com/",
            "https://example.com/#x",
            "https://exa mple.com/",
            "https://example.com/a b",
            "https://example.com:99999/",
            "https://example.com\\@evil.example/\n",
        ] {
            assert!(check_url(bad).is_err(), "{bad}");
        }
    }
}
