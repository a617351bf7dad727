//! The program behind a process, as a person would name it.
//!
//! Owns what counts as one: a file that runs by itself, or an interpreter with what it was told to run. Pure, but for a
//! look whether a script is there; reads no process (`process` does) and knows nothing of connections. A process can lie about its arguments, so a program is a
//! help for the person and a filter, not a proof.

mod interpreter;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::process::Facts;

/// A running program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file's name without `.exe`; what the process calls itself where the file is not known. Never empty, without
    /// control characters.
    pub name: String,
    /// Absolute; `None` where the system does not tell it, or where what lies at that path is another file.
    pub path: Option<PathBuf>,
    pub pid: u32,
    /// For interpreters: what they run.
    pub script: Option<Script>,
}

/// What an interpreter runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Script {
    /// Absolute, an existing file.
    File(PathBuf),
    /// Named rather than located: `python -m name`, `deno run npm:name`.
    Module(String),
    /// Code in the arguments or from the input.
    Inline,
    /// Something that the arguments do not clearly name.
    Unclear,
}

/// What a rule about a program is bound to: the same file, and for an interpreter the same script.
///
/// There is none for a program that another one could pass for without touching a file: code given in the arguments or
/// input, arguments that were not understood, a path that the system does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProgramKey {
    pub path: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
}

impl Program {
    /// What a person reads, on one line: `Cursor`, `agent.py (python3.12)`, `python3.12 -m aider`.
    pub fn label(&self) -> String {
        let name = &self.name;
        match &self.script {
            None => name.clone(),
            Some(Script::File(file)) => match file.file_name() {
                Some(script) => format!("{} ({name})", one_line(&script.to_string_lossy())),
                None => name.clone(),
            },
            Some(Script::Module(module)) => format!("{} ({name})", one_line(module)),
            Some(Script::Inline) => format!("{name} with code given to it"),
            Some(Script::Unclear) => format!("{name} with a script that is not known"),
        }
    }

    /// What a rule about this program can be bound to.
    pub fn key(&self) -> Option<ProgramKey> {
        let lasts = match &self.script {
            None | Some(Script::File(_) | Script::Module(_)) => true,
            Some(Script::Inline | Script::Unclear) => false,
        };
        let path = self.path.clone().filter(|_| lasts)?;
        Some(ProgramKey {
            path,
            script: self.script.clone(),
        })
    }

    /// Reads what the system tells about a process.
    pub(super) fn from_facts(pid: u32, facts: &Facts) -> Self {
        let file_name = facts.exe.as_deref().and_then(Path::file_name);
        let name = file_name.map_or_else(|| facts.name.clone(), |name| name.to_string_lossy().into_owned());
        let name = one_line(strip_exe(&name));
        let script = interpreter::script(&name, &facts.args).map(|script| match script {
            interpreter::Told::File(file) => located(&file, facts.cwd.as_deref()),
            interpreter::Told::Module(module) => Script::Module(module),
            interpreter::Told::Inline => Script::Inline,
            interpreter::Told::Unclear => Script::Unclear,
        });
        Self {
            name: if name.is_empty() {
                format!("process {pid}")
            } else {
                name
            },
            path: facts.exe.clone().filter(|_| facts.exe_is_at_its_path),
            pid,
            script,
        }
    }
}

/// Windows' ending says nothing to a person.
fn strip_exe(name: &str) -> &str {
    let cut = name.len().saturating_sub(4);
    match name.get(cut..) {
        Some(end) if cut > 0 && end.eq_ignore_ascii_case(".exe") => &name[..cut],
        _ => name,
    }
}

/// Names are read by people, one line each, and can be chosen by anybody.
fn one_line(name: &str) -> String {
    name.chars()
        .filter(|char| !char.is_control())
        .take(LONGEST_NAME)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// In characters; a file's name has at most 255 bytes.
const LONGEST_NAME: usize = 255;

/// Where the script lies. Links stay as written: package managers move what is behind them. A path with `..` is
/// followed, because it means something else when a folder in it is a link.
fn located(file: &Path, cwd: Option<&Path>) -> Script {
    let whole = match cwd {
        _ if file.is_absolute() => file.to_owned(),
        Some(cwd) => cwd.join(file),
        None => return Script::Unclear,
    };
    let has_parent = whole.components().any(|part| part == std::path::Component::ParentDir);
    let whole = if has_parent {
        std::fs::canonicalize(&whole)
    } else {
        Ok(whole.components().collect())
    };
    match whole {
        Ok(whole) if whole.is_file() => Script::File(whole),
        Ok(_) | Err(_) => Script::Unclear,
    }
}

#[cfg(test)]
mod tests;
