use serde_json::{Value, json};

use super::*;
use crate::config;

fn ground(entry: &Value) -> Option<Ground> {
    let text = json!({"servers": {"files": entry}}).to_string();
    let config = config::parse(text.as_bytes()).unwrap();
    let config::EntryKind::Valid(connector) = &config.entries[0].kind else {
        panic!("{text}")
    };
    Ground::of(&connector.launch, Path::new("/run/files"), Path::new("/home/ada"))
}

fn folder(entry: &Value) -> Option<PathBuf> {
    ground(entry).unwrap().folder
}

#[test]
fn a_program_looks_where_it_runs() {
    assert_eq!(folder(&json!({"command": "server"})), Some("/run/files".into()));
    assert_eq!(
        folder(&json!({"command": "server", "cwd": "~/work"})),
        Some("/home/ada/work".into())
    );
    let files = ground(&json!({"command": "neuron-connectd", "args": ["files", "~/sandbox"]})).unwrap();
    assert_eq!(files.folder, Some("/home/ada/sandbox".into()));
    assert_eq!(files.tilde, Tilde::Home("/home/ada".into()));
}

#[test]
fn where_a_program_goes_elsewhere_no_relative_path_is_known() {
    for entry in [
        json!({"command": "uv", "args": ["--directory", "/srv/x", "run", "server.py"]}),
        json!({"command": "uv", "args": ["--directory=/srv/x", "run", "server.py"]}),
        json!({"command": "sh", "args": ["-c", "cd /srv && server"]}),
        json!({"command": "/bin/bash", "args": ["start"]}),
        json!({"command": "env", "args": ["-C", "/srv", "server"]}),
        json!({"command": "npm", "args": ["run", "server"]}),
        json!({"command": "npm", "args": ["--prefix", "/srv", "start"]}),
        json!({"command": "sudo", "args": ["server"]}),
        json!({"command": "server", "args": ["${env:WORK}"]}),
    ] {
        assert_eq!(folder(&entry), None, "{entry}");
    }
}

#[test]
fn a_program_that_sees_other_files_than_ours_has_no_ground() {
    for entry in [
        json!({"command": "docker", "args": ["run", "-i", "image"]}),
        json!({"command": "/usr/bin/podman", "args": ["run", "image"]}),
        json!({"command": "ssh", "args": ["host", "server"]}),
        json!({"command": "wsl.exe", "args": ["server"]}),
        json!({"command": "sudo", "args": ["-E", "docker", "run", "image"]}),
        json!({"command": "sh", "args": ["-c", "exec /usr/bin/docker run image"]}),
        json!({"command": "npx", "args": ["-y", "mcp-remote@1.2.3", "https://mcp.example.com"]}),
        json!({"url": "https://mcp.example.com"}),
    ] {
        assert_eq!(ground(&entry), None, "{entry}");
    }
    assert!(ground(&json!({"command": "uvx", "args": ["docker-mcp"]})).is_some());
}

#[test]
fn where_the_home_is_another_one_nobody_knows_what_a_tilde_is() {
    for entry in [
        json!({"command": "server", "env": {"HOME": "/srv"}}),
        json!({"command": "server", "envFile": "~/x.env"}),
        json!({"command": "env", "args": ["HOME=/srv", "server"]}),
        json!({"command": "sudo", "args": ["-u", "else", "server"]}),
        json!({"command": "neuron-connectd", "args": ["files", "/srv"], "env": {"HOME": "/srv"}}),
    ] {
        assert_eq!(ground(&entry).unwrap().tilde, Tilde::Unknown, "{entry}");
    }
    let plain = ground(&json!({"command": "server", "env": {"LANG": "C"}})).unwrap();
    assert_eq!(plain.tilde, Tilde::Perhaps("/home/ada".into()));
}

#[test]
fn what_an_entry_names_may_be_where_its_program_looks() {
    let entry = json!({"command": "server", "args": ["~/notes", "--root=/srv/data", "."], "env": {"ROOT": "/opt"}});
    let named = ground(&entry).unwrap().named;
    for folder in ["/home/ada/notes", "/srv/data", "/opt"] {
        assert!(named.contains(&folder.into()), "{folder} of {named:?}");
    }
}
