use tempfile::TempDir;

use super::*;

fn home() -> (TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home")).unwrap();
    home.prepare().unwrap();
    (folder, home)
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).unwrap()) & 0o7777
}

#[test]
fn the_flag_wins_over_the_environment_and_that_over_the_home_folder() {
    let flag = Path::new("/flag");
    let set = || Some(OsString::from("/set"));
    let own = || Some(PathBuf::from("/home/a"));
    assert_eq!(choose_root(Some(flag), set(), own()), Some("/flag".into()));
    assert_eq!(choose_root(None, set(), own()), Some("/set".into()));
    assert_eq!(
        choose_root(None, Some("".into()), own()),
        Some("/home/a/.neuron".into())
    );
    assert_eq!(choose_root(None, None, Some("".into())), None);
    assert_eq!(choose_root(None, None, None), None);
}

#[cfg(unix)]
#[test]
fn our_folders_are_closed_to_everybody_else_also_when_they_were_open() {
    use std::os::unix::fs::PermissionsExt;
    let (_keep, home) = home();
    for folder in [home.root().to_owned(), home.logs_folder()] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    home.prepare().unwrap();
    for folder in [
        home.root().to_owned(),
        home.connect_folder(),
        home.run_folder(),
        home.logs_folder(),
        home.results_folder(),
    ] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }
}

#[test]
fn no_connector_s_folder_lies_where_the_list_of_running_programs_is() {
    let (_keep, home) = home();
    let list = home.children_file();
    let name = list.file_name().and_then(|name| name.to_str()).unwrap();
    assert_ne!(home.run_folder_of(&ConnectorId::parse(name).unwrap()), list);
    assert_eq!(list.parent(), Some(home.connect_folder().as_path()));
}

#[cfg(unix)]
#[test]
fn a_shared_folder_is_refused_and_left_as_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let refused = Home::at(folder.path()).unwrap().prepare().unwrap_err();
    assert!(matches!(refused, HomeError::Shared { .. }), "{refused}");
    assert_eq!(mode(folder.path()), 0o1777);
}

#[cfg(unix)]
#[test]
fn a_folder_of_another_user_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = folder.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    if std::os::unix::fs::chown(&foreign, Some(65534), None).is_err() {
        eprintln!("SKIPPED: only root can give a folder away; run this test as root");
        return;
    }
    let refused = Home::at(&foreign).unwrap().prepare().unwrap_err();
    assert!(refused.to_string().contains("another user"), "{refused}");
}

#[test]
fn a_file_in_the_way_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "x").unwrap();
    let refused = Home::at(&path).unwrap().prepare().unwrap_err();
    assert!(matches!(refused, HomeError::NotAFolder { .. }), "{refused}");
    assert_eq!(fs::read_to_string(path).unwrap(), "x");
}

#[test]
fn the_second_bridge_of_a_home_is_told_who_holds_it_and_gets_it_afterwards() {
    let (_keep, home) = home();
    let held = home.lock("first program").unwrap();
    let refused = home.lock("second").unwrap_err();
    let sentence = refused.to_string();
    assert!(sentence.contains("first program"), "{sentence}");
    assert!(sentence.contains(&std::process::id().to_string()), "{sentence}");
    drop(held);
    home.lock("third").unwrap();
}

#[test]
fn a_lock_left_by_a_killed_process_is_taken_over() {
    let (_keep, home) = home();
    fs::write(
        home.lock_file(),
        "4000000 a very long name of a program that was killed\n",
    )
    .unwrap();
    let _held = home.lock("next").unwrap();
    let text = fs::read_to_string(home.lock_file()).unwrap();
    assert_eq!(text, format!("{} next\n", std::process::id()));
}

#[test]
fn a_running_bridge_is_found_and_one_that_is_gone_is_not() {
    let (_keep, home) = home();
    assert_eq!(discover(&home), None);
    let lock = home.lock("test").unwrap();
    let mut api = ApiFile {
        port: Some(7771),
        pid: std::process::id(),
        version: "1.2.3".into(),
        socket: Some(home.socket_path()),
    };
    lock.publish(&api).unwrap();
    assert_eq!(discover(&home), Some(api.clone()));
    let text = fs::read_to_string(home.api_file()).unwrap();
    assert!(text.starts_with("{\"port\":7771,\"pid\":"), "{text}");

    let mut child = std::process::Command::new(env::current_exe().unwrap())
        .arg("--list")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    child.wait().unwrap();
    api.pid = child.id();
    lock.publish(&api).unwrap();
    assert_eq!(discover(&home), None);

    for rubbish in ["", "{", "[]", "{\"port\":1}"] {
        fs::write(home.api_file(), rubbish).unwrap();
        assert_eq!(discover(&home), None, "{rubbish:?}");
    }
    lock.unpublish();
    lock.unpublish();
    assert!(!home.api_file().exists());
}

#[cfg(unix)]
#[test]
fn a_home_too_deep_for_a_socket_gets_its_socket_in_a_short_private_folder() {
    let folder = tempfile::tempdir().unwrap();
    let deep = Home::at(folder.path().join("d".repeat(90))).unwrap();
    deep.prepare().unwrap();
    let lock = deep.lock("test").unwrap();

    let runtime = folder.path().join("runtime");
    fs::create_dir(&runtime).unwrap();
    let place = lock.socket_place_beside(Some(runtime.clone()), folder.path()).unwrap();
    assert!(place.path.starts_with(&runtime), "{}", place.path.display());
    assert_eq!(mode(place.path.parent().unwrap()), 0o700);

    let place = lock.socket_place_beside(None, folder.path()).unwrap();
    let parent = place.path.parent().unwrap().to_owned();
    assert!(place.path.as_os_str().len() <= LONGEST_SOCKET_PATH);
    assert_eq!(mode(&parent), 0o700);
    drop(place);
    assert!(!parent.exists(), "a temporary folder goes with its socket");

    let long = folder.path().join("t".repeat(90));
    fs::create_dir(&long).unwrap();
    assert!(lock.socket_place_beside(None, &long).is_err());
}

#[cfg(unix)]
#[test]
fn a_home_of_usual_length_keeps_its_socket_inside() {
    let (_keep, home) = home();
    let lock = home.lock("test").unwrap();
    assert_eq!(
        lock.socket_place_beside(None, Path::new("/")).unwrap().path,
        home.socket_path()
    );
}
