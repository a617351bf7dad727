//! Changes to `connectors.json` as text: what was not meant stays byte for byte. Pure.
//!
//! A member that is added takes the style of its neighbours; an object that loses its last member becomes `{}` unless
//! comments remain in it. Every result is read again before it is handed out, so that a surprising format ends in
//! [`EditError::Unsafe`], never in a damaged file.

mod document;
mod render;

use jsonc_parser::ast::{ObjectProp, Value as Tree};
use serde_json::{Map, Value};

use self::{
    document::{Document, Splice, apply, end_of_line},
    render::Style,
};
use super::{
    json::{self, Fault, Place, key, key_range, to_value},
    parse,
};

/// Why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text as a whole cannot be read; says where.
    #[error("connectors.json cannot be changed while it cannot be read: {0}; correct it first")]
    Unreadable(String),
    #[error("connectors.json has no connector \"{id}\"; it may have been removed meanwhile")]
    NoSuchEntry { id: String },
    #[error("connectors.json already has a connector \"{id}\"; choose another id")]
    AlreadyExists { id: String },
    #[error("\"{name}\" stands twice in connectors.json, at {first} and at {second}; remove one there first")]
    Ambiguous {
        name: String,
        first: String,
        second: String,
    },
    #[error("the entry of connector \"{id}\" is no object; correct it in connectors.json first")]
    NotAnObject { id: String },
    #[error("connectors.json is written in a way that cannot be changed without risk; make this change in the file")]
    Unsafe,
}

impl From<Fault> for EditError {
    fn from(fault: Fault) -> Self {
        Self::Unreadable(fault.to_string())
    }
}

/// Adds an entry at the end of `servers` (or `mcpServers`), which is made where missing. `text` may be empty.
///
/// # Errors
/// [`EditError::AlreadyExists`], [`EditError::Unreadable`].
pub fn add_entry(text: &str, id: &str, entry: &Map<String, Value>) -> Result<String, EditError> {
    let (_, servers) = servers_name(text)?;
    if entry_exists(text, servers, id)? {
        return Err(EditError::AlreadyExists { id: id.to_owned() });
    }
    set_at(text, &[servers, id], &Value::Object(entry.clone()))
}

/// Removes an entry, also one that stands twice or is no object.
///
/// # Errors
/// [`EditError::NoSuchEntry`], [`EditError::Unreadable`].
pub fn remove_entry(text: &str, id: &str) -> Result<String, EditError> {
    let (_, servers) = servers_name(text)?;
    require_entry(text, servers, id)?;
    remove_at(text, &[servers, id])
}

/// Sets one member of an entry, in its place where it is there, else at the end.
///
/// # Errors
/// [`EditError::NoSuchEntry`], [`EditError::NotAnObject`], [`EditError::Ambiguous`], [`EditError::Unreadable`].
pub fn set_member(text: &str, id: &str, name: &str, value: &Value) -> Result<String, EditError> {
    let (_, servers) = servers_name(text)?;
    require_object(text, servers, id)?;
    set_at(text, &[servers, id, name], value)
}

/// Removes one member of an entry; nothing changes where it is not there.
///
/// # Errors
/// [`EditError::NoSuchEntry`], [`EditError::NotAnObject`], [`EditError::Unreadable`].
pub fn remove_member(text: &str, id: &str, name: &str) -> Result<String, EditError> {
    let (_, servers) = servers_name(text)?;
    require_object(text, servers, id)?;
    remove_at(text, &[servers, id, name])
}

