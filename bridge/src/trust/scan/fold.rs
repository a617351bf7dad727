//! A copy of a text for looking phrases up: small letters without accents, one blank between words, nothing hidden, no
//! emphasis, and letters that look like Latin ones as these. Never shown; offsets lead back to the text itself.

use unicode_normalization::UnicodeNormalization as _;

use super::hidden;

/// Appends the copy of `text` to `out`.
pub(super) fn fold(text: &str, out: &mut String) {
    each(text, |c, _| out.push(c));
}

/// The byte of `text` that the byte `at` of its copy was made from.
pub(super) fn origin(text: &str, at: usize) -> usize {
    let mut length = 0;
    let mut origin = text.len();
    each(text, |c, from| {
        if length <= at {
            origin = from;
        }
        length += c.len_utf8();
    });
    if at >= length { text.len() } else { origin }
}

/// One character of a phrase, as it stands in copies.
pub(super) fn fold_char(c: char, mut push: impl FnMut(char)) {
    match c {
        '\0'..='\u{7f}' => push(c.to_ascii_lowercase()),
        // Taking these apart would only make them longer.
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => push(c),
        _ => std::iter::once(c)
            .nfkd()
            .filter(|c| !matches!(c, '\u{300}'..='\u{36f}'))
            .flat_map(char::to_lowercase)
            .for_each(|c| push(latin(c).unwrap_or(c))),
    }
}

/// The Latin letter that a small letter of another alphabet looks like.
pub(super) fn latin(c: char) -> Option<char> {
    Some(match c {
        'а' | 'α' => 'a',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' => 'e',
        'һ' => 'h',
        'і' | 'ι' => 'i',
        'ј' | 'ϳ' => 'j',
        'κ' => 'k',
        'ӏ' => 'l',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' => 's',
        'ν' => 'v',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' => 'y',
        _ => return None,
    })
}

/// Whether a capital of another alphabet looks like a Latin one.
fn is_latin_capital(c: char) -> bool {
    "АВЕКМНОРСТХІЈЅУΑΒΕΖΗΙΚΜΝΟΡΤΥΧ".contains(c)
}

/// The first word of both Latin letters and letters of another alphabet that look like them.
pub(super) fn mixed_word(text: &str) -> Option<&str> {
    if text.is_ascii() {
        return None;
    }
    text.split(|c: char| !c.is_alphabetic()).find(|word| {
        let latin_letters = word.chars().filter(char::is_ascii_alphabetic).count();
        let others = || word.chars().filter(|c| !c.is_ascii_alphabetic());
        latin_letters > 1 && word.chars().count() > 3 && others().any(|c| latin(c).is_some() || is_latin_capital(c))
    })
}

/// Hands on each character of the copy with the byte of `text` it comes from.
fn each(text: &str, mut push: impl FnMut(char, usize)) {
    let mut after_word = false;
    let mut blank = None;
    let mut put = |c: char, at: usize, blank: &mut Option<usize>| {
        if let Some(from) = blank.take() {
            push(' ', from);
        }
        push(c, at);
    };
    for (at, c) in text.char_indices() {
        match c {
            '*' | '`' => {}
            _ if c.is_whitespace() => {
                if after_word && blank.is_none() {
                    blank = Some(at);
                }
            }
            '!'..='~' => {
                put(c.to_ascii_lowercase(), at, &mut blank);
                after_word = true;
            }
            _ if hidden::class(c).is_some() => {}
            _ => {
                fold_char(c, |c| put(c, at, &mut blank));
                after_word = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut out = String::new();
        fold(text, &mut out);
        out
    }

    #[test]
    fn one_copy_stands_for_many_ways_of_writing() {
        for (text, expected) in [
            ("  Ignore   ALL\n\tprevious  ", "ignore all previous"),
            ("**Ignore** `all`", "ignore all"),
            ("Ig\u{200b}no\u{ad}re a\u{e0041}ll", "ignore all"),
            ("Ｉｇｎｏｒｅ 𝐚𝐥𝐥", "ignore all"),
            ("ignоrе аll", "ignore all"),
            ("Instrução ignorée", "instrucao ignoree"),
            ("e\u{301}te\u{301}", "ete"),
            ("無視して ください 무시", "無視して ください 무시"),
            ("", ""),
            (" \n ", ""),
        ] {
            assert_eq!(folded(text), expected, "{text}");
        }
    }

    #[test]
    fn a_place_in_the_copy_leads_back_to_the_text() {
        let text = "a  é\u{200b}B \u{1f600}c";
        let copy = folded(text);
        for (at, c) in copy.char_indices() {
            let from = &text[origin(text, at)..];
            let mut first = String::new();
            fold(from.split_inclusive(|_: char| true).next().unwrap(), &mut first);
            assert!(c == ' ' || first.starts_with(c), "{at}: {from}");
        }
        assert_eq!(origin(text, copy.len()), text.len());
    }

    #[test]
    fn a_word_of_two_alphabets_is_found_and_units_are_not() {
        assert_eq!(mixed_word("Please ignоre this"), Some("ignоre"));
        assert_eq!(mixed_word("АPI_KЕYS"), Some("KЕYS"));
        assert_eq!(mixed_word("the Вearer"), Some("Вearer"));
        for text in ["5 μs, Δtime, αβγ", "SQL-запрос и ответ", "naïve café", "Ωmega", "plain"] {
            assert_eq!(mixed_word(text), None, "{text}");
        }
    }
}
