//! Request bodies: bytes in, a typed value or a sentence out. Pure.
//!
//! What is accepted has one reading only: UTF-8 without a byte order mark, every member once at every depth, no unknown
//! member, nothing after the end. Numbers keep every digit and members their order.

use std::{collections::HashSet, fmt, ops::Range};

use serde::{
    Deserializer,
    de::{self, DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};

use crate::{error::ApiError, tools::open};

/// Reads the whole body as `T`, which must refuse unknown members itself (`deny_unknown_fields`).
///
/// # Errors
/// `bad_request` with line and column.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if body.is_empty() {
        return Err(ApiError::bad_request(
            "The request body is empty; it has to be a JSON object.",
        ));
    }
    if body.starts_with(b"\xef\xbb\xbf") {
        return Err(ApiError::bad_request(
            "The request body starts with a byte order mark; send plain UTF-8 without one.",
        ));
    }
    let text = std::str::from_utf8(body).map_err(|e| {
        ApiError::bad_request(format!(
            "The request body is not UTF-8: byte {} cannot be read.",
            e.valid_up_to() + 1
        ))
    })?;
    only_once(text).map_err(|e| unusable(&e))?;
    serde_json::from_str(text).map_err(|e| ill_fitting::<T>(text, &e))
}

fn unusable(error: &serde_json::Error) -> ApiError {
    ApiError::bad_request(format!("The request body cannot be used: {error}."))
}

/// Reads once more, to name the member: keeping track of it would slow every good request down.
fn ill_fitting<T: DeserializeOwned>(text: &str, error: &serde_json::Error) -> ApiError {
    let mut json = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, T>(&mut json) {
        Err(traced) if traced.path().iter().next().is_some() => ApiError::bad_request(format!(
            "The request body cannot be used: \"{}\": {error}.",
            traced.path()
        )),
        _ => unusable(error),
    }
}

/// Walks the whole text once and keeps nothing. serde_json bounds the depth (128) and refuses what follows the end.
fn only_once(text: &str) -> Result<(), serde_json::Error> {
    let start = text.as_ptr() as usize;
    let walk = Walk {
        text: start..start + text.len(),
    };
    let mut json = serde_json::Deserializer::from_str(text);
    walk.deserialize(&mut json)?;
    json.end()
}

/// Visits one value. `text` is the address range of the body.
#[derive(Clone)]
struct Walk {
    text: Range<usize>,
}

impl<'de> DeserializeSeed<'de> for Walk {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.clone())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = members.next_key_seed(NameSeed {
            text: self.text.clone(),
        })? {
            let Named::Written(name) = name else {
                // An exact number, dressed up as an object by serde_json.
                members.next_value::<de::IgnoredAny>()?;
                continue;
            };
            if name.starts_with(open::RESERVED) {
                return Err(de::Error::custom(format_args!(
                    "the member name \"{name}\" is reserved"
                )));
            }
            if seen.contains(&name) {
                return Err(de::Error::custom(format_args!("the member {name:?} appears twice")));
            }
            seen.insert(name);
            members.next_value_seed(self.clone())?;
        }
        Ok(())
    }
}

/// Reads a member's name and tells the caller's from serde_json's own.
struct NameSeed {
    text: Range<usize>,
}

