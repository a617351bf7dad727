//! One block of a result: what it is, what of it a model reads, and what must be left out.

use std::borrow::Cow;

use serde_json::{Map, Value, json, value::RawValue};

use super::{Limits, cut};
use crate::tools::{
    open,
    schema::{json_bytes, kind},
};

/// A block on its way to a caller.
pub(super) enum Block {
    /// Has what its type needs.
    Known(Kind, Map<String, Value>),
    /// Not passed on as what it is.
    Replaced {
        /// One sentence.
        why: String,
        /// The block itself, where it is small enough.
        original: Option<Value>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Image,
    Audio,
    Link,
    TextResource,
    BlobResource,
}

/// Where a block is in a result, as JSON text.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// The block itself.
    Block(&'a RawValue),
    /// A bare text, which stands for a block of one.
    Text(&'a RawValue),
    /// What a resource gives: embedded in a block.
    Contents(&'a RawValue),
}

/// Parses blocks as long as there is room for what is in them.
pub(super) struct Reader<'l> {
    limits: &'l Limits,
    values_left: usize,
}

impl<'l> Reader<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            values_left: limits.values,
        }
    }

    pub(super) fn read(&mut self, source: Source<'_>) -> Block {
        let (Source::Block(raw) | Source::Text(raw) | Source::Contents(raw)) = source;
        let Some(left) = self.values_left.checked_sub(open::values(raw)) else {
            return Block::Replaced {
                why: "A block has too many values in it, by itself or after those before it.".to_owned(),
                original: None,
            };
        };
        let Ok(value) = serde_json::from_str::<Value>(raw.get()) else {
            return Block::Replaced {
                why: "A block cannot be read: it is nested too deep, or one of its texts is broken.".to_owned(),
                original: None,
            };
        };
        self.values_left = left;
        let block = match source {
            Source::Block(_) => value,
            Source::Text(_) => json!({"type": "text", "text": value}),
            Source::Contents(_) => json!({"type": "resource", "resource": value}),
        };
        Block::read(block, self.limits)
    }
}

/// What a content of a resource holds.
pub(super) enum Held<T> {
    Text(T),
    Blob(T),
}

impl<T: AsRef<str>> Held<T> {
    /// Of both, the text counts, unless only the blob has something in it: some servers send every member always.
    pub(super) fn of(text: Option<T>, blob: Option<T>) -> Option<Self> {
        match (text, blob) {
            (Some(text), Some(blob)) if text.as_ref().is_empty() && !blob.as_ref().is_empty() => Some(Self::Blob(blob)),
            (Some(text), _) => Some(Self::Text(text)),
            (None, Some(blob)) => Some(Self::Blob(blob)),
            (None, None) => None,
        }
    }
}

/// Writes the notes that stand where something is missing.
pub(super) struct Cutter<'a> {
    pub(super) result_id: Option<&'a str>,
    /// How the whole result is stored, such as "as text".
    pub(super) form: &'static str,
}

impl Block {
    /// Says that so many blocks are missing.
    pub(super) fn left_out(count: usize) -> Self {
        Self::Replaced {
            why: format!("{count} blocks are left out here."),
            original: None,
        }
    }

    /// Checks one block against its type and the limits.
    fn read(raw: Value, limits: &Limits) -> Self {
        match raw {
            Value::Object(members) => match recognize(&members, limits) {
                Ok(kind) => Self::Known(kind, members),
                Err(why) => Self::replaced(why, Value::Object(members), limits),
            },
            other => Self::replaced(
                format!("A block is {} instead of an object.", kind(&other)),
                other,
                limits,
            ),
        }
    }

    /// Whether something of it is in no other place of the answer.
    pub(super) fn is_incomplete(&self) -> bool {
        match self {
            Self::Known(..) => false,
            Self::Replaced { original, .. } => original.is_none(),
        }
    }

