//! What reading a resource or getting a prompt gives, in the blocks of results.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{
    Limits, Undecodable,
    block::{self, Block, Cutter, Held, Reader, Source},
    cut, each_block, joined_texts, no_object,
};
use crate::tools::open::{self, Ends, Kind, Place};

/// Most URIs that are named of several contents.
const NAMED_URIS: usize = 10;
/// Longest description of a prompt's result, in characters.
const DESCRIPTION_CHARS: usize = 2_000;

/// The contents of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapedContents {
    /// Blocks of type `resource`, or `unknown` where one cannot be passed on.
    pub contents: Vec<Value>,
    /// As [`super::Shaped::truncated`].
    pub truncated: bool,
    /// As [`super::Shaped::full`].
    pub full: Option<String>,
}

/// What a prompt became.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapedPrompt {
    /// At most 2,000 characters.
    pub description: Option<String>,
    pub messages: Vec<Message>,
    /// As [`super::Shaped::truncated`].
    pub truncated: bool,
    /// As [`super::Shaped::full`].
    pub full: Option<String>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// `user` or `assistant`.
    pub role: String,
    pub content: Vec<Value>,
}

/// Shapes the JSON text of an upstream's `ReadResourceResult`; otherwise as [`super::shape`].
///
/// # Errors
/// [`Undecodable`] when it has no list of contents.
pub fn shape_contents(raw: &str, limits: &Limits, result_id: Option<&str>) -> Result<ShapedContents, Undecodable> {
    let contents = list(raw, "contents")?;
    let mut sources = Ends::new(limits.blocks);
    each_item(contents, "contents", |content| sources.push(Source::Contents(content)))?;
    let mut reader = Reader::new(limits);
    let mut blocks: Vec<Block> = sources
        .into_places()
        .map(|place| match place {
            Place::Kept(source) => reader.read(source),
            Place::LeftOut(count, _) => Block::left_out(count),
        })
        .collect();
    let cut = bring_under(&mut blocks, raw, limits, result_id, false);
    Ok(ShapedContents {
        contents: blocks.into_iter().map(|block| block.into_json(&cut.cutter)).collect(),
        truncated: cut.full.is_some(),
        full: cut.full,
    })
}

/// Shapes the JSON text of an upstream's `GetPromptResult`; otherwise as [`super::shape`].
///
/// # Errors
/// [`Undecodable`] when it has no list of messages.
pub fn shape_prompt(raw: &str, limits: &Limits, result_id: Option<&str>) -> Result<ShapedPrompt, Undecodable> {
    let messages = list(raw, "messages")?;
    let [description] = open::members(raw, ["description"]).map_err(|error| no_object(raw, &error))?;
    let description = description.and_then(open::text);
    let shown = description
        .as_deref()
        .map(|text| cut::middle(text, DESCRIPTION_CHARS, " … ").into_owned());

    // All blocks in one row, so that they share the limits.
    let (mut parts, mut number) = (Ends::new(limits.blocks), 0);
    each_item(messages, "messages", |message| {
        read_message(message, number, |part| parts.push(part));
        number += 1;
    })?;
    let mut reader = Reader::new(limits);
    let (mut owners, mut blocks, mut shaped) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    for place in parts.into_places() {
        let (Place::Kept(part) | Place::LeftOut(_, part)) = place;
        if last.replace(part.message) != Some(part.message) {
            shaped.push(Message {
                role: part.role.to_owned(),
                content: Vec::new(),
            });
        }
        let block = match place {
            Place::Kept(Part { block, .. }) => block.map(|source| reader.read(source)),
            Place::LeftOut(count, _) => Some(Block::left_out(count)),
        };
        if let Some(block) = block {
            owners.push(shaped.len() - 1);
            blocks.push(block);
        }
    }
    let cut = bring_under(
        &mut blocks,
        raw,
        limits,
        result_id,
        shown != description.map(Cow::into_owned),
    );
    for (owner, block) in owners.into_iter().zip(blocks) {
        shaped[owner].content.push(block.into_json(&cut.cutter));
    }
    Ok(ShapedPrompt {
        description: shown,
        messages: shaped,
        truncated: cut.full.is_some(),
        full: cut.full,
    })
}

