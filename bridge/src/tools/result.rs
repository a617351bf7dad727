//! Results as callers get them: blocks of a known shape, a text for the model, both of bounded size.
//!
//! A block is what the upstream sent, members nobody here knows included, as long as it has what its type needs:
//!
//! | `type` | needs |
//! |---|---|
//! | `text` | `text` |
//! | `image`, `audio` | `data` (base64), `mimeType` |
//! | `resource_link` | `uri` |
//! | `resource` | `resource` with `uri` and either `text` or `blob` (base64) |
//!
//! Anything else becomes `{"type":"unknown","text":"<one sentence>","original"?: <as received, if small>}`.
//! Text is cut in the middle, between two characters; base64 and structured content are whole or absent. What a
//! resource or a prompt gives (`offered`) is made of the same blocks within the same limits. What is not passed on is never
//! parsed: as values it could be two hundred times as large as its text.

mod block;
mod cut;
mod offered;

use serde_json::{Value, value::RawValue};

use super::open::{self, Ends, Kind, Place};
use block::{Block, Cutter, Reader, Source};
pub use offered::{Message, One, OneContent, ShapedContents, ShapedPrompt, one_content, shape_contents, shape_prompt};

/// Longest `error`, in characters.
const ERROR_CHARS: usize = 2_000;
/// Said when a tool fails and gives no reason.
const NO_REASON: &str = "The tool failed and gave no reason.";

/// How much of a result is returned inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Characters that a model may read: all text of `content`, or what `text` has instead, together with `structured` as
    /// JSON.
    pub text_chars: usize,
    /// Decoded bytes of one image, audio or binary resource.
    pub media_bytes: usize,
    /// Bytes of one block besides its text or base64.
    pub block_bytes: usize,
    /// Blocks; also messages of a prompt, those without a block included.
    pub blocks: usize,
    /// Values in all blocks together, keys included: each may take two hundred bytes of memory and one of the answer.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            text_chars: 200_000,
            media_bytes: 5 * 1024 * 1024,
            block_bytes: 64 * 1024,
            blocks: 1_000,
            values: 100_000,
        }
    }
}

/// A tool's result, ready for a caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Shaped {
    /// False when the tool says that it failed (`isError`).
    pub ok: bool,
    pub content: Vec<Value>,
    /// Texts, embedded texts and links, joined by line ends; without any, the structured content as JSON; without
    /// that, one line for each image and the like.
    pub text: String,
    /// Whole; absent when there is no room for it beside the text, which `text` then says.
    pub structured: Option<Value>,
    /// Exactly when not `ok`; at most 2,000 characters, never empty.
    pub error: Option<String>,
    /// Something is left out of `content`, `text` or `structured`.
    pub truncated: bool,
    /// What to store for later reading, exactly when `truncated`: the whole text where only text was cut, else the
    /// whole result as the upstream's JSON.
    pub full: Option<String>,
}

