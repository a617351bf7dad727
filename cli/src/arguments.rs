//! Arguments of `call` as they are typed on a command line, made into the JSON object a tool gets. Pure.

use serde_json::{Map, Value, value::RawValue};

/// The input of a call, ready to be sent.
#[derive(Debug)]
pub(crate) enum Input {
    /// A JSON object exactly as it was given: every digit and every key.
    Verbatim(Box<RawValue>),
    Typed(Map<String, Value>),
}

/// One `KEY=VALUE` or `KEY:=JSON`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pair<'a> {
    key: &'a str,
    value: Given<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given<'a> {
    Text(&'a str),
    Json(&'a str),
}

/// Takes a text that must be one JSON object.
pub(crate) fn object(text: &str) -> Result<Input, String> {
    serde_json::from_str::<Map<String, Value>>(text)
        .map_err(|e| format!("The arguments are no JSON object: {e}. Give one such as {{\"path\": \".\"}}."))?;
    RawValue::from_string(text.trim().to_owned())
        .map(Input::Verbatim)
        .map_err(|e| format!("The arguments are no JSON object: {e}."))
}

/// Takes the arguments apart at their `=`.
pub(crate) fn pairs(arguments: &[String]) -> Result<Vec<Pair<'_>>, String> {
    arguments
        .iter()
        .map(|argument| {
            let (key, value) = argument
                .split_once('=')
                .filter(|(key, _)| !key.is_empty() && *key != ":")
                .ok_or_else(|| {
                    format!("\"{argument}\" is no argument: write KEY=VALUE, KEY:=JSON, or one JSON object alone.")
                })?;
            Ok(match key.strip_suffix(':') {
                Some(key) => Pair {
                    key,
                    value: Given::Json(value),
                },
                None => Pair {
                    key,
                    value: Given::Text(value),
                },
            })
        })
        .collect()
}

