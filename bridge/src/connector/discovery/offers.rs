//! What an upstream offers besides tools, read item by item: one bad item never takes its neighbours along. Pure.

use std::{collections::HashSet, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{ListKind, RawOffers, pages::RawList};
use crate::{tools::schema::kind, trust::pins::FlaggedPrompt};

/// Longest URI or name, in characters.
const MAX_NAME_CHARS: usize = 8_192;
/// Longest title or description that is passed on, in characters; the rest of it is left out.
const MAX_TEXT_CHARS: usize = 10_000;
/// A name in a reason is shortened to this many characters.
const SHOWN_NAME_CHARS: usize = 80;

/// Something an upstream lets callers read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resource {
    pub uri: String,
    /// The URI where the upstream gives none.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Bytes, before any encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// A pattern of URIs (RFC 6570) that the upstream lets callers read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Template {
    pub uri_template: String,
    /// The pattern where the upstream gives none.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A text that the upstream prepares for a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prompt {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub arguments: Vec<Argument>,
}

/// One argument of a prompt; its value is a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Argument {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub required: bool,
}

/// An item that cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Its URI, pattern or name, shortened; its place (`#3`) where it has none.
    pub name: String,
    /// Why, in words.
    pub reason: String,
}

/// One list and what of it could not be used.
#[derive(Debug)]
pub struct Items<T> {
    pub items: Vec<Arc<T>>,
    pub rejected: Vec<Rejected>,
}

/// A connector's lists as they were last read.
#[derive(Debug, Clone, Default)]
pub struct Offers {
    pub resources: Arc<Items<Resource>>,
    pub templates: Arc<Items<Template>>,
    pub prompts: Arc<Items<Prompt>>,
    /// Prompts about which something stands out; none of them is in `prompts`.
    pub flagged: Arc<Vec<Arc<FlaggedPrompt>>>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            rejected: Vec::new(),
        }
    }
}

impl Prompt {
    /// One that something stands out about, as callers see it once it is approved.
    pub fn of(flagged: &FlaggedPrompt) -> Self {
        prompt(&flagged.name, &flagged.raw)
    }
}

impl Rejected {
    /// Why callers do not see a prompt: what it says goes to a model as it is.
    pub fn held(flagged: &FlaggedPrompt) -> Self {
        let first = flagged.findings.first();
        let is_named_so = flagged.findings.iter().any(|finding| finding.place == "name");
        let finding = first.map_or_else(String::new, |finding| format!(" {}", finding.sentence));
        Self {
            name: match is_named_so {
                true => "(a name that stands out)".to_owned(),
                false => shown(&flagged.name),
            },
            reason: format!(
                "Something about it stands out, so it is not offered until you have looked at it in Neuron Connect.{finding}"
            ),
        }
    }
}

impl Offers {
    /// These with what was read now; a list that could not be read stays as it was.
    pub fn updated(&self, read: RawOffers) -> Self {
        let mut new = self.clone();
        if let Some(list) = read.resources {
            new.resources = Arc::new(items_of(list, "uri", |uri, raw| Some(resource(uri, raw))));
        }
        if let Some(list) = read.templates {
            new.templates = Arc::new(items_of(list, "uriTemplate", |pattern, raw| {
                Some(template(pattern, raw))
            }));
        }
        if let Some(list) = read.prompts {
            let (clean, flagged) = prompts_of(list);
            new.prompts = Arc::new(clean);
            // The same ones need no other look.
            if *new.flagged != flagged {
                new.flagged = Arc::new(flagged);
            }
        }
        new
    }

    /// Whether the server lists a prompt of this name, offered or not.
    pub fn lists_prompt(&self, name: &str) -> bool {
        self.prompts.items.iter().any(|prompt| prompt.name == name) || self.flagged(name).is_some()
    }

    /// A prompt of this name about which something stands out.
    pub fn flagged(&self, name: &str) -> Option<&Arc<FlaggedPrompt>> {
        self.flagged.iter().find(|prompt| prompt.name == name)
    }