/// Why an answer is no tool result: one sentence without any of its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    #[error("The server answered with something that is not a result ({0}).")]
    NotJson(String),
    #[error("The server answered with {0} where a result was expected.")]
    NotAnObject(&'static str),
    #[error("The server answered with a result whose content is {0} instead of a list.")]
    ContentNotAList(&'static str),
    #[error("The server answered with a result that has no list of {0}.")]
    WithoutList(&'static str),
}

/// Shapes the JSON text of an upstream's `CallToolResult`.
///
/// `result_id` is where the caller is going to store [`Shaped::full`]; `None` says in the notes that the rest was not
/// kept. Numbers keep their text. A missing `content` is an empty one.
///
/// # Errors
/// [`Undecodable`] when the text is no JSON object, or its `content` no list.
pub fn shape(raw: &str, limits: &Limits, result_id: Option<&str>) -> Result<Shaped, Undecodable> {
    let [content, structured, failed] =
        open::members(raw, ["content", "structuredContent", "isError"]).map_err(|error| no_object(raw, &error))?;
    let ok = !failed.is_some_and(is_error);
    let mut sources = Ends::new(limits.blocks);
    each_block(content, |source| sources.push(source)).map_err(|kind| Undecodable::ContentNotAList(kind.words()))?;
    let mut reader = Reader::new(limits);
    let (mut blocks, mut left_out) = (Vec::new(), None);
    for place in sources.into_places() {
        blocks.push(match place {
            Place::Kept(source) => reader.read(source),
            Place::LeftOut(count, _) => {
                left_out = Some(count);
                Block::left_out(count)
            }
        });
    }
    let structured = structured
        .filter(|value| Kind::of(value) != Kind::Null)
        .map(|value| Structured::read(value, limits.text_chars));

    let room = Room::of(&blocks, structured.as_ref(), raw.len(), limits.text_chars);
    let whole_text = model_text(&blocks, structured.as_ref(), room.structured_fits);
    let only_text_is_cut = room.structured_fits && !blocks.iter().any(Block::is_incomplete);
    let cutter = Cutter {
        result_id,
        form: if only_text_is_cut { "as text" } else { "as JSON" },
    };
    // A text that is the structured content itself stays as it is.
    let left_out = left_out.filter(|_| structured.is_none() || blocks.iter().any(|block| block.text().is_some()));
    let missing = match (room.structured_fits, left_out) {
        (true, None) => None,
        (true, Some(count)) => Some(format!("{count} blocks are left out here.")),
        (false, None) => Some("The structured content is left out here.".to_owned()),
        (false, Some(count)) => Some(format!("The structured content and {count} blocks are left out here.")),
    };
    let text = match missing {
        None => cutter.cut(&whole_text, room.text_chars),
        Some(missing) => cutter.cut_with(&whole_text, &missing, room.text_chars),
    };
    let text = text.into_owned();
    let content_is_cut = block::cut_texts(&mut blocks, room.text_chars, &cutter);

    let truncated = !only_text_is_cut || content_is_cut || text != whole_text;
    let error = (!ok).then(|| error_text(&whole_text));
    let text = match &error {
        Some(error) if text.trim().is_empty() => error.clone(),
        Some(_) | None => text,
    };
    let full = match (truncated, only_text_is_cut) {
        (false, _) => None,
        (true, true) => Some(whole_text),
        (true, false) => Some(raw.to_owned()),
    };
    Ok(Shaped {
        ok,
        content: blocks.into_iter().map(|block| block.into_json(&cutter)).collect(),
        text,
        structured: structured.and_then(|structured| structured.value.filter(|_| room.structured_fits)),
        error,
        truncated,
        full,
    })
}

/// A result's structured content.
struct Structured<'a> {
    raw: &'a RawValue,
    /// As compact JSON.
    chars: usize,
    /// Absent where it is longer than any answer shows, or nested too deep.
    value: Option<Value>,
}

impl<'a> Structured<'a> {
    fn read(raw: &'a RawValue, limit: usize) -> Self {
        let chars = open::json_chars(raw);
        let value = (chars <= limit).then(|| serde_json::from_str(raw.get()).ok()).flatten();
        Self { raw, chars, value }
    }
}

/// How a result's text and its structured content share the limit.
struct Room {
    structured_fits: bool,
    /// For the text.
    text_chars: usize,
}

impl Room {
    /// The structured content has its place when both fit, or when it takes no more than half.
    fn of(blocks: &[Block], structured: Option<&Structured<'_>>, raw_bytes: usize, limit: usize) -> Self {
        let all = Self {
            structured_fits: true,
            text_chars: limit,
        };
        let Some(structured) = structured else {
            return all;
        };
        if structured.value.is_none() {
            return Self {
                structured_fits: false,
                ..all
            };
        }
        // Everything in a result is at most as long as the text it was read from.
        if raw_bytes <= limit {
            return all;
        }
        let texts: usize = blocks
            .iter()
            .filter_map(Block::text)
            .map(|text| text.chars().count())
            .sum();
        // Without another text the structured content is the text, and counts once.
        if texts == 0 {
            return all;
        }
        if texts + structured.chars > limit && structured.chars > limit / 2 {
            return Self {
                structured_fits: false,
                ..all
            };
        }
        Self {
            text_chars: limit - structured.chars,
            ..all
        }
    }
}

fn is_error(failed: &RawValue) -> bool {
    match Kind::of(failed) {
        Kind::Bool => failed.get() == "true",
        Kind::Text => open::text(failed).is_some_and(|failed| failed.eq_ignore_ascii_case("true")),
        Kind::Number => failed.get().parse() != Ok(0.0),
        Kind::Null | Kind::List | Kind::Object => false,
    }
}

/// Why a text is no JSON object, which `error` came of.
fn no_object(raw: &str, error: &serde_json::Error) -> Undecodable {
    match serde_json::from_str::<&RawValue>(raw) {
        Ok(value) => Undecodable::NotAnObject(Kind::of(value).words()),
        Err(_) => Undecodable::NotJson(error.to_string()),
    }
}

/// Hands on where each block of a `content` is. A single block or a bare text instead of a list is understood, as servers
/// written by hand send them.
///
/// # Errors
/// What it is, when it can hold no block.
fn each_block<'a>(content: Option<&'a RawValue>, mut take: impl FnMut(Source<'a>)) -> Result<(), Kind> {
    let Some(content) = content else {
        return Ok(());
    };
    match Kind::of(content) {
        Kind::Null => {}
        Kind::Text => take(Source::Text(content)),
        Kind::Object => take(Source::Block(content)),
        Kind::List => open::items(content.get(), |block| {
            take(Source::Block(block));
            true
        })
        .map_err(|_torn| Kind::List)?,
        other @ (Kind::Bool | Kind::Number) => return Err(other),
    }
    Ok(())
}

fn model_text(blocks: &[Block], structured: Option<&Structured<'_>>, structured_fits: bool) -> String {
    if let Some(texts) = joined_texts(blocks) {
        return texts;
    }
    match structured {
        Some(Structured { value: Some(value), .. }) if structured_fits => value.to_string(),
        // It is going to be cut: base64 in two halves would be of no use to anybody.
        Some(structured) => cut::without_base64(structured.raw),
        None => blocks.iter().map(Block::line).collect::<Vec<_>>().join("\n"),
    }
}

/// The texts of all blocks; `None` where none has any.
fn joined_texts(blocks: &[Block]) -> Option<String> {
    let mut texts = blocks.iter().filter_map(Block::text);
    let mut joined = texts.next()?.into_owned();
    for text in texts {
        joined.push('\n');
        joined.push_str(&text);
    }
    Some(joined)
}

fn error_text(whole: &str) -> String {
    match whole.trim() {
        "" => NO_REASON.to_owned(),
        reason => cut::middle(reason, ERROR_CHARS, " … ").into_owned(),
    }
}

#[cfg(test)]
mod tests;
