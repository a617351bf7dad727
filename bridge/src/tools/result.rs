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
//! resource or a prompt gives (`offered`) is made of the same blocks within the same limits.

mod block;
mod cut;
mod offered;

use serde_json::{Map, Value};

use block::{Block, Cutter};
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
    /// Blocks.
    pub blocks: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            text_chars: 200_000,
            media_bytes: 5 * 1024 * 1024,
            block_bytes: 64 * 1024,
            blocks: 1_000,
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
    let result: Value = serde_json::from_str(raw).map_err(|err| Undecodable::NotJson(err.to_string()))?;
    let Value::Object(mut result) = result else {
        return Err(Undecodable::NotAnObject(super::schema::kind(&result)));
    };
    let ok = !is_error(&result);
    let mut blocks: Vec<Block> = content_of(&mut result)?
        .into_iter()
        .map(|block| Block::read(block, limits))
        .collect();
    let structured = result.remove("structuredContent").filter(|value| !value.is_null());

    let room = Room::of(&blocks, structured.as_ref(), raw.len(), limits.text_chars);
    let whole_text = model_text(&blocks, structured.as_ref(), room.structured_fits);
    let too_many = blocks.len() > limits.blocks;
    let only_text_is_cut = room.structured_fits && !too_many && !blocks.iter().any(Block::is_incomplete);
    let cutter = Cutter {
        result_id,
        form: if only_text_is_cut { "as text" } else { "as JSON" },
    };
    let text = if room.structured_fits {
        cutter.cut(&whole_text, room.text_chars)
    } else {
        cutter.cut_with(&whole_text, "The structured content is left out here.", room.text_chars)
    };
    let text = text.into_owned();
    if too_many {
        block::drop_middle(&mut blocks, limits.blocks);
    }
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
        structured: structured.filter(|_| room.structured_fits),
        error,
        truncated,
        full,
    })
}

/// How a result's text and its structured content share the limit.
struct Room {
    structured_fits: bool,
    /// For the text.
    text_chars: usize,
}

impl Room {
    /// The structured content has its place when both fit, or when it takes no more than half.
    fn of(blocks: &[Block], structured: Option<&Value>, raw_bytes: usize, limit: usize) -> Self {
        let all = Self {
            structured_fits: true,
            text_chars: limit,
        };
        let Some(structured) = structured else {
            return all;
        };
        // Everything in a result is at most as long as the text it was read from.
        if raw_bytes <= limit {
            return all;
        }
        let structured = structured.to_string().chars().count();
        let texts: usize = blocks
            .iter()
            .filter_map(Block::text)
            .map(|text| text.chars().count())
            .sum();
        // Without another text the structured content is the text, and counts once.
        if texts == 0 {
            return Self {
                structured_fits: structured <= limit,
                ..all
            };
        }
        if texts + structured > limit && structured > limit / 2 {
            return Self {
                structured_fits: false,
                ..all
            };
        }
        Self {
            text_chars: limit - structured,
            ..all
        }
    }
}

fn is_error(result: &Map<String, Value>) -> bool {
    match result.get("isError") {
        Some(Value::Bool(failed)) => *failed,
        Some(Value::String(failed)) => failed.eq_ignore_ascii_case("true"),
        Some(Value::Number(failed)) => failed.as_f64() != Some(0.0),
        None | Some(Value::Null | Value::Array(_) | Value::Object(_)) => false,
    }
}

/// A single block or a bare text instead of a list is understood, as servers written by hand send them.
fn content_of(result: &mut Map<String, Value>) -> Result<Vec<Value>, Undecodable> {
    match result.remove("content") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(blocks)) => Ok(blocks),
        Some(text @ Value::String(_)) => Ok(vec![serde_json::json!({"type": "text", "text": text})]),
        Some(block @ Value::Object(_)) => Ok(vec![block]),
        Some(other @ (Value::Bool(_) | Value::Number(_))) => {
            Err(Undecodable::ContentNotAList(super::schema::kind(&other)))
        }
    }
}

fn model_text(blocks: &[Block], structured: Option<&Value>, structured_fits: bool) -> String {
    if let Some(texts) = joined_texts(blocks) {
        return texts;
    }
    match structured {
        Some(structured) if structured_fits => structured.to_string(),
        // It is going to be cut: base64 in two halves would be of no use to anybody.
        Some(structured) => cut::without_base64(structured.clone()).to_string(),
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