    /// Every item that cannot be offered, with the list it stands in.
    pub fn rejected(&self) -> impl Iterator<Item = (ListKind, &Rejected)> {
        let resources = self.resources.rejected.iter().map(|one| (ListKind::Resources, one));
        let templates = self.templates.rejected.iter().map(|one| (ListKind::Templates, one));
        let prompts = self.prompts.rejected.iter().map(|one| (ListKind::Prompts, one));
        resources.chain(templates).chain(prompts)
    }
}

/// Prompts that are offered as they are, and those about which something stands out.
fn prompts_of(list: RawList) -> (Items<Prompt>, Vec<Arc<FlaggedPrompt>>) {
    let mut flagged = Vec::new();
    let clean = items_of(list, "name", |name, raw| match FlaggedPrompt::of(name, raw) {
        Some(one) => {
            flagged.push(Arc::new(one));
            None
        }
        None => Some(prompt(name, raw)),
    });
    (clean, flagged)
}

/// Reads each item with `read`, which leaves out what stands elsewhere; `key` is the member that names it, which no two
/// items may share.
fn items_of<T>(list: RawList, key: &str, mut read: impl FnMut(&str, &Value) -> Option<T>) -> Items<T> {
    let mut out = Items::default();
    let mut seen = HashSet::new();
    for (index, raw) in list.items.into_iter().map(|item| item.value).enumerate() {
        let name = match name_of(&raw, key) {
            Ok(name) if seen.insert(name.clone()) => name,
            Ok(name) => {
                out.rejected.push(Rejected {
                    name: shown(&name),
                    reason: "The server lists it more than once; the first one counts.".to_owned(),
                });
                continue;
            }
            Err(reason) => {
                out.rejected.push(Rejected {
                    name: format!("#{}", index + 1),
                    reason,
                });
                continue;
            }
        };
        out.items.extend(read(&name, &raw).map(Arc::new));
    }
    out
}

fn name_of(raw: &Value, key: &str) -> Result<String, String> {
    let Value::Object(item) = raw else {
        return Err(format!("It is {} instead of an object.", kind(raw)));
    };
    match item.get(key) {
        None => Err(format!("It has no \"{key}\".")),
        Some(Value::String(name)) if name.is_empty() => Err(format!("Its \"{key}\" is empty.")),
        Some(Value::String(name)) if name.chars().nth(MAX_NAME_CHARS).is_some() => {
            Err(format!("Its \"{key}\" is longer than {MAX_NAME_CHARS} characters."))
        }
        Some(Value::String(name)) => Ok(name.clone()),
        Some(other) => Err(format!("Its \"{key}\" is {} instead of a text.", kind(other))),
    }
}

fn resource(uri: &str, raw: &Value) -> Resource {
    Resource {
        uri: uri.to_owned(),
        name: text(raw, "name").unwrap_or_else(|| uri.to_owned()),
        title: text(raw, "title"),
        description: text(raw, "description"),
        mime_type: text(raw, "mimeType"),
        size: raw.get("size").and_then(Value::as_u64),
    }
}

fn template(pattern: &str, raw: &Value) -> Template {
    Template {
        uri_template: pattern.to_owned(),
        name: text(raw, "name").unwrap_or_else(|| pattern.to_owned()),
        title: text(raw, "title"),
        description: text(raw, "description"),
        mime_type: text(raw, "mimeType"),
    }
}

fn prompt(name: &str, raw: &Value) -> Prompt {
    let arguments = raw.get("arguments").and_then(Value::as_array);
    Prompt {
        name: name.to_owned(),
        title: text(raw, "title"),
        description: text(raw, "description"),
        arguments: arguments
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .filter_map(argument)
            .collect(),
    }
}

fn argument(members: &Map<String, Value>) -> Option<Argument> {
    let name = members.get("name")?.as_str()?;
    Some(Argument {
        name: name.to_owned(),
        description: members.get("description").and_then(Value::as_str).map(bounded),
        required: members.get("required").and_then(Value::as_bool).unwrap_or(false),
    })
}

