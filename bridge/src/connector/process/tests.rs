use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Command as StdCommand, Stdio},
    time::{Duration, Instant},
};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

fn shell(script: &str) -> Command {
    program("/bin/sh", &["-c", script])
}

fn program(path: &str, args: &[&str]) -> Command {
    Command {
        program: path.into(),
        args: args.iter().map(OsString::from).collect(),
        env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        cwd: "/".into(),
    }
}

struct Home {
    folder: tempfile::TempDir,
    spawner: Spawner,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spawner = Spawner::start(folder.path(), folder.path().join("run/children.json")).unwrap();
        Self { folder, spawner }
    }

    fn registry(&self) -> PathBuf {
        self.folder.path().join("run/children.json")
    }

    fn recorded(&self) -> usize {
        let text = fs::read_to_string(self.registry()).unwrap();
        text.matches("marker").count()
    }
}

/// Reads a child's first line, which holds process ids.
async fn pids(io: &mut ChildIo) -> Vec<u32> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        line.push(io.stdout.read_u8().await.unwrap());
    }
    String::from_utf8(line)
        .unwrap()
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

fn is_running(pid: u32) -> bool {
    group::table::process(pid).is_some_and(|process| !process.zombie)
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "waited for too long: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_child_gets_its_arguments_and_only_its_own_environment() {
    let home = Home::new();
    let mut command = program(
        "/usr/bin/env",
        &["sh", "-c", "pwd; env; printf '%s\\n' \"$@\"", "x", "&&", "touch y", ""],
    );
    command.cwd = home.folder.path().into();
    let mut child = home.spawner.spawn(command).await.unwrap();
    let mut io = child.take_io().unwrap();
    let mut text = String::new();
    io.stdout.read_to_string(&mut text).await.unwrap();
    assert_eq!(child.exited().await, Ended::Code(0));
    let mut lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.split_off(lines.len() - 3), ["&&", "touch y", ""]);
    assert!(lines[0].ends_with(home.folder.path().file_name().unwrap().to_str().unwrap()));
    lines.retain(|line| !line.starts_with("PWD=") && !line.starts_with("OLDPWD=") && !line.starts_with("_="));
    lines.remove(0);
    lines.sort_unstable();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with(&format!("{MARKER}={}:", home_hash(home.folder.path()))));
    assert_eq!(lines[1], "PATH=/usr/bin:/bin");
}

#[tokio::test]
async fn a_child_inherits_no_descriptors_and_no_ignored_signals() {
    use std::os::fd::AsRawFd as _;
    let home = Home::new();
    let leaked = fs::File::open("/dev/null").unwrap();
    // SAFETY: changes a flag of a descriptor this test owns.
    unsafe { libc::fcntl(leaked.as_raw_fd(), libc::F_SETFD, 0) };
    // SAFETY: nothing in this process uses the signal.
    unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
    let script = "ls /proc/self/fd; grep -E 'Sig(Ign|Blk)' /proc/self/status; tty || true";
    let mut child = home.spawner.spawn(shell(script)).await.unwrap();
    let mut text = String::new();
    child.take_io().unwrap().stdout.read_to_string(&mut text).await.unwrap();
    let words: Vec<_> = text.split_whitespace().collect();
    assert_eq!(words[..4], ["0", "1", "2", "3"], "3 is ls itself reading the folder");
    for (name, mask) in [(words[4], words[5]), (words[6], words[7])] {
        // 32 and above belong to the C library.
        let standard = u64::from_str_radix(mask, 16).unwrap() & 0x7fff_ffff;
        assert_eq!(standard, 0, "{name} {mask}");
    }
    assert_eq!(words[8..], ["not", "a", "tty"]);
}

#[tokio::test]
async fn closing_the_input_is_enough_for_a_well_behaved_child() {
    let home = Home::new();
    let child = home.spawner.spawn(shell("cat; exit 3")).await.unwrap();
    assert_eq!(home.recorded(), 1);
    let exit = child.stop().await;
    assert_eq!((exit.ended, exit.how), (Some(Ended::Code(3)), How::Eof));
    until("the record leaves", || home.recorded() == 0).await;
    until("the child is reaped", || home.spawner.running_count() == 0).await;
}

