//! The person's file as the owner sees it: its last good version, what is wrong with a newer one, and edits.
//!
//! Blocks on the disk; the file is small and only the owner waits.

use std::path::Path;

use super::owner::Edit;
use crate::{
    builtin,
    config::{self, AutoApprove, Config, ConfigFile, Content, EntryKind, FileError, edit},
    error::{ApiError, Code},
    ids::{ConnectorId, ToolName},
    snapshot::{Notice, NoticeLevel},
    tools::pattern,
};

use serde_json::Value;

/// The file, what it said last, and what is to be said about it.
pub(crate) struct PersonFile {
    file: ConfigFile,
    /// The last version that could be read; the compiled-in one while there has been none.
    good: String,
    notices: Vec<Notice>,
    is_default: bool,
}

impl PersonFile {
    pub(crate) fn new(file: ConfigFile) -> Self {
        Self {
            file,
            good: builtin::default_config_text().to_owned(),
            notices: Vec::new(),
            is_default: false,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// True while there is no file and the default stands in.
    pub(crate) fn is_default(&self) -> bool {
        self.is_default
    }

    /// Remarks about the file as a whole.
    pub(crate) fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The configuration to begin with: the file's, the default where there is none, nothing where it is unusable.
    pub(crate) fn first(&mut self) -> Config {
        let nothing = Config {
            entries: Vec::new(),
            notices: Vec::new(),
        };
        match self.file.read() {
            Ok(Content::Missing) => {
                self.is_default = true;
                self.take(builtin::default_config_text().as_bytes(), Vec::new())
                    .unwrap_or(nothing)
            }
            Ok(Content::File { bytes, notices }) => match self.take(&bytes, notices) {
                Some(config) => config,
                None => {
                    // What cannot be read says nothing; it is mended by hand, not written over.
                    self.good = String::new();
                    nothing
                }
            },
            Err(error) => {
                self.notices = vec![problem(&error)];
                nothing
            }
        }
    }

    /// Reads the file again. `Some` where it says something usable that is new; a mistake in it changes nothing but the
    /// notices.
    pub(crate) fn again(&mut self) -> Option<Config> {
        match self.file.read_if_changed() {
            Ok(None) => None,
            Ok(Some(Content::File { bytes, notices })) => self.take(&bytes, notices),
            Ok(Some(Content::Missing)) => {
                if !self.is_default {
                    self.notices = vec![self.gone()];
                }
                None
            }
            Err(error) => {
                self.notices = vec![problem(&error)];
                None
            }
        }
    }

    fn take(&mut self, bytes: &[u8], notices: Vec<Notice>) -> Option<Config> {
        match config::parse(bytes) {
            Ok(config) => {
                self.good = String::from_utf8_lossy(bytes).into_owned();
                self.notices = notices;
                Some(config)
            }
            Err(mistake) => {
                self.notices = notices;
                self.notices.push(mistake);
                None
            }
        }
    }

    /// Makes a change in the text and saves it; `Some` is the configuration that it makes, `None` where nothing changed.
    /// `present` is what runs.
    ///
    /// # Errors
    /// `already_exists`, `unknown_server`, `bad_request`, `not_saved`; everything is then as it was.
    pub(crate) fn edit(&mut self, present: &Config, change: &Edit) -> Result<Option<Config>, ApiError> {
        if let Some(mistake) = self.notices.iter().find(|notice| notice.level == NoticeLevel::Error) {
            let why = format!(
                "Nothing was changed, because connectors.json must be mended first. {}",
                mistake.message
            );
            return Err(ApiError::new(Code::NotSaved, why));
        }
        let edited = edited(&self.good, present, change)?;
        if edited == self.good && !self.is_default {
            return Ok(None);
        }
        self.file.write(&edited).map_err(|error| not_saved(&error))?;
        self.is_default = false;
        Ok(self.take(edited.as_bytes(), Vec::new()))
    }

    fn gone(&self) -> Notice {
        remark(
            NoticeLevel::Warning,
            format!(
                "{} is gone. What it named goes on until Neuron Connect is restarted; the next change made here writes it again.",
                self.path().display()
            ),
        )
    }
}

fn remark(level: NoticeLevel, message: String) -> Notice {
    Notice {
        level,
        message,
        line: None,
        column: None,
        server: None,
    }
}

fn problem(error: &FileError) -> Notice {
    match error {
        FileError::Unreadable(notice) => notice.clone(),
        FileError::Refused(_) | FileError::Io { .. } | FileError::Changed(_) => {
            remark(NoticeLevel::Error, error.to_string())
        }
    }
}

fn not_saved(error: &FileError) -> ApiError {
    ApiError::new(
        Code::NotSaved,
        format!("The change was not saved: {error}. Everything is as it was."),
    )
}

fn edited(text: &str, present: &Config, change: &Edit) -> Result<String, ApiError> {
    let exists = |id: &ConnectorId| present.entries.iter().any(|entry| entry.key == id.as_str());
    let must_exist = |id: &ConnectorId| {
        if exists(id) {
            Ok(())
        } else {
            Err(super::unknown_server(id.as_str()))
        }
    };
    let failed = |error: edit::EditError| ApiError::new(Code::NotSaved, format!("Nothing was changed: {error}."));
    match change {
        Edit::Add(id, entry) => {
            if exists(id) {
                return Err(ApiError::new(
                    Code::AlreadyExists,
                    format!("There is already a connector \"{id}\"; choose another id or remove that one first."),
                ));
            }
            config::validate_body(id, entry).map_err(ApiError::bad_request)?;
            edit::add_entry(text, id.as_str(), entry).map_err(failed)
        }
        Edit::Replace(id, entry) => {
            must_exist(id)?;
            config::validate_body(id, entry).map_err(ApiError::bad_request)?;
            edit::replace_entry(text, id.as_str(), entry).map_err(failed)
        }
        Edit::Enabled(id, enabled) => {
            must_exist(id)?;
            edit::set_member(text, id.as_str(), "enabled", &Value::Bool(*enabled)).map_err(failed)
        }
        Edit::ToolEnabled(id, tool, enabled) => {
            must_exist(id)?;
            match disabled_tools(present, id, tool, *enabled)? {
                Some(list) => edit::set_member(text, id.as_str(), "disabledTools", &list).map_err(failed),
                None => Ok(text.to_owned()),
            }
        }
        Edit::AutoApprove(id, value) => {
            must_exist(id)?;
            let value = match value {
                AutoApprove::None => Value::Bool(false),
                AutoApprove::All => Value::Bool(true),
                AutoApprove::Patterns(patterns) => Value::from(patterns.clone()),
            };
            edit::set_member(text, id.as_str(), "autoApprove", &value).map_err(failed)
        }
        Edit::Remove(id) => {
            must_exist(id)?;
            edit::remove_entry(text, id.as_str()).map_err(failed)
        }
    }
}

/// The new `disabledTools`, or `None` when it says so already.
fn disabled_tools(
    present: &Config,
    id: &ConnectorId,
    tool: &ToolName,
    enabled: bool,
) -> Result<Option<Value>, ApiError> {
    let entry = present.entries.iter().find(|entry| entry.key == id.as_str());
    let Some(EntryKind::Valid(entry)) = entry.map(|entry| &entry.kind) else {
        return Err(ApiError::bad_request(format!(
            "The entry of {id} in connectors.json must be mended first."
        )));
    };
    let name = tool.as_str();
    let mut list = entry.disabled_tools.clone();
    if enabled {
        list.retain(|pattern| pattern != name);
        if let Some(pattern) = list.iter().find(|listed| pattern::matches(listed, name)) {
            return Err(ApiError::bad_request(format!(
                "{name} is turned off by the pattern \"{pattern}\" in \"disabledTools\" of {id}; change that in the connector's settings."
            )));
        }
    } else if !pattern::any_matches(&list, name) {
        if name.contains(['*', '?']) {
            return Err(ApiError::bad_request(format!(
                "{name} cannot be turned off alone: its name reads as a pattern."
            )));
        }
        list.push(name.to_owned());
    }
    Ok((list != entry.disabled_tools).then(|| Value::from(list)))
}
