//! Looking phrases up in a text: one pass for the words that they hinge on, then each phrase in full around those.
//! Takes a time in proportion to the text.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::{finding::FindingKind, fold, phrases};

/// Where a phrase is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// In results too, which are any texts of the world.
    Everywhere,
    /// In what an upstream says of itself.
    Definitions,
    /// In the description of a parameter whose name says that it serves no purpose of the tool's.
    SideParameters,
}

/// A phrase and what it is a sign of.
pub(super) struct Rule {
    pub(super) kind: FindingKind,
    pub(super) reach: Reach,
    /// Words, of which every text that matches has one.
    pub(super) hinges: &'static [&'static str],
    /// A regular expression over the folded text. Small letters only, escapes included.
    pub(super) pattern: &'static str,
}

/// A phrase in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) kind: FindingKind,
    /// In bytes of the folded text.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A phrase is looked for in this many bytes before and after a hinge.
const AROUND: usize = 240;

struct Book {
    hinges: AhoCorasick,
    /// The rules that each hinge belongs to.
    rules_of: Vec<Vec<usize>>,
    rules: Vec<(FindingKind, Reach, Regex)>,
}

static BOOK: LazyLock<Book> = LazyLock::new(Book::bind);

/// The phrases in a folded text, at most one for each rule, whose reach is `wanted`.
pub(super) fn hits(folded: &str, wanted: impl Fn(Reach) -> bool) -> Vec<Hit> {
    let book = &*BOOK;
    let mut hits = Vec::new();
    // Up to where each rule has been looked for; the whole text once it was found.
    let mut done: Vec<usize> = Vec::new();
    for hinge in book.hinges.find_overlapping_iter(folded) {
        for rule in &book.rules_of[hinge.pattern().as_usize()] {
            let (kind, reach, pattern) = &book.rules[*rule];
            if !wanted(*reach) {
                continue;
            }
            if done.is_empty() {
                done.resize(book.rules.len(), 0);
            }
            if hinge.end() < done[*rule] {
                continue;
            }
            let start = floor(folded, hinge.start().saturating_sub(AROUND));
            let end = floor(folded, (hinge.end() + 3 * AROUND).min(folded.len()));
            match pattern.find(&folded[start..end]) {
                None => done[*rule] = end.saturating_sub(AROUND),
                Some(found) => {
                    done[*rule] = usize::MAX;
                    hits.push(Hit {
                        kind: *kind,
                        start: start + found.start(),
                        end: start + found.end(),
                    });
                }
            }
        }
    }
    hits
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl Book {
    #[expect(
        clippy::expect_used,
        reason = "the phrases are compiled in, and a test makes the book"
    )]
    fn bind() -> Self {
        let mut words: Vec<String> = Vec::new();
        let mut rules_of: Vec<Vec<usize>> = Vec::new();
        let mut rules = Vec::new();
        for (index, rule) in phrases::RULES.iter().enumerate() {
            let pattern = Regex::new(&folded(rule.pattern)).expect("a phrase is a regular expression");
            rules.push((rule.kind, rule.reach, pattern));
            for hinge in rule.hinges {
                let hinge = folded(hinge);
                match words.iter().position(|word| *word == hinge) {
                    Some(known) => rules_of[known].push(index),
                    None => {
                        words.push(hinge);
                        rules_of.push(vec![index]);
                    }
                }
            }
        }
        Self {
            hinges: AhoCorasick::builder()
                .kind(Some(aho_corasick::AhoCorasickKind::DFA))
                .build(&words)
                .expect("the words are few"),
            rules_of,
            rules,
        }
    }
}

fn folded(phrase: &str) -> String {
    let mut out = String::new();
    for c in phrase.chars() {
        fold::fold_char(c, |c| out.push(c));
    }
    out
}
