//! A flat form: its fields, what it proposes, and whether values fit (MCP 2025-11-25, `PrimitiveSchemaDefinition`). Pure.

use serde_json::{Map, Number, Value};
use url::Url;

/// Why a person's values do not fit, in one sentence that names the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(String);

impl Wrong {
    pub(super) fn unreadable(why: String) -> Self {
        Self(format!("This form cannot be filled in: {why}."))
    }

    pub(in crate::approval) fn no_form() -> Self {
        Self("This question takes no values.".to_owned())
    }

    pub(in crate::approval) fn no_call() -> Self {
        Self("This question is about no call: it is answered with yes or no.".to_owned())
    }
}

/// A form's fields, in the order of its schema.
pub(super) struct Form<'s> {
    pub(super) title: Option<&'s str>,
    pub(super) description: Option<&'s str>,
    pub(super) fields: Vec<Field<'s>>,
}

pub(super) struct Field<'s> {
    pub(super) name: &'s str,
    pub(super) title: Option<&'s str>,
    pub(super) description: Option<&'s str>,
    pub(super) kind: Kind<'s>,
    is_required: bool,
    proposed: Option<&'s Value>,
}

/// What a field takes.
#[derive(Debug)]
pub(super) enum Kind<'s> {
    Text {
        format: Option<&'s str>,
        /// In characters.
        min: Option<u64>,
        max: Option<u64>,
    },
    Number {
        whole: Whole,
        min: Option<&'s Number>,
        max: Option<&'s Number>,
    },
    Boolean,
    One(Vec<&'s str>),
    Several {
        choices: Vec<&'s str>,
        min: Option<u64>,
        max: Option<u64>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    Only,
    OrNot,
}

impl<'s> Form<'s> {
    /// Reads the schema of an object with plain members; the error is half a sentence.
    pub(super) fn read(schema: &'s Value) -> Result<Self, String> {
        if schema["type"] != "object" {
            return Err("its schema is none of an object".to_owned());
        }
        let (title, description) = (schema["title"].as_str(), schema["description"].as_str());
        let properties = match &schema["properties"] {
            Value::Object(properties) => properties,
            // A form without fields asks for a plain yes.
            Value::Null => {
                return Ok(Self {
                    title,
                    description,
                    fields: Vec::new(),
                });
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err("its properties are no object".to_owned());
            }
        };
        let required: Vec<&str> = texts(&schema["required"]).unwrap_or_default();
        let fields = properties.iter().map(|(name, property)| {
            Ok(Field {
                name,
                title: property["title"].as_str(),
                description: property["description"].as_str(),
                kind: Kind::read(property).ok_or_else(|| format!("the field \"{name}\" is of no plain type"))?,
                is_required: required.contains(&name.as_str()),
                proposed: property.get("default"),
            })
        });
        Ok(Self {
            title,
            description,
            fields: fields.collect::<Result<_, String>>()?,
        })
    }

    /// What the schema proposes, as far as its own rules allow it.
    pub(super) fn defaults(&self) -> Map<String, Value> {
        let proposed = self.fields.iter().filter_map(|field| {
            let value = field.proposed?;
            field.check(value).ok()?;
            Some((field.name.to_owned(), value.clone()))
        });
        proposed.collect()
    }

    /// Whether these values may be sent.
    pub(super) fn check(&self, values: &Map<String, Value>) -> Result<(), Wrong> {
        for field in &self.fields {
            match values.get(field.name) {
                Some(value) => field.check(value).map_err(|why| field.wrong(&why))?,
                None if field.is_required => return Err(field.wrong("is needed")),
                None => {}
            }
        }
        let is_known = |name: &String| self.fields.iter().any(|field| field.name == name);
        match values.keys().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(stranger) => Err(Wrong(format!("The form has no field \"{}\".", short(stranger)))),
        }
    }
}

impl Field<'_> {
    fn wrong(&self, why: &str) -> Wrong {
        Wrong(format!("The field \"{}\" {why}.", short(self.name)))
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        match &self.kind {
            Kind::Text { format, min, max } => {
                let text = value.as_str().ok_or("has to be a text")?;
                let length = text.chars().count() as u64;
                if min.is_some_and(|min| length < min) || max.is_some_and(|max| length > max) {
                    return Err(format!("has to have {} characters", between(*min, *max)));
                }
                match format.and_then(|format| misses(format, text)) {
                    Some(wanted) => Err(format!("has to be {wanted}")),
                    None => Ok(()),
                }
            }
            Kind::Number { whole, min, max } => {
                let number = match value {
                    Value::Number(number) if *whole == Whole::OrNot || is_whole(number) => number,
                    _ => {
                        let wanted = match whole {
                            Whole::Only => "has to be a whole number",
                            Whole::OrNot => "has to be a number",
                        };
                        return Err(wanted.to_owned());
                    }
                };
                let is_below = min.is_some_and(|min| number.as_f64() < min.as_f64());
                if is_below || max.is_some_and(|max| number.as_f64() > max.as_f64()) {
                    return Err(format!("has to be {}", between(*min, *max)));
                }
                Ok(())
            }
            Kind::Boolean if value.is_boolean() => Ok(()),
            Kind::Boolean => Err("has to be true or false".to_owned()),
            Kind::One(choices) => match value.as_str() {
                Some(choice) if choices.contains(&choice) => Ok(()),
                _ => Err(format!("has to be one of: {}", listed(choices))),
            },
            Kind::Several { choices, min, max } => {
                let chosen = texts(value).ok_or_else(|| format!("has to be a list out of: {}", listed(choices)))?;
                if let Some(stranger) = chosen.iter().find(|choice| !choices.contains(choice)) {
                    let stranger = short(stranger);
                    return Err(format!("cannot hold \"{stranger}\", only: {}", listed(choices)));
                }
                let count = chosen.len() as u64;
                if min.is_some_and(|min| count < min) || max.is_some_and(|max| count > max) {
                    return Err(format!("has to have {} choices", between(*min, *max)));
                }
                Ok(())
            }
        }
    }
}

