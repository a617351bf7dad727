//! `connectors.json`: reading, checking, comparing, editing, saving and watching the person's file.
//!
//! Parsing, validation, expansion and diff are pure. Edits work on the text, so that every byte that was not meant
//! stays. Nothing here starts or stops a connector.

mod entry;

pub use entry::{
    Auth, AutoApprove, ClientAuth, Config, Connector, Entry, EntryKind, Grant, HttpLaunch, Launch, OAuth, Redirect,
    Start, StdioLaunch, Timeouts,
};
