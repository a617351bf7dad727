use super::*;
use crate::config::{EntryKind, parse};

fn connector(entry: &serde_json::Value) -> Connector {
    let text = serde_json::json!({ "servers": { "a": entry } }).to_string();
    match parse(text.as_bytes()).unwrap().entries.remove(0).kind {
        EntryKind::Valid(connector) => *connector,
        EntryKind::Invalid(notice) => panic!("{}", notice.message),
    }
}

fn around() -> Surroundings<'static> {
    Surroundings {
        home: Path::new("/home/u"),
        own_folder: Path::new("/home/u/.neuron"),
        env_file_names: &[],
        is_looked_up: true,
    }
}

fn line(words: &str) -> Vec<StandsOut> {
    of_run(shell_words::split(words).unwrap(), &[])
}

fn of_run(command_line: Vec<String>, env: &[&str]) -> Vec<StandsOut> {
    let entry = connector(&serde_json::json!({"command": command_line[0], "args": command_line[1..]}));
    let given = |name: &&str| crate::snapshot::Given {
        name: (*name).to_owned(),
        template: "x".to_owned(),
        from_environment: Vec::new(),
        secrets: Vec::new(),
    };
    let shown = LaunchShown::Run {
        command_line,
        program: Some("/usr/bin/x".to_owned()),
        cwd: None,
        env_file: None,
        env: env.iter().map(given).collect(),
    };
    stands_out(&entry, &shown, &around())
}

fn run_of(command: &str, env_file: Option<&str>) -> LaunchShown {
    LaunchShown::Run {
        command_line: vec![command.to_owned()],
        program: None,
        cwd: None,
        env_file: env_file.map(str::to_owned),
        env: Vec::new(),
    }
}

fn has_code(words: &str) -> bool {
    line(words)
        .iter()
        .any(|one| matches!(one, StandsOut::InlineCode { .. }))
}

#[test]
fn a_program_given_as_text_stands_out_however_it_is_spelled() {
    for words in [
        "sh -c x",
        "/bin/bash -lc x",
        "bash --login -c x",
        "bash -o pipefail -ec x",
        "fish --command=x",
        "python -c x",
        "python3.12 -Ic x",
        "python3 -W ignore -c x",
        "node -e x",
        "node --eval=x",
        "node -pe x",
        "node --import data:text/javascript,x s.js",
        "bun -e x",
        "deno eval x",
        "perl -e x",
        "perl -Mstrict -e x",
        "perl -ne x",
        "ruby -e x",
        "php -r x",
        "osascript -e x",
        "awk BEGIN{}",
        "powershell -Command x",
        "pwsh.exe -NoProfile -enc x",
        "powershell -c x",
        "cmd /c x",
        "CMD.EXE /s /C x",
        "env -S 'sh -c x'",
        "env A=1 sh -c x",
        "sudo -u root bash -c x",
        "uv run python -c x",
        "uv run --with y python3 -c x",
        "poetry run python -c x",
        "npx -c x",
        "npm exec -c x",
        "timeout 5 sh -c x",
        "nice -n 5 sh -c x",
        "nohup setsid sh -c x",
        "su -c x",
        "busybox sh -c x",
        "wsl bash -c x",
    ] {
        assert!(has_code(words), "{words}");
    }
}

#[test]
fn a_program_in_a_file_does_not_stand_out_as_text() {
    for words in [
        "python server.py -c x",
        "python -m server -c x",
        "python3 -u server.py",
        "node server.js --port 1",
        "bash run.sh -c",
        "sh -- -c",
        "npx pkg@1.0.0",
        "powershell -NoProfile -File x.ps1",
        "uv run server.py",
        "env A=1 server",
        "/opt/server --config c",
        "node --max-old-space-size=100 x.js",
    ] {
        assert!(!has_code(words), "{words}");
    }
}

#[test]
fn the_rights_of_others_stand_out() {
    for (words, program) in [
        ("sudo x", "sudo"),
        ("/usr/bin/doas x", "doas"),
        ("pkexec x", "pkexec"),
        ("su root", "su"),
        ("env A=1 sudo -E x", "sudo"),
        ("docker run --privileged x:1", "docker --privileged"),
        (
            "docker run -v /var/run/docker.sock:/s x:1",
            "docker /var/run/docker.sock:/s",
        ),
    ] {
        let program = program.to_owned();
        assert!(line(words).contains(&StandsOut::OtherRights { program }), "{words}");
    }
}

