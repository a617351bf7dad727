//! JSON with comments and trailing commas, and nothing else of JSON5: bytes in, a tree with byte ranges out, or one
//! sentence that says where the text stops making sense.

use std::{collections::HashMap, fmt};

use jsonc_parser::{
    CollectOptions, ParseOptions, Scanner, ScannerOptions,
    ast::{ObjectProp, Value as Tree},
    common::{Range, Ranged as _},
    errors::{ParseError, ParseErrorKind},
    parse_to_ast,
    tokens::Token,
};
use serde_json::{Number, Value};

/// A place in a text, 1-based, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Place {
    /// Where the byte `offset` of `text` is. A line ends with `\n`, `\r\n` or `\r`; a byte order mark has no width.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let mut place = Self { line: 1, column: 1 };
        for (index, c) in text.char_indices().take_while(|(index, _)| *index < offset) {
            let ends_line = c == '\n' || (c == '\r' && text.as_bytes().get(index + 1) != Some(&b'\n'));
            if ends_line {
                place.line += 1;
                place.column = 1;
            } else if !(c == BOM && index == 0) {
                place.column += 1;
            }
        }
        place
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// The mark that some editors put before UTF-8.
pub(crate) const BOM: char = '\u{feff}';

/// Why a text cannot be read: what is wrong and what to do, without the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) message: String,
    /// Absent where the whole file is meant.
    pub(crate) place: Option<Place>,
}

impl Fault {
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            place: None,
        }
    }

    pub(crate) fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            place: Some(Place::of(text, offset)),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// The bytes as text, byte order mark included.
///
/// # Errors
/// A [`Fault`] for UTF-16, for bytes that are no UTF-8 and for a file of zero bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, Fault> {
    let utf16 = matches!(
        bytes,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 1..=0x7f, ..] | [1..=0x7f, 0, ..]
    );
    if utf16 {
        return Err(Fault::whole("it is saved as UTF-16; save it as UTF-8"));
    }
    if !bytes.is_empty() && bytes.iter().all(|b| *b == 0) {
        return Err(Fault::whole(
            "it holds only zero bytes, as after a crash while saving; restore it from a backup",
        ));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        Fault::at(
            valid,
            valid.len(),
            "here is a byte that is not UTF-8; save the file as UTF-8",
        )
    })
}

/// The text without its byte order mark, and the mark's length in bytes.
pub(crate) fn without_bom(text: &str) -> (&str, usize) {
    match text.strip_prefix(BOM) {
        Some(rest) => (rest, BOM.len_utf8()),
        None => (text, 0),
    }
}

/// The tree of a text without byte order mark; `None` where it holds nothing but space and comments.
///
/// # Errors
/// A [`Fault`] with its place for everything that is not JSON with comments and trailing commas.
pub(crate) fn tree(text: &str) -> Result<Option<Tree<'_>>, Fault> {
    let tokens = lexemes(text).and_then(|all| check_gaps(text, &all));
    let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT).map_err(|error| explain(text, &error));
    match (tokens, parsed) {
        (Ok(()), Ok(parsed)) => Ok(parsed.value),
        (Err(fault), Ok(_)) | (Ok(()), Err(fault)) => Err(fault),
        // A string that runs over its line makes nonsense of what follows, so what comes first is the cause.
        (Err(token), Err(parsed)) if token.place < parsed.place => Err(token),
        (Err(_), Err(parsed)) => Err(parsed),
    }
}

const STRICT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// One token with its bytes; comments included.
pub(crate) struct Lexeme<'a> {
    pub(crate) token: Token<'a>,
    pub(crate) range: Range,
}

/// All tokens of a text that [`tree`] accepts.
pub(crate) fn lexemes(text: &str) -> Result<Vec<Lexeme<'_>>, Fault> {
    let mut scanner = Scanner::new(
        text,
        &ScannerOptions {
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        },
    );
    let mut all = Vec::new();
    loop {
        let Some(token) = scanner.scan().map_err(|error| explain(text, &error))? else {
            return Ok(all);
        };
        let range = Range::new(scanner.token_start(), scanner.token_end());
        check_lexeme(text, &token, range)?;
        all.push(Lexeme { token, range });
    }
}

