//! A call's arguments → their names, types and sizes. Pure, and bounded whatever is sent.

use serde_json::{Map, Value};

/// Objects inside objects that are looked into.
const DEEPEST: usize = 3;
/// Members that are named, in all objects together.
const MOST_MEMBERS: usize = 40;
/// Characters of a member's name.
const LONGEST_NAME: usize = 60;
/// Arguments over this many bytes are kept as a shape, whatever the setting.
pub(super) const LARGEST_FULL: usize = 16 * 1024;

/// `{"path":"text(12)","lines":"list(3)","force":true,"deep":{…}}`: texts with their length in characters, lists with
/// their number of items, `true`, `false` and `null` as they are. What is left out is counted under `…`.
pub fn shape(arguments: &Map<String, Value>) -> Value {
    let mut left = MOST_MEMBERS;
    of_object(arguments, DEEPEST, &mut left)
}

fn of_object(members: &Map<String, Value>, depth: usize, left: &mut usize) -> Value {
    let mut shape = Map::new();
    let mut unnamed = members.len();
    for (name, value) in members {
        if *left == 0 {
            break;
        }
        *left -= 1;
        unnamed -= 1;
        shape.insert(shortened(name), of(value, depth, left));
    }
    if unnamed > 0 {
        shape.insert("…".to_owned(), Value::String(format!("{unnamed} more")));
    }
    Value::Object(shape)
}

fn of(value: &Value, depth: usize, left: &mut usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(_) => Value::String("number".to_owned()),
        Value::String(text) => Value::String(format!("text({})", text.chars().count())),
        Value::Array(items) => Value::String(format!("list({})", items.len())),
        Value::Object(members) if depth == 0 => Value::String(format!("object({})", members.len())),
        Value::Object(members) => of_object(members, depth - 1, left),
    }
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Whether all texts, names and items take at most [`LARGEST_FULL`]; stops counting where they do not.
pub(super) fn is_small(arguments: &Map<String, Value>) -> bool {
    let mut left = LARGEST_FULL;
    arguments
        .iter()
        .all(|(name, value)| take(&mut left, name.len()) && fits(value, &mut left))
}

fn fits(value: &Value, left: &mut usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) => take(left, 8),
        Value::Number(number) => take(left, number.as_str().len()),
        Value::String(text) => take(left, text.len()),
        Value::Array(items) => take(left, 8) && items.iter().all(|item| fits(item, left)),
        Value::Object(members) => {
            let mut members = members.iter();
            take(left, 8) && members.all(|(name, value)| take(left, name.len()) && fits(value, left))
        }
    }
}

fn take(left: &mut usize, bytes: usize) -> bool {
    match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

/// Bytes of its texts, of a value that [`is_small`].
pub(super) fn weight(value: &Value) -> usize {
    let mut left = usize::MAX;
    fits(value, &mut left);
    usize::MAX - left
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_text(text: &str) -> String {
        shape(&serde_json::from_str(text).unwrap()).to_string()
    }

    #[test]
    fn a_shape_has_names_types_and_sizes_and_no_contents() {
        for (arguments, shape) in [
            ("{}", "{}"),
            (
                r#"{"path":"/home/p/ü.txt","lines":[1,"SENTINEL",3],"force":true,"none":null,"n":12.50}"#,
                r#"{"path":"text(13)","lines":"list(3)","force":true,"none":null,"n":"number"}"#,
            ),
            (
                r#"{"a":{"b":{"c":{"d":{"e":"SENTINEL"}}}}}"#,
                r#"{"a":{"b":{"c":{"d":"object(1)"}}}}"#,
            ),
        ] {
            assert_eq!(of_text(arguments), shape);
        }
    }

    #[test]
    fn a_shape_stays_small_whatever_is_sent() {
        let many: Map<String, Value> = (0..10_000).map(|n| (format!("m{n}"), json!("x"))).collect();
        let shown = shape(&many);
        assert_eq!(shown.as_object().unwrap().len(), MOST_MEMBERS + 1);
        assert_eq!(shown["…"], "9960 more");
        let long = Map::from_iter([("ü".repeat(100_000), json!("y".repeat(1_000_000)))]);
        let shown = shape(&long).to_string();
        assert!(shown.len() < 200 && shown.contains("text(1000000)"), "{shown}");
        let wide: Map<String, Value> = (0..30).map(|n| (format!("m{n}"), json!(many))).collect();
        assert!(shape(&wide).to_string().len() < 4_000);
    }

    #[test]
    fn only_small_arguments_are_kept_in_full() {
        let of = |value: Value| Map::from_iter([("a".to_owned(), value)]);
        assert!(is_small(&of(json!("x".repeat(LARGEST_FULL - 1)))));
        for large in [
            json!("x".repeat(LARGEST_FULL)),
            json!(vec![0; LARGEST_FULL]),
            json!(vec![json!({}); LARGEST_FULL]),
            json!([json!({"b": "x".repeat(LARGEST_FULL)})]),
        ] {
            assert!(!is_small(&of(large.clone())), "{}", large.to_string().len());
        }
        assert_eq!(weight(&json!({"abc": ["de", true]})), 3 + 8 + 8 + 2 + 8);
    }
}