#[test]
fn a_whole_disk_the_home_and_our_own_folder_stand_out() {
    for (words, argument) in [
        ("server /", "/"),
        ("server //./", "//./"),
        ("server /home/u", "/home/u"),
        ("server /home/u/", "/home/u/"),
        ("server /home/u/x/..", "/home/u/x/.."),
        ("server /home", "/home"),
        ("server --root=/", "--root=/"),
        ("server file:///", "file:///"),
        ("server 'C:\\'", "C:\\"),
        ("server /home/u/.neuron", "/home/u/.neuron"),
        (
            "server /home/u/.neuron/connect/state.db",
            "/home/u/.neuron/connect/state.db",
        ),
        ("docker run -v /:/x i:1", "/"),
        ("docker run -v/:/x i:1", "/"),
        ("docker run --volume=/home/u:/x:ro i:1", "/home/u"),
        ("docker run --mount type=bind,source=/,target=/x i:1", "/"),
        (
            "docker run --mount=type=bind,src=/home/u/.neuron,dst=/x i:1",
            "/home/u/.neuron",
        ),
    ] {
        let argument = argument.to_owned();
        let found = line(words);
        assert!(
            found.contains(&StandsOut::WideFolder { argument }),
            "{words}: {found:?}"
        );
    }
    for words in [
        "server /home/u/notes",
        "server notes",
        "server --port=1",
        "server /home/u/.neuron-notes",
        "docker run -v /home/u/notes:/ i:1",
        "docker run -v named:/x i:1",
    ] {
        let found = line(words);
        let is_wide = |one: &StandsOut| matches!(one, StandsOut::WideFolder { .. });
        assert!(!found.iter().any(is_wide), "{words}: {found:?}");
    }
}

#[test]
fn variables_that_bring_other_code_stand_out_wherever_they_are_set() {
    for name in [
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "BASH_ENV",
        "ENV",
        "PATH",
        "Path",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "GIT_SSH_COMMAND",
        "npm_config_registry",
    ] {
        let expected = StandsOut::LoaderVariable { name: name.to_owned() };
        assert!(of_run(vec!["x".into()], &[name]).contains(&expected), "{name}");
        assert!(line(&format!("env {name}=1 x")).contains(&expected), "{name}");
        let entry = connector(&serde_json::json!({"command": "x", "envFile": "f"}));
        let names = [name.to_owned()];
        let around = Surroundings {
            env_file_names: &names,
            ..around()
        };
        assert!(
            stands_out(&entry, &run_of("x", Some("f")), &around).contains(&expected),
            "{name}"
        );
    }
    for name in ["API_KEY", "HOME_B", "MY_PATH", "TZ", "LOG_LEVEL"] {
        assert_eq!(of_run(vec!["x".into()], &[name]), [], "{name}");
    }
}

#[test]
fn what_changes_by_itself_and_what_downloads_stands_out_through_every_layer() {
    let unpinned = line("sudo env A=1 npx -y pkg");
    assert!(unpinned.contains(&StandsOut::Unpinned { package: "pkg".into() }));
    assert!(unpinned.contains(&StandsOut::Downloads { runner: "npx".into() }));
    assert_eq!(line("uvx pkg==1.2"), [StandsOut::Downloads { runner: "uvx".into() }]);
}

#[test]
fn addresses_stand_out_where_they_are_open_or_unprotected() {
    let of = |entry: serde_json::Value| {
        let entry = connector(&entry);
        let Launch::Http(http) = &entry.launch else { panic!() };
        let shown = LaunchShown::Contact {
            url: http.url.clone(),
            host: String::new(),
            headers: Vec::new(),
            auth: None,
            sign_in: Vec::new(),
        };
        stands_out(&entry, &shown, &around())
    };
    assert_eq!(
        of(serde_json::json!({"url": "http://x.example/mcp"})),
        [StandsOut::NotEncrypted]
    );
    assert_eq!(of(serde_json::json!({"url": "http://127.0.0.1:1/mcp"})), []);
    assert_eq!(
        of(serde_json::json!({"url": "https://x.example", "oauth": {"allowMissingPkce": true}})),
        [StandsOut::MissingPkce]
    );
}

#[test]
fn a_program_that_is_not_there_is_told_once_it_was_looked_for() {
    let entry = connector(&serde_json::json!({"command": "gone"}));
    let expected = StandsOut::NotFound {
        program: "gone".to_owned(),
    };
    assert_eq!(stands_out(&entry, &run_of("gone", None), &around()), [expected]);
    let unknown = Surroundings {
        is_looked_up: false,
        ..around()
    };
    assert_eq!(stands_out(&entry, &run_of("gone", None), &unknown), []);
}
