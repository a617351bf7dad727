//! A short name for a server, guessed from its address, package or program.

use url::{Host, Url};

/// Words that say "MCP server" and nothing about which.
const FILLERS: [&str; 8] = [
    "mcp",
    "server",
    "servers",
    "api",
    "www",
    "app",
    "remote",
    "modelcontextprotocol",
];

/// From the host: `https://mcp.notion.com/mcp` → `notion`.
pub(super) fn of_url(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let host = match parsed.as_ref().and_then(Url::host) {
        Some(Host::Domain(host)) => host.to_owned(),
        Some(Host::Ipv4(ip)) => return ip.to_string(),
        Some(Host::Ipv6(_)) | None => return "server".to_owned(),
    };
    let mut labels: Vec<&str> = host.split('.').filter(|label| !label.is_empty()).collect();
    if labels.len() > 1 {
        labels.pop();
        // co.uk and the like.
        if labels.len() > 1
            && labels
                .last()
                .is_some_and(|label| label.len() <= 3 && ["co", "com", "org", "ac"].contains(label))
        {
            labels.pop();
        }
    }
    let telling = labels.iter().rev().find(|label| !FILLERS.contains(label));
    telling.map_or_else(|| host.clone(), |label| bare(label))
}

/// From a package as a runner takes it: `@scope/server-postgres@1.2` → `postgres`.
pub(super) fn of_package(package: &str) -> String {
    let package = package.strip_prefix("git+").unwrap_or(package);
    if package.contains("://") || package.starts_with("github:") {
        return bare(last_part(package));
    }
    // Tags and digests of images, versions of npm and PyPI packages.
    let (scope, name) = match package.strip_prefix('@').and_then(|rest| rest.split_once('/')) {
        Some((scope, name)) => (Some(scope), name),
        None => (None, last_part(package)),
    };
    let name = name
        .split(['@', ':', '=', '[', '<', '>', '~', ' '])
        .next()
        .unwrap_or_default();
    match (bare(name), scope) {
        (name, Some(scope)) if FILLERS.contains(&name.as_str()) => bare(scope),
        (name, _) => name,
    }
}

/// From a program or script: `/opt/x/server.py` → `server`.
pub(super) fn of_file(path: &str) -> String {
    let name = last_part(path);
    let stem = name
        .rsplit_once('.')
        .map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem });
    let parent = path
        .rsplit(['/', '\\'])
        .nth(1)
        .filter(|parent| !matches!(*parent, "" | "." | ".." | "dist" | "build" | "src" | "bin"));
    match (bare(stem), parent) {
        (name, Some(parent)) if FILLERS.contains(&name.as_str()) || name == "index" || name == "main" => bare(parent),
        (name, _) => name,
    }
}

fn last_part(path: &str) -> &str {
    let path = path
        .split(['#', '?'])
        .next()
        .unwrap_or_default()
        .trim_end_matches(['/', '\\']);
    let name = path.rsplit(['/', '\\', ':']).next().unwrap_or_default();
    // `image:tag` and `repo.git@rev` name themselves before the mark.
    let name = if path.ends_with(name) && !path.contains("://") && name.len() < path.len() && path.contains('/') {
        path.rsplit(['/', '\\']).next().unwrap_or_default()
    } else {
        name
    };
    let name = name.split('@').next().unwrap_or_default();
    name.strip_suffix(".git").unwrap_or(name)
}

/// Without the fillers at its ends: `mcp-server-time` → `time`; itself where nothing would be left.
fn bare(name: &str) -> String {
    let mut words: Vec<&str> = name.split(['-', '_', '.']).filter(|word| !word.is_empty()).collect();
    let filler =
        |word: Option<&&str>| word.is_some_and(|word| FILLERS[..3].contains(&word.to_ascii_lowercase().as_str()));
    while words.len() > 1 && filler(words.first()) {
        words.remove(0);
    }
    while words.len() > 1 && filler(words.last()) {
        words.pop();
    }
    if words.is_empty() {
        "server".to_owned()
    } else {
        words.join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_give_telling_names() {
        for (package, name) in [
            ("@scope/server-postgres@1.2", "postgres"),
            ("@modelcontextprotocol/server-brave-search", "brave-search"),
            ("@playwright/mcp@latest", "playwright"),
            ("mcp-server-time", "time"),
            ("mcp-server-git==2025.1", "git"),
            ("mcp_server_fetch[extra]", "fetch"),
            ("slack-mcp-server@latest", "slack"),
            ("github:Username/example-mcp-server", "example"),
            ("git+https://github.com/oraios/serena", "serena"),
            ("git+https://github.com/o/x.git@v1#egg=y", "x"),
            ("ghcr.io/github/github-mcp-server:latest", "github"),
            ("mcp/time", "time"),
            ("server", "server"),
            ("mcp-server", "server"),
        ] {
            assert_eq!(of_package(package), name, "{package}");
        }
    }

    #[test]
    fn addresses_and_files_give_telling_names() {
        for (url, name) in [
            ("https://mcp.notion.com/mcp", "notion"),
            ("https://api.githubcopilot.com/mcp/", "githubcopilot"),
            ("https://mcp.example.co.uk", "example"),
            ("http://localhost:3000/mcp", "localhost"),
            ("http://127.0.0.1:1/x", "127.0.0.1"),
            ("https://huggingface.co/mcp", "huggingface"),
            ("https://mcp.app", "mcp.app"),
        ] {
            assert_eq!(of_url(url), name, "{url}");
        }
        for (path, name) in [
            ("/opt/weather/server.py", "weather"),
            ("/opt/weather/dist/index.js", "index"),
            ("C:\\tools\\my-mcp.exe", "my"),
            ("./foo.sh", "foo"),
            ("x", "x"),
        ] {
            assert_eq!(of_file(path), name, "{path}");
        }
    }
}
