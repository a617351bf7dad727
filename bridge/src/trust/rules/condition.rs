//! Conditions on one argument, and whether a call's arguments fit a rule.
//!
//! There is no condition on how a text begins: of a command, of code or of a query, a beginning says nothing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

use super::{Arguments, place, web};

/// What one argument has to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
#[ts(export_to = "bridge.ts", rename = "ArgumentCondition")]
pub enum Condition {
    /// Whatever it is, absent too.
    Any,
    /// Exactly this JSON value: numbers as they are written (`1` is not `1.0`), members in any order.
    Equals {
        #[ts(type = "JsonValue")]
        value: Value,
    },
    /// Exactly one of these, compared in the same way.
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

    /// Whether a rule that allows covers these arguments.
    pub fn cover(&self, given: &Map<String, Value>, resolve: &Resolve<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Each { conditions } => {
                given.keys().all(|name| conditions.contains_key(name))
                    && conditions
                        .iter()
                        .all(|(name, condition)| condition.fit(given.get(name), resolve) == Fit::Fits)
            }
        }
    }

    /// Whether a rule that denies may mean these arguments. What it does not name does not matter.
    pub fn may_mean(&self, given: &Map<String, Value>, resolve: &Resolve<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Each { conditions } => may_mean(conditions, given, resolve),
        }
    }
}

fn may_mean(conditions: &BTreeMap<String, Condition>, given: &Map<String, Value>, resolve: &Resolve<'_>) -> bool {
    conditions
        .iter()
        .all(|(name, condition)| condition.fit(given.get(name), resolve) != Fit::Differs)
}

impl Condition {
    /// Whether an argument is what is meant; one that is absent is so of [`Condition::Any`] alone.
    pub fn fit(&self, given: Option<&Value>, resolve: &Resolve<'_>) -> Fit {
        let Some(given) = given else {
            return match self {
                Self::Any => Fit::Fits,
                Self::Equals { .. } | Self::OneOf { .. } | Self::Url { .. } | Self::Inside { .. } => Fit::Differs,
            };
        };
        match self {
            Self::Any => Fit::Fits,
            Self::Equals { value } => equality(value, given),
            Self::OneOf { values } => {
                values
                    .iter()
                    .fold(Fit::Differs, |best, value| match (best, equality(value, given)) {
                        (Fit::Fits, _) | (_, Fit::Fits) => Fit::Fits,
                        (Fit::Unsure, _) | (_, Fit::Unsure) => Fit::Unsure,
                        (Fit::Differs, Fit::Differs) => Fit::Differs,
                    })
            }
            Self::Url { origin, path } => each_text(given, |text| web::fit(text, origin, path)),
            Self::Inside { folder } => each_text(given, |text| {
                let places = resolve(text).unwrap_or_default();
                let places = places.iter().map(|place| place::is_inside(place, Path::new(folder)));
                all_alike(places.map(|is_inside| if is_inside { Fit::Fits } else { Fit::Differs }))
                    .unwrap_or(Fit::Unsure)
            }),
        }
    }
}

/// Of a text, or of a list of texts: all of them have to fit for the list to fit. An empty list names nothing.
fn each_text(given: &Value, fit: impl Fn(&str) -> Fit) -> Fit {
    match given {
        Value::String(text) => fit(text),
        Value::Array(items) => {
            all_alike(items.iter().map(|item| item.as_str().map_or(Fit::Unsure, &fit))).unwrap_or(Fit::Differs)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Fit::Unsure,
    }
}

/// What all of them are; `None` where there is none.
fn all_alike(mut fits: impl Iterator<Item = Fit>) -> Option<Fit> {
    let first = fits.next()?;
    Some(fits.fold(first, |all, next| if all == next { all } else { Fit::Unsure }))
}

fn equality(wanted: &Value, given: &Value) -> Fit {
    if wanted == given {
        Fit::Fits
    } else if means_the_same(wanted, given) {
        Fit::Unsure
    } else {
        Fit::Differs
    }
}

/// Equal for a reader who takes numbers by their amount, as most do.
fn means_the_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| means_the_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, one)| other.get(name).is_some_and(|other| means_the_same(one, other)))
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests;
