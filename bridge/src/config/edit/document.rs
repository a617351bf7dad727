//! A text with its tree and tokens, and the smallest changes to it.

use std::ops::Range;

use jsonc_parser::{
    ast::{Object, ObjectProp, Value as Tree},
    common::Ranged as _,
    tokens::Token,
};
use serde_json::Value;

use super::{
    EditError,
    render::{self, Style},
};
use crate::config::json::{self, Lexeme, key, key_range};

/// Bytes to replace and what to put there; never overlapping.
pub(super) struct Splice {
    pub(super) range: Range<usize>,
    pub(super) with: String,
}

impl Splice {
    fn insert(at: usize, with: String) -> Self {
        Self { range: at..at, with }
    }

    fn delete(range: Range<usize>) -> Self {
        Self {
            range,
            with: String::new(),
        }
    }
}

/// `text` with all splices done.
pub(super) fn apply(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|splice| splice.range.start);
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for splice in splices {
        out.push_str(&text[end..splice.range.start]);
        out.push_str(&splice.with);
        end = splice.range.end;
    }
    out.push_str(&text[end..]);
    out
}

/// A readable text without byte order mark.
pub(super) struct Document<'t> {
    text: &'t str,
    pub(super) root: Object<'t>,
    lexemes: Vec<Lexeme<'t>>,
}

/// How the members of one object stand.
enum Layout {
    /// Each on its own line, with this white space before it.
    Lines { indent: String },
    /// One after the other.
    Inline,
}

impl<'t> Document<'t> {
    /// `None` where the text holds no value yet.
    pub(super) fn read(text: &'t str) -> Result<Option<Self>, EditError> {
        match json::tree(text)? {
            Some(Tree::Object(root)) => Ok(Some(Self {
                text,
                root,
                lexemes: json::lexemes(text)?,
            })),
            Some(other) => {
                let fault = json::Fault::at(text, other.start(), "the outermost value must be an object");
                Err(fault.into())
            }
            None => Ok(None),
        }
    }

