use std::ffi::OsString;

use super::{interpreter::Told, *};

fn told(line: &[&str]) -> Option<Told> {
    let args: Vec<OsString> = line.iter().map(OsString::from).collect();
    let name = Path::new(line[0]).file_name().unwrap().to_str().unwrap();
    interpreter::script(name, &args)
}

fn file(name: &str) -> Option<Told> {
    Some(Told::File(name.into()))
}

#[test]
fn an_interpreter_s_script_is_read_as_the_interpreter_reads_it() {
    for (line, script) in [
        (&["python3", "a.py", "-c", "x"][..], "a.py"),
        (
            &["/usr/bin/python3.12", "-u", "-X", "dev", "-Wignore", "/a/b.py"],
            "/a/b.py",
        ),
        (&["pypy3", "-IW", "error", "b.py"], "b.py"),
        (&["node", "index.js"], "index.js"),
        (&["node", "--no-warnings", "--max-old-space-size=4096", "x", "-e"], "x"),
        (&["node22", "x.mjs"], "x.mjs"),
        (&["deno", "run", "-A", "--allow-net=a", "m.ts"], "m.ts"),
        (&["deno", "m.ts"], "m.ts"),
        (&["bun", "run", "m.ts"], "m.ts"),
        (&["bun", "m.ts"], "m.ts"),
        (&["ruby3.1", "-w", "r.rb"], "r.rb"),
        (&["perl5.34.0", "-wT", "p.pl", "-e"], "p.pl"),
        (&["bash", "/x/run"], "/x/run"),
        (&["sh", "-eu", "-o", "pipefail", "run"], "run"),
        (&["bash", "--", "-x"], "-x"),
        (&["java", "-Xmx1g", "-Da=b", "-jar", "a.jar", "x"], "a.jar"),
        (&["php", "x.php"], "x.php"),
        (&["busybox", "x"], ""),
        (&["lua5.4", "x.lua"], "x.lua"),
    ] {
        let expected = if script.is_empty() {
            Some(Told::Unclear)
        } else {
            file(script)
        };
        assert_eq!(told(line), expected, "{line:?}");
    }
    assert_eq!(
        told(&["python3", "-m", "aider", "x"]),
        Some(Told::Module("aider".into()))
    );
    assert_eq!(told(&["python3", "-umaider"]), Some(Told::Module("aider".into())));
    assert_eq!(told(&["deno", "run", "npm:x"]), Some(Told::Module("npm:x".into())));
    assert_eq!(told(&["cursor", "-c", "x"]), None);
}

#[test]
fn code_in_the_arguments_or_the_input_is_inline() {
    for line in [
        &["python3"][..],
        &["python3", "-c", "import x"],
        &["python3", "-Ic", "import x", "good.py"],
        &["python3", "-uBcimport", "good.py"],
        &["python3", "-"],
        &["node"],
        &["node", "-e", "x", "good.js"],
        &["node", "--eval=x", "good.js"],
        &["node", "-pe", "1"],
        &["perl", "-we", "x", "good.pl"],
        &["ruby", "-e", "x"],
        &["bash", "-c", "x", "good.sh"],
        &["bash", "-lc", "x"],
        &["sh", "-s", "good.sh"],
        &["deno", "eval", "x"],
        &["bun", "-e", "x"],
        &["php", "-r", "x"],
    ] {
        assert_eq!(told(line), Some(Told::Inline), "{line:?}");
    }
}

#[test]
fn what_loads_other_code_first_or_is_not_understood_is_unclear() {
    for line in [
        &["node", "-r", "evil.js", "good.js"][..],
        &["node", "--require", "evil.js", "good.js"],
        &["node", "--import=evil.js", "good.js"],
        &["node", "--loader", "evil.mjs", "good.js"],
        &["node", "--some-dir", "good.js", "evil.js"],
        &["python3", "--unknown", "good.py"],
        &["perl", "-Mevil", "good.pl"],
        &["perl", "-I.", "good.pl"],
        &["ruby", "-revil", "good.rb"],
        &["bash", "--rcfile", "evil", "good.sh"],
        &["bash", "--init-file", "good.sh"],
        &["java", "-cp", "evil.jar", "good.Main"],
        &["java", "-javaagent:evil.jar", "-jar", "good.jar"],
        &["php", "-d", "auto_prepend_file=evil", "good.php"],
        &["bun", "--preload", "evil.ts", "good.ts"],
        &["npx", "x"],
        &["uv", "run", "x.py"],
    ] {
        assert_eq!(told(line), Some(Told::Unclear), "{line:?}");
    }
}

fn facts(exe: &str, cwd: &Path, args: &[&str]) -> Facts {
    Facts {
        exe: Some(exe.into()),
        exe_is_at_its_path: true,
        name: "MainThread".into(),
        args: args.iter().map(OsString::from).collect(),
        cwd: Some(cwd.to_owned()),
        parent: 1,
        started: 1,
    }
}

#[test]
fn a_rule_is_bound_to_the_file_and_its_script_and_never_to_code_in_the_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("agent.py");
    std::fs::write(&script, "").unwrap();
    let program = |args: &[&str]| Program::from_facts(7, &facts("/usr/bin/python3.12", folder.path(), args));

    let by_name = program(&["python3", "agent.py"]);
    let by_path = program(&["python3", "-u", "./agent.py", "more"]);
    assert_eq!(by_name.script, Some(Script::File(script.clone())));
    assert_eq!(by_name.label(), "agent.py (python3.12)");
    assert_eq!(by_name.key(), by_path.key());
    assert!(by_name.key().is_some());

    let module = program(&["python3", "-m", "aider"]);
    assert_eq!(module.label(), "aider (python3.12)");
    assert!(module.key().is_some_and(|key| Some(key) != by_name.key()));

    for args in [
        &["python3", "-c", "1"][..],
        &["python3", "gone.py"],
        &["python3", "--odd"],
        &["python3"],
    ] {
        assert_eq!(program(args).key(), None, "{args:?}");
    }
    let plain = Program::from_facts(7, &facts("/opt/Cursor/cursor", folder.path(), &["cursor", "x"]));
    assert_eq!((plain.label().as_str(), plain.script.clone()), ("cursor", None));
    assert_eq!(plain.key().unwrap().path, Path::new("/opt/Cursor/cursor"));
}

#[test]
fn a_path_with_another_file_behind_it_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let hidden = Facts {
        exe_is_at_its_path: false,
        ..facts("/usr/bin/claude", folder.path(), &["claude"])
    };
    let program = Program::from_facts(7, &hidden);
    assert_eq!(
        (program.name.as_str(), program.path.clone(), program.key()),
        ("claude", None, None)
    );
}

#[test]
fn a_name_is_one_line_and_never_empty() {
    let folder = tempfile::tempdir().unwrap();
    let odd = Facts {
        exe: None,
        name: "a\nb\u{7}".into(),
        ..facts("/x", folder.path(), &[])
    };
    assert_eq!(Program::from_facts(7, &odd).name, "ab");
    let none = Facts {
        name: "\n".into(),
        ..odd
    };
    assert_eq!(Program::from_facts(7, &none).name, "process 7");
    assert_eq!(
        Program::from_facts(7, &facts("/x/Cursor.EXE", folder.path(), &[])).name,
        "Cursor"
    );
}
