use proptest::prelude::*;
use serde_json::json;

use super::*;

fn one(text: &str) -> Proposal {
    let mut paste = propose(text);
    assert_eq!(paste.problem, None, "{text}");
    assert_eq!(paste.proposals.len(), 1, "{text}");
    paste.proposals.remove(0)
}

fn entry(proposal: &Proposal) -> Value {
    serde_json::from_str(&proposal.entry).unwrap()
}

/// The only proposal works as it is.
fn works(text: &str, id: &str, expected: Value) -> Vec<String> {
    let proposal = one(text);
    assert_eq!(
        (proposal.id.as_str(), entry(&proposal), &proposal.problem),
        (id, expected, &None),
        "{text}"
    );
    proposal.notes
}

#[test]
fn an_address_becomes_an_http_connector_named_after_its_host() {
    assert!(
        works(
            "  https://mcp.notion.com/mcp\n",
            "notion",
            json!({"url": "https://mcp.notion.com/mcp"})
        )
        .is_empty()
    );
    let notes = works(
        "https://mcp.atlassian.com/v1/sse",
        "atlassian",
        json!({"url": "https://mcp.atlassian.com/v1/sse"}),
    );
    assert!(notes[0].contains("sse"));
    let notes = works(
        "mcp.linear.app/mcp",
        "linear",
        json!({"url": "https://mcp.linear.app/mcp"}),
    );
    assert!(notes[0].contains("https://"));
}

#[test]
fn a_command_line_is_split_and_named_after_what_it_runs() {
    for (text, id, expected) in [
        (
            "npx -y @scope/server-postgres@1.2 postgresql://localhost/db",
            "postgres",
            json!({"command": "npx", "args": ["-y", "@scope/server-postgres@1.2", "postgresql://localhost/db"]}),
        ),
        (
            "uvx mcp-server-time",
            "time",
            json!({"command": "uvx", "args": ["mcp-server-time"]}),
        ),
        (
            "$ API_KEY=abc B='x y' npx -y '@a/b c'",
            "b",
            json!({"command": "npx", "args": ["-y", "@a/b c"], "env": {"API_KEY": "abc", "B": "x y"}}),
        ),
        (
            "uvx --from git+https://github.com/oraios/serena serena-mcp-server",
            "serena",
            json!({"command": "uvx", "args": ["--from", "git+https://github.com/oraios/serena", "serena-mcp-server"]}),
        ),
        (
            "docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server",
            "github",
            json!({"command": "docker", "args": ["run", "-i", "--rm", "-e", "TOKEN", "ghcr.io/github/github-mcp-server"]}),
        ),
        (
            "uv run python -m norms_mcp",
            "norms",
            json!({"command": "uv", "args": ["run", "python", "-m", "norms_mcp"]}),
        ),
        (
            "node /opt/weather/index.js",
            "weather",
            json!({"command": "node", "args": ["/opt/weather/index.js"]}),
        ),
        (
            "npx \\\n  -y \\\n  mcp-x",
            "x",
            json!({"command": "npx", "args": ["-y", "mcp-x"]}),
        ),
        (
            "```sh\nnpx mcp-x\n```",
            "x",
            json!({"command": "npx", "args": ["mcp-x"]}),
        ),
        (
            "\"C:\\Program Files\\My Tool\\srv.exe\" --x",
            "srv",
            json!({"command": "C:\\Program Files\\My Tool\\srv.exe", "args": ["--x"]}),
        ),
        (
            "claude mcp add -s user --env A=b time -- uvx mcp-server-time --tz UTC",
            "time",
            json!({"command": "uvx", "args": ["mcp-server-time", "--tz", "UTC"], "env": {"A": "b"}}),
        ),
        (
            "claude mcp add --transport http --header \"X-Key: k\" my-notion https://mcp.notion.com/mcp",
            "my-notion",
            json!({"url": "https://mcp.notion.com/mcp", "headers": {"X-Key": "k"}}),
        ),
    ] {
        let proposal = one(text);
        let found = entry(&proposal);
        assert_eq!(
            (proposal.id.as_str(), found, &proposal.problem),
            (id, expected, &None),
            "{text}"
        );
    }
}

#[test]
fn a_hostile_command_line_is_only_long() {
    one(&"uv run ".repeat(30_000));
    one(&format!("{}x", "env ".repeat(30_000)));
}

#[test]
fn a_bridge_to_an_address_becomes_the_address() {
    let notes = works(
        "npx -y mcp-remote https://mcp.linear.app/mcp",
        "linear",
        json!({"url": "https://mcp.linear.app/mcp"}),
    );
    assert!(notes[0].contains("mcp-remote"));
}

#[test]
fn mcp_servers_with_approvals_and_unknown_members_are_taken_without_them() {
    let text = r#"{"mcpServers": {"aspire": {
        "type": "streamable-http", "url": "http://localhost:23231/mcp", "headers": {"x-key": "P"},
        "alwaysAllow": ["a"], "timeout": 300, "foo": 1}}, "preferences": {}}"#;
    let notes = works(
        text,
        "aspire",
        json!({"url": "http://localhost:23231/mcp", "headers": {"x-key": "P"}}),
    );
    assert!(notes.iter().any(|n| n.contains("alwaysAllow")) && notes.iter().any(|n| n.contains("timeout")));
    assert!(notes.iter().any(|n| n.contains("\"foo\"")));
}