    /// The objects along `path`, from the root on, as far as they exist.
    pub(super) fn objects(&self, path: &[&str]) -> Vec<&Object<'t>> {
        let mut found = vec![&self.root];
        for name in path {
            let last: &Object<'t> = found[found.len() - 1];
            match last.properties.iter().find(|p| key(p) == *name).map(|p| &p.value) {
                Some(Tree::Object(object)) => found.push(object),
                Some(_) | None => break,
            }
        }
        found
    }

    /// A new member at the end of the last of `objects` (all of them along one path).
    pub(super) fn insert(&self, objects: &[&Object<'t>], name: &str, value: &Value) -> Vec<Splice> {
        let object = objects[objects.len() - 1];
        let layout = self.layout(objects);
        let style = self.style(objects, &layout);
        let Some(last) = object.properties.last() else {
            return vec![self.insert_first(objects, &layout, name, value, &style)];
        };
        let comma = self
            .next_code(last.value.end())
            .filter(|lexeme| lexeme.token == Token::Comma);
        let mut splices = Vec::new();
        let after = match comma {
            Some(comma) => comma.range.end,
            None => last.value.end(),
        };
        match layout {
            Layout::Lines { indent } => {
                if comma.is_none() {
                    splices.push(Splice::insert(after, ",".to_owned()));
                }
                let member = render::member(name, value, &style, &indent);
                let end = if comma.is_some() { "," } else { "" };
                let line = format!("{}{indent}{member}{end}", self.end_of_line());
                splices.push(Splice::insert(self.end_of_remarks(after), line));
            }
            Layout::Inline => {
                let member = render::member(name, value, &style, &self.indent_at(object.start()));
                let space = self.comma(object).trim_start_matches(',').to_owned();
                let with = match comma {
                    Some(_) => format!("{space}{member},"),
                    None => format!(",{space}{member}"),
                };
                splices.push(Splice::insert(after, with));
            }
        }
        splices
    }

    fn insert_first(
        &self,
        objects: &[&Object<'t>],
        layout: &Layout,
        name: &str,
        value: &Value,
        style: &Style,
    ) -> Splice {
        let object = objects[objects.len() - 1];
        let close = object.end() - 1;
        let inside = |lexeme: &&Lexeme<'_>| object.start() < lexeme.range.start && lexeme.range.end <= close;
        let after = self
            .lexemes
            .iter()
            .rfind(inside)
            .map_or(object.start() + 1, |lexeme| lexeme.range.end);
        match layout {
            Layout::Lines { indent } => {
                let line = format!(
                    "{}{indent}{}",
                    self.end_of_line(),
                    render::member(name, value, style, indent)
                );
                if self.text[after..close].contains(['\n', '\r']) {
                    return Splice::insert(after, line);
                }
                let outer = self.indent_at(object.start());
                Splice {
                    range: after..close,
                    with: format!("{line}{}{outer}", self.end_of_line()),
                }
            }
            Layout::Inline => {
                let member = render::member(name, value, style, "");
                let padding = match style {
                    Style::Inline { padding, .. } => padding.as_str(),
                    Style::Lines { .. } => "",
                };
                Splice {
                    range: after..close,
                    with: format!("{padding}{member}{padding}"),
                }
            }
        }
    }

    /// Another value for a member that is there.
    pub(super) fn replace(&self, objects: &[&Object<'t>], property: &ObjectProp<'t>, value: &Value) -> Vec<Splice> {
        let style = self.style(objects, &self.layout(objects));
        let with = render::value(value, &style, &self.indent_at(key_range(property).start));
        vec![Splice {
            range: property.value.start()..property.value.end(),
            with,
        }]
    }

    /// Takes a member out, with its comma; comments around it stay.
    pub(super) fn remove(&self, object: &Object<'t>, property: &ObjectProp<'t>) -> Vec<Splice> {
        let (start, end) = (key_range(property).start, property.value.end());
        let next = self.next_code(end);
        let previous = self.previous_code(start);
        let mut splices = Vec::new();
        let mut removed = start..end;
        match (next, previous) {
            (Some(comma), _) if comma.token == Token::Comma => {
                if self.is_space(end..comma.range.start) {
                    removed.end = comma.range.end;
                } else {
                    splices.push(Splice::delete(comma.range.start..comma.range.end));
                }
            }
            (_, Some(comma)) if comma.token == Token::Comma => {
                if self.is_space(comma.range.end..start) && !self.text[comma.range.end..start].contains(['\n', '\r']) {
                    removed.start = comma.range.start;
                } else {
                    splices.push(Splice::delete(comma.range.start..comma.range.end));
                }
            }
            (_, _) => {}
        }
        if object.properties.len() == 1 {
            let inner = object.start() + 1..object.end() - 1;
            let code = |lexeme: &&Lexeme<'_>| inner.contains(&lexeme.range.start) && is_comment(&lexeme.token);
            if !self.lexemes.iter().any(|lexeme| code(&lexeme)) {
                return vec![Splice::delete(inner)];
            }
        }
        splices.push(Splice::delete(self.with_space(removed)));
        splices
    }

    /// Widens a range to be deleted by the white space that only it needed.
    fn with_space(&self, removed: Range<usize>) -> Range<usize> {
        let before = &self.text[..removed.start];
        let after = &self.text[removed.end..];
        let blanks_before = before.len() - before.trim_end_matches([' ', '\t']).len();
        let blanks_after = after.len() - after.trim_start_matches([' ', '\t']).len();
        let line_before = &before[..before.len() - blanks_before];
        let begins_line = line_before.ends_with(['\n', '\r']);
        let ends_line = after[blanks_after..].starts_with(['\n', '\r']);
        let closes = after[blanks_after..].starts_with('}');
        let after_line_comment = self
            .lexemes
            .iter()
            .rfind(|lexeme| lexeme.range.end <= removed.start)
            .is_some_and(|lexeme| matches!(lexeme.token, Token::CommentLine(_)));
        if begins_line && (ends_line || (closes && !after_line_comment)) {
            let newline = if line_before.ends_with("\r\n") { 2 } else { 1 };
            return line_before.len() - newline..removed.end;
        }
        // What begins with a comma took the space before itself along; the space behind belongs to the neighbour.
        if self.text[removed.clone()].starts_with(',') {
            return removed;
        }
        if ends_line || closes {
            return removed.start - blanks_before..removed.end;
        }
        removed.start..removed.end + blanks_after
    }

    fn layout(&self, objects: &[&Object<'t>]) -> Layout {
        let (object, outer) = match objects {
            [outer @ .., object] => (*object, outer),
            [] => return Layout::Inline,
        };
        let Some(last) = object.properties.last() else {
            let has_lines = self.text[object.start()..object.end()].contains(['\n', '\r']);
            let outer_lines = outer.is_empty() || matches!(self.layout(outer), Layout::Lines { .. });
            return if has_lines || outer_lines {
                Layout::Lines {
                    indent: format!("{}{}", self.indent_at(object.start()), self.unit()),
                }
            } else {
                Layout::Inline
            };
        };
        let start = key_range(last).start;
        let previous = self.previous_code(start).map_or(0, |lexeme| lexeme.range.end);
        if self.text[previous..start].contains(['\n', '\r']) {
            Layout::Lines {
                indent: self.indent_at(start),
            }
        } else {
            Layout::Inline
        }
    }

    fn style(&self, objects: &[&Object<'t>], layout: &Layout) -> Style {
        match layout {
            Layout::Lines { .. } => Style::Lines {
                end_of_line: self.end_of_line(),
                unit: self.unit(),
            },
            Layout::Inline => {
                let model = objects.iter().rev().find(|object| !object.properties.is_empty());
                match model.and_then(|object| object.properties.first().map(|first| (*object, first))) {
                    Some((object, first)) => Style::Inline {
                        colon: self.between(key_range(first).end..first.value.start(), ": "),
                        comma: self.comma(object),
                        padding: self.between(object.start() + 1..key_range(first).start, ""),
                    },
                    None => Style::Inline {
                        colon: ": ".to_owned(),
                        comma: ", ".to_owned(),
                        padding: String::new(),
                    },
                }
            }
        }
    }

    /// The comma between two members and the space after it; guessed from the colon where there is only one member.
    fn comma(&self, object: &Object<'t>) -> String {
        match object.properties.as_slice() {
            [first, second, ..] => {
                let comma = self.between(first.value.end()..key_range(second).start, ", ");
                if comma.starts_with(',') { comma } else { ", ".to_owned() }
            }
            [only]
                if !self
                    .between(key_range(only).end..only.value.start(), ": ")
                    .ends_with(' ') =>
            {
                ",".to_owned()
            }
            [_] | [] => ", ".to_owned(),
        }
    }

    /// The text of a gap without comments and line ends, else `otherwise`.
    fn between(&self, gap: Range<usize>, otherwise: &str) -> String {
        let text = &self.text[gap];
        if text.contains(['\n', '\r', '/']) {
            otherwise.to_owned()
        } else {
            text.to_owned()
        }
    }

    /// Behind the comments that follow on the line of `from`.
    fn end_of_remarks(&self, from: usize) -> usize {
        let mut end = from;
        for lexeme in self.lexemes.iter().filter(|lexeme| lexeme.range.start >= from) {
            if !is_comment(&lexeme.token) || self.text[end..lexeme.range.start].contains(['\n', '\r']) {
                break;
            }
            end = lexeme.range.end;
        }
        end
    }

    fn next_code(&self, from: usize) -> Option<&Lexeme<'t>> {
        let first = self.lexemes.partition_point(|lexeme| lexeme.range.start < from);
        self.lexemes[first..].iter().find(|lexeme| !is_comment(&lexeme.token))
    }

    fn previous_code(&self, before: usize) -> Option<&Lexeme<'t>> {
        let end = self.lexemes.partition_point(|lexeme| lexeme.range.end <= before);
        self.lexemes[..end].iter().rfind(|lexeme| !is_comment(&lexeme.token))
    }

    fn is_space(&self, range: Range<usize>) -> bool {
        self.text[range].trim().is_empty()
    }

    /// White space at the beginning of the line that holds `offset`.
    fn indent_at(&self, offset: usize) -> String {
        let line = self.text[..offset].rfind(['\n', '\r']).map_or(0, |index| index + 1);
        self.text[line..]
            .chars()
            .take_while(|c| matches!(c, ' ' | '\t'))
            .collect()
    }

    /// One step of indentation: the smallest one in use.
    fn unit(&self) -> String {
        let indents = self.lexemes.iter().filter_map(|lexeme| {
            let before = &self.text[..lexeme.range.start];
            let line = before.trim_end_matches([' ', '\t']);
            let begins_line = line.ends_with(['\n', '\r']);
            (begins_line && line.len() < before.len() && !is_comment(&lexeme.token)).then(|| &before[line.len()..])
        });
        indents
            .min_by_key(|indent| indent.len())
            .map_or_else(|| "  ".to_owned(), str::to_owned)
    }

    fn end_of_line(&self) -> &'static str {
        end_of_line(self.text)
    }
}

/// The first line end in use.
pub(super) fn end_of_line(text: &str) -> &'static str {
    match text.find(['\n', '\r']).map(|index| &text[index..]) {
        Some(end) if end.starts_with("\r\n") => "\r\n",
        Some(end) if end.starts_with('\r') => "\r",
        Some(_) | None => "\n",
    }
}

fn is_comment(token: &Token<'_>) -> bool {
    matches!(token, Token::CommentLine(_) | Token::CommentBlock(_))
}