/// Refuses invisible characters between tokens, which the parser lets pass.
fn check_gaps(text: &str, lexemes: &[Lexeme<'_>]) -> Result<(), Fault> {
    let mut end = 0;
    let end_of_text = Range::new(text.len(), text.len());
    for gap in lexemes.iter().map(|lexeme| lexeme.range).chain([end_of_text]) {
        let odd = text[end..gap.start]
            .char_indices()
            .find(|(_, c)| !matches!(c, ' ' | '\t' | '\n' | '\r'));
        if let Some((index, c)) = odd {
            let code = u32::from(c);
            return Err(Fault::at(
                text,
                end + index,
                format!("here is an invisible character (U+{code:04X}) that JSON does not allow; delete it"),
            ));
        }
        end = gap.end;
    }
    Ok(())
}

fn check_lexeme(text: &str, token: &Token<'_>, range: Range) -> Result<(), Fault> {
    if !matches!(token, Token::String(_)) {
        return Ok(());
    }
    let raw = &text[range.start..range.end];
    match raw.bytes().position(|b| b < 0x20) {
        None => Ok(()),
        Some(index) if matches!(raw.as_bytes()[index], b'\n' | b'\r') => Err(Fault::at(
            text,
            range.start,
            "the text that begins here has no closing quote on its line; add it (a line break inside a text is written \\n)",
        )),
        Some(index) => Err(Fault::at(
            text,
            range.start + index,
            "here is a control character inside a text; write it as an escape such as \\t",
        )),
    }
}

fn explain(text: &str, error: &ParseError) -> Fault {
    let start = error.range().start;
    let found = text[start..].chars().next();
    let message = match error.kind() {
        ParseErrorKind::ExpectedComma => "a comma is missing here; add it".to_owned(),
        ParseErrorKind::ExpectedColonAfterObjectKey => {
            "the name before this must be followed by a colon and a value; add them".to_owned()
        }
        ParseErrorKind::ExpectedObjectValue => "a value is missing after the colon; add it".to_owned(),
        ParseErrorKind::ExpectedStringObjectProperty => {
            "a name without quotes; put it in double quotes, as in \"name\"".to_owned()
        }
        ParseErrorKind::SingleQuotedStringsNotAllowed => "single quotes; use double quotes instead".to_owned(),
        ParseErrorKind::MultipleRootJsonValues => {
            "the file should end before this; delete what follows the last closing brace".to_owned()
        }
        ParseErrorKind::UnterminatedObject => {
            "the \"{\" here is never closed, as in a file that was cut off; add the missing \"}\"".to_owned()
        }
        ParseErrorKind::UnterminatedArray => {
            "the \"[\" here is never closed, as in a file that was cut off; add the missing \"]\"".to_owned()
        }
        ParseErrorKind::UnterminatedCommentBlock => {
            "the comment that begins here is never closed; add \"*/\"".to_owned()
        }
        ParseErrorKind::String(jsonc_parser::ParseStringErrorKind::UnterminatedStringLiteral) => {
            "the text that begins here has no closing quote; add it".to_owned()
        }
        ParseErrorKind::String(_) => {
            "an escape that JSON does not have; write \\\\ for a backslash, \\\" for a quote".to_owned()
        }
        ParseErrorKind::NestingDepthExceeded => "it is nested too deeply; at most 512 levels are read".to_owned(),
        ParseErrorKind::HexadecimalNumbersNotAllowed
        | ParseErrorKind::UnaryPlusNumbersNotAllowed
        | ParseErrorKind::BareDecimalPointNumbersNotAllowed
        | ParseErrorKind::NonFiniteNumbersNotAllowed
        | ParseErrorKind::ExpectedDigit
        | ParseErrorKind::ExpectedDigitFollowingNegativeSign
        | ParseErrorKind::ExpectedPlusMinusOrDigitInNumberLiteral => {
            "a number that JSON does not have; write plain decimal digits".to_owned()
        }
        // The crate adds kinds behind features; its own words do for those and for "unexpected …".
        _ => match found {
            Some(c) => format!("\"{}\" does not belong here; delete or complete it", c.escape_debug()),
            None => "the file ends too early; complete it".to_owned(),
        },
    };
    Fault::at(text, start, message)
}

/// The tree's value, digits of numbers as written. Of a repeated key the last counts.
pub(crate) fn to_value(tree: &Tree<'_>) -> Value {
    match tree {
        Tree::StringLit(s) => Value::String(s.value.clone().into_owned()),
        // The scanner accepts exactly JSON's numbers under `STRICT`; anything else would be a text to the validator.
        Tree::NumberLit(n) => n
            .value
            .parse::<Number>()
            .map_or_else(|_| Value::String(n.value.to_owned()), Value::Number),
        Tree::BooleanLit(b) => Value::Bool(b.value),
        Tree::NullKeyword(_) => Value::Null,
        Tree::Array(a) => Value::Array(a.elements.iter().map(to_value).collect()),
        Tree::Object(o) => Value::Object(
            o.properties
                .iter()
                .map(|p| (key(p).to_owned(), to_value(&p.value)))
                .collect(),
        ),
    }
}

/// A member's name.
pub(crate) fn key<'t>(property: &'t ObjectProp<'_>) -> &'t str {
    match &property.name {
        jsonc_parser::ast::ObjectPropName::String(name) => &name.value,
        jsonc_parser::ast::ObjectPropName::Word(word) => word.value,
    }
}

/// The bytes of a member's name.
pub(crate) fn key_range(property: &ObjectProp<'_>) -> Range {
    property.name.range()
}

/// A name that stands twice in one object, with both byte offsets, at any depth; the first such pair.
pub(crate) fn repeated_key<'t>(tree: &'t Tree<'_>) -> Option<(&'t str, usize, usize)> {
    match tree {
        Tree::Object(object) => {
            let mut seen = HashMap::new();
            for property in &object.properties {
                let start = key_range(property).start;
                if let Some(first) = seen.insert(key(property), start) {
                    return Some((key(property), first, start));
                }
                if let Some(found) = repeated_key(&property.value) {
                    return Some(found);
                }
            }
            None
        }
        Tree::Array(array) => array.elements.iter().find_map(repeated_key),
        Tree::StringLit(_) | Tree::NumberLit(_) | Tree::BooleanLit(_) | Tree::NullKeyword(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        tree(text).unwrap_err().to_string()
    }

    #[test]
    fn a_place_counts_characters_and_every_kind_of_line_end() {
        let text = "\u{feff}{\r\n  \"日本\": 1,\r\n}\r2";
        assert_eq!(Place::of(text, 3), Place { line: 1, column: 1 });
        assert_eq!(Place::of(text, text.find('1').unwrap()), Place { line: 2, column: 9 });
        assert_eq!(Place::of(text, text.find('2').unwrap()), Place { line: 4, column: 1 });
    }

    #[test]
    fn comments_and_trailing_commas_are_read() {
        let value = to_value(&tree("// a\n{\"x\": [1, /* b */ 2,], } // c").unwrap().unwrap());
        assert_eq!(value, serde_json::json!({"x": [1, 2]}));
    }

    #[test]
    fn the_rest_of_json5_is_refused_with_its_place() {
        for (text, place, word) in [
            ("{'a': 1}", "line 1, column 2", "double quotes"),
            ("{\n  a: 1}", "line 2, column 3", "double quotes"),
            ("{\"a\": 0x10}", "line 1, column 7", "number"),
            ("{\"a\": +1}", "line 1, column 7", "number"),
            ("{\"a\": .5}", "line 1, column 7", "number"),
            ("{\"a\": 5.}", "line 1, column 7", "number"),
            ("{\"a\": NaN}", "line 1, column 7", "belong"),
            ("{\"a\": -Infinity}", "line 1, column 7", "number"),
            ("{\"a\": \"\\x41\"}", "line 1, column 8", "escape"),
            ("{\"a\": \"x\ny\"}", "line 1, column 7", "closing quote"),
            ("{\"a\": \"x\ty\"}", "line 1, column 9", "control character"),
            ("{\u{a0}\"a\": 1}", "line 1, column 2", "U+00A0"),
            ("{\"a\": 1 \"b\": 2}", "line 1, column 8", "comma"),
            ("{\"a\": 01}", "line 1, column 8", "comma"),
            ("{\"a\" 1}", "line 1, column 6", "colon"),
            ("{\"a\": }", "line 1, column 7", "belong"),
            ("{} {}", "line 1, column 4", "end before"),
        ] {
            let said = fault(text);
            assert!(said.starts_with(place) && said.contains(word), "{text:?}: {said}");
        }
    }

    #[test]
    fn a_cut_off_file_names_what_is_open() {
        for (text, place) in [
            ("{\"servers\": {\"a\": {", "line 1, column 19"),
            ("{\n\"servers\": [1,", "line 2, column 12"),
            ("{\"a\": \"x", "line 1, column 7"),
            ("{ /* x", "line 1, column 3"),
        ] {
            let said = fault(text);
            assert!(said.starts_with(place), "{text:?}: {said}");
        }
    }

    #[test]
    fn other_encodings_are_named() {
        let utf16: Vec<u8> = "{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(decode(&utf16).unwrap_err().to_string().contains("UTF-16"));
        assert!(
            decode(&[0xff, 0xfe, b'{', 0])
                .unwrap_err()
                .to_string()
                .contains("UTF-16")
        );
        assert!(decode(&[0; 9]).unwrap_err().to_string().contains("zero bytes"));
        let said = decode(b"{\n \"a\": \"\xff\"}").unwrap_err().to_string();
        assert!(said.starts_with("line 2, column 8") && said.contains("UTF-8"), "{said}");
    }

    #[test]
    fn numbers_keep_their_text() {
        let text = "[1.10, 12345678901234567890123, 1e+5, -0]";
        assert_eq!(
            to_value(&tree(text).unwrap().unwrap()).to_string(),
            "[1.10,12345678901234567890123,1e+5,-0]"
        );
    }

    #[test]
    fn a_repeated_key_is_found_at_any_depth() {
        let text = "{\"a\": [{\"b\": 1, \"c\": 2, \"b\": 3}]}";
        let parsed = tree(text).unwrap().unwrap();
        assert_eq!(repeated_key(&parsed), Some(("b", 8, 24)));
    }

    #[test]
    fn deep_nesting_is_refused_not_overflowed() {
        assert!(fault(&"[".repeat(100_000)).contains("deep"));
    }
}