impl<'s> Kind<'s> {
    fn read(property: &'s Value) -> Option<Self> {
        match property["type"].as_str()? {
            "string" => Some(
                match ["enum", "oneOf", "anyOf"]
                    .iter()
                    .find(|key| property.get(key).is_some())
                {
                    Some(_) => Self::One(choices(property)?),
                    None => Self::Text {
                        format: property["format"].as_str(),
                        min: property["minLength"].as_u64(),
                        max: property["maxLength"].as_u64(),
                    },
                },
            ),
            kind @ ("number" | "integer") => Some(Self::Number {
                whole: if kind == "integer" { Whole::Only } else { Whole::OrNot },
                min: property["minimum"].as_number(),
                max: property["maximum"].as_number(),
            }),
            "boolean" => Some(Self::Boolean),
            "array" => Some(Self::Several {
                choices: choices(&property["items"])?,
                min: property["minItems"].as_u64(),
                max: property["maxItems"].as_u64(),
            }),
            _ => None,
        }
    }
}

/// The values of an enumeration, with titles (`oneOf`, `anyOf`) or without.
fn choices(schema: &Value) -> Option<Vec<&str>> {
    if let Some(plain) = schema.get("enum") {
        return texts(plain);
    }
    let titled = schema.get("oneOf").or_else(|| schema.get("anyOf"))?;
    titled
        .as_array()?
        .iter()
        .map(|choice| choice["const"].as_str())
        .collect()
}

fn texts(list: &Value) -> Option<Vec<&str>> {
    list.as_array()?.iter().map(Value::as_str).collect()
}

/// `3.0` and numbers beyond 64 bits are whole as well.
fn is_whole(number: &Number) -> bool {
    let digits = number.as_str().trim_start_matches('-');
    digits.bytes().all(|b| b.is_ascii_digit()) || number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

/// What a text of this format has to be, when it is not. Formats besides those of the protocol are not looked at.
fn misses(format: &str, text: &str) -> Option<&'static str> {
    let (fits, wanted) = match format {
        "email" => (is_email(text), "an e-mail address"),
        "uri" => (Url::parse(text).is_ok(), "a whole address such as https://example.com"),
        "date" => (is_date(text), "a date such as 2026-07-28"),
        "date-time" => (is_date_time(text), "a date and time such as 2026-07-28T12:00:00Z"),
        _ => return None,
    };
    (!fits).then_some(wanted)
}

fn is_email(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '@';
    text.rsplit_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !name.contains(odd) && !host.contains(odd))
}

/// RFC 3339 `full-date`, of a day that there is.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339 `date-time`.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let zone = time.find(['Z', 'z', '+', '-']).map(|at| time.split_at(at));
    let Some((time, zone)) = zone else { return false };
    let in_zone = match zone {
        "Z" | "z" => true,
        offset => is_clock(&offset[1..], 2),
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    is_date(date) && is_clock(clock, 3) && is_fraction && in_zone
}

/// `hh:mm` or `hh:mm:ss`; a leap second counts.
fn is_clock(text: &str, parts: usize) -> bool {
    let numbers: Vec<_> = text.split(':').map(|part| digits(part, 2)).collect();
    let limits = [23, 59, 60];
    numbers.len() == parts && numbers.iter().zip(limits).all(|(n, most)| n.is_some_and(|n| n <= most))
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let plain = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn between(min: Option<impl ToString>, max: Option<impl ToString>) -> String {
    match (min.map(|min| min.to_string()), max.map(|max| max.to_string())) {
        (Some(min), Some(max)) if min == max => format!("exactly {min}"),
        (Some(min), Some(max)) => format!("between {min} and {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any number of".to_owned(),
    }
}

fn listed(choices: &[&str]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<_> = choices.iter().take(SHOWN).map(|choice| short(choice)).collect();
    let more = if choices.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// An upstream's name for something, fit for a sentence.
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}
