//! What a tool declares of its arguments, as far as a condition depends on it: how a value is read, and what is taken for
//! one that is left out. Pure look-ups in the schema as it was approved; nothing is followed or fetched.

use serde_json::{Map, Value};

use super::sameness::{is_twin, may_turn};

/// The arguments that may be given to what is called.
#[derive(Debug, Clone, Copy)]
pub enum Declared<'a> {
    /// By its input schema; `None` where that is not known.
    Tool(Option<&'a Map<String, Value>>),
    /// Texts, whatever their names, as the protocol has it.
    Prompt,
}

/// How a value may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape {
    /// It may be a text.
    pub text: bool,
    /// It may be a list of texts.
    pub list: bool,
    /// It may be something else too, into which some readers turn a text that looks like it.
    pub other: bool,
}

/// What is taken for an argument that is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LeftOut<'a> {
    /// The tool has no such argument.
    NoSuch,
    Default(&'a Value),
    Unknown,
}

/// The one text that an argument is for every server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnlyText<'a> {
    This(&'a str),
    /// The tool has no such argument.
    None,
    Unsure,
}

impl<'a> Declared<'a> {
    /// What an argument is where it is a text, or left out with a text in its place.
    pub fn only_text(self, name: &str, given: &'a Map<String, Value>) -> OnlyText<'a> {
        if given.keys().any(|other| is_twin(other, name)) {
            return OnlyText::Unsure;
        }
        let value = match (given.get(name), self.left_out(name)) {
            (Some(value), _) | (None, LeftOut::Default(value)) => value,
            (None, LeftOut::NoSuch) => return OnlyText::None,
            (None, LeftOut::Unknown) => return OnlyText::Unsure,
        };
        match value.as_str() {
            Some(text) if !may_turn(text) || self.shape(name).is_text_alone() => OnlyText::This(text),
            Some(_) | None => OnlyText::Unsure,
        }
    }

    pub(super) fn shape(self, name: &str) -> Shape {
        match self {
            Self::Tool(_) => self.argument(name).map_or(UNCLEAR, |schema| shape(schema, 0)),
            Self::Prompt => TEXT,
        }
    }

    pub(super) fn left_out(self, name: &str) -> LeftOut<'a> {
        let Self::Tool(Some(schema)) = self else {
            return LeftOut::Unknown;
        };
        match self.argument(name) {
            Some(argument) => argument.get("default").map_or(LeftOut::Unknown, LeftOut::Default),
            None if refers(schema) => LeftOut::Unknown,
            None => LeftOut::NoSuch,
        }
    }

    /// Whether an argument of this name is one of its own.
    pub(super) fn has(self, name: &str) -> bool {
        match self {
            Self::Tool(_) => self.argument(name).is_some(),
            Self::Prompt => true,
        }
    }

    fn argument(self, name: &str) -> Option<&'a Value> {
        match self {
            Self::Tool(schema) => schema?.get("properties")?.get(name),
            Self::Prompt => None,
        }
    }
}

const UNCLEAR: Shape = Shape {
    text: false,
    list: false,
    other: true,
};
const TEXT: Shape = Shape {
    text: true,
    list: false,
    other: false,
};
const LIST: Shape = Shape {
    text: false,
    list: true,
    other: false,
};

impl Shape {
    /// Whether it is a text and nothing else.
    pub(super) fn is_text_alone(self) -> bool {
        self == TEXT
    }

    fn or(self, other: Self) -> Self {
        Self {
            text: self.text || other.text,
            list: self.list || other.list,
            other: self.other || other.other,
        }
    }
}

/// Choices within choices are looked into so deep.
const DEEPEST: usize = 4;

fn shape(schema: &Value, depth: usize) -> Shape {
    let Some(schema) = schema.as_object().filter(|_| depth < DEEPEST) else {
        return UNCLEAR;
    };
    // A text that holds something else, such as JSON.
    let is_packed = schema.contains_key("contentMediaType") || schema.contains_key("contentEncoding");
    let choices = ["anyOf", "oneOf"].iter().find_map(|word| schema.get(*word)?.as_array());
    if is_packed || (refers(schema) && choices.is_none()) {
        return UNCLEAR;
    }
    if let Some(choices) = choices {
        let shapes = choices.iter().map(|choice| shape(choice, depth + 1));
        return shapes.fold(
            Shape {
                other: true,
                ..Shape::default()
            },
            Shape::or,
        );
    }
    let of_type = |kind: &Value| match kind.as_str() {
        Some("string") => TEXT,
        Some("array") if schema.get("items").is_some_and(|items| shape(items, depth + 1) == TEXT) => LIST,
        Some(_) | None => UNCLEAR,
    };
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().map(of_type).fold(
            Shape {
                other: true,
                ..Shape::default()
            },
            Shape::or,
        ),
        Some(kind) => of_type(kind),
        None => UNCLEAR,
    }
}

/// Whether more is said elsewhere.
fn refers(schema: &Map<String, Value>) -> bool {
    let words = [
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "not",
        "dependentSchemas",
    ];
    words.iter().any(|word| schema.contains_key(*word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(schema: &Value) -> Shape {
        let tool = json!({"type": "object", "properties": {"a": schema}});
        Declared::Tool(tool.as_object()).shape("a")
    }

    #[test]
    fn only_what_is_plainly_declared_a_text_is_a_text_alone() {
        for schema in [
            json!({"type": "string"}),
            json!({"type": "string", "format": "uri", "default": "a", "enum": ["a"]}),
        ] {
            assert!(told(&schema).is_text_alone(), "{schema}");
        }
        for schema in [
            json!({}),
            json!(true),
            json!({"type": "number"}),
            json!({"$ref": "#/$defs/Path"}),
            json!({"type": "string", "allOf": [{}]}),
            json!({"type": "string", "contentMediaType": "application/json"}),
            json!({"description": "a path"}),
            json!({"type": "array", "items": {}}),
            json!({"type": "array"}),
            json!({"anyOf": [{"$ref": "#/$defs/Path"}, {"type": "null"}]}),
        ] {
            assert!(!told(&schema).text && !told(&schema).list, "{schema}");
        }
        assert_eq!(told(&json!({"type": "array", "items": {"type": "string"}})), LIST);
        for schema in [
            json!({"type": ["string", "null"]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}),
            json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
        ] {
            assert!(told(&schema).text && told(&schema).other, "{schema}");
        }
        assert!(Declared::Prompt.shape("a").is_text_alone());
        assert_eq!(Declared::Tool(None).shape("a"), UNCLEAR);
    }

    #[test]
    fn what_is_left_out_is_the_default_where_one_is_declared_and_nobody_knows_what_else() {
        let tool = json!({"properties": {"a": {"default": 1}, "b": {}}, "required": ["b"]});
        let tool = Declared::Tool(tool.as_object());
        assert_eq!(tool.left_out("a"), LeftOut::Default(&json!(1)));
        assert_eq!(tool.left_out("b"), LeftOut::Unknown);
        assert_eq!(tool.left_out("c"), LeftOut::NoSuch);
        let more = json!({"properties": {}, "allOf": [{"$ref": "#/$defs/More"}]});
        assert_eq!(Declared::Tool(more.as_object()).left_out("c"), LeftOut::Unknown);
        assert_eq!(Declared::Tool(None).left_out("c"), LeftOut::Unknown);
        assert_eq!(Declared::Prompt.left_out("c"), LeftOut::Unknown);
    }
}
