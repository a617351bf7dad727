use std::{fs, os::unix::fs::PermissionsExt as _};

use super::*;

fn write(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn programs(folders: &[&Path]) -> Programs {
    Programs {
        folders: folders.iter().map(|folder| folder.to_path_buf()).collect(),
        own: "/opt/own".into(),
    }
}

#[test]
fn a_command_is_the_first_executable_of_its_name() {
    let root = tempfile::tempdir().unwrap();
    let (a, b, c) = (root.path().join("a"), root.path().join("b"), root.path().join("c"));
    fs::create_dir_all(a.join("tool")).unwrap();
    write(&b.join("tool"), "", 0o644);
    write(&c.join("tool"), "", 0o755);
    let programs = programs(&[&a, &b, &c]);
    assert_eq!(programs.find("tool", root.path()), Ok(c.join("tool")));
    assert_eq!(programs.find("c/tool", root.path()), Ok(root.path().join("c/tool")));
    assert_eq!(
        programs.find(c.join("tool").to_str().unwrap(), Path::new("/")),
        Ok(c.join("tool"))
    );
    assert_eq!(programs.find("neuron-connectd", Path::new("/")), Ok("/opt/own".into()));
    assert_eq!(programs.path(), env::join_paths([a, b, c]).unwrap());
}

#[test]
fn what_is_not_found_is_told_with_where_it_was_looked_for_and_how_to_get_it() {
    let root = tempfile::tempdir().unwrap();
    let here = programs(&[Path::new("/nowhere/a"), Path::new("/nowhere/b")]);
    let told = |command: &str| here.find(command, root.path()).unwrap_err().to_string();
    assert_eq!(
        told("npx"),
        "The program \"npx\" was not found. It comes with Node.js: install that from https://nodejs.org. Looked in /nowhere/a, /nowhere/b."
    );
    assert!(told("uvx").contains("uv: install"));
    assert_eq!(
        told("./x"),
        format!(
            "The program \"./x\" was not found. Install it or give its full path. Looked in {}.",
            root.path().display()
        )
    );
    assert_eq!(told(""), "The command is empty. Name a program to run.");
    write(&root.path().join("plain"), "", 0o644);
    assert!(told("./plain").contains("not allowed to run"));
    assert!(
        programs(&[root.path()])
            .find("plain", Path::new("/"))
            .unwrap_err()
            .to_string()
            .contains("chmod +x")
    );
    assert!(told("/").contains("is a folder"));
}

#[test]
fn a_child_gets_a_short_list_of_our_environment() {
    let ours = [
        ("SENTINEL_KEY", "secret"),
        ("HOME", "/home/p"),
        ("PATH", "/bare"),
        ("TERM", "() { :; }; evil"),
        ("LD_PRELOAD", "/x.so"),
        ("XDG_CONFIG_HOME", "/c"),
        ("NODE_OPTIONS", "--x"),
    ]
    .map(|(name, value)| (name.into(), value.into()));
    let base = programs(&[Path::new("/a"), Path::new("/with:colon"), Path::new("/b")]).base_environment(ours);
    let expected = [("HOME", "/home/p"), ("PATH", "/a:/b"), ("XDG_CONFIG_HOME", "/c")]
        .map(|(name, value)| (name.into(), value.into()));
    assert_eq!(base, BTreeMap::from(expected));
}

#[test]
fn the_path_is_found_among_whatever_a_shell_prints() {
    let told = |text: &str| told_path(text.as_bytes()).map(|path| path.into_string().unwrap());
    assert_eq!(
        told(&format!("Welcome!\n{BEGIN}/a:/b{END}bye")).as_deref(),
        Some("/a:/b")
    );
    assert_eq!(
        told(&format!("+ printf {BEGIN} \"$PATH\" {END}\n{BEGIN}/a{END}")).as_deref(),
        Some("/a")
    );
    for text in [
        String::new(),
        format!("{BEGIN}/a"),
        format!("{END}{BEGIN}"),
        format!("{BEGIN}{END}"),
        format!("{BEGIN}no path{END}"),
        format!("{BEGIN}/a\n/b{END}"),
    ] {
        assert_eq!(told(&text), None, "{text}");
    }
}

/// A login shell made of a script; its last argument is the command it is given.
async fn ask(script: &str) -> Result<String, ShellError> {
    let home = tempfile::tempdir().unwrap();
    let shell = home.path().join("fake-shell");
    write(&shell, script, 0o755);
    let spawner = Spawner::start(home.path(), home.path().join("children.json")).unwrap();
    let ours = [("PATH", "/usr/bin:/bin"), ("SENTINEL_KEY", "secret")].map(|(name, value)| (name.into(), value.into()));
    login_shell_path(&spawner, &shell, home.path(), ours)
        .await
        .map(|path| path.into_string().unwrap())
}

#[tokio::test]
async fn the_login_shells_path_is_learnt_in_spite_of_a_banner() {
    let script = "#!/bin/sh\nprintf 'Welcome\\n\\033[31m'; echo complaint >&2; [ \"$1$2$3\" = -l-i-c ] || exit 1\n\
        [ -z \"$SENTINEL_KEY\" ] || exit 1\nPATH=\"$HOME/.nvm/bin:/mine:$PATH\"; export PATH; eval \"$4\"; sleep 300";
    assert_eq!(ask(script).await.unwrap(), "/.nvm/bin:/mine:/usr/bin:/bin");
}

#[tokio::test]
async fn real_shells_tell_their_path() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(".profile"), "echo hello; PATH=/from/profile:$PATH\n").unwrap();
    let spawner = Spawner::start(home.path(), home.path().join("children.json")).unwrap();
    for shell in ["/bin/bash", "/bin/sh"] {
        let ours = [
            ("PATH", "/usr/bin:/bin".into()),
            ("HOME", home.path().as_os_str().to_owned()),
        ]
        .map(|(name, value)| (name.into(), value));
        let path = login_shell_path(&spawner, Path::new(shell), home.path(), ours)
            .await
            .unwrap();
        assert!(
            path.to_str().unwrap().starts_with("/from/profile:"),
            "{shell}: {path:?}"
        );
    }
}

#[tokio::test]
async fn a_login_shell_that_fails_or_says_nothing_is_an_error() {
    assert!(matches!(ask("#!/bin/sh\nexit 3").await, Err(ShellError::NoAnswer(_))));
    assert!(matches!(ask("#!/nowhere/sh\n").await, Err(ShellError::NotStarted(_))));
    assert!(matches!(ask("#!/bin/sh\nexec yes").await, Err(ShellError::NoAnswer(_))));
}

#[tokio::test(start_paused = true)]
async fn a_login_shell_that_blocks_is_given_up_and_killed() {
    let error = ask("#!/bin/sh\nread x; sleep 300").await.unwrap_err();
    assert!(matches!(error, ShellError::TimedOut(_)), "{error}");
    assert!(error.to_string().contains("did not answer within 5 s"));
}
