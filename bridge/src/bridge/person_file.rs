//! The person's file as the owner sees it: its last good version, what is wrong with a newer one, and edits.
//!
//! Blocks on the disk; the file is small and only the owner waits.

use std::path::Path;

use serde_json::{Map, Value};

use crate::{
    builtin,
    config::{self, AutoApprove, Config, ConfigFile, Content, EntryKind, FileError, Launch, edit},
    error::{ApiError, Code},
    ids::{ConnectorId, ToolName},
    snapshot::{Notice, NoticeLevel},
    tools::pattern,
    trust::LaunchIdentity,
};

/// A change to the person's file.
pub(crate) enum Edit {
    /// With what launch the person saw it as, where that was another look than writing it.
    Add(ConnectorId, Map<String, Value>, Option<LaunchIdentity>),
    Replace(ConnectorId, Map<String, Value>),
    Enabled(ConnectorId, bool),
    ToolEnabled(ConnectorId, ToolName, bool),
    /// All patterns of hidden tools.
    DisabledTools(ConnectorId, Vec<String>),
    /// The whole command line after the command; the entry's own command, where it held them, is left with its first word.
    Args(ConnectorId, Vec<String>),
    AutoApprove(ConnectorId, AutoApprove),
    Remove(ConnectorId),
}

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
        Edit::Add(id, entry, _) => {
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
        Edit::DisabledTools(id, patterns) => {
            must_exist(id)?;
            edit::set_member(text, id.as_str(), "disabledTools", &Value::from(patterns.clone())).map_err(failed)
        }
        Edit::Args(id, args) => {
            must_exist(id)?;
            let entry = present.entries.iter().find(|entry| entry.key == id.as_str());
            let command = match entry.map(|entry| &entry.kind) {
                Some(EntryKind::Valid(entry)) => match &entry.launch {
                    Launch::Stdio(stdio) => stdio.command.clone(),
                    Launch::Http(_) => return Err(ApiError::bad_request(format!("{id} runs no program."))),
                },
                Some(EntryKind::Invalid(_)) | None => {
                    return Err(ApiError::bad_request(format!(
                        "The entry of {id} in connectors.json must be mended first."
                    )));
                }
            };
            let text = edit::set_member(text, id.as_str(), "command", &Value::from(command)).map_err(failed)?;
            edit::set_member(&text, id.as_str(), "args", &Value::from(args.clone())).map_err(failed)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    struct Case {
        folder: TempDir,
        file: PersonFile,
        config: Config,
    }

    fn case(text: Option<&str>) -> Case {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("connectors.json");
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
        }
        let mut file = PersonFile::new(ConfigFile::new(path));
        let config = file.first();
        Case { folder, file, config }
    }

    impl Case {
        fn text(&self) -> Option<String> {
            fs::read_to_string(self.folder.path().join("connectors.json")).ok()
        }

        fn save(&self, text: &str) {
            fs::write(self.folder.path().join("connectors.json"), text).unwrap();
        }

        fn edit(&mut self, change: &Edit) -> Result<(), ApiError> {
            if let Some(config) = self.file.edit(&self.config, change)? {
                self.config = config;
            }
            Ok(())
        }

        fn keys(&self) -> Vec<&str> {
            self.config.entries.iter().map(|entry| entry.key.as_str()).collect()
        }
    }

    fn id(text: &str) -> ConnectorId {
        ConnectorId::parse(text).unwrap()
    }

    fn entry(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    const ONE: &str =
        "{ // mine\n  \"servers\": {\"a\": {\"command\": \"x\", \"disabledTools\": [\"del_*\", \"b\"]}}\n}\n";

    #[test]
    fn the_default_connector_is_written_with_the_first_change_and_not_before() {
        let mut case = case(None);
        assert!(case.file.is_default());
        assert_eq!((case.keys(), case.text()), (vec!["filesystem"], None));
        case.edit(&Edit::Add(id("b"), entry(r#"{"command": "y"}"#), None))
            .unwrap();
        assert_eq!(case.keys(), ["filesystem", "b"]);
        assert!(!case.file.is_default());
        let text = case.text().unwrap();
        assert!(text.contains("\"filesystem\"") && text.contains("\"b\""), "{text}");
    }

    #[test]
    fn a_file_with_a_mistake_is_never_written_over() {
        let mut case = case(Some(ONE));
        case.save("{\"servers\": ");
        assert!(case.file.again().is_none());
        let refused = case.edit(&Edit::Enabled(id("a"), false)).unwrap_err();
        assert_eq!(refused.code, Code::NotSaved);
        assert!(refused.message.contains("mended"), "{}", refused.message);
        assert_eq!(case.text().as_deref(), Some("{\"servers\": "));
        case.save(ONE);
        case.config = case.file.again().unwrap();
        case.edit(&Edit::Enabled(id("a"), false)).unwrap();
        assert!(case.text().unwrap().contains("// mine"));
    }

    #[test]
    fn a_file_that_is_gone_is_told_and_comes_back_whole_with_the_next_change() {
        let mut case = case(Some(ONE));
        fs::remove_file(case.folder.path().join("connectors.json")).unwrap();
        assert!(case.file.again().is_none());
        assert_eq!(case.file.notices()[0].level, NoticeLevel::Warning);
        case.edit(&Edit::Enabled(id("a"), false)).unwrap();
        assert!(case.text().unwrap().contains("// mine"));
        assert!(case.file.notices().is_empty());
    }

    #[test]
    fn a_newer_version_on_disk_is_not_lost_to_a_change_made_here() {
        let mut case = case(Some(ONE));
        let newer = ONE.replace("\"x\"", "\"newer\"");
        case.save(&newer);
        let refused = case.edit(&Edit::Enabled(id("a"), false)).unwrap_err();
        assert_eq!(refused.code, Code::NotSaved);
        assert_eq!(case.text().as_deref(), Some(newer.as_str()));
    }

    #[test]
    fn a_tool_hidden_by_a_pattern_names_the_pattern_instead_of_pretending() {
        let mut case = case(Some(ONE));
        let turn = |tool: &str, on| Edit::ToolEnabled(id("a"), ToolName::new(tool), on);
        let refused = case.edit(&turn("del_all", true)).unwrap_err();
        assert!(refused.message.contains("\"del_*\""), "{}", refused.message);
        case.edit(&turn("b", true)).unwrap();
        case.edit(&turn("c", false)).unwrap();
        case.edit(&turn("del_one", false)).unwrap();
        assert!(
            case.text().unwrap().contains(r#""disabledTools": ["del_*", "c"]"#),
            "{:?}",
            case.text()
        );
    }

    #[test]
    fn arguments_are_written_also_where_the_command_held_them() {
        let mut case = case(Some(
            "{\"servers\": { // c\n\"a\": {\"command\": \"npx -y pkg\", \"name\": \"A\"}}}\n",
        ));
        let args = ["-y", "pkg@1.2.3"].map(str::to_owned).to_vec();
        case.edit(&Edit::Args(id("a"), args.clone())).unwrap();
        let text = case.text().unwrap();
        assert!(text.contains("// c") && text.contains("\"command\": \"npx\""), "{text}");
        let EntryKind::Valid(entry) = &case.config.entries[0].kind else {
            panic!("{text}")
        };
        let Launch::Stdio(stdio) = &entry.launch else {
            panic!("{text}")
        };
        assert_eq!((stdio.command.as_str(), &stdio.args), ("npx", &args));
    }

    #[test]
    fn what_is_not_there_cannot_be_changed_and_what_is_there_not_added_again() {
        let mut case = case(Some(ONE));
        for change in [
            Edit::Remove(id("z")),
            Edit::Enabled(id("z"), true),
            Edit::AutoApprove(id("z"), AutoApprove::All),
        ] {
            assert_eq!(case.edit(&change).unwrap_err().code, Code::UnknownServer);
        }
        let again = Edit::Add(id("a"), entry(r#"{"command": "x"}"#), None);
        assert_eq!(case.edit(&again).unwrap_err().code, Code::AlreadyExists);
        let bad = Edit::Add(id("n"), entry(r#"{"command": "x", "url": "https://e.example"}"#), None);
        assert_eq!(case.edit(&bad).unwrap_err().code, Code::BadRequest);
        assert_eq!(case.text().as_deref(), Some(ONE));
    }
}
