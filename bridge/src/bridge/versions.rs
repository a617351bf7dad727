//! Which version of a package there is, and writing it into an entry: only when the person asks for it.
//!
//! The package manager's own command is asked, so that its registry and its settings count, and ours are none.

use std::{collections::BTreeMap, ffi::OsString, io, path::Path, sync::Arc, time::Duration};

use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{BridgeHandle, person_file::Edit, shown};
use crate::{
    config::{Connector, Launch},
    connector::{
        World,
        process::{Command, Spawner},
    },
    error::ApiError,
    ids::ConnectorId,
    trust::packages::{Package, Registry, is_plain_name, is_plain_version, packages, pinned_spec},
};

/// A registry that has not answered by then is told of as silent.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(30);
/// More than this is no version.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// The newest version of a connector's package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageVersions {
    /// The package's name, without a version.
    pub package: String,
    /// `null` where it could not be found out.
    pub latest: Option<String>,
    /// Why not, in a sentence.
    pub problem: Option<String>,
}

impl BridgeHandle {
    /// Asks the package manager of a connector's runner for the newest version of its package. Starts none of it.
    ///
    /// # Errors
    /// `unknown_server`; `bad_request` where it runs no package whose version can be fixed here.
    pub async fn versions_of(&self, id: ConnectorId) -> Result<PackageVersions, ApiError> {
        let (_, package) = self.package_of(&id)?;
        let found = latest(&self.inner.world, &package).await;
        let (latest, problem) = match found {
            Ok(version) => (Some(version), None),
            Err(problem) => (None, Some(problem)),
        };
        Ok(PackageVersions {
            package: package.name,
            latest,
            problem,
        })
    }

    /// Writes a version behind the package's name in the entry. What waits for a look goes on waiting.
    ///
    /// # Errors
    /// As [`BridgeHandle::versions_of`]; `bad_request` for what is no version, `not_saved`.
    pub async fn use_version(&self, id: ConnectorId, version: String) -> Result<(), ApiError> {
        if !is_plain_version(&version) {
            let version = shown(&version);
            return Err(ApiError::bad_request(format!("\"{version}\" is no version.")));
        }
        let (mut args, package) = self.package_of(&id)?;
        if let (Some(arg), Some(spec)) = (args.get_mut(package.arg), pinned_spec(&package, &version)) {
            arg.replace_range(package.bytes, &spec);
        }
        self.edit(Edit::Args(id, args)).await
    }

    /// The first package of a connector that is not fixed, and the arguments in which it is named.
    fn package_of(&self, id: &ConnectorId) -> Result<(Vec<String>, Package), ApiError> {
        let entry = self.entry_of(id)?;
        let nothing = || ApiError::bad_request(format!("{id} runs no package whose version could be fixed here."));
        let Launch::Stdio(stdio) = &entry.launch else {
            return Err(nothing());
        };
        let found = packages(&stdio.command, &stdio.args).into_iter().find(can_be_fixed);
        Ok((stdio.args.clone(), found.ok_or_else(nothing)?))
    }

    fn entry_of(&self, id: &ConnectorId) -> Result<Arc<Connector>, ApiError> {
        Ok(self.door(id)?.shared.entry())
    }
}

fn can_be_fixed(package: &Package) -> bool {
    let is_registered = match package.registry {
        Registry::Npm | Registry::Python => true,
        Registry::Image | Registry::Other => false,
    };
    is_registered && !package.pinned && is_plain_name(&package.name)
}

