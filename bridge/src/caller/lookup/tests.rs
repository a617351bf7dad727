use std::{
    io::Read as _,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use super::*;
use crate::caller::{
    program::Script,
    socket::{Whose, whose},
};

/// A real program that has connected, and ends when its input does.
struct Connected {
    child: Child,
    _input: ChildStdin,
    server: TcpStream,
    cell: ProgramCell,
}

impl Drop for Connected {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program on a listener of its own, whose port replaces `{port}` in the arguments and is in `PORT`, and takes its connection.
fn connected(program: &str, args: &[&str], cwd: &Path) -> Connected {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let local = listener.local_addr().unwrap();
    let mut child = Command::new(program)
        .args(args.iter().map(|arg| arg.replace("{port}", &local.port().to_string())))
        .env("PORT", local.port().to_string())
        .current_dir(cwd)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let (server, peer) = listener.accept().unwrap();
    let Whose::Ours(socket) = whose(peer, local) else {
        panic!("not ours")
    };
    Connected {
        _input: child.stdin.take().unwrap(),
        child,
        server,
        cell: ProgramLookup::default().of_connection(socket),
    }
}

const PYTHON: &str =
    "import os, socket, sys\ns = socket.create_connection(('127.0.0.1', int(os.environ['PORT'])))\nsys.stdin.read()\n";
const NODE: &str = "require('net').connect(Number(process.env.PORT), '127.0.0.1'); process.stdin.resume().on('end', () => process.exit())";

/// The interpreter itself: a version manager's wrapper would be found as what it is.
fn python() -> PathBuf {
    let told = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    PathBuf::from(String::from_utf8(told.stdout).unwrap().trim())
}

#[tokio::test]
async fn real_programs_are_found_with_their_script() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    std::fs::write(home.join("agent.py"), PYTHON).unwrap();
    std::fs::write(home.join("agent.cjs"), NODE).unwrap();
    let bash = "exec 3<>/dev/tcp/127.0.0.1/$PORT; read line";
    std::fs::write(home.join("agent.sh"), "exec 3<>/dev/tcp/127.0.0.1/$PORT; read line").unwrap();
    let file = |name: &str| Some(Script::File(home.join(name)));
    let python = python();
    let python = python.to_str().unwrap();
    for (program, args, script) in [
        (python, &["agent.py"][..], file("agent.py")),
        (python, &["-u", "./agent.py"], file("agent.py")),
        (python, &["-m", "agent"], Some(Script::Module("agent".into()))),
        (python, &["-c", PYTHON], Some(Script::Inline)),
        ("node", &["--no-warnings", "agent.cjs"], file("agent.cjs")),
        ("node", &["-e", NODE], Some(Script::Inline)),
        ("bash", &["agent.sh"], file("agent.sh")),
        ("bash", &["-c", bash], Some(Script::Inline)),
        ("curl", &["--silent", "http://127.0.0.1:{port}/"], None),
    ] {
        let client = connected(program, args, home);
        assert_eq!(client.cell.known(), None, "nothing is looked for before somebody asks");
        let found = client.cell.get().await.unwrap_or_else(|| panic!("{program} {args:?}"));
        assert_eq!(found.pid, client.child.id(), "{program} {args:?}");
        assert_eq!(found.script, script, "{program} {args:?}");
        let named = Path::new(program).file_name().unwrap().to_str().unwrap();
        assert!(found.name.starts_with(named), "{found:?}");
        assert!(found.path.as_ref().is_some_and(|path| path.is_absolute()), "{found:?}");
        assert_eq!(
            client.cell.clone().known(),
            Some(Some(found)),
            "found once, for all that ask"
        );
    }
}

#[tokio::test]
async fn a_program_that_is_gone_is_unknown_also_when_its_id_was_given_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = connected(
        "bash",
        &["-c", "exec 3<>/dev/tcp/127.0.0.1/$PORT; read line"],
        folder.path(),
    );
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    assert_eq!(client.cell.get().await, None);

    let lookup = ProgramLookup::default();
    let own = lookup.of_process(std::process::id()).get().await.unwrap();
    assert_eq!(own.path.as_deref(), std::env::current_exe().ok().as_deref());
    let successor = lookup.cell(Behind::Process {
        pid: std::process::id(),
        started: 1,
    });
    assert_eq!(successor.get().await, None);
    assert_eq!(ProgramCell::unknown().get().await, None);
}

#[tokio::test]
async fn a_connection_that_several_processes_hold_is_that_of_the_one_that_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = "exec 3<>/dev/tcp/127.0.0.1/$PORT 4<&0; cat <&4 & echo >&3; read line";
    let mut client = connected("bash", &["-c", script], folder.path());
    client.server.read_exact(&mut [0]).unwrap();
    let found = client.cell.get().await.unwrap();
    assert_eq!((found.pid, found.name.as_str()), (client.child.id(), "bash"));
}

#[tokio::test]
async fn our_own_stdio_shim_stands_for_the_program_that_started_it_and_nobody_else_s_does() {
    let folder = tempfile::tempdir().unwrap();
    let shim = folder.path().join(SHIM);
    std::fs::copy("/bin/bash", &shim).unwrap();
    std::fs::write(folder.path().join("mcp"), "exec 3<>/dev/tcp/127.0.0.1/$PORT; read line").unwrap();
    let client = connected(shim.to_str().unwrap(), &["mcp"], folder.path());

    let beside = ProgramLookup::beside(Some(folder.path())).cell(client.cell.0.behind);
    assert_eq!(beside.get().await.unwrap().pid, std::process::id());
    let elsewhere = ProgramLookup::beside(Some(Path::new("/usr/bin"))).cell(client.cell.0.behind);
    assert_eq!(elsewhere.get().await.unwrap().pid, client.child.id());
    let nowhere = ProgramLookup::beside(None).cell(client.cell.0.behind);
    assert_eq!(nowhere.get().await.unwrap().name, SHIM);
}