#[tokio::test]
async fn whoever_holds_the_input_is_told_to_close_it() {
    let home = Home::new();
    let mut child = home.spawner.spawn(shell("cat")).await.unwrap();
    let closing = child.closing();
    let mut io = child.take_io().unwrap();
    assert!(child.take_io().is_err());
    let echo = tokio::spawn(async move {
        io.stdin.write_all(b"last words").await.unwrap();
        closing.cancelled().await;
        drop(io.stdin);
        let mut text = String::new();
        io.stdout.read_to_string(&mut text).await.unwrap();
        text
    });
    assert_eq!(child.stop().await.how, How::Eof);
    assert_eq!(echo.await.unwrap(), "last words");
}

#[tokio::test]
async fn a_child_that_ignores_its_closed_input_is_terminated() {
    let home = Home::new();
    let child = home.spawner.spawn(program("/bin/sleep", &["300"])).await.unwrap();
    let exit = child.stop().await;
    assert_eq!((exit.ended, exit.how), (Some(Ended::Signal(libc::SIGTERM)), How::Term));
}

#[tokio::test]
async fn a_stubborn_family_is_gone_within_four_seconds() {
    let home = Home::new();
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; sleep 300' & echo $$ $!; while :; do sleep 1; done";
    let mut child = home.spawner.spawn(shell(script)).await.unwrap();
    let mut io = child.take_io().unwrap();
    let family = pids(&mut io).await;
    let begin = Instant::now();
    let exit = child.stop().await;
    assert_eq!((exit.ended, exit.how), (Some(Ended::Signal(libc::SIGKILL)), How::Kill));
    assert!(begin.elapsed() < Duration::from_secs(4));
    assert!(!family.iter().any(|pid| is_running(*pid)), "{family:?}");
}

#[tokio::test]
async fn grandchildren_end_also_when_the_child_itself_is_gone_already() {
    let home = Home::new();
    let mut child = home.spawner.spawn(shell("sleep 300 & echo $!; exit 7")).await.unwrap();
    let mut io = child.take_io().unwrap();
    let family = pids(&mut io).await;
    assert_eq!(child.exited().await, Ended::Code(7));
    assert!(is_running(family[0]));
    let exit = child.stop().await;
    assert_eq!((exit.ended, exit.how), (Some(Ended::Code(7)), How::Term));
    assert!(!is_running(family[0]));
}

