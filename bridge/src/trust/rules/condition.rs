//! Conditions on one argument, and whether a call's arguments fit a rule.
//!
//! There is no condition on how a text begins: of a command, of code or of a query, a beginning says nothing.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

use super::{
    Arguments, Declared,
    declared::{LeftOut, Shape},
    place,
    sameness::{is_twin, sameness},
    web,
};

/// What one argument has to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
#[ts(export_to = "bridge.ts", rename = "ArgumentCondition")]
pub enum Condition {
    /// Whatever it is, left out too.
    Any,
    /// It is left out.
    Absent,
    /// This JSON value: a rule that allows wants exactly it, numbers as they are written (`1` is not `1.0`), members in any
    /// order; one that denies is kept from its effect by what no server could turn into it.
    Equals {
        #[ts(type = "JsonValue")]
        value: Value,
    },
    /// One of these, compared in the same way.
    OneOf {
        #[ts(type = "Array<JsonValue>")]
        values: Vec<Value>,
    },
    /// A web address, or a list of such, of this origin and below this path.
    Url {
        /// Scheme, host and port as `https://host` or `https://host:8443`, the host in ASCII.
        origin: String,
        /// Whole segments, decoded, that its path begins with; none for all of the origin.
        path: Vec<String>,
    },
    /// A path, or a list of such, in this folder on this computer. Compares where the path leads when the call is
    /// decided: it is not a sandbox.
    Inside {
        /// Absolute, and resolved when the rule was made.
        folder: String,
    },
}

/// How sure it is that something is meant. A rule that allows needs [`Fit::Fits`]; one that denies is kept from its
/// effect by [`Fit::Differs`] only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    Fits,
    /// It can be read in more than one way, and one of them may be meant.
    Unsure,
    Differs,
}

/// Every place on this computer where a path, as an argument gives it, may lead; `None` where that cannot be told, or the
/// connector does not run here.
pub type Resolve<'a> = dyn Fn(&str) -> Option<Vec<PathBuf>> + 'a;

impl Arguments {
    /// Whether it is about arguments at all.
    pub fn are_any(&self) -> bool {
        match self {
            Self::Any => true,
            Self::Each { .. } => false,
        }
    }

    /// Whether a rule that allows covers these arguments. What the tool does not declare is covered by none but
    /// [`Arguments::Any`].
    pub fn cover(&self, given: &Map<String, Value>, declared: Declared<'_>, resolve: &Resolve<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Each { conditions } => {
                given.keys().all(|name| conditions.contains_key(name))
                    && conditions
                        .iter()
                        .all(|(name, condition)| condition.covers(name, given.get(name), declared, resolve))
                    && given.keys().all(|name| declared.has(name))
            }
        }
    }

    /// Whether a rule that denies may mean these arguments. What it does not name does not matter.
    pub fn may_mean(&self, given: &Map<String, Value>, declared: Declared<'_>, resolve: &Resolve<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Each { conditions } => conditions
                .iter()
                .all(|(name, condition)| condition.may_mean(name, given, declared, resolve)),
        }
    }
}

impl Condition {
    /// Whether an argument is certainly what is meant.
    fn covers(&self, name: &str, given: Option<&Value>, declared: Declared<'_>, resolve: &Resolve<'_>) -> bool {
        match (self, given) {
            (Self::Any, _) | (Self::Absent, None) => true,
            (Self::Absent, Some(_)) | (_, None) => false,
            (Self::Equals { value }, Some(given)) => value == given,
            (Self::OneOf { values }, Some(given)) => values.contains(given),
            (Self::Url { .. } | Self::Inside { .. }, Some(given)) => {
                self.fit(given, declared.shape(name), resolve) == Fit::Fits
            }
        }
    }

    /// Whether an argument could be taken for what is meant, as it is given, by another spelling of its name, or by what a
    /// server takes where it is left out.
    fn may_mean(&self, name: &str, given: &Map<String, Value>, declared: Declared<'_>, resolve: &Resolve<'_>) -> bool {
        let is_other = |value| self.fit(value, declared.shape(name), resolve) == Fit::Differs;
        let differs = match (self, given.get(name)) {
            (Self::Any, _) | (Self::Absent, None) => false,
            (_, Some(value)) => is_other(value),
            (_, None) => match declared.left_out(name) {
                LeftOut::NoSuch => true,
                LeftOut::Default(value) => is_other(value),
                LeftOut::Unknown => false,
            },
        };
        !differs || given.keys().any(|other| is_twin(other, name))
    }

    /// Whether a value is what is meant.
    fn fit(&self, given: &Value, shape: Shape, resolve: &Resolve<'_>) -> Fit {
        let is_text = shape.is_text_alone();
        match self {
            Self::Any => Fit::Fits,
            // Many servers take nothing for what is left out.
            Self::Absent if given.is_null() => Fit::Unsure,
            Self::Absent => Fit::Differs,
            Self::Equals { value } => sameness(value, given, is_text),
            Self::OneOf { values } => values.iter().fold(Fit::Differs, |best, value| {
                match (best, sameness(value, given, is_text)) {
                    (Fit::Fits, _) | (_, Fit::Fits) => Fit::Fits,
                    (Fit::Unsure, _) | (_, Fit::Unsure) => Fit::Unsure,
                    (Fit::Differs, Fit::Differs) => Fit::Differs,
                }
            }),
            Self::Url { origin, path } => each_text(given, shape, |text| web::fit(text, origin, path)),
            Self::Inside { folder } => each_text(given, shape, |text| {
                let places = resolve(text).unwrap_or_default();
                let places = places.iter().map(|place| place::is_inside(place, Path::new(folder)));
                all_alike(places.map(|is_inside| if is_inside { Fit::Fits } else { Fit::Differs }))
                    .unwrap_or(Fit::Unsure)
            }),
        }
    }
}

/// Of a text, or of a list of texts, where the tool declares it as such: all of them have to fit for the list to fit. An
/// empty list names nothing.
fn each_text(given: &Value, shape: Shape, fit: impl Fn(&str) -> Fit) -> Fit {
    match given {
        // Some servers read a text as JSON where something else than a text is wanted.
        Value::String(text) if shape.text && !(shape.other && is_like_json(text)) => fit(text),
        Value::Array(items) if shape.list => {
            all_alike(items.iter().map(|item| item.as_str().map_or(Fit::Unsure, &fit))).unwrap_or(Fit::Differs)
        }
        Value::String(_) | Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Fit::Unsure
        }
    }
}

fn is_like_json(text: &str) -> bool {
    text.trim_start().starts_with(['[', '{', '"'])
}

/// What all of them are; `None` where there is none.
fn all_alike(mut fits: impl Iterator<Item = Fit>) -> Option<Fit> {
    let first = fits.next()?;
    Some(fits.fold(first, |all, next| if all == next { all } else { Fit::Unsure }))
}

#[cfg(test)]
mod tests;