#[test]
fn comments_trailing_commas_and_inputs_of_vs_code_are_understood() {
    let text = r#"{
        // Inputs are asked for.
        "inputs": [{"type": "promptString", "id": "perplexity-key", "description": "Perplexity API Key", "password": true,},],
        "servers": {
            "Github": {"url": "https://api.githubcopilot.com/mcp/",},
            "Perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "server-perplexity-ask"],
                "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}",},},
        },
    }"#;
    let paste = propose(text);
    assert_eq!(
        paste.proposals.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(),
        ["Github", "Perplexity"]
    );
    let perplexity = &paste.proposals[1];
    assert_eq!(
        entry(perplexity)["env"]["PERPLEXITY_API_KEY"],
        "${secret:perplexity-key}"
    );
    assert!(perplexity.notes[0].contains("Perplexity API Key"));
    assert_eq!(perplexity.problem, None);
    assert_eq!(perplexity.summary, "npx -y server-perplexity-ask");
}

#[test]
fn the_forms_of_other_clients_are_understood() {
    for (text, id, expected) in [
        (
            r#"{"context_servers": {"hub": {"source": "custom", "command": "uvx", "args": ["x", "serve"], "env": {}}}}"#,
            "hub",
            json!({"command": "uvx", "args": ["x", "serve"]}),
        ),
        (
            r#"{"context_servers": {"old": {"command": {"path": "uvx", "args": ["x"], "env": {"A": "b"}}, "settings": null}}}"#,
            "old",
            json!({"command": "uvx", "args": ["x"], "env": {"A": "b"}}),
        ),
        (
            r#"{"mcp": {"x": {"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "{env:A_KEY}"}, "enabled": false}}}"#,
            "x",
            json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "${env:A_KEY}"}, "enabled": false}),
        ),
        (
            r#"{"$schema": "s", "mcp": {"c7": {"type": "remote", "url": "https://mcp.context7.com/mcp", "oauth": false}}, "lsp": true}"#,
            "c7",
            json!({"url": "https://mcp.context7.com/mcp"}),
        ),
        (
            r#"{"mcp": {"servers": {"v": {"command": "x"}}}}"#,
            "v",
            json!({"command": "x"}),
        ),
        (
            r#"{"mcp": {"allowed": ["g"]}, "mcpServers": {"g": {"httpUrl": "http://api.example.com/mcp"}}}"#,
            "g",
            json!({"url": "http://api.example.com/mcp"}),
        ),
        (
            r#"{"command": "npx", "args": ["-y", "@x/server-git"]}"#,
            "git",
            json!({"command": "npx", "args": ["-y", "@x/server-git"]}),
        ),
        (r#"{"name": "Mine", "command": "x"}"#, "Mine", json!({"command": "x"})),
        (
            r#""foo": {"command": "x", "disabled": true},"#,
            "foo",
            json!({"command": "x", "enabled": false}),
        ),
        (
            r#"{"foo": {"url": "https://x.example"}}"#,
            "foo",
            json!({"url": "https://x.example"}),
        ),
        (r#"[{"name": "a", "command": "x"}]"#, "a", json!({"command": "x"})),
        (
            r#"{"mcpServers": {"s": {"type": "sse", "url": "http://localhost:9090/events"}}}"#,
            "s",
            json!({"transport": "sse", "url": "http://localhost:9090/events"}),
        ),
        (
            r#"{"mcpServers": {"s": {"type": "streamableHttp", "url": "http://localhost:9090/mcp"}}}"#,
            "s",
            json!({"url": "http://localhost:9090/mcp"}),
        ),
        (
            r#"{"mcpServers": {"df": {"transport": {"type": "http", "url": "http://localhost:8002", "headers": {"x": "${MCP_TOKEN}"}}}}}"#,
            "df",
            json!({"url": "http://localhost:8002", "headers": {"x": "${env:MCP_TOKEN}"}}),
        ),
        (
            r#"{"mcpServers": {"a": {"url": "${API_BASE_URL:-https://api.example.com}/mcp", "headers": {"A": "Bearer ${API_KEY}"}}}}"#,
            "a",
            json!({"url": "https://api.example.com/mcp", "headers": {"A": "Bearer ${env:API_KEY}"}}),
        ),
        (
            r#"{"mcpServers": {"p": {"command": "x", "args": ["--port", 8080, true], "env": {"N": 1, "Z": null}}}}"#,
            "p",
            json!({"command": "x", "args": ["--port", "8080", "true"], "env": {"N": "1"}}),
        ),
        (
            r#"{"mcpServers": {"hf": {"url": "https://huggingface.co/mcp", "headers": {"Authorization": "Bearer <YOUR_HF_TOKEN>"}}}}"#,
            "hf",
            json!({"url": "https://huggingface.co/mcp", "headers": {"Authorization": "Bearer <YOUR_HF_TOKEN>"}}),
        ),
        (
            r#"{"mcpServers": {"o": {"url": "https://x.example", "oauth": {"enabled": true, "clientId": "c", "redirectUri": "http://localhost"}}}}"#,
            "o",
            json!({"url": "https://x.example", "oauth": {"clientId": "c"}}),
        ),
        (
            r#"{"mcpServers": {"w": {"command": "C:\\Code\\python.exe", "args": ["C:\\Code\\s.py"]}}}"#,
            "w",
            json!({"command": "C:\\Code\\python.exe", "args": ["C:\\Code\\s.py"]}),
        ),
    ] {
        works(text, id, expected);
    }
}