#[test]
fn a_dropped_child_is_killed_at_once_without_a_runtime() {
    let home = Home::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (child, family) = runtime.block_on(async {
        let script = "trap '' TERM; sleep 300 & echo $$ $!; wait";
        let mut child = home.spawner.spawn(shell(script)).await.unwrap();
        let mut io = child.take_io().unwrap();
        let family = pids(&mut io).await;
        (child, family)
    });
    drop(runtime);
    drop(child);
    let deadline = Instant::now() + Duration::from_secs(10);
    while family.iter().any(|pid| is_running(*pid)) {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
}

#[tokio::test]
async fn a_spawn_that_nobody_waits_for_leaves_nothing_running() {
    let home = Home::new();
    let file = home.folder.path().join("pid");
    let script = format!("echo $$ > {}; sleep 300", file.display());
    let mut spawning = Box::pin(home.spawner.spawn(shell(&script)));
    assert!(futures::poll!(&mut spawning).is_pending());
    drop(spawning);
    // The thread serves in order, so the abandoned one is through when this one is.
    home.spawner.spawn(shell("exit 0")).await.unwrap().stop().await;
    until("both are reaped", || home.spawner.running_count() == 0).await;
    if let Ok(pid) = fs::read_to_string(&file) {
        assert!(pid.trim().is_empty() || !is_running(pid.trim().parse().unwrap()));
    }
    assert_eq!(home.recorded(), 0);
}

#[tokio::test]
async fn the_last_resort_kills_everyone_and_refuses_newcomers() {
    let home = Home::new();
    let mut children = Vec::new();
    for _ in 0..5 {
        children.push(home.spawner.spawn(shell("trap '' TERM; sleep 300")).await.unwrap());
    }
    home.spawner.kill_all();
    for child in &children {
        assert_eq!(child.exited().await, Ended::Signal(libc::SIGKILL));
    }
    assert!(matches!(
        home.spawner.spawn(shell("true")).await,
        Err(SpawnError::ShutDown)
    ));
}

#[tokio::test]
async fn what_cannot_start_is_told_in_a_sentence_and_leaves_no_record() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let file = |name: &str, text: &str, mode| {
        let path = home.folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let refused = |command: Command| {
        let spawner = home.spawner.clone();
        async move { spawner.spawn(command).await.unwrap_err().to_string() }
    };
    let mut nowhere = shell("true");
    nowhere.cwd = "/nowhere".into();
    assert!(refused(nowhere).await.contains("folder /nowhere"));
    assert!(
        refused(program("/nowhere/x", &[]))
            .await
            .contains("/nowhere/x is not there")
    );
    let script = file("script", "#!/nowhere/node -x\n", 0o755);
    assert!(
        refused(program(&script, &[]))
            .await
            .contains("needs /nowhere/node, which is not installed")
    );
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    assert!(refused(program(&plain, &[])).await.contains("not allowed to run"));
    assert_eq!(home.recorded(), 0);
}

#[test]
fn a_commands_secrets_are_not_printed() {
    let mut command = program("/bin/x", &["--key=hunter2"]);
    command.env.insert("KEY".into(), "hunter2".into());
    assert!(!format!("{command:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_child_survives_the_thread_that_asked_for_it() {
    let home = Home::new();
    let spawner = home.spawner.clone();
    let mut child = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(spawner.spawn(shell("read x; exit $x"))).unwrap()
    })
    .join()
    .unwrap();
    let mut io = child.take_io().unwrap();
    io.stdin.write_all(b"9\n").await.unwrap();
    assert_eq!(child.exited().await, Ended::Code(9));
}

/// Not a test: the bridge that the tests below start and kill. It tells its children's ids and waits.
#[tokio::test]
async fn bridge_to_be_killed() {
    let Some(home) = std::env::var_os("KILLED_BRIDGE_HOME").map(PathBuf::from) else {
        return;
    };
    let spawner = Spawner::start(&home, home.join("children.json")).unwrap();
    let script = "sleep 300 & echo $$ $!; while :; do sleep 1; done";
    let mut child = spawner.spawn(shell(script)).await.unwrap();
    let family = pids(&mut child.take_io().unwrap()).await;
    println!("\nfamily {} {}", family[0], family[1]);
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn after_a_kill_9_of_the_bridge_the_next_start_finds_every_orphan_and_nobody_else() {
    let home = tempfile::tempdir().unwrap();
    let mut bridge = StdCommand::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "connector::process::tests::bridge_to_be_killed",
            "--nocapture",
        ])
        .env("KILLED_BRIDGE_HOME", home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let family: Vec<u32> = BufReader::new(bridge.stdout.take().unwrap())
        .lines()
        .find_map(|line| {
            let line = line.unwrap();
            let ids = line.strip_prefix("family ")?;
            Some(ids.split(' ').map(|id| id.parse().unwrap()).collect())
        })
        .unwrap();
    let mut bystander = StdCommand::new("/bin/sleep")
        .arg("300")
        .env(MARKER, format!("{}:other", home_hash(home.path())))
        .spawn()
        .unwrap();
    bridge.kill().unwrap();
    bridge.wait().unwrap();
    until("the child dies with its bridge", || !is_running(family[0])).await;
    assert!(is_running(family[1]), "the grandchild is an orphan");
    let registry = home.path().join("children.json");
    let swept = tokio::task::spawn_blocking(move || sweep(&registry)).await.unwrap();
    assert!(swept.killed >= 1, "{swept:?}");
    assert!(!is_running(family[1]));
    assert!(
        is_running(bystander.id()),
        "another child of the same home is a stranger"
    );
    assert!(!home.path().join("children.json").exists());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn a_child_that_was_only_announced_is_found_by_its_marker() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("children.json");
    let mut orphan = StdCommand::new("/bin/sleep")
        .arg("300")
        .env(MARKER, "h:lost")
        .spawn()
        .unwrap();
    fs::write(&path, r#"{"children":[{"marker":"h:lost","pid":null,"started":null}]}"#).unwrap();
    let swept = tokio::task::spawn_blocking(move || sweep(&path)).await.unwrap();
    assert_eq!(swept.killed, 1);
    assert!(!orphan.wait().unwrap().success());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_child_starts_is_known_as_its_kin_and_others_are_not() {
    let home = Home::new();
    let script = "env -i sleep 60 & a=$!; env -i setsid sleep 60 & b=$!; setsid sleep 60 & echo $$ $a $b $!; wait";
    let mut child = home.spawner.spawn(shell(script)).await.unwrap();
    let mut io = child.take_io().unwrap();
    let pids = pids(&mut io).await;
    for pid in &pids {
        assert!(home.spawner.is_kin(*pid), "{pid} of {pids:?}");
    }
    let mut stranger = StdCommand::new("sleep").arg("60").spawn().unwrap();
    assert!(!home.spawner.is_kin(stranger.id()));
    assert!(!home.spawner.is_kin(std::process::id()));
    stranger.kill().unwrap();
    let gone = stranger.id();
    stranger.wait().unwrap();
    assert!(
        home.spawner.is_kin(gone),
        "whoever holds its connection now is not known"
    );
    for pid in pids {
        group::signal_group(pid, libc::SIGKILL);
    }
    child.stop().await;
}

/// Says the id of a process that left its session, its group, its parents and its environment.
#[cfg(target_os = "linux")]
const ESCAPE: &str = r#"exec python3 -c 'import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.execve("/bin/sleep", ["sleep", "60"], {})'"#;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_left_everything_of_its_connector_is_known_as_kin_also_when_that_has_ended() {
    let home = Home::new();
    assert!(!home.spawner.has_family());
    let mut child = home.spawner.spawn(shell(ESCAPE)).await.unwrap();
    let mut io = child.take_io().unwrap();
    let [pid] = pids(&mut io).await[..] else { panic!("one") };
    child.stop().await;
    until("its parents are gone", || {
        group::table::kinship(pid).is_some_and(|kinship| kinship.parent == std::process::id())
    })
    .await;
    until("nothing else of it is left", || home.spawner.running_count() == 0).await;
    assert!(home.spawner.is_kin(pid) && home.spawner.has_family());
    assert!(home.spawner.family().contains(&pid), "{pid}");
    let group = group::table::kinship(pid).unwrap().group;
    group::signal_group(group, libc::SIGKILL);
    // It is in the process table until it is buried.
    let ended = || home.spawner.bury(&HashSet::new());
    until("it has ended", || ended().contains(&pid)).await;
    home.spawner.bury(&ended());
    assert!(group::table::process(pid).is_none());
    assert!(!home.spawner.has_family());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_is_opened_for_the_person_is_no_kin_whatever_it_leaves_behind() {
    let home = Home::new();
    let told = home.folder.path().join("told");
    let script = format!(
        "sh -c 'sleep 60 & echo $! > {0}.new; mv {0}.new {0}' & wait",
        told.display()
    );
    let mut launcher = StdCommand::new("/bin/sh");
    home.spawner.open(launcher.args(["-c", &script])).unwrap();
    until("it has left something behind", || told.exists()).await;
    let pid: u32 = fs::read_to_string(&told).unwrap().trim().parse().unwrap();
    until("its parents are gone", || {
        group::table::kinship(pid).is_some_and(|kinship| kinship.parent == std::process::id())
    })
    .await;
    assert!(!home.spawner.is_kin(pid) && !home.spawner.has_family());
    assert!(!home.spawner.family().contains(&pid));
    let session = group::table::kinship(pid).unwrap().session;
    group::signal_group(session, libc::SIGKILL);
}