/// A block of a message, or a message without any.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// Which message, counted from 0.
    message: usize,
    role: &'static str,
    block: Option<Source<'a>>,
}

/// A message that is none stands as a block that says so, so that its neighbours keep their order.
fn read_message<'a>(message: &'a RawValue, number: usize, mut take: impl FnMut(Part<'a>)) {
    let [role, content] = open::members(message.get(), ["role", "content"]).unwrap_or_default();
    let role = match role.and_then(open::text).as_deref() {
        Some("assistant") => "assistant",
        Some(_) | None => "user",
    };
    let part = |block| Part {
        message: number,
        role,
        block,
    };
    let mut any = false;
    let mut take_block = |source| {
        any = true;
        take(part(Some(source)));
    };
    let is_a_message = Kind::of(message) == Kind::Object;
    if !is_a_message || each_block(content, &mut take_block).is_err() {
        take_block(Source::Block(message));
    }
    if !any {
        take(part(None));
    }
}

/// The list of that name.
fn list<'a>(raw: &'a str, name: &'static str) -> Result<&'a RawValue, Undecodable> {
    let [list] = open::members(raw, [name]).map_err(|error| no_object(raw, &error))?;
    list.filter(|list| Kind::of(list) == Kind::List)
        .ok_or(Undecodable::WithoutList(name))
}

fn each_item<'a>(
    list: &'a RawValue,
    name: &'static str,
    mut take: impl FnMut(&'a RawValue),
) -> Result<(), Undecodable> {
    open::items(list.get(), |item| {
        take(item);
        true
    })
    .map_err(|_torn| Undecodable::WithoutList(name))
}

struct Cut<'a> {
    cutter: Cutter<'a>,
    /// What to keep, where something is missing.
    full: Option<String>,
}

/// `more_is_cut` says that something besides the blocks is.
fn bring_under<'a>(
    blocks: &mut [Block],
    raw: &str,
    limits: &Limits,
    result_id: Option<&'a str>,
    more_is_cut: bool,
) -> Cut<'a> {
    let only_text_is_cut = !more_is_cut && !blocks.iter().any(Block::is_incomplete);
    let cutter = Cutter {
        result_id,
        form: if only_text_is_cut { "as text" } else { "as JSON" },
    };
    let whole_text = joined_texts(blocks).filter(|_| only_text_is_cut && raw.len() > limits.text_chars);
    let is_cut = block::cut_texts(blocks, limits.text_chars, &cutter);
    let full = match (only_text_is_cut, is_cut) {
        (true, false) => None,
        (true, true) => Some(whole_text.unwrap_or_default()),
        (false, _) => Some(raw.to_owned()),
    };
    Cut { cutter, full }
}

