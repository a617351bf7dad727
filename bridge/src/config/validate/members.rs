//! Reading members of one entry as the types they must have, and saying where they have not.

use std::fmt;

use indexmap::IndexMap;
use jsonc_parser::{
    ast::{Object, ObjectProp, Value as Tree},
    common::Ranged as _,
};

use crate::{
    config::{
        json::{Place, key, key_range},
        reference::{self, Piece},
    },
    snapshot::{Notice, NoticeLevel},
};

/// Where an entry comes from decides how places and unknown members are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The person's file: places are named, unknown members kept with a warning.
    File,
    /// A request's body: no places, unknown members refused.
    Body,
}

/// The entry being read.
pub(super) struct Reader<'t> {
    /// The whole text, without byte order mark.
    pub(super) text: &'t str,
    /// The entry's key as written.
    pub(super) entry: &'t str,
    pub(super) source: Source,
    pub(super) notices: Vec<Notice>,
}

/// Where a reference may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum References {
    /// `${env:}` and `${secret:}` are filled in at start.
    Filled,
    /// The text is used as written.
    Literal,
}

impl<'t> Reader<'t> {
    /// An error about the byte `offset`.
    pub(super) fn fault(&self, offset: usize, what: impl fmt::Display) -> Notice {
        self.notice(NoticeLevel::Error, offset, what)
    }

    pub(super) fn warn(&mut self, offset: usize, what: impl fmt::Display) {
        let notice = self.notice(NoticeLevel::Warning, offset, what);
        self.notices.push(notice);
    }

    pub(super) fn inform(&mut self, offset: usize, what: impl fmt::Display) {
        let notice = self.notice(NoticeLevel::Info, offset, what);
        self.notices.push(notice);
    }

    fn notice(&self, level: NoticeLevel, offset: usize, what: impl fmt::Display) -> Notice {
        let entry = self.entry.escape_debug();
        match self.source {
            Source::File => {
                let place = Place::of(self.text, offset);
                Notice {
                    level,
                    message: format!("Connector \"{entry}\" ({place}): {what}."),
                    line: Some(place.line),
                    column: Some(place.column),
                    server: Some(self.entry.to_owned()),
                }
            }
            Source::Body => Notice {
                level,
                message: format!("Connector \"{entry}\": {what}."),
                line: None,
                column: None,
                server: Some(self.entry.to_owned()),
            },
        }
    }

    /// A member that this program does not know: kept and reported, or refused.
    pub(super) fn unknown(&mut self, property: &ObjectProp<'_>, path: &str, hint: Option<&str>) -> Result<(), Notice> {
        let offset = key_range(property).start;
        let path = path.escape_debug();
        let hint = hint.map_or_else(String::new, |hint| format!(" (did you mean \"{hint}\"?)"));
        match self.source {
            Source::File => {
                self.warn(
                    offset,
                    format!("\"{path}\" is not known here and has no effect{hint}; it is kept"),
                );
                Ok(())
            }
            Source::Body => Err(self.fault(offset, format!("\"{path}\" is not known{hint}; leave it out"))),
        }
    }

    /// A member that is known but means nothing for this transport.
    pub(super) fn without_effect(&mut self, property: &ObjectProp<'_>, transport: &str) {
        let name = key(property);
        self.warn(
            key_range(property).start,
            format!("\"{name}\" has no effect with transport \"{transport}\"; remove it"),
        );
    }

    pub(super) fn boolean(&self, property: &ObjectProp<'_>, path: &str) -> Result<bool, Notice> {
        match &property.value {
            Tree::BooleanLit(b) => Ok(b.value),
            other => Err(self.wrong_type(other, path, "true or false, without quotes")),
        }
    }

    /// Any text; not empty where `path` names something that must be there.
    pub(super) fn text(&mut self, property: &ObjectProp<'_>, path: &str) -> Result<String, Notice> {
        match &property.value {
            Tree::StringLit(s) if s.value.contains('\0') => Err(self.fault(
                s.start(),
                format!("\"{path}\" must not contain a zero character; remove it"),
            )),
            Tree::StringLit(s) => Ok(s.value.clone().into_owned()),
            other => Err(self.wrong_type(other, path, "a text in double quotes")),
        }
    }

    pub(super) fn nonempty(&mut self, property: &ObjectProp<'_>, path: &str) -> Result<String, Notice> {
        let text = self.text(property, path)?;
        if text.trim().is_empty() {
            return Err(self.fault(
                property.value.start(),
                format!("\"{path}\" is empty; fill it in or remove it"),
            ));
        }
        Ok(text)
    }

    /// A text in which references are looked at.
    pub(super) fn referring(
        &mut self,
        property: &ObjectProp<'_>,
        path: &str,
        references: References,
    ) -> Result<String, Notice> {
        let text = self.nonempty(property, path)?;
        self.check_references(property.value.start(), &text, path, references)?;
        Ok(text)
    }

    pub(super) fn check_references(
        &mut self,
        offset: usize,
        text: &str,
        path: &str,
        references: References,
    ) -> Result<(), Notice> {
        match references {
            References::Filled => {
                reference::pieces(text).map_err(|error| self.fault(offset, format!("in \"{path}\", {error}")))?;
                if let Some(name) = reference::foreign(text) {
                    let ours = match name.strip_prefix("input:") {
                        Some(id) => format!("to fill in a secret write ${{secret:{id}}}"),
                        None => format!("to fill in a variable write ${{env:{name}}}"),
                    };
                    self.inform(
                        offset,
                        format!("in \"{path}\", ${{{name}}} is passed on as it stands; {ours}"),
                    );
                }
            }
            References::Literal if text.contains("${env:") || text.contains("${secret:") => {
                return Err(self.fault(
                    offset,
                    format!("\"{path}\" cannot contain ${{env:…}} or ${{secret:…}}; write it out"),
                ));
            }
            References::Literal => {}
        }
        Ok(())
    }

