//! What reading a resource or getting a prompt gives, in the blocks of results.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    Limits, Undecodable,
    block::{self, Block, Cutter},
    content_of, cut, joined_texts,
};

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
    let mut result = object(raw)?;
    let Some(Value::Array(contents)) = result.remove("contents") else {
        return Err(Undecodable::WithoutList("contents"));
    };
    let as_block = |content| Block::read(json!({"type": "resource", "resource": content}), limits);
    let mut blocks: Vec<Block> = contents.into_iter().map(as_block).collect();
    let cut = bring_under(&mut blocks, raw, limits, result_id);
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
    let mut result = object(raw)?;
    let Some(Value::Array(messages)) = result.remove("messages") else {
        return Err(Undecodable::WithoutList("messages"));
    };
    let description = result.remove("description");
    let description = description.as_ref().and_then(Value::as_str);
    // All blocks in one row, so that they share the limits; `owner` says whose each one is.
    let (mut roles, mut blocks, mut owner) = (Vec::new(), Vec::new(), Vec::new());
    for message in messages {
        let (role, content) = read_message(message, limits);
        owner.extend(content.iter().map(|_| roles.len()));
        roles.push(role);
        blocks.extend(content);
    }
    let cut = bring_under(&mut blocks, raw, limits, result_id);
    if let Some(dropped) = &cut.dropped {
        let note_is_of = owner[dropped.start];
        owner.splice(dropped.clone(), [note_is_of]);
    }
    let mut messages: Vec<Message> = roles
        .into_iter()
        .map(|role| Message {
            role,
            content: Vec::new(),
        })
        .collect();
    for (owner, block) in owner.into_iter().zip(blocks) {
        messages[owner].content.push(block.into_json(&cut.cutter));
    }
    if cut.dropped.is_some() {
        messages.retain(|message| !message.content.is_empty());
    }
    Ok(ShapedPrompt {
        description: description.map(|text| cut::middle(text, DESCRIPTION_CHARS, " … ").into_owned()),
        messages,
        truncated: cut.full.is_some(),
        full: cut.full,
    })
}

/// A message that is none stands as a block that says so, so that its neighbours keep their order.
fn read_message(message: Value, limits: &Limits) -> (String, Vec<Block>) {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("assistant") => "assistant",
        Some(_) | None => "user",
    };
    let has_blocks = !matches!(message.get("content"), Some(Value::Bool(_) | Value::Number(_)));
    let content = match message {
        Value::Object(mut members) if has_blocks => content_of(&mut members).unwrap_or_default(),
        other => vec![other],
    };
    let blocks = content.into_iter().map(|block| Block::read(block, limits)).collect();
    (role.to_owned(), blocks)
}

fn object(raw: &str) -> Result<Map<String, Value>, Undecodable> {
    match serde_json::from_str(raw).map_err(|err| Undecodable::NotJson(err.to_string()))? {
        Value::Object(members) => Ok(members),
        other => Err(Undecodable::NotAnObject(crate::tools::schema::kind(&other))),
    }
}

struct Cut<'a> {
    cutter: Cutter<'a>,
    /// The places of blocks that were left out.
    dropped: Option<std::ops::Range<usize>>,
    /// What to keep, where something is missing.
    full: Option<String>,
}

fn bring_under<'a>(blocks: &mut Vec<Block>, raw: &str, limits: &Limits, result_id: Option<&'a str>) -> Cut<'a> {
    let too_many = blocks.len() > limits.blocks;
    let only_text_is_cut = !too_many && !blocks.iter().any(Block::is_incomplete);
    let cutter = Cutter {
        result_id,
        form: if only_text_is_cut { "as text" } else { "as JSON" },
    };
    let whole_text = joined_texts(blocks).filter(|_| only_text_is_cut && raw.len() > limits.text_chars);
    let dropped = too_many.then(|| block::drop_middle(blocks, limits.blocks));
    let is_cut = block::cut_texts(blocks, limits.text_chars, &cutter);
    let full = match (only_text_is_cut, is_cut) {
        (true, false) => None,
        (true, true) => Some(whole_text.unwrap_or_default()),
        (false, _) => Some(raw.to_owned()),
    };
    Cut { cutter, dropped, full }
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
    /// Several ones, with their URIs.
    Several(Vec<String>),
}

/// The only content of an upstream's `ReadResourceResult`, borrowed from its JSON text as far as possible.
///
/// # Errors
/// [`Undecodable`] when it has no list of contents, none at all, or one that is neither text nor blob.
pub fn one_content(raw: &str) -> Result<OneContent<'_>, Undecodable> {
    #[derive(Deserialize)]
    struct Result<'a> {
        #[serde(borrow)]
        contents: Vec<Content<'a>>,
    }
    #[derive(Deserialize)]
    struct Content<'a> {
        #[serde(borrow, default)]
        uri: Option<Text<'a>>,
        #[serde(borrow, default)]
        text: Option<Text<'a>>,
        #[serde(borrow, default)]
        blob: Option<Text<'a>>,
    }
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    let result: Result<'_> =
        serde_json::from_str(raw).map_err(|_unreadable| Undecodable::WithoutList("usable contents"))?;
    let mut contents = result.contents;
    if contents.len() > 1 {
        let uris = contents
            .into_iter()
            .map(|one| one.uri.map_or_else(String::new, |uri| uri.0.into_owned()));
        return Ok(OneContent::Several(uris.collect()));
    }
    match contents.pop().map(|one| (one.blob, one.text)) {
        Some((Some(blob), _)) => Ok(OneContent::One(One::Blob(blob.0))),
        Some((None, Some(text))) => Ok(OneContent::One(One::Text(text.0))),
        Some((None, None)) | None => Err(Undecodable::WithoutList("usable contents")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";
    const SMALL: Limits = Limits {
        text_chars: 300,
        media_bytes: 300,
        block_bytes: 500,
        blocks: 5,
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
    fn a_description_is_bounded() {
        let raw = json!({"messages": [], "description": "d".repeat(5_000)}).to_string();
        let shaped = shape_prompt(&raw, &Limits::default(), None).unwrap();
        assert_eq!(shaped.description.unwrap().len(), 2_002, "one ellipsis of three bytes");
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
        let blob = one_content(r#"{"contents":[{"uri":"a","blob":"aGk=","text":"no"}]}"#).unwrap();
        assert!(
            matches!(blob, OneContent::One(One::Blob(Cow::Borrowed("aGk=")))),
            "{blob:?}"
        );
        let escaped = one_content(r#"{"contents":[{"text":"a\n"}]}"#).unwrap();
        assert_eq!(escaped, OneContent::One(One::Text("a\n".into())));
        let several = one_content(r#"{"contents":[{"uri":"a","text":""},{"text":""}]}"#).unwrap();
        assert_eq!(several, OneContent::Several(vec!["a".to_owned(), String::new()]));
        for nothing in [
            r#"{"contents":[]}"#,
            r#"{"contents":[{"uri":"a"}]}"#,
            r#"{"contents":[{"blob":5}]}"#,
        ] {
            assert!(one_content(nothing).is_err(), "{nothing}");
        }
    }
}
