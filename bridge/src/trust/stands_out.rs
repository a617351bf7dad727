//! What about a launch a person should look at twice, in words. Pure.
//!
//! A net, not a wall: it points at what is known to be dangerous or to change by itself. What may run is decided by the
//! launch identity alone.

mod code;
mod folders;

use std::path::Path;

use super::packages::{Package, base_name, packages};
use crate::{
    config::{Connector, Launch},
    reach,
    snapshot::{LaunchShown, StandsOut},
};

/// What has to be known besides the launch.
pub struct Surroundings<'a> {
    /// The person's home folder.
    pub home: &'a Path,
    /// This app's own folder.
    pub own_folder: &'a Path,
    /// The variables that the `envFile` sets, by name.
    pub env_file_names: &'a [String],
    /// Whether the program was looked for.
    pub is_looked_up: bool,
}

/// Everything that stands out, the most dangerous first; nothing twice.
pub fn stands_out(entry: &Connector, shown: &LaunchShown, around: &Surroundings<'_>) -> Vec<StandsOut> {
    let mut found = Vec::new();
    match shown {
        LaunchShown::Run {
            command_line,
            program,
            env,
            ..
        } => {
            let names = env.iter().map(|given| &given.name).chain(around.env_file_names);
            run(command_line, names, around, &mut found);
            if let (None, true, Some(command)) = (program, around.is_looked_up, command_line.first()) {
                found.push(StandsOut::NotFound {
                    program: command.clone(),
                });
            }
        }
        LaunchShown::Contact { url, .. } => {
            if url::Url::parse(url).is_ok_and(|url| !reach::is_secure(&url)) {
                found.push(StandsOut::NotEncrypted);
            }
        }
    }
    if let Launch::Http(http) = &entry.launch
        && http.oauth.as_ref().is_some_and(|oauth| oauth.allow_missing_pkce)
    {
        found.push(StandsOut::MissingPkce);
    }
    let mut once = Vec::new();
    for one in found {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

fn run<'n>(
    command_line: &[String],
    names: impl Iterator<Item = &'n String>,
    around: &Surroundings<'_>,
    found: &mut Vec<StandsOut>,
) {
    let mut loaders: Vec<&str> = names.map(String::as_str).filter(|name| loads_code(name)).collect();
    let layers = layers(command_line, &mut |assigned| {
        if loads_code(assigned) {
            loaders.push(assigned);
        }
    });
    for layer in &layers {
        let program = base_name(layer.command);
        if code::is_inline(&program, layer.args) {
            found.push(StandsOut::InlineCode {
                program: program.clone(),
            });
        }
        if is_other_rights(&program) {
            found.push(StandsOut::OtherRights {
                program: program.clone(),
            });
        }
        if matches!(program.as_str(), "docker" | "podman" | "nerdctl")
            && let Some(wide) = layer.args.iter().find(|arg| is_container_of_all(arg))
        {
            found.push(StandsOut::OtherRights {
                program: format!("{program} {wide}"),
            });
        }
    }
    for arg in command_line.iter().skip(1) {
        if folders::is_wide(arg, around.home, around.own_folder) {
            found.push(StandsOut::WideFolder { argument: arg.clone() });
        }
    }
    let mounts = folders::mounted(command_line);
    for mount in mounts
        .into_iter()
        .filter(|path| folders::is_wide_path(path, around.home, around.own_folder))
    {
        found.push(StandsOut::WideFolder { argument: mount });
    }
    found.extend(
        loaders
            .into_iter()
            .map(|name| StandsOut::LoaderVariable { name: name.to_owned() }),
    );
    for layer in &layers {
        let fetched = packages(layer.command, layer.args);
        let unpinned = fetched.iter().filter(|package| !package.pinned);
        found.extend(unpinned.map(|Package { spec, .. }| StandsOut::Unpinned { package: spec.clone() }));
        if !fetched.is_empty() {
            found.push(StandsOut::Downloads {
                runner: base_name(layer.command),
            });
        }
    }
}

/// One program in a command line that starts another: `sudo env A=1 npx x` has three.
struct Layer<'a> {
    command: &'a str,
    args: &'a [String],
}

/// No command line has more.
const MOST_LAYERS: usize = 16;