enum Named<'de> {
    Written(std::borrow::Cow<'de, str>),
    Private,
}

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Named<'de>;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Named<'de>, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for NameSeed {
    type Value = Named<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    /// A name without escapes lies in the body; serde_json's own lies in the program.
    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Named<'de>, E> {
        if self.text.contains(&(name.as_ptr() as usize)) {
            Ok(Named::Written(name.into()))
        } else {
            Ok(Named::Private)
        }
    }

    /// A name with escapes comes from the body.
    fn visit_str<E>(self, name: &str) -> Result<Named<'de>, E> {
        Ok(Named::Written(name.to_owned().into()))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Map, Value};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        name: String,
        #[serde(default)]
        input: Option<Map<String, Value>>,
        #[serde(default)]
        count: Option<u32>,
    }

    fn refusal(body: impl AsRef<[u8]>) -> String {
        let error = parse::<Sample>(body.as_ref()).unwrap_err();
        assert_eq!(error.code, crate::error::Code::BadRequest);
        error.message
    }

    #[test]
    fn numbers_keep_every_digit_and_members_their_order() {
        let input = r#"{"z":1.10,"a":123456789012345678901234567890,"m":[1E+400,-0,{"q":0.1000}],"b":null}"#;
        let read: Sample = parse(format!(r#"{{"name":"x","input":{input}}}"#).as_bytes()).unwrap();
        assert_eq!(
            serde_json::to_string(&read.input).unwrap(),
            input.replace("1E+400", "1e+400")
        );
        assert_eq!((read.name.as_str(), read.count), ("x", None));
    }

    #[test]
    fn a_member_given_twice_is_refused_at_any_depth_with_its_place() {
        for body in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","input":{"k":1,"k":2}}"#,
            r#"{"name":"a","input":{"l":[[{"x":{"k":1,"j":0,"k":1}}]]}}"#,
            r#"{"name":"a","input":{"k":1,"\u006b":2}}"#,
            r#"{"name":"a","input":{"\u006b":1,"k":{}}}"#,
            r#"{"name":"a","input":{"":1,"":2}}"#,
        ] {
            let message = refusal(body);
            assert!(message.contains("twice at line 1 column"), "{body}: {message}");
        }
        parse::<Sample>(br#"{"name":"a","input":{"k":{"k":[{"k":1},{"k":2}]},"K":1}}"#).unwrap();
    }

    #[test]
    fn a_member_that_would_turn_into_a_number_is_refused() {
        for body in [
            r#"{"name":"a","input":{"n":{"$serde_json::private::Number":"5"}}}"#,
            r#"{"name":"a","input":{"n":{"$serde_json::private::Number":5}}}"#,
            r#"{"name":"a","input":{"n":{"\u0024serde_json::private::Number":"5"}}}"#,
            r#"{"name":"a","input":{"n":{"$serde_json::private::RawValue":"{}"}}}"#,
            r#"{"name":"a","input":{"$serde_json::private::Number":"5"}}"#,
        ] {
            let message = refusal(body);
            assert!(message.contains("reserved"), "{body}: {message}");
        }
        // As a text it is only a text.
        parse::<Sample>(br#"{"name":"$serde_json::private::Number","input":{"t":"$serde_json::private::Number"}}"#)
            .unwrap();
    }

    #[test]
    fn unknown_missing_and_ill_typed_members_are_named() {
        assert!(refusal(r#"{"name":"a","extra":1}"#).contains("extra"));
        assert!(refusal(r#"{"Name":"a"}"#).contains("Name"));
        assert!(refusal("{}").contains("name"));
        assert!(refusal(r#"{"name":1}"#).contains("line 1"));
        for (body, member) in [
            (r#"{"name":"a","input":[]}"#, "\"input\""),
            (r#"{"name":"a","count":-1}"#, "\"count\""),
        ] {
            let message = refusal(body);
            assert!(message.contains(member) && message.contains("line 1"), "{message}");
        }
        for count in ["1.5", "-1", "1e3", "4294967296", "\"1\"", "true"] {
            refusal(format!(r#"{{"name":"a","count":{count}}}"#));
        }
    }

    #[test]
    fn bodies_with_a_second_reading_are_refused() {
        assert!(refusal("").contains("empty"));
        assert!(refusal("\u{feff}{\"name\":\"a\"}").contains("byte order mark"));
        assert!(refusal(b"{\"name\":\"\xff\"}").contains("byte 10"));
        assert!(refusal(b"\xff\xfe{\0").contains("UTF-8"));
        for body in [
            r#"{"name":"a"} {}"#,
            r#"{"name":"a"}x"#,
            "{\"name\":\"a\"}\0",
            r#"{"name":"a",}"#,
            r#"{"name":"a" // comment"#,
            r#"{"name":'a'}"#,
            r#"{name:"a"}"#,
            r#"{"name":"a","input":{"n":NaN}}"#,
            r#"{"name":"a","input":{"n":01}}"#,
            r#"{"name":"a","input":{"n":"\ud800"}}"#,
            "{\"name\":\"a\nb\"}",
            "{\"na\nme\":\"a\"}",
            "[]",
            "null",
            "\"a\"",
            "{",
            " ",
        ] {
            refusal(body);
        }
        parse::<Sample>(b" \r\n\t{\"name\":\"a\"}\n").unwrap();
    }

    #[test]
    fn depth_is_bounded_however_deep_the_body_is() {
        let nested = |depth: usize| {
            format!(
                r#"{{"name":"a","input":{{"d":{}{}}}}}"#,
                "[".repeat(depth),
                "]".repeat(depth)
            )
        };
        parse::<Sample>(nested(100).as_bytes()).unwrap();
        for depth in [200, 100_000] {
            assert!(refusal(nested(depth)).contains("recursion limit"), "{depth}");
        }
        assert!(refusal(r#"{"a":"#.repeat(100_000)).contains("recursion limit"));
    }

    #[test]
    fn a_wide_object_is_checked_in_reasonable_time() {
        let members: Vec<_> = (0..50_000).map(|n| format!("\"k{n}\":{n}")).collect();
        let body = format!(r#"{{"name":"a","input":{{{}}}}}"#, members.join(","));
        let started = std::time::Instant::now();
        assert_eq!(parse::<Sample>(body.as_bytes()).unwrap().input.unwrap().len(), 50_000);
        assert!(started.elapsed() < std::time::Duration::from_secs(5));
    }
}