    /// A list of texts; each is looked at for references when they are filled in there.
    pub(super) fn texts(
        &mut self,
        property: &ObjectProp<'_>,
        path: &str,
        references: References,
    ) -> Result<Vec<String>, Notice> {
        let Tree::Array(array) = &property.value else {
            return Err(self.wrong_type(&property.value, path, "a list of texts in \"[\" and \"]\""));
        };
        let mut all = Vec::with_capacity(array.elements.len());
        for (index, element) in array.elements.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let text = self.literal(element, &path)?;
            if references == References::Filled {
                self.check_references(element.start(), &text, &path, references)?;
            }
            all.push(text);
        }
        Ok(all)
    }

    /// Names of tools with `*` and `?`.
    pub(super) fn patterns(&mut self, property: &ObjectProp<'_>, path: &str) -> Result<Vec<String>, Notice> {
        let patterns = self.texts(property, path, References::Literal)?;
        match patterns.iter().position(|p| p.trim().is_empty()) {
            Some(index) => Err(self.fault(
                property.value.start(),
                format!("\"{path}[{index}]\" is empty; write a tool's name or remove it"),
            )),
            None => Ok(patterns),
        }
    }

    /// An object of texts, in order.
    pub(super) fn text_map(
        &mut self,
        property: &ObjectProp<'_>,
        path: &str,
    ) -> Result<IndexMap<String, String>, Notice> {
        let object = self.object(property, path)?;
        let mut map = IndexMap::with_capacity(object.properties.len());
        for member in &object.properties {
            let path = format!("{path}.{}", key(member));
            let text = self.literal(&member.value, &path)?;
            self.check_references(member.value.start(), &text, &path, References::Filled)?;
            map.insert(key(member).to_owned(), text);
        }
        Ok(map)
    }

    pub(super) fn object<'p, 'a>(&self, property: &'p ObjectProp<'a>, path: &str) -> Result<&'p Object<'a>, Notice> {
        match &property.value {
            Tree::Object(object) => Ok(object),
            other => Err(self.wrong_type(other, path, "an object in \"{\" and \"}\"")),
        }
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        &self,
        property: &ObjectProp<'_>,
        path: &str,
        choices: &[(&str, T)],
    ) -> Result<T, Notice> {
        let words = || {
            choices
                .iter()
                .map(|(word, _)| format!("\"{word}\""))
                .collect::<Vec<_>>()
                .join(" or ")
        };
        let Tree::StringLit(given) = &property.value else {
            return Err(self.wrong_type(&property.value, path, &words()));
        };
        choices
            .iter()
            .find(|(word, _)| *word == given.value)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let shown: String = given.value.chars().take(64).collect();
                self.fault(
                    given.start(),
                    format!("\"{path}\" must be {}, not \"{}\"", words(), shown.escape_debug()),
                )
            })
    }

    /// Whole milliseconds in `1..=max`.
    pub(super) fn milliseconds(
        &self,
        property: &ObjectProp<'_>,
        path: &str,
        max: u64,
    ) -> Result<std::time::Duration, Notice> {
        let wanted = format!("a whole number of milliseconds from 1 to {max}");
        let Tree::NumberLit(number) = &property.value else {
            return Err(self.wrong_type(&property.value, path, &wanted));
        };
        match number.value.parse::<u64>() {
            Ok(ms) if (1..=max).contains(&ms) => Ok(std::time::Duration::from_millis(ms)),
            Ok(_) | Err(_) => {
                let shown: String = number.value.chars().take(32).collect();
                Err(self.fault(number.start(), format!("\"{path}\" must be {wanted}, not {shown}")))
            }
        }
    }

    /// Whether the text fills in a secret; a literal where one belongs is worth a warning.
    pub(super) fn warn_of_plain_secret(&mut self, property: &ObjectProp<'_>, path: &str, text: &str, name: &str) {
        let literal = reference::pieces(text).is_ok_and(|all| all.iter().all(|piece| matches!(piece, Piece::Text(_))));
        if literal {
            self.warn(
                property.value.start(),
                format!("\"{path}\" stands in the file for everyone to read; store it as a secret and write ${{secret:{name}}}"),
            );
        }
    }

    fn literal(&self, value: &Tree<'_>, path: &str) -> Result<String, Notice> {
        match value {
            Tree::StringLit(s) if s.value.contains('\0') => Err(self.fault(
                s.start(),
                format!(
                    "\"{}\" must not contain a zero character; remove it",
                    path.escape_debug()
                ),
            )),
            Tree::StringLit(s) => Ok(s.value.clone().into_owned()),
            Tree::NumberLit(n) => {
                let shown: String = n.value.chars().take(32).collect();
                Err(self.fault(
                    n.start(),
                    format!(
                        "\"{}\" must be a text; put it in quotes, as in \"{shown}\"",
                        path.escape_debug()
                    ),
                ))
            }
            other => Err(self.wrong_type(other, &path.escape_debug().to_string(), "a text in double quotes")),
        }
    }

    pub(super) fn wrong_type(&self, value: &Tree<'_>, path: &str, wanted: &str) -> Notice {
        let found = match value {
            Tree::StringLit(_) => "a text",
            Tree::NumberLit(_) => "a number",
            Tree::BooleanLit(_) => "true or false",
            Tree::Object(_) => "an object",
            Tree::Array(_) => "a list",
            Tree::NullKeyword(_) => "null",
        };
        self.fault(value.start(), format!("\"{path}\" must be {wanted}, not {found}"))
    }
}