#[test]
fn our_own_entry_survives_unchanged() {
    let ours = json!({"transport": "sse", "url": "https://x.example/s?k=${secret:K}", "auth": "oauth", "oauth": {"clientId": "c"},
        "disabledTools": ["x"], "timeouts": {"callMs": 5}, "start": "at-launch", "enabled": false, "description": "d"});
    works(&json!({"servers": {"a": ours}}).to_string(), "a", ours.clone());
}

#[test]
fn a_name_that_is_no_id_stays_as_the_shown_name_and_ids_never_repeat() {
    let paste = propose(
        r#"{"mcpServers": {"My Server": {"command": "x"}, "My-Server": {"command": "y"}, "日本": {"command": "z"}}}"#,
    );
    let ids: Vec<_> = paste.proposals.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(ids, ["My-Server", "My-Server-2", "connector"]);
    assert_eq!(entry(&paste.proposals[0])["name"], "My Server");
    assert_eq!(entry(&paste.proposals[2])["name"], "日本");
    assert!(paste.proposals.iter().all(|p| p.problem.is_none()));
}

#[test]
fn what_cannot_work_says_why_and_keeps_its_neighbours() {
    let paste = propose(
        r#"{"mcpServers": {
            "ws": {"type": "websocket", "url": "ws://localhost/ws"}, "n": 5, "e": {"command": ""},
            "folder": {"command": "bash", "args": ["${workspaceFolder}/x.sh"]},
            "host": {"url": "https://${HOST}/mcp"}, "fine": {"command": "x"}}}"#,
    );
    let problems: Vec<_> = paste
        .proposals
        .iter()
        .map(|p| p.problem.as_deref().unwrap_or_default())
        .collect();
    for (problem, word) in problems
        .iter()
        .zip(["websocket", "no object", "empty", "${workspaceFolder}", "in plain"])
    {
        assert!(problem.contains(word), "{problem}");
    }
    assert_eq!(problems[5], "");
}

#[test]
fn every_failure_is_a_sentence_that_says_what_to_do() {
    for (text, word) in [
        ("", "nothing"),
        (" \u{feff}\n", "nothing"),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\"}\n oops }", "comma"),
        ("{\"mcpServers\": {\"a\": {}, \"a\": {}}}", "twice"),
        ("{\"mcpServers\": {}}", "empty"),
        ("{\"general\": {\"devtools\": true}}", "No server"),
        ("{}", "No server"),
        ("[]", "list"),
        ("// only", "comments"),
        ("[1, 2]", "list"),
        ("[mcp_servers.x]\nurl = \"https://x\"", "TOML"),
        ("model = 1\n[mcp_servers.x]\ncommand = \"y\"", "TOML"),
        ("extensions:\n  x:\n    cmd: y", "YAML"),
        ("ftp://x.example/y", "ftp"),
        ("javascript://x", "javascript"),
        ("npx 'x", "quote"),
        ("npx x && rm y", "&&"),
        ("npx x\nnpx y", "several lines"),
        ("A=b", "no program"),
        ("claude mcp add x", "mcp add"),
    ] {
        let paste = propose(text);
        let problem = paste.problem.unwrap_or_default();
        assert!(
            problem.contains(word) && problem.ends_with('.') && paste.proposals.is_empty(),
            "{text:?}: {problem}"
        );
    }
    assert!(propose(&"x ".repeat(MAX_TEXT)).problem.unwrap().contains("256 KiB"));
}

proptest! {
    #[test]
    fn any_text_gives_proposals_or_a_problem_and_every_id_is_legal(
        pieces in proptest::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\\", "mcpServers", "\"servers\": {", "\"a\": {", "\"command\": \"x\"",
                "\"url\": \"https://x/${A:-b}", "${input:é}", "{env:X}", "npx", "-y", " ", "\n", "@s/p@1", "claude mcp add",
                "--", "--env", "A=b", "`", "```", "://", "C:\\", "é", "\u{feff}", "docker run", "uv run", "mcp.x/y", "$X", "'",
            ]),
            0..16,
        )
    ) {
        let paste = propose(&pieces.concat());
        prop_assert_eq!(paste.problem.is_some(), paste.proposals.is_empty());
        for proposal in paste.proposals {
            prop_assert!(ConnectorId::parse(&proposal.id).is_ok());
            prop_assert!(serde_json::from_str::<Map<String, Value>>(&proposal.entry).is_ok());
        }
    }
}