/// One way to ask: the command, its arguments, and what it reads.
type Question = (&'static str, Vec<String>, String);

fn questions(package: &Package) -> Vec<Question> {
    let name = || package.name.clone();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    match package.registry {
        Registry::Npm => vec![(
            "npm",
            [words(&["view", "--json"]), vec![name(), "version".into()]].concat(),
            String::new(),
        )],
        Registry::Python => vec![
            (
                "uv",
                words(&[
                    "pip",
                    "compile",
                    "--quiet",
                    "--no-deps",
                    "--no-header",
                    "--no-annotate",
                    "-",
                ]),
                format!("{}\n", package.name),
            ),
            (
                "pip",
                [
                    words(&["index", "versions", "--disable-pip-version-check"]),
                    vec![name()],
                ]
                .concat(),
                String::new(),
            ),
        ],
        Registry::Image | Registry::Other => Vec::new(),
    }
}

/// The version in what was answered; `None` = there is none.
fn version_in(package: &Package, answer: &str) -> Option<String> {
    let candidate = match package.registry {
        Registry::Npm => answer.trim().trim_matches('"').to_owned(),
        Registry::Python => {
            let line = answer.lines().find(|line| line.contains("==") || line.contains(" ("))?;
            match line.split_once("==") {
                Some((_, version)) => version.split([' ', ';']).next().unwrap_or_default().to_owned(),
                None => line
                    .split_once(" (")?
                    .1
                    .split(')')
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            }
        }
        Registry::Image | Registry::Other => return None,
    };
    is_plain_version(&candidate).then_some(candidate)
}

async fn latest(world: &World, package: &Package) -> Result<String, String> {
    let mut problem = "The package manager that knows its versions is not on this computer.".to_owned();
    world.look_for_programs().await;
    let Some(programs) = world.known_programs() else {
        return Err(problem);
    };
    for (command, args, input) in questions(package) {
        let Ok(program) = programs.find(command, &world.person_home) else {
            continue;
        };
        let env = programs.base_environment(std::env::vars_os().collect::<Vec<_>>());
        let asked = ask(&world.spawner, program.as_path(), args, env, &input);
        match tokio::time::timeout(LOOK_UP_WITHIN, asked).await {
            Ok(Ok(answer)) => match version_in(package, &answer) {
                Some(version) => return Ok(version),
                None => problem = format!("{command} knows no version of {}.", package.name),
            },
            Ok(Err(error)) => problem = format!("{command} could not be asked: {error}."),
            Err(_elapsed) => {
                problem = format!("{command} did not answer within {} s.", LOOK_UP_WITHIN.as_secs());
            }
        }
    }
    Err(problem)
}

/// What a program prints; it is gone when this returns, or when it is dropped.
async fn ask(
    spawner: &Spawner,
    program: &Path,
    args: Vec<String>,
    env: BTreeMap<OsString, OsString>,
    input: &str,
) -> io::Result<String> {
    // No folder of a project, whose own settings would count.
    let folder = tempfile::tempdir()?;
    let started = spawner.spawn(Command {
        program: program.to_owned(),
        args: args.into_iter().map(Into::into).collect(),
        env,
        cwd: folder.path().to_owned(),
    });
    let mut child = started.await.map_err(io::Error::other)?;
    let mut io = child.take_io()?;
    let telling = async {
        // One that wants to hear nothing closes its side.
        let _ = io.stdin.write_all(input.as_bytes()).await;
        drop(io.stdin);
    };
    let mut answer = Vec::new();
    let mut noise = Vec::new();
    let mut stderr = io.stderr.take(LONGEST_ANSWER);
    let mut stdout = io.stdout.take(LONGEST_ANSWER);
    let (_, answered, _) = tokio::join!(telling, stdout.read_to_end(&mut answer), stderr.read_to_end(&mut noise));
    child.stop().await;
    answered?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(line: &str) -> Package {
        let words = shell_words::split(line).unwrap();
        packages(&words[0], &words[1..]).remove(0)
    }

    #[test]
    fn a_version_is_read_from_what_each_package_manager_prints_and_from_nothing_else() {
        let (npm, python) = (package("npx @a/b"), package("uvx mcp-server-time"));
        for (package, answer, version) in [
            (&npm, "\"1.2.3\"\n", Some("1.2.3")),
            (&npm, "2.0.0-beta.1\n", Some("2.0.0-beta.1")),
            (&npm, "", None),
            (&npm, "{\"error\": {\"code\": \"E404\"}}", None),
            (&python, "mcp-server-time==2026.1.2\n", Some("2026.1.2")),
            (&python, "mcp-server-time==1.0 ; python_version > '3'\n", Some("1.0")),
            (
                &python,
                "mcp-server-time (1.4.0)\nAvailable versions: 1.4.0, 1.3\n",
                Some("1.4.0"),
            ),
            (&python, "ERROR: nothing\n", None),
            (&python, "x==--evil\n", None),
        ] {
            assert_eq!(version_in(package, answer).as_deref(), version, "{answer:?}");
        }
    }

    #[tokio::test]
    async fn a_package_manager_is_told_what_it_needs_and_only_its_output_is_heard() {
        let folder = tempfile::tempdir().unwrap();
        let spawner = Spawner::start(folder.path(), folder.path().join("children")).unwrap();
        let script = "read name; echo \"$name==1.2\"; echo noise >&2";
        let args = ["-c", script].map(str::to_owned).to_vec();
        let answer = ask(&spawner, Path::new("/bin/sh"), args, BTreeMap::new(), "pkg\n").await;
        assert_eq!(answer.unwrap(), "pkg==1.2\n");
        let reaped = async {
            while spawner.running_count() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), reaped)
            .await
            .expect("nothing of it is left");
        let missing = ask(&spawner, Path::new("/nowhere/npm"), Vec::new(), BTreeMap::new(), "").await;
        assert!(missing.is_err());
    }

    #[test]
    fn a_name_that_could_be_an_option_or_a_script_is_never_asked_for() {
        assert!(can_be_fixed(&package("npx @a/b")));
        for line in [
            "npx @a/b@1.0.0",
            "docker run x",
            "npx 'a;b'",
            "uvx 'a$(b)'",
            "npx github:a/b",
        ] {
            assert!(!can_be_fixed(&package(line)), "{line}");
        }
    }
}
