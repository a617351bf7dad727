//! What a person sees: aligned tables, colour on a terminal, and texts that cannot play tricks with it.

use std::io::{IsTerminal as _, Write as _};

use neuron_bridge::trust::scan::visible_text;
use serde_json::Value;

/// How standard output is to be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    /// A file or pipe: every cell whole, no colour.
    Plain,
    Terminal {
        /// Columns.
        width: usize,
        colour: bool,
    },
}

impl Screen {
    /// What standard output is now.
    pub(crate) fn detect() -> Self {
        let out = std::io::stdout();
        if !out.is_terminal() {
            return Self::Plain;
        }
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        #[cfg(unix)]
        let width = rustix::termios::tcgetwinsize(&out).map_or(0, |size| usize::from(size.ws_col));
        #[cfg(not(unix))]
        let width = 0;
        Self::Terminal {
            width: if width == 0 { 80 } else { width },
            colour: !set("NO_COLOR") && !dumb,
        }
    }

    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Normal => return text.to_owned(),
            Tone::Good => "32",
            Tone::Waiting => "33",
            Tone::Bad => "31",
            Tone::Dim => "2",
            Tone::Title => "1",
        };
        match self {
            Self::Terminal { colour: true, .. } if !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Terminal { .. } | Self::Plain => text.to_owned(),
        }
    }

    /// A tool's text: as it is for a program, without control sequences for a terminal.
    pub(crate) fn text(self, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Terminal { .. } => harmless_lines(text),
        }
    }

    /// Aligned columns under a heading. On a terminal the last column keeps to what fits.
    pub(crate) fn table(self, heading: &[&str], rows: &[Vec<Cell>], long: Long) -> String {
        let columns = heading.len();
        let mut widths: Vec<usize> = heading.iter().map(|h| width(h)).collect();
        for row in rows {
            for (i, cell) in row.iter().enumerate().take(columns.saturating_sub(1)) {
                widths[i] = widths[i].max(width(&cell.text));
            }
        }
        let before: usize = widths.iter().take(columns.saturating_sub(1)).map(|w| w + GAP).sum();
        let last = match self {
            Self::Plain => usize::MAX,
            // A line that is wrapped is better than one that says nothing.
            Self::Terminal { width, .. } => width.saturating_sub(before).max(20),
        };
        let mut out = String::new();
        let heading: Vec<Cell> = heading.iter().map(|h| Cell::new(Tone::Title, h)).collect();
        for row in std::iter::once(&heading).chain(rows) {
            let mut line = String::new();
            for (i, cell) in row.iter().enumerate() {
                if i + 1 == columns {
                    let lines = match long {
                        Long::Cut => vec![cut(&cell.text, last)],
                        Long::Wrap => wrap(&cell.text, last),
                    };
                    let lines: Vec<_> = lines.iter().map(|l| self.paint(cell.tone, l)).collect();
                    line.push_str(&lines.join(&format!("\n{}", " ".repeat(before))));
                } else {
                    line.push_str(&self.paint(cell.tone, &cell.text));
                    line.extend(std::iter::repeat_n(' ', widths[i] - width(&cell.text) + GAP));
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// What becomes of a last column that is too long for the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Long {
    Cut,
    Wrap,
}

/// Spaces between columns.
const GAP: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Normal,
    Good,
    Waiting,
    Bad,
    Dim,
    Title,
}

/// One place of a table: one line, without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    tone: Tone,
    text: String,
}

impl Cell {
    pub(crate) fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self {
            tone,
            text: harmless(text.as_ref().split_whitespace().collect::<Vec<_>>().join(" ").as_str()),
        }
    }

    pub(crate) fn plain(text: impl AsRef<str>) -> Self {
        Self::new(Tone::Normal, text)
    }
}

/// Prints to standard output. A reader that has gone away (`| head`) is no failure.
pub(crate) fn print(text: &str) {
    let _reader_gone = print_to_reader(text);
}

/// As [`print`]; whether the reader is still there.
pub(crate) fn print_to_reader(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    write!(out, "{text}{end}").and_then(|()| out.flush()).is_ok()
}

/// Says something on standard error, without control sequences: whoever keeps it shows it in a terminal later.
pub(crate) fn complain(text: &str) {
    // Where else could it be said?
    let _ = writeln!(std::io::stderr().lock(), "neuron-connectd: {}", harmless_lines(text));
}