/// Makes an entry equal to `entry`. Members that stay equal keep place, comments and spelling.
///
/// # Errors
/// [`EditError::NoSuchEntry`], [`EditError::Ambiguous`], [`EditError::Unreadable`].
pub fn replace_entry(text: &str, id: &str, entry: &Map<String, Value>) -> Result<String, EditError> {
    let (_, servers) = servers_name(text)?;
    require_entry(text, servers, id)?;
    let old = with_document(text, |document| match document {
        Some(document) => document
            .objects(&[servers, id])
            .get(2)
            .map(|object| to_value(&Tree::Object((*object).clone()))),
        None => None,
    })?;
    let mut steps = Vec::new();
    match &old {
        Some(Value::Object(old)) => merge(&mut vec![servers.to_owned(), id.to_owned()], old, entry, &mut steps),
        Some(_) | None => {
            return set_at(text, &[servers, id], &Value::Object(entry.clone()));
        }
    }
    let mut text = text.to_owned();
    for step in steps {
        let path: Vec<&str> = step.path.iter().map(String::as_str).collect();
        text = match step.value {
            Some(value) => set_at(&text, &path, &value)?,
            None => remove_at(&text, &path)?,
        };
    }
    Ok(text)
}

/// A member to set, or to remove where there is no value.
struct Step {
    path: Vec<String>,
    value: Option<Value>,
}

fn merge(path: &mut Vec<String>, old: &Map<String, Value>, new: &Map<String, Value>, steps: &mut Vec<Step>) {
    let mut step = |path: &Vec<String>, name: &str, value| {
        steps.push(Step {
            path: path.iter().cloned().chain([name.to_owned()]).collect(),
            value,
        });
    };
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        step(path, name, None);
    }
    let mut nested = Vec::new();
    for (name, value) in new {
        match (old.get(name), value) {
            (Some(old), _) if old == value => {}
            (Some(Value::Object(old)), Value::Object(new)) => nested.push((name, old, new)),
            (_, _) => step(path, name, Some(value.clone())),
        }
    }
    for (name, old, new) in nested {
        path.push(name.clone());
        merge(path, old, new, steps);
        path.pop();
    }
}

/// The text without byte order mark, and the name under which entries stand or are to stand.
fn servers_name(text: &str) -> Result<(&str, &'static str), EditError> {
    let (bare, _) = json::without_bom(text);
    let Some(document) = Document::read(bare)? else {
        return Ok((bare, "servers"));
    };
    parse::servers(bare, &document.root)?;
    let other = document
        .root
        .properties
        .iter()
        .any(|property| key(property) == "mcpServers");
    Ok((bare, if other { "mcpServers" } else { "servers" }))
}