/// A member that is a text, and not an empty one; one of another type is left out.
fn text(raw: &Value, key: &str) -> Option<String> {
    let text = raw.get(key)?.as_str()?;
    (!text.is_empty()).then(|| bounded(text))
}

fn bounded(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

fn shown(name: &str) -> String {
    name.chars().take(SHOWN_NAME_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(items: &Value) -> Option<RawList> {
        Some(RawList::from_text(items.to_string()).unwrap())
    }

    #[test]
    fn one_good_resource_survives_any_company() {
        let good = json!({"uri": "file:///ä b", "name": "notes", "size": 12, "mimeType": "text/plain", "x": 1});
        let offers = Offers::default().updated(RawOffers {
            resources: list(&json!([
                null, 7, {}, {"uri": 5}, {"uri": ""}, {"uri": "u".repeat(9_000)}, good, good,
                {"uri": "odd", "name": 5, "title": [], "size": -1, "mimeType": {}},
            ])),
            ..RawOffers::default()
        });
        let [first, odd] = &offers.resources.items[..] else {
            panic!("{offers:?}")
        };
        assert_eq!(
            (first.uri.as_str(), first.name.as_str(), first.size),
            ("file:///ä b", "notes", Some(12))
        );
        assert_eq!(
            serde_json::to_value(&**odd).unwrap(),
            json!({"uri": "odd", "name": "odd"}),
            "members of a wrong type are left out"
        );
        let rejected: Vec<_> = offers.rejected().map(|(_, one)| one.name.as_str()).collect();
        assert_eq!(rejected, ["#1", "#2", "#3", "#4", "#5", "#6", "file:///ä b"]);
        assert!(
            offers
                .rejected()
                .all(|(kind, one)| kind == ListKind::Resources && one.reason.len() > 10)
        );
    }

    #[test]
    fn a_prompt_keeps_its_usable_arguments() {
        let offers = Offers::default().updated(RawOffers {
            prompts: list(&json!([
                {"name": "p", "arguments": [{"name": "a", "required": true, "description": "d"}, 5, {"name": 1}, {"name": "b", "required": "yes"}]},
                {"name": "q", "arguments": {"a": 1}},
            ])),
            ..RawOffers::default()
        });
        assert_eq!(
            serde_json::to_value(&offers.prompts.items).unwrap(),
            json!([
                {"name": "p", "arguments": [
                    {"name": "a", "description": "d", "required": true},
                    {"name": "b", "required": false},
                ]},
                {"name": "q", "arguments": []},
            ])
        );
    }

    #[test]
    fn a_prompt_that_something_stands_out_about_is_held_with_the_reason() {
        let hidden = "Sums up\u{e0041}\u{e0042}";
        let offers = Offers::default().updated(RawOffers {
            prompts: list(&json!([
                {"name": "good", "description": "Sums up a text."},
                {"name": "bad", "description": hidden},
                {"name": "worse", "arguments": [{"name": "a", "description": hidden}]},
                {"name": hidden},
            ])),
            ..RawOffers::default()
        });
        let prompts = &offers.prompts;
        assert_eq!(prompts.items.iter().map(|one| &one.name).collect::<Vec<_>>(), ["good"]);
        assert_eq!(offers.flagged("good"), None);
        for name in ["bad", "worse"] {
            let held = Rejected::held(offers.flagged(name).unwrap());
            assert!(held.name == name && held.reason.contains("cannot see"), "{held:?}");
        }
        let unnamed = Rejected::held(offers.flagged(hidden).unwrap());
        assert!(!unnamed.name.contains("Sums"), "{unnamed:?}");
    }

    #[test]
    fn a_list_that_could_not_be_read_stays_as_it_was() {
        let first = Offers::default().updated(RawOffers {
            templates: list(&json!([{"uriTemplate": "t/{x}", "name": "t"}])),
            prompts: list(&json!([{"name": "p"}])),
            ..RawOffers::default()
        });
        let second = first.updated(RawOffers {
            prompts: Some(RawList::empty()),
            ..RawOffers::default()
        });
        assert_eq!(second.templates.items[0].uri_template, "t/{x}");
        assert!(second.prompts.items.is_empty());
    }
}