/// Gives each value the type that the tool's schema names for it; text where it names none or there is no schema.
pub(crate) fn typed(pairs: &[Pair<'_>], schema: Option<&Value>) -> Result<Input, String> {
    let mut out = Map::new();
    for pair in pairs {
        let property = schema.map(|root| resolve(root, &root["properties"][pair.key], 0));
        let types = property.map_or(Types::default(), types_of);
        let value = match pair.value {
            Given::Json(json) => {
                serde_json::from_str(json).map_err(|e| format!("What follows {}:= is no JSON: {e}.", pair.key))?
            }
            Given::Text(text) => {
                let (root, property) = (schema.unwrap_or(&Value::Null), property.unwrap_or(&Value::Null));
                read(pair.key, text, types, root, property)?
            }
        };
        match (out.get_mut(pair.key), value) {
            (None, value) => {
                out.insert(pair.key.to_owned(), value);
            }
            (Some(Value::Array(present)), Value::Array(more)) if types.array => present.extend(more),
            (Some(_), _) => {
                return Err(format!(
                    "{} is given twice, and it is no list: give it once, or as {}:=JSON.",
                    pair.key, pair.key
                ));
            }
        }
    }
    Ok(Input::Typed(out))
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Types {
    string: bool,
    number: bool,
    integer: bool,
    boolean: bool,
    array: bool,
    object: bool,
    null: bool,
}

fn read(key: &str, text: &str, types: Types, root: &Value, property: &Value) -> Result<Value, String> {
    if types == Types::default() {
        let choices = property["enum"].as_array().into_iter().flatten();
        let choice = choices.chain(property.get("const")).find(|choice| match choice {
            Value::String(choice) => choice == text,
            other => serde_json::from_str::<Value>(text).is_ok_and(|value| value == **other),
        });
        return Ok(choice.cloned().unwrap_or_else(|| text.into()));
    }
    if types.boolean && (text == "true" || text == "false") {
        return Ok((text == "true").into());
    }
    if (types.number || types.integer)
        && let Ok(number) = serde_json::from_str::<serde_json::Number>(text)
        && (types.number || !text.contains(['.', 'e', 'E']))
    {
        return Ok(Value::Number(number));
    }
    if types.object && text.trim_start().starts_with('{') || types.array && text.trim_start().starts_with('[') {
        match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            Err(e) if !types.string => return Err(format!("{key} is no JSON: {e}.")),
            Err(_maybe_text) => {}
        }
    }
    if types.null && text == "null" {
        return Ok(Value::Null);
    }
    if types.string {
        return Ok(text.into());
    }
    if types.array {
        let items = resolve(root, &property["items"], 0);
        return read(key, text, types_of(items), root, items).map(|item| Value::Array(vec![item]));
    }
    Err(format!("{key} must be {}, and \"{text}\" is not.", types.in_words()))
}

impl Types {
    fn in_words(self) -> String {
        let words: Vec<&str> = [
            (self.boolean, "true or false"),
            (self.integer && !self.number, "a whole number"),
            (self.number, "a number"),
            (self.object, "a JSON object"),
            (self.null, "null"),
        ]
        .into_iter()
        .filter_map(|(is, word)| is.then_some(word))
        .collect();
        words.join(" or ")
    }

    fn add(&mut self, name: &str) {
        match name {
            "string" => self.string = true,
            "number" => self.number = true,
            "integer" => self.integer = true,
            "boolean" => self.boolean = true,
            "array" => self.array = true,
            "object" => self.object = true,
            "null" => self.null = true,
            _ => {}
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            string: self.string || other.string,
            number: self.number || other.number,
            integer: self.integer || other.integer,
            boolean: self.boolean || other.boolean,
            array: self.array || other.array,
            object: self.object || other.object,
            null: self.null || other.null,
        }
    }
}

fn types_of(property: &Value) -> Types {
    let mut types = Types::default();
    match &property["type"] {
        Value::String(name) => types.add(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).for_each(|name| types.add(name)),
        _ => {}
    }
    for key in ["anyOf", "oneOf"] {
        for choice in property[key].as_array().into_iter().flatten() {
            types = types.or(types_of(choice));
        }
    }
    types
}

/// Follows references within the schema, a few steps.
fn resolve<'a>(root: &'a Value, property: &'a Value, depth: u8) -> &'a Value {
    const MOST: u8 = 8;
    match property["$ref"].as_str().and_then(|r| r.strip_prefix('#')) {
        Some(pointer) if depth < MOST => root
            .pointer(pointer)
            .map_or(property, |target| resolve(root, target, depth + 1)),
        _ => property,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "properties": {
                "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
                "list": {"type": "array", "items": {"type": "integer"}}, "o": {"type": "object"},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "r": {"$ref": "#/$defs/R"},
                "either": {"type": ["string", "integer"]}, "pick": {"enum": ["a", 2]},
            },
            "$defs": {"R": {"type": "boolean"}},
        })
    }

    fn typed_by(arguments: &[&str], schema: Option<&Value>) -> Result<String, String> {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        match typed(&pairs(&arguments)?, schema)? {
            Input::Typed(map) => Ok(Value::Object(map).to_string()),
            Input::Verbatim(raw) => Ok(raw.get().to_owned()),
        }
    }

    #[test]
    fn values_get_the_type_the_schema_names() {
        for (argument, wanted) in [
            ("s=5", r#"{"s":"5"}"#),
            ("s=", r#"{"s":""}"#),
            ("s=a=b", r#"{"s":"a=b"}"#),
            ("i=5", r#"{"i":5}"#),
            ("n=-1.50", r#"{"n":-1.50}"#),
            ("n=12345678901234567890123.45", r#"{"n":12345678901234567890123.45}"#),
            ("b=true", r#"{"b":true}"#),
            ("list=[1,2]", r#"{"list":[1,2]}"#),
            ("list=7", r#"{"list":[7]}"#),
            (r#"o={"a":1}"#, r#"{"o":{"a":1}}"#),
            ("maybe=null", r#"{"maybe":null}"#),
            ("maybe=3", r#"{"maybe":3}"#),
            ("r=false", r#"{"r":false}"#),
            ("either=x", r#"{"either":"x"}"#),
            ("pick=2", r#"{"pick":2}"#),
            ("pick=a", r#"{"pick":"a"}"#),
            ("new=5", r#"{"new":"5"}"#),
            ("s:=5", r#"{"s":5}"#),
        ] {
            assert_eq!(typed_by(&[argument], Some(&schema())).unwrap(), wanted, "{argument}");
        }
    }

    #[test]
    fn a_key_given_again_adds_to_a_list_and_to_nothing_else() {
        assert_eq!(
            typed_by(&["list=1", "list=2"], Some(&schema())).unwrap(),
            r#"{"list":[1,2]}"#
        );
        assert!(
            typed_by(&["s=1", "s=2"], Some(&schema()))
                .unwrap_err()
                .contains("twice")
        );
    }

    #[test]
    fn without_a_schema_everything_is_text() {
        assert_eq!(typed_by(&["a=5", "b:=5"], None).unwrap(), r#"{"a":"5","b":5}"#);
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused_with_what_it_must_be() {
        for (argument, says) in [
            ("i=1.5", "whole number"),
            ("i=abc", "whole number"),
            ("b=yes", "true or false"),
            ("o=x", "JSON object"),
            ("o={", "no JSON"),
            ("s:=x", "no JSON"),
            ("alone", "KEY=VALUE"),
            ("=x", "KEY=VALUE"),
            (":=1", "KEY=VALUE"),
        ] {
            let why = typed_by(&[argument], Some(&schema())).unwrap_err();
            assert!(why.contains(says), "{argument}: {why}");
        }
    }

    #[test]
    fn an_object_is_taken_verbatim_numbers_and_all() {
        let text = r#" {"a": 1.10, "b": 12345678901234567890} "#;
        assert!(matches!(object(text).unwrap(), Input::Verbatim(raw) if raw.get() == text.trim()));
        for bad in ["[1]", "{", "5", ""] {
            object(bad).unwrap_err();
        }
    }
}