fn with_document<T>(text: &str, look: impl FnOnce(Option<&Document<'_>>) -> T) -> Result<T, EditError> {
    let (bare, _) = json::without_bom(text);
    Ok(look(Document::read(bare)?.as_ref()))
}

fn entry_exists(text: &str, servers: &str, id: &str) -> Result<bool, EditError> {
    with_document(text, |document| {
        document.is_some_and(|document| {
            let objects = document.objects(&[servers]);
            objects
                .get(1)
                .is_some_and(|servers| servers.properties.iter().any(|property| key(property) == id))
        })
    })
}

fn require_entry(text: &str, servers: &str, id: &str) -> Result<(), EditError> {
    if entry_exists(text, servers, id)? {
        Ok(())
    } else {
        Err(EditError::NoSuchEntry { id: id.to_owned() })
    }
}

fn require_object(text: &str, servers: &str, id: &str) -> Result<(), EditError> {
    require_entry(text, servers, id)?;
    let is_object = with_document(text, |document| {
        document.is_some_and(|document| document.objects(&[servers, id]).len() == 3)
    })?;
    if is_object {
        Ok(())
    } else {
        Err(EditError::NotAnObject { id: id.to_owned() })
    }
}

/// Sets the member at `path`; the objects on the way there are made where missing.
fn set_at(text: &str, path: &[&str], value: &Value) -> Result<String, EditError> {
    let (bare, bom) = json::without_bom(text);
    let Some(document) = Document::read(bare)? else {
        return finish(text, first_text(text, &nest(path, value)), path, Some(value));
    };
    let objects = document.objects(&path[..path.len() - 1]);
    for (object, name) in objects.iter().zip(path) {
        let mut same = object.properties.iter().filter(|property| key(property) == *name);
        if let (Some(first), Some(second)) = (same.next(), same.next()) {
            let place = |property: &ObjectProp<'_>| Place::of(bare, key_range(property).start).to_string();
            return Err(EditError::Ambiguous {
                name: (*name).to_owned(),
                first: place(first),
                second: place(second),
            });
        }
    }
    let depth = objects.len() - 1;
    let (name, rest) = (path[depth], &path[depth + 1..]);
    let value_here = nest(rest, value);
    let splices = match objects[depth].properties.iter().find(|property| key(property) == name) {
        Some(property) if to_value(&property.value) == value_here => return Ok(text.to_owned()),
        Some(property) => document.replace(&objects, property, &value_here),
        None => document.insert(&objects, name, &value_here),
    };
    finish(text, join(text, bom, bare, splices), path, Some(value))
}

/// Removes every member at `path`.
fn remove_at(text: &str, path: &[&str]) -> Result<String, EditError> {
    let mut current = text.to_owned();
    loop {
        let (bare, bom) = json::without_bom(&current);
        let Some(document) = Document::read(bare)? else {
            return Ok(current);
        };
        let objects = document.objects(&path[..path.len() - 1]);
        let target = (objects.len() == path.len()).then(|| objects[objects.len() - 1]);
        let found = target.and_then(|object| {
            let property = object
                .properties
                .iter()
                .rfind(|property| Some(&key(property)) == path.last());
            property.map(|property| document.remove(object, property))
        });
        match found {
            Some(splices) => current = join(&current, bom, bare, splices),
            None => return finish(text, current, path, None),
        }
    }
}

fn join(text: &str, bom: usize, bare: &str, splices: Vec<Splice>) -> String {
    format!("{}{}", &text[..bom], apply(bare, splices))
}

/// `value` inside one object for each name of `path`.
fn nest(path: &[&str], value: &Value) -> Value {
    path.iter().rev().fold(value.clone(), |inner, name| {
        Value::Object(Map::from_iter([((*name).to_owned(), inner)]))
    })
}

/// The first value of a file that holds none; comments in it stay in front.
fn first_text(text: &str, value: &Value) -> String {
    let end = end_of_line(text);
    let style = Style::Lines {
        end_of_line: end,
        unit: "  ".to_owned(),
    };
    let (bare, bom) = json::without_bom(text);
    let before = bare.trim_end();
    let gap = if before.is_empty() { "" } else { end };
    format!("{}{before}{gap}{}{end}", &text[..bom], render::value(value, &style, ""))
}

/// Hands out `new` if it reads as `old` with exactly this change.
fn finish(old: &str, new: String, path: &[&str], value: Option<&Value>) -> Result<String, EditError> {
    let read = |text: &str| -> Result<Value, EditError> {
        let tree = json::tree(json::without_bom(text).0)?;
        Ok(tree.as_ref().map_or_else(|| Value::Object(Map::new()), to_value))
    };
    let mut expected = read(old)?;
    change(&mut expected, path, value);
    match read(&new) {
        Ok(found) if found == expected => Ok(new),
        Ok(_) | Err(_) => Err(EditError::Unsafe),
    }
}

fn change(root: &mut Value, path: &[&str], value: Option<&Value>) {
    let Value::Object(map) = root else {
        return;
    };
    match (path, value) {
        ([], _) => {}
        ([name], Some(value)) => {
            map.insert((*name).to_owned(), value.clone());
        }
        ([name], None) => {
            map.shift_remove(*name);
        }
        ([name, rest @ ..], Some(_)) => {
            let inner = map.entry(*name).or_insert_with(|| Value::Object(Map::new()));
            change(inner, rest, value);
        }
        ([name, rest @ ..], None) => {
            if let Some(inner) = map.get_mut(*name) {
                change(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
