//! One item of a list as it was received, and whether what was parsed of it is all that it says. Pure.

use serde_json::{Value, value::RawValue};

use super::open;

/// An item of a list of an upstream.
#[derive(Debug, Clone, PartialEq)]
pub struct RawItem {
    pub value: Value,
    pub names: Names,
}

/// How the members of the objects in an item are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Each once in its object.
    Unique,
    /// One twice or more; `value` keeps what came last, another reader may keep what came first.
    Repeated,
}

impl RawItem {
    /// Reads an item's text. One that is nested too deep to be read is null.
    pub(crate) fn read(text: &RawValue) -> Self {
        let value = serde_json::from_str(text.get()).unwrap_or(Value::Null);
        // Parsing keeps one member for each name, so whatever was written more often is missing.
        let names = if members(&value) == open::members_written(text) || value.is_null() {
            Names::Unique
        } else {
            Names::Repeated
        };
        Self { value, names }
    }
}

/// An item that was never text.
impl From<Value> for RawItem {
    fn from(value: Value) -> Self {
        Self {
            value,
            names: Names::Unique,
        }
    }
}

/// How many members all objects in `value` have together.
fn members(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => items.iter().map(members).sum(),
        Value::Object(object) => object.len() + object.values().map(members).sum::<usize>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Names {
        RawItem::read(serde_json::from_str(text).unwrap()).names
    }

    #[test]
    fn a_name_that_occurs_twice_in_an_object_is_noticed_at_any_depth() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"b":[{"c":{"d":1,"e":2,"d":3}}]}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":{"b":1},"a":{"c":1,"d":2}}"#,
            r#"[{"":0,"":0}]"#,
            // Not a number, and yet parsed as one.
            r#"{"n":{"$serde_json::private::Number":"5"}}"#,
        ] {
            assert_eq!(names(text), Names::Repeated, "{text}");
        }
    }

    #[test]
    fn the_same_name_in_different_objects_is_no_repetition() {
        for text in [
            r#"{"a":{"a":[{"a":1},{"a":1}]},"b":"a:a","c":"\":\"{,:","d":":"}"#,
            "{}",
            "null",
            r#""a:b""#,
            "[1,2.50,{}]",
        ] {
            assert_eq!(names(text), Names::Unique, "{text}");
        }
    }
}