/// One content of a resource, to be kept as a file.
#[derive(Debug, PartialEq, Eq)]
pub enum One<'a> {
    Text(Cow<'a, str>),
    /// Base64 as received.
    Blob(Cow<'a, str>),
}

/// What a resource gives to keep.
#[derive(Debug, PartialEq, Eq)]
pub enum OneContent<'a> {
    One(One<'a>),
    /// Several ones.
    Several {
        count: usize,
        /// Of the first ten; empty for one that has none.
        uris: Vec<String>,
    },
}

/// The only content of an upstream's `ReadResourceResult`, borrowed from its JSON text as far as possible. Of a text and a
/// blob it is the same one that [`shape_contents`] shows.
///
/// # Errors
/// [`Undecodable`] when it has no list of contents, none at all, or one that is neither text nor blob.
pub fn one_content(raw: &str) -> Result<OneContent<'_>, Undecodable> {
    const USABLE: &str = "usable contents";
    let contents = list(raw, "contents")?;
    let (mut first, mut uris, mut count) = (None, Vec::new(), 0);
    each_item(contents, USABLE, |content| {
        if count < NAMED_URIS {
            let [uri] = open::members(content.get(), ["uri"]).unwrap_or_default();
            uris.push(uri.and_then(open::text).unwrap_or_default().into_owned());
        }
        first.get_or_insert(content);
        count += 1;
    })?;
    if count > 1 {
        return Ok(OneContent::Several { count, uris });
    }
    let members = first.map(|content| open::members(content.get(), ["text", "blob"]).unwrap_or_default());
    let [text, blob] = members.unwrap_or_default().map(|member| member.and_then(open::text));
    match Held::of(text, blob) {
        Some(Held::Text(text)) => Ok(OneContent::One(One::Text(text))),
        Some(Held::Blob(blob)) => Ok(OneContent::One(One::Blob(blob))),
        None => Err(Undecodable::WithoutList(USABLE)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";
    const SMALL: Limits = Limits {
        text_chars: 300,
        media_bytes: 300,
        block_bytes: 500,
        blocks: 5,
        values: 100,
    };

    fn contents(contents: &Value) -> ShapedContents {
        shape_contents(&json!({ "contents": contents }).to_string(), &SMALL, Some(ID)).unwrap()
    }

    fn messages(messages: &Value) -> ShapedPrompt {
        shape_prompt(&json!({ "messages": messages }).to_string(), &SMALL, Some(ID)).unwrap()
    }

    #[test]
    fn contents_become_the_blocks_that_tools_embed() {
        let sent = json!([
            {"uri": "a:ü", "text": "t", "mimeType": "text/plain", "own": 1},
            {"uri": "a:2", "blob": "aGk="},
            {"uri": "a:3"},
            7,
        ]);
        let shaped = contents(&sent);
        assert_eq!(shaped.contents[0], json!({"type": "resource", "resource": sent[0]}));
        assert_eq!(shaped.contents[1], json!({"type": "resource", "resource": sent[1]}));
        for index in [2, 3] {
            assert_eq!(shaped.contents[index]["type"], "unknown");
            assert_eq!(shaped.contents[index]["original"]["resource"], sent[index]);
        }
        assert_eq!((shaped.truncated, shaped.full), (false, None));
    }

    #[test]
    fn long_texts_share_the_limit_and_large_blobs_are_replaced() {
        let shaped = contents(&json!([{"uri": "a", "text": "ä".repeat(500)}, {"uri": "b", "text": "short"}]));
        let text = shaped.contents[0]["resource"]["text"].as_str().unwrap();
        assert!(text.chars().count() <= 295 && text.contains(ID) && text.contains("as text"));
        assert_eq!(shaped.full, Some(format!("{}\nshort", "ä".repeat(500))));
        assert!(shaped.truncated);

        let shaped = contents(&json!([{"uri": "a", "blob": "A".repeat(800)}]));
        assert_eq!(shaped.contents[0]["type"], "unknown");
        assert!(shaped.contents[0]["text"].as_str().unwrap().contains(ID));
        assert!(shaped.full.unwrap().contains(&"A".repeat(800)));
    }

    #[test]
    fn messages_keep_their_order_and_who_speaks() {
        let sent = json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "a"}},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}, {"type": "hologram"}]},
            {"role": "user", "content": "bare"},
            {"role": "user"},
            null,
            {"role": "user", "content": 5},
        ]});
        let shaped = shape_prompt(&sent.to_string(), &Limits::default(), None).unwrap();
        let seen: Vec<_> = shaped
            .messages
            .iter()
            .map(|one| (one.role.as_str(), one.content.len()))
            .collect();
        assert_eq!(
            seen,
            [
                ("user", 1),
                ("assistant", 2),
                ("user", 1),
                ("user", 0),
                ("user", 1),
                ("user", 1)
            ]
        );
        assert_eq!(shaped.messages[1].content[1]["type"], "unknown");
        assert_eq!(shaped.messages[2].content[0]["text"], "bare");
        assert_eq!(shaped.messages[4].content[0]["original"], Value::Null);
        assert_eq!(shaped.messages[5].content[0]["original"]["content"], 5);
    }

    #[test]
    fn too_many_messages_keep_the_first_and_the_last_with_their_roles() {
        let many: Vec<_> = (0..40)
            .map(|n| {
                let role = if n % 2 == 0 { "user" } else { "assistant" };
                json!({"role": role, "content": {"type": "text", "text": n.to_string()}})
            })
            .collect();
        let shaped = messages(&many.into());
        let seen: Vec<_> = shaped
            .messages
            .iter()
            .map(|one| (one.role.as_str(), one.content[0]["text"].as_str().unwrap()))
            .collect();
        assert_eq!((seen.len(), seen[0], seen[1]), (5, ("user", "0"), ("assistant", "1")));
        assert!(seen[2].1.starts_with("36 blocks are left out here."), "{seen:?}");
        assert_eq!((seen[3], seen[4]), (("user", "38"), ("assistant", "39")));
        assert!(shaped.truncated);
    }

    #[test]
    fn a_description_is_bounded_and_its_rest_is_kept() {
        let prompt = |chars| json!({"messages": [], "description": "d".repeat(chars)}).to_string();
        let raw = prompt(2_001);
        let shaped = shape_prompt(&raw, &Limits::default(), None).unwrap();
        assert_eq!(shaped.description.unwrap().len(), 2_002, "one ellipsis of three bytes");
        assert_eq!((shaped.truncated, shaped.full), (true, Some(raw)));
        let whole = shape_prompt(&prompt(2_000), &Limits::default(), None).unwrap();
        assert_eq!((whole.truncated, whole.full), (false, None));
    }

    #[test]
    fn messages_without_blocks_are_bounded_too() {
        for message in ["{}", r#"{"content":[]}"#, "0", r#"{"content":[0,0,0]}"#] {
            let raw = format!(r#"{{"messages":[{}{message}]}}"#, format!("{message},").repeat(50_000));
            let shaped = shape_prompt(&raw, &Limits::default(), Some(ID)).unwrap();
            assert!(shaped.messages.len() <= 1_000, "{message}");
            let blocks: usize = shaped.messages.iter().map(|one| one.content.len()).sum();
            assert!((1..=1_000).contains(&blocks), "{message}");
            assert!(shaped.truncated && shaped.full == Some(raw), "{message}");
        }
    }

    #[test]
    fn a_content_with_both_is_the_same_one_everywhere() {
        for (text, blob, is_text) in [
            ("t", "aGk=", true),
            ("", "aGk=", false),
            ("t", "", true),
            ("", "", true),
        ] {
            let sent = json!([{"uri": "u", "text": text, "blob": blob}]);
            let raw = json!({ "contents": sent }).to_string();
            let one = one_content(&raw).unwrap();
            assert_eq!(matches!(one, OneContent::One(One::Text(_))), is_text, "{sent}");
            let large = json!([{"uri": "u", "text": text, "blob": blob.repeat(200)}]);
            let shown_as_blob = contents(&large).contents[0]["type"] == "unknown";
            assert_eq!(
                shown_as_blob,
                !blob.is_empty(),
                "{sent}: counted as a blob, or as too much besides a text"
            );
        }
    }

    #[test]
    fn what_has_no_list_is_refused_without_quoting_it() {
        for raw in [
            "",
            "7",
            "[]",
            "{}",
            r#"{"contents":{},"messages":"SECRET"}"#,
            r#"{"contents":null}"#,
        ] {
            for error in [
                shape_contents(raw, &SMALL, None).unwrap_err(),
                shape_prompt(raw, &SMALL, None).unwrap_err(),
                one_content(raw).unwrap_err(),
            ] {
                let error = error.to_string();
                assert!(
                    error.starts_with("The server answered with") && !error.contains("SECRET"),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn one_content_is_borrowed_and_several_are_named() {
        let blob = one_content(r#"{"contents":[{"uri":"a","blob":"aGk="}]}"#).unwrap();
        assert!(
            matches!(blob, OneContent::One(One::Blob(Cow::Borrowed("aGk=")))),
            "{blob:?}"
        );
        let escaped = one_content(r#"{"contents":[{"text":"a\n"}]}"#).unwrap();
        assert_eq!(escaped, OneContent::One(One::Text("a\n".into())));
        let several = one_content(r#"{"contents":[{"uri":"a","text":""},{"text":""}]}"#).unwrap();
        let uris = vec!["a".to_owned(), String::new()];
        assert_eq!(several, OneContent::Several { count: 2, uris });
        let many = format!(r#"{{"contents":[{}0]}}"#, "0,".repeat(100_000));
        let OneContent::Several { count, uris } = one_content(&many).unwrap() else {
            panic!("several");
        };
        assert_eq!((count, uris.len()), (100_001, 10));
        for nothing in [
            r#"{"contents":[]}"#,
            r#"{"contents":[{"uri":"a"}]}"#,
            r#"{"contents":[{"blob":5}]}"#,
        ] {
            assert!(one_content(nothing).is_err(), "{nothing}");
        }
    }
}