fn harmless_lines(text: &str) -> String {
    text.split('\n').map(harmless).collect::<Vec<_>>().join("\n")
}

/// Prints a JSON body for a program, which a person may well look at.
pub(crate) fn print_json(body: &Value) {
    print(&json_text(body));
}

/// JSON escapes most control characters itself; a terminal also acts on those above U+007E.
pub(crate) fn json_text(body: &Value) -> String {
    let mut out = String::new();
    for c in body.to_string().chars() {
        match c {
            // They only stand inside texts.
            '\u{7f}'..='\u{9f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out
}

/// With what a terminal would act on or hide made visible, as the window shows it; one line.
pub(crate) fn harmless(text: &str) -> String {
    let on_one_line = |c| match c {
        '\n' => '␊',
        '\r' => '␍',
        other => other,
    };
    visible_text(text).chars().map(on_one_line).collect()
}

fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// At least one line; a word longer than a line stays whole.
fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINAL: Screen = Screen::Terminal {
        width: 40,
        colour: false,
    };

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec![
                Cell::new(Tone::Good, "short"),
                Cell::plain("one two three four five six seven eight"),
            ],
            vec![Cell::new(Tone::Bad, "a-much-longer-name"), Cell::plain("ünï")],
        ]
    }

    #[test]
    fn json_holds_no_character_that_a_terminal_acts_on_and_says_the_same() {
        let body = serde_json::json!({"k\u{9b}": "a\u{1b}[2J\u{9b}31m\u{7f}ü\n"});
        let text = json_text(&body);
        assert!(!text.chars().any(char::is_control), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), body);
    }

    #[test]
    fn columns_line_up_and_the_last_one_is_cut_to_the_terminal() {
        assert_eq!(
            TERMINAL.table(&["NAME", "WHAT"], &rows(), Long::Cut),
            "NAME                WHAT\n\
             short               one two three four\n\
             a-much-longer-name  ünï\n"
                .replace("one two three four\n", "one two three four…\n")
        );
    }

    #[test]
    fn what_must_be_read_whole_is_wrapped_under_its_column() {
        assert_eq!(
            TERMINAL.table(&["NAME", "WHAT"], &rows()[..1], Long::Wrap),
            "NAME   WHAT\nshort  one two three four five six seven\n       eight\n"
        );
    }

    #[test]
    fn a_pipe_gets_every_cell_whole_and_no_colour() {
        let table = Screen::Plain.table(&["NAME", "WHAT"], &rows(), Long::Cut);
        assert!(table.contains("seven eight\n"), "{table}");
        assert!(!table.contains('\x1b'));
    }

    #[test]
    fn colour_changes_no_column() {
        let coloured = Screen::Terminal {
            width: 40,
            colour: true,
        };
        let table = coloured.table(&["NAME", "WHAT"], &rows(), Long::Cut);
        let mut bare = table.clone();
        for code in ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m"] {
            bare = bare.replace(code, "");
        }
        assert_ne!(table, bare);
        assert_eq!(bare, TERMINAL.table(&["NAME", "WHAT"], &rows(), Long::Cut));
    }

    #[test]
    fn an_upstreams_text_cannot_drive_the_terminal() {
        assert_eq!(Cell::plain("a\x1b[2Jb\r\nc\u{202e}d").text, "a␛[2Jb c⟨U+202E⟩d");
        assert_eq!(TERMINAL.text("a\x1b]0;x\x07\n\tb"), "a␛]0;x␇\n\tb");
        assert_eq!(Screen::Plain.text("a\x1b"), "a\x1b");
        for hidden in [
            "\u{e0041}\u{e0042}",
            "\u{fe01}\u{e0101}",
            "\u{3164}",
            "\u{2800}",
            "\u{200b}",
            "\n",
            "\r",
        ] {
            let shown = harmless(&format!("a{hidden}b"));
            assert!(shown.len() > 2 && !shown.contains(hidden), "{hidden:?} is {shown:?}");
        }
    }

    #[test]
    fn a_name_wider_than_the_terminal_still_leaves_room_for_the_rest() {
        let row = vec![Cell::plain("x".repeat(60)), Cell::plain("reason ".repeat(10))];
        let table = TERMINAL.table(&["NAME", "WHY"], &[row], Long::Cut);
        assert!(table.contains("reason reason"), "{table}");
    }
}