fn layers<'a>(command_line: &'a [String], assigned: &mut dyn FnMut(&'a str)) -> Vec<Layer<'a>> {
    let mut layers = Vec::new();
    let mut rest = command_line;
    while let Some((command, args)) = rest.split_first() {
        layers.push(Layer { command, args });
        if layers.len() == MOST_LAYERS {
            break;
        }
        rest = inner(&base_name(command), args, assigned);
    }
    layers
}

/// The command line that a program is given to start.
fn inner<'a>(program: &str, args: &'a [String], assigned: &mut dyn FnMut(&'a str)) -> &'a [String] {
    let valued: &[&str] = match program {
        "env" => &["-u", "--unset", "-C", "--chdir"],
        "sudo" => &[
            "-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-D", "-R", "-T", "-C", "-r", "-t",
        ],
        "doas" => &["-u", "-C"],
        "pkexec" => &["--user"],
        "nice" | "ionice" | "chrt" | "taskset" => &["-n", "-c", "-p", "--adjustment"],
        "timeout" => &["-s", "--signal", "-k", "--kill-after"],
        "stdbuf" => &["-i", "-o", "-e"],
        "nohup" | "setsid" | "time" | "command" | "exec" | "wsl" | "busybox" | "firejail" | "bwrap" | "caffeinate"
        | "dotenv" | "arch" | "unbuffer" | "chronic" => &["-e", "-f", "-d", "-u"],
        "uv" | "poetry" | "pipenv" | "hatch" | "pdm" | "rye" | "conda" | "mamba" | "micromamba" | "mise" | "asdf"
        | "pixi" => return after_word(args, &["run", "exec"]),
        "npm" | "pnpm" | "yarn" | "bundle" | "volta" | "fnm" => return after_word(args, &["exec"]),
        _ => return &[],
    };
    let mut index = 0;
    while let Some(arg) = args.get(index) {
        if valued.contains(&arg.as_str()) {
            index += 2;
        } else if arg == "--" {
            index += 1;
            break;
        } else if arg.starts_with('-') {
            index += 1;
        } else if let Some((name, _)) = arg
            .split_once('=')
            .filter(|_| matches!(program, "env" | "sudo" | "doas"))
        {
            assigned(name);
            index += 1;
        } else {
            break;
        }
    }
    if matches!(program, "timeout" | "taskset" | "chrt") {
        // A duration, a mask or a priority.
        index += 1;
    }
    args.get(index..).unwrap_or_default()
}

fn after_word<'a>(args: &'a [String], words: &[&str]) -> &'a [String] {
    let Some(at) = args.iter().position(|arg| words.contains(&arg.as_str())) else {
        return &[];
    };
    if at > 0 && args[0] == "tool" {
        // `uv tool run`: a package.
        return &[];
    }
    const VALUED: &[&str] = &[
        "--with",
        "--python",
        "-p",
        "--project",
        "--directory",
        "--env-file",
        "-n",
        "--name",
        "--group",
        "--extra",
        "--package",
        "--index-url",
        "-e",
        "--environment",
    ];
    let mut index = at + 1;
    while let Some(arg) = args.get(index) {
        index += match arg.as_str() {
            "--" => return &args[index + 1..],
            valued if VALUED.contains(&valued) => 2,
            option if option.starts_with('-') => 1,
            _ => break,
        };
    }
    args.get(index..).unwrap_or_default()
}

fn is_other_rights(program: &str) -> bool {
    matches!(
        program,
        "sudo"
            | "doas"
            | "pkexec"
            | "su"
            | "runuser"
            | "gksudo"
            | "kdesudo"
            | "run0"
            | "machinectl"
            | "runas"
            | "gsudo"
    )
}

/// What gives a container the rights of the whole computer.
fn is_container_of_all(arg: &str) -> bool {
    matches!(
        arg,
        "--privileged" | "--privileged=true" | "--pid=host" | "--cap-add=ALL" | "--cap-add=SYS_ADMIN"
    ) || arg.contains("/docker.sock")
}

/// Whether a variable of this name makes a program load other code, or find another program.
fn loads_code(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "LD_",
        "DYLD_",
        "PYTHON",
        "NPM_CONFIG_",
        "UV_",
        "PIP_",
        "GIT_CONFIG",
        "LUA_INIT",
        "LUA_PATH",
        "LUA_CPATH",
        "COR_PROFILER",
        "CORECLR_PROFILER",
        "R_PROFILE",
        "R_ENVIRON",
        "BUNDLE_",
        "YARN_",
    ];
    const NAMES: &[&str] = &[
        "NODE_OPTIONS",
        "NODE_PATH",
        "NODE_REPL_EXTERNAL_MODULE",
        "BASH_ENV",
        "ENV",
        "PATH",
        "PERL5OPT",
        "PERL5LIB",
        "PERL5DB",
        "PERLLIB",
        "RUBYOPT",
        "RUBYLIB",
        "GEM_PATH",
        "GEM_HOME",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "_JAVA_OPTIONS",
        "JAVA_OPTS",
        "CLASSPATH",
        "GIT_SSH_COMMAND",
        "GIT_SSH",
        "GIT_EXEC_PATH",
        "GIT_ASKPASS",
        "GIT_PAGER",
        "GIT_EDITOR",
        "GIT_PROXY_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "GIT_TEMPLATE_DIR",
        "SSH_ASKPASS",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "BROWSER",
        "SHELL",
        "PROMPT_COMMAND",
        "PS4",
        "ZDOTDIR",
        "IFS",
        "PHPRC",
        "PHP_INI_SCAN_DIR",
        "DOTNET_STARTUP_HOOKS",
        "ELECTRON_RUN_AS_NODE",
        "GCONV_PATH",
        "LOCPATH",
        "GLIBC_TUNABLES",
        "OPENSSL_CONF",
        "OPENSSL_MODULES",
        "COMSPEC",
        "PATHEXT",
        "PSMODULEPATH",
        "DENO_DIR",
        "BUN_OPTIONS",
        "BUN_INSPECT_PRELOAD",
        "CARGO_HOME",
        "RUSTC_WRAPPER",
        "GOFLAGS",
        "MAKEFLAGS",
        "DOCKER_HOST",
        "DOCKER_CONFIG",
        "KUBECONFIG",
    ];
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests;
