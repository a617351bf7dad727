//! The tools as callers see them: names, arguments, hints, descriptions. Pure.
//!
//! Names and arguments are those of the reference server `@modelcontextprotocol/server-filesystem`, so that what models
//! and people know of it holds here.

use std::sync::Arc;

use rmcp::{
    handler::server::common::schema_for_input,
    model::{JsonObject, Tool, ToolAnnotations},
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

/// One call, its arguments checked.
#[derive(Debug)]
pub(crate) enum Call {
    ReadTextFile(ReadTextFile),
    ReadMediaFile(OnePath),
    ReadMultipleFiles(ManyPaths),
    WriteFile(WriteFile),
    EditFile(EditFile),
    CreateDirectory(OnePath),
    ListDirectory(OneFolder),
    ListDirectoryWithSizes(SizedFolder),
    DirectoryTree(Tree),
    MoveFile(MoveFile),
    SearchFiles(Search),
    GetFileInfo(OnePath),
    ListAllowedDirectories,
}

/// Why a call cannot be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadCall {
    UnknownTool,
    /// One sentence.
    Arguments(String),
}

impl Call {
    /// Reads a call's name and arguments.
    pub(crate) fn parse(name: &str, arguments: JsonObject) -> Result<Self, BadCall> {
        Ok(match name {
            "read_text_file" | "read_file" => Self::ReadTextFile(read(name, arguments)?),
            "read_media_file" => Self::ReadMediaFile(read(name, arguments)?),
            "read_multiple_files" => Self::ReadMultipleFiles(read(name, arguments)?),
            "write_file" => Self::WriteFile(read(name, arguments)?),
            "edit_file" => Self::EditFile(read(name, arguments)?),
            "create_directory" => Self::CreateDirectory(read(name, arguments)?),
            "list_directory" => Self::ListDirectory(read(name, arguments)?),
            "list_directory_with_sizes" => Self::ListDirectoryWithSizes(read(name, arguments)?),
            "directory_tree" => Self::DirectoryTree(read(name, arguments)?),
            "move_file" => Self::MoveFile(read(name, arguments)?),
            "search_files" => Self::SearchFiles(read(name, arguments)?),
            "get_file_info" => Self::GetFileInfo(read(name, arguments)?),
            "list_allowed_directories" => {
                read::<Nothing>(name, arguments)?;
                Self::ListAllowedDirectories
            }
            _ => return Err(BadCall::UnknownTool),
        })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadTextFile {
    /// The file, for example "notes/today.md".
    pub(crate) path: String,
    /// Only the first this many lines. Not together with tail.
    #[serde(default, deserialize_with = "line_count")]
    #[schemars(with = "u32", range(min = 1), extend("default" = Value::Null))]
    pub(crate) head: Option<u64>,
    /// Only the last this many lines. Not together with head.
    #[serde(default, deserialize_with = "line_count")]
    #[schemars(with = "u32", range(min = 1), extend("default" = Value::Null))]
    pub(crate) tail: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnePath {
    /// Relative to the folder, for example "notes/today.md", or absolute inside it.
    pub(crate) path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManyPaths {
    /// The files, for example ["a.txt", "notes/b.md"].
    #[schemars(length(min = 1))]
    pub(crate) paths: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    /// The file, for example "notes/today.md".
    pub(crate) path: String,
    /// All of the file's new text.
    pub(crate) content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct EditFile {
    /// The file, for example "notes/today.md".
    pub(crate) path: String,
    /// Applied in order, each to what the ones before it left; all or none.
    #[schemars(length(min = 1))]
    pub(crate) edits: Vec<Replacement>,
    /// Only show the diff, change nothing.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub(crate) struct Replacement {
    /// The passage to replace, copied exactly from the file. The first place it occurs at is replaced.
    pub(crate) old_text: String,
    /// What takes its place.
    pub(crate) new_text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneFolder {
    /// The folder; "." is the whole one.
    #[serde(default = "whole")]
    pub(crate) path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SizedFolder {
    /// The folder; "." is the whole one.
    #[serde(default = "whole")]
    pub(crate) path: String,
    /// By name, or the largest first.
    #[serde(default)]
    pub(crate) sort_by: SortBy,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum SortBy {
    #[default]
    Name,
    Size,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Tree {
    /// The folder; "." is the whole one.
    #[serde(default = "whole")]
    pub(crate) path: String,
    /// Globs of what to leave out, for example ["node_modules", "**/*.log"].
    #[serde(default)]
    pub(crate) exclude_patterns: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveFile {
    /// The file or folder to move.
    pub(crate) source: String,
    /// Its new path, name included; must not exist yet.
    pub(crate) destination: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Search {
    /// The folder to search; "." is the whole one.
    #[serde(default = "whole")]
    pub(crate) path: String,
    /// A glob such as "**/*.md", or a part of a name such as "report".
    pub(crate) pattern: String,
    /// Globs of what to leave out, for example ["node_modules", "**/*.log"].
    #[serde(default)]
    pub(crate) exclude_patterns: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// All tools, in the order they are listed.
pub(crate) fn list() -> Result<Vec<Tool>, String> {
    use Effect::{Adds, Changes, Reads, Rewrites};
    Ok(vec![
        tool::<ReadTextFile>(
            "read_text_file",
            "Read text file",
            "Read a text file (UTF-8), whole or only its first (head) or last (tail) lines. At most 10 MiB in one answer: use head or tail for larger files.",
            Reads,
        )?,
        tool::<ReadTextFile>(
            "read_file",
            "Read file (deprecated)",
            "Deprecated: the same as read_text_file, which should be used instead.",
            Reads,
        )?,
        tool::<OnePath>(
            "read_media_file",
            "Read media file",
            "Read a picture, sound or any other file that is no text, at most 10 MiB. Pictures and sounds come as such, everything else as base64.",
            Reads,
        )?,
        tool::<ManyPaths>(
            "read_multiple_files",
            "Read multiple files",
            "Read several text files in one call; each one's text follows its path. A file that cannot be read shows its error and does not stop the others. At most 10 MiB together.",
            Reads,
        )?,
        tool::<WriteFile>(
            "write_file",
            "Write file",
            "Create a text file, or replace all of an existing one's content. The folder it lies in must exist (see create_directory). To change parts of a file, edit_file is safer.",
            Rewrites,
        )?,
        tool::<EditFile>(
            "edit_file",
            "Edit file",
            "Replace passages of a text file and get the change as a git-style diff. Each oldText must be in the file; only whitespace around lines may differ. With dryRun nothing is written.",
            Changes,
        )?,
        tool::<OnePath>(
            "create_directory",
            "Create folder",
            "Create a folder, with the folders it lies in where they are missing. It is no error if it exists.",
            Adds,
        )?,
        tool::<OneFolder>(
            "list_directory",
            "List folder",
            "List what is in a folder, each entry on a line with [FILE], [DIR] or [LINK] before its name.",
            Reads,
        )?,
        tool::<SizedFolder>(
            "list_directory_with_sizes",
            "List folder with sizes",
            "List what is in a folder with the files' sizes, sorted by name or size, and their sum.",
            Reads,
        )?,
        tool::<Tree>(
            "directory_tree",
            "Folder tree",
            "Everything below a folder as JSON: entries with name, type (file, directory, link, other) and, for folders, children. At most 10,000 entries.",
            Reads,
        )?,
        tool::<MoveFile>(
            "move_file",
            "Move or rename",
            "Move or rename a file or folder. Fails if the destination exists: nothing is overwritten.",
            Changes,
        )?,
        tool::<Search>(
            "search_files",
            "Search files by name",
            "Find files and folders by name, below a folder at any depth. A glob is matched against the path relative to that folder (\"*.md\": directly in it, \"**/*.md\": at any depth); a pattern without wildcards finds names that contain it. Answers one path per line, ready for the other tools. It does not look into the files.",
            Reads,
        )?,
        tool::<OnePath>(
            "get_file_info",
            "File information",
            "A file's or folder's size, times (UTC), kind and permissions, without reading it.",
            Reads,
        )?,
        tool::<Nothing>(
            "list_allowed_directories",
            "Show the folder",
            "The folder that these tools work in. Nothing outside of it can be read or changed.",
            Reads,
        )?,
    ])
}

#[derive(Clone, Copy)]
enum Effect {
    Reads,
    /// Only ever adds; again changes nothing more.
    Adds,
    /// May destroy; again changes nothing more.
    Rewrites,
    /// May destroy; again is another change or an error.
    Changes,
}

fn tool<T: JsonSchema + 'static>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
) -> Result<Tool, String> {
    let hints = match effect {
        Effect::Reads => ToolAnnotations::new().read_only(true),
        Effect::Adds => ToolAnnotations::new()
            .read_only(false)
            .destructive(false)
            .idempotent(true),
        Effect::Rewrites => ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(true),
        Effect::Changes => ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(false),
    };
    let schema = plain(&*schema_for_input::<T>()?);
    Ok(Tool::new(name, description, Arc::new(schema))
        .with_title(title)
        .with_annotations(hints.open_world(false)))
}

/// Without what says nothing to a caller, and what some providers refuse.
fn plain(schema: &JsonObject) -> JsonObject {
    let mut schema = schema.clone();
    schema.remove("$schema");
    schema
        .entry("properties")
        .or_insert_with(|| Value::Object(JsonObject::new()));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.remove("format");
            if property.get("default") == Some(&Value::Null) {
                property.remove("default");
            }
        }
    }
    schema
}

fn read<T: for<'de> Deserialize<'de>>(name: &str, arguments: JsonObject) -> Result<T, BadCall> {
    T::deserialize(Value::Object(arguments)).map_err(|e| {
        BadCall::Arguments(format!(
            "The arguments of {name} cannot be used: {e}. See the tool's input schema, correct them and call again."
        ))
    })
}

fn whole() -> String {
    ".".to_owned()
}

/// Models write `5`, `5.0` and `null`.
fn line_count<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(d)? else {
        return Ok(None);
    };
    let whole = number.as_u64().or_else(|| {
        number
            .as_f64()
            .filter(|f| f.fract() == 0.0 && *f >= 0.0)
            .map(|f| f as u64)
    });
    match whole {
        Some(n) if n > 0 => Ok(Some(n)),
        _ => Err(D::Error::custom(format!(
            "head and tail count lines, so {number} is none: use 1 or more"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(name: &str, arguments: Value) -> Result<Call, BadCall> {
        Call::parse(name, arguments.as_object().unwrap().clone())
    }

    #[test]
    fn every_listed_tool_can_be_called_and_knows_its_arguments() {
        for tool in list().unwrap() {
            let schema = Value::Object((*tool.input_schema).clone());
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            for (key, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{}.{key}", tool.name);
                assert!(property.get("$ref").is_none(), "{}.{key}", tool.name);
                assert!(property["type"].is_string(), "{}.{key}: {property}", tool.name);
            }
            let bad = parse(&tool.name, json!({ "no_such": 1 })).unwrap_err();
            assert!(
                matches!(bad, BadCall::Arguments(why) if why.contains("no_such")),
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn a_misspelt_argument_is_refused_instead_of_ignored() {
        let edit = json!({ "path": "a", "edits": [{ "oldText": "a", "newText": "b" }], "dry_run": true });
        let bad = parse("edit_file", edit).unwrap_err();
        assert!(matches!(bad, BadCall::Arguments(why) if why.contains("dry_run") && why.contains("dryRun")));
    }

    #[test]
    fn line_counts_are_read_as_models_write_them() {
        for (given, wanted) in [(json!(5), Some(5)), (json!(5.0), Some(5)), (Value::Null, None)] {
            match parse("read_text_file", json!({ "path": "a", "head": given })).unwrap() {
                Call::ReadTextFile(args) => assert_eq!(args.head, wanted),
                other => panic!("{other:?}"),
            }
        }
        for given in [json!(0), json!(-1), json!(1.5), json!("5")] {
            parse("read_text_file", json!({ "path": "a", "tail": given })).unwrap_err();
        }
    }

    #[test]
    fn an_unknown_tool_is_told_apart_from_bad_arguments() {
        assert_eq!(parse("delete_everything", json!({})).unwrap_err(), BadCall::UnknownTool);
    }
}
