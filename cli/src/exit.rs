//! How a command ends: the exit code, and the sentence that goes with it.

use std::process::ExitCode;

use serde_json::{Value, json};

/// Exit codes; part of the command line's contract and listed in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The request failed.
    Failed = 1,
    /// The command line itself cannot be used.
    Usage = 2,
    NoBridge = 3,
    /// Refused, or waiting for the person.
    NeedsYou = 4,
}

/// Why a command did not do what it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// One or two sentences: what, where, what to do. Empty when everything has been said already.
    pub(crate) message: String,
    /// For `--json`: what the API answered, or the like.
    pub(crate) body: Value,
}

impl Failure {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, "failed", message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    pub(crate) fn no_bridge(message: impl Into<String>) -> Self {
        Self::new(Exit::NoBridge, "no_bridge", message)
    }

    /// When the outcome has been printed already.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self {
            exit,
            message: String::new(),
            body: Value::Null,
        }
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }

    fn new(exit: Exit, code: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            exit,
            body: json!({ "ok": false, "error": message, "code": code }),
            message,
        }
    }
}