    /// What a model reads of it, where that is more than a mention.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        let Self::Known(kind, members) = self else {
            return None;
        };
        match kind {
            Kind::Text => text_in(members, "text").map(Cow::Borrowed),
            Kind::TextResource => text_in(resource_in(members)?, "text").map(Cow::Borrowed),
            Kind::Link => {
                let uri = text_in(members, "uri")?;
                let name = text_in(members, "title").or_else(|| text_in(members, "name"));
                Some(name.map_or(Cow::Borrowed(uri), |name| Cow::Owned(format!("{name}: {uri}"))))
            }
            Kind::Image | Kind::Audio | Kind::BlobResource => None,
        }
    }

    /// A mention in one line, for an answer without any text.
    pub(super) fn line(&self) -> String {
        let (kind, members) = match self {
            Self::Known(kind, members) => (kind, members),
            Self::Replaced { why, .. } => return format!("[{why}]"),
        };
        let mime = |members| text_in(members, "mimeType").unwrap_or("unknown type");
        match kind {
            Kind::Image => format!("[An image ({}) is in the content.]", mime(members)),
            Kind::Audio => format!("[A sound ({}) is in the content.]", mime(members)),
            Kind::BlobResource => {
                let resource = resource_in(members).unwrap_or(members);
                format!(
                    "[The file {} ({}) is in the content.]",
                    text_in(resource, "uri").unwrap_or_default(),
                    mime(resource)
                )
            }
            Kind::Text | Kind::TextResource | Kind::Link => self.text().unwrap_or_default().into_owned(),
        }
    }

    pub(super) fn into_json(self, cutter: &Cutter<'_>) -> Value {
        match self {
            Self::Known(_, members) => Value::Object(members),
            Self::Replaced {
                why,
                original: Some(original),
            } => json!({"type": "unknown", "text": why, "original": original}),
            Self::Replaced { why, original: None } => {
                json!({"type": "unknown", "text": format!("{why} {}", cutter.where_the_rest_is())})
            }
        }
    }

    fn replaced(why: String, raw: Value, limits: &Limits) -> Self {
        let original = (json_bytes(&raw) <= limits.block_bytes).then_some(raw);
        Self::Replaced { why, original }
    }

    fn text_to_cut(&mut self) -> Option<&mut String> {
        let Self::Known(kind, members) = self else {
            return None;
        };
        let holder = match kind {
            Kind::Text => members,
            Kind::TextResource => members.get_mut("resource")?.as_object_mut()?,
            Kind::Image | Kind::Audio | Kind::Link | Kind::BlobResource => return None,
        };
        match holder.get_mut("text")? {
            Value::String(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// Brings the text of all blocks together under `limit` characters; says whether something was cut.
pub(super) fn cut_texts(blocks: &mut [Block], limit: usize, cutter: &Cutter<'_>) -> bool {
    let mut texts: Vec<&mut String> = blocks.iter_mut().filter_map(Block::text_to_cut).collect();
    if texts.iter().map(|text| text.len()).sum::<usize>() <= limit {
        return false;
    }
    let lengths: Vec<usize> = texts.iter().map(|text| text.chars().count()).collect();
    let share = cut::fair_share(&lengths, limit);
    let mut any = false;
    for (text, length) in texts.iter_mut().zip(lengths) {
        if length > share {
            **text = cutter.cut(text, share).into_owned();
            any = true;
        }
    }
    any
}

impl Cutter<'_> {
    /// At most `limit` characters, with a note where the middle was.
    pub(super) fn cut<'t>(&self, text: &'t str, limit: usize) -> Cow<'t, str> {
        let note = format!(
            "\n\n[… The middle is left out here. {} …]\n\n",
            self.where_the_rest_is()
        );
        cut::middle(text, limit, &note)
    }

    /// At most `limit` characters that say what else is missing: at the end, or where the middle was.
    pub(super) fn cut_with<'t>(&self, text: &'t str, missing: &str, limit: usize) -> Cow<'t, str> {
        let note = format!("\n\n[… {missing} {} …]", self.where_the_rest_is());
        if text.chars().count() + note.chars().count() <= limit {
            return Cow::Owned(format!("{text}{note}"));
        }
        self.cut(text, limit)
    }

    fn where_the_rest_is(&self) -> String {
        match self.result_id {
            Some(id) => format!(
                "The whole result, {}: result_id {id}, GET /mcp/results/{id}?offset=0&limit=100000",
                self.form
            ),
            None => "The rest was not kept.".to_owned(),
        }
    }
}

fn recognize(members: &Map<String, Value>, limits: &Limits) -> Result<Kind, String> {
    let Some(name) = text_in(members, "type") else {
        return Err("A block does not say its type.".into());
    };
    let (kind, payload) = match name {
        "text" => (Kind::Text, need(members, "text", name)?),
        "image" | "audio" => {
            need(members, "mimeType", name)?;
            let data = need(members, "data", name)?;
            small_enough(data, name, limits)?;
            (if name == "image" { Kind::Image } else { Kind::Audio }, data)
        }
        "resource_link" => {
            need(members, "uri", name)?;
            (Kind::Link, "")
        }
        "resource" => {
            let resource = resource_in(members).ok_or("A block of type \"resource\" holds no resource.")?;
            need(resource, "uri", name)?;
            match Held::of(text_in(resource, "text"), text_in(resource, "blob")) {
                Some(Held::Text(text)) => (Kind::TextResource, text),
                Some(Held::Blob(blob)) => {
                    small_enough(blob, name, limits)?;
                    (Kind::BlobResource, blob)
                }
                None => return Err(unusable("blob", name)),
            }
        }
        other => {
            let shown: String = other.chars().take(60).collect();
            return Err(format!("A block has the type \"{shown}\", which is not known here."));
        }
    };
    // Counted as written in JSON, where a text can be longer than it is.
    if json_bytes(members).saturating_sub(json_bytes(&payload)) > limits.block_bytes {
        return Err(format!(
            "A block of type \"{name}\" carries too much besides its content."
        ));
    }
    Ok(kind)
}

fn need<'a>(members: &'a Map<String, Value>, key: &str, block: &str) -> Result<&'a str, String> {
    text_in(members, key).ok_or_else(|| unusable(key, block))
}

fn unusable(key: &str, block: &str) -> String {
    format!("A block of type \"{block}\" has no usable \"{key}\".")
}

fn small_enough(base64: &str, block: &str, limits: &Limits) -> Result<(), String> {
    // Four characters of base64 hold three bytes.
    let bytes = base64.len() / 4 * 3;
    if bytes <= limits.media_bytes {
        return Ok(());
    }
    Err(format!(
        "A block of type \"{block}\" of {:.1} MB is too large to be returned here.",
        bytes as f64 / 1e6
    ))
}

fn resource_in(members: &Map<String, Value>) -> Option<&Map<String, Value>> {
    members.get("resource").and_then(Value::as_object)
}

fn text_in<'a>(members: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    members.get(key).and_then(Value::as_str)
}
