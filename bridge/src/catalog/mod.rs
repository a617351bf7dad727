//! Where connectors come from: what a person pastes. Parsers are pure; nothing here writes, starts or contacts.

pub mod paste;
