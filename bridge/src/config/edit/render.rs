//! Values as text in the style of the text around them.

use serde_json::Value;

/// Longest list that is written on one line, in characters.
const LINE_WIDTH: usize = 80;

/// How a value and its neighbours are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Style {
    /// Every member on its own line.
    Lines { end_of_line: &'static str, unit: String },
    /// All on one line.
    Inline {
        colon: String,
        comma: String,
        padding: String,
    },
}

/// `"key": value`; `indent` is that of the line on which it begins.
pub(super) fn member(key: &str, value: &Value, style: &Style, indent: &str) -> String {
    let colon = match style {
        Style::Lines { .. } => ": ",
        Style::Inline { colon, .. } => colon,
    };
    format!("{}{colon}{}", Value::from(key), self::value(value, style, indent))
}

/// A value; `indent` is that of the line on which it begins.
pub(super) fn value(value: &Value, style: &Style, indent: &str) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Array(items) => {
            let one_line = |comma: &str| {
                format!(
                    "[{}]",
                    items
                        .iter()
                        .map(|item| self::value(item, style, indent))
                        .collect::<Vec<_>>()
                        .join(comma)
                )
            };
            match style {
                Style::Inline { comma, .. } => one_line(comma),
                Style::Lines { unit, .. } => {
                    if !items.iter().any(|item| item.is_array() || item.is_object()) {
                        let line = one_line(", ");
                        if line.chars().count() <= LINE_WIDTH {
                            return line;
                        }
                    }
                    let inner = format!("{indent}{unit}");
                    block(
                        '[',
                        ']',
                        items.iter().map(|item| self::value(item, style, &inner)),
                        style,
                        indent,
                    )
                }
            }
        }
        Value::Object(members) => {
            let inner = match style {
                Style::Lines { unit, .. } => format!("{indent}{unit}"),
                Style::Inline { .. } => String::new(),
            };
            block(
                '{',
                '}',
                members.iter().map(|(key, value)| member(key, value, style, &inner)),
                style,
                indent,
            )
        }
    }
}

fn block(open: char, close: char, items: impl Iterator<Item = String>, style: &Style, indent: &str) -> String {
    let items: Vec<String> = items.collect();
    match style {
        Style::Lines { end_of_line, unit } => {
            let separator = format!(",{end_of_line}{indent}{unit}");
            format!(
                "{open}{end_of_line}{indent}{unit}{}{end_of_line}{indent}{close}",
                items.join(&separator)
            )
        }
        Style::Inline { comma, padding, .. } => format!("{open}{padding}{}{padding}{close}", items.join(comma)),
    }
}
