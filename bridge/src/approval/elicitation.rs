//! What an upstream asks of the person, read from its own words: a form or a page. Pure.
//!
//! Whatever must not be shown is [`Unfit`]: forms for secrets, forms that are not flat, addresses that no browser should
//! get.

mod form;
mod link;
mod secretive;

use serde_json::{Map, Value};

pub use self::form::Wrong;
use self::{form::Form, link::Link};
use crate::snapshot::Elicitation;

/// A person reads no more than this, in bytes of JSON; the window holds up to twenty questions at once.
const MAX_QUESTION: usize = 64 * 1024;

/// Why a question is not shown to the person, as the end of a sentence about its upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The field that would take it, or the message that says so.
    #[error("it asks for a secret ({0}), which no form may take")]
    Secret(String),
    #[error("its form is not a flat one: {0}")]
    Form(String),
    #[error("its address is none to open: {0}")]
    Address(&'static str),
    #[error("it is neither a form nor a page")]
    Unknown,
    #[error("it is longer than {} KiB", MAX_QUESTION / 1024)]
    TooLong,
}

/// What is asked, from the parameters of `elicitation/create` (2025-06-18 and later; a request without `mode` is a form).
///
/// # Errors
/// [`Unfit`]
pub fn read(params: &Value) -> Result<Elicitation, Unfit> {
    if params.to_string().len() > MAX_QUESTION {
        return Err(Unfit::TooLong);
    }
    let message = params["message"].as_str().unwrap_or_default().to_owned();
    match params["mode"].as_str() {
        None | Some("form") => {
            let schema = &params["requestedSchema"];
            let form = Form::read(schema).map_err(Unfit::Form)?;
            if let Some(asked) = secretive::asked_for(&message, &form) {
                return Err(Unfit::Secret(asked));
            }
            let defaults = Value::Object(form.defaults());
            Ok(Elicitation::Form {
                message,
                schema: schema.clone(),
                defaults,
            })
        }
        Some("url") => {
            let link = Link::read(params["url"].as_str().unwrap_or_default()).map_err(Unfit::Address)?;
            Ok(Elicitation::Url {
                message,
                url: link.url,
                host: link.host,
                warning: link.warning,
            })
        }
        Some(_) => Err(Unfit::Unknown),
    }
}

/// What a yes sends: of a form, the person's values, or what the schema proposes where they gave none; of a page, nothing.
///
/// # Errors
/// [`Wrong`], which says at which field.
pub fn approved(asks: &Elicitation, content: Option<Map<String, Value>>) -> Result<Option<Map<String, Value>>, Wrong> {
    match (asks, content) {
        (Elicitation::Form { schema, .. }, content) => {
            let form = Form::read(schema).map_err(Wrong::unreadable)?;
            let content = content.unwrap_or_else(|| form.defaults());
            form.check(&content)?;
            Ok(Some(content))
        }
        (Elicitation::Url { .. }, None) => Ok(None),
        (Elicitation::Url { .. }, Some(_)) => Err(Wrong::no_form()),
    }
}

#[cfg(test)]
mod tests;
