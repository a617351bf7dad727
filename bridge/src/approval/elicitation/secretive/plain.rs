//! A text as a reader takes it: without what cannot be seen, in one form of each letter, with letters that look alike as
//! one. Pure.

use unicode_normalization::UnicodeNormalization as _;

/// In small letters and folded, cut at what is no letter or digit and where `camelCase` turns.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in visible(text) {
        let turns = was_small && c.is_uppercase();
        was_small = c.is_lowercase();
        if turns || !is_part(c) {
            words.push(String::new());
        }
        if is_part(c)
            && let Some(word) = words.last_mut()
        {
            word.push(c);
        }
    }
    words.retain(|word| !word.is_empty());
    words.iter().map(|word| fold(word)).collect()
}

/// All of it as one word: `p a s s w o r d`, `pass_word`.
pub(super) fn together(text: &str) -> String {
    words(text).concat()
}

/// One spelling for what looks the same: small, without accents, in Latin letters, a digit inside a word as the letter
/// that it stands for.
fn fold(word: &str) -> String {
    let small = word.to_lowercase();
    let letters: String = small.nfkd().filter(|c| !is_mark(*c)).map(look_alike).collect();
    // A number is a number, and the `2` of `2fa` begins its word.
    let mut seen_letter = false;
    let plain = letters.chars().map(|c| {
        seen_letter |= c.is_alphabetic();
        match c {
            '0' if seen_letter => 'o',
            '1' if seen_letter => 'l',
            '3' if seen_letter => 'e',
            '4' if seen_letter => 'a',
            '5' if seen_letter => 's',
            c => c,
        }
    });
    plain.collect()
}

/// Compatibility forms as what they stand for (fullwidth, circled, mathematical letters), without what has no width. `@`
/// and `$` inside a word are letters in disguise.
fn visible(text: &str) -> impl Iterator<Item = char> {
    let mut before = ' ';
    text.nfkc().filter(|c| !is_ignorable(*c)).map(move |c| {
        let letter = match c {
            '@' if before.is_alphabetic() => 'a',
            '$' if before.is_alphabetic() => 's',
            c => c,
        };
        before = letter;
        letter
    })
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c)
}

/// Combining marks of the Latin, Greek and Cyrillic scripts.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{483}'..='\u{489}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}')
}

/// Default-ignorable code points (Unicode 16, `DerivedCoreProperties.txt`).
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}' | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// The Latin letter that a small one of another script is taken for (after Unicode's `confusables.txt`).
fn look_alike(c: char) -> char {
    match c {
        'а' | 'α' | 'ɑ' => 'a',
        'в' | 'β' => 'b',
        'с' | 'ϲ' | 'ᴄ' => 'c',
        'ԁ' | 'đ' => 'd',
        'е' | 'є' | 'ε' | 'ҽ' => 'e',
        'ɡ' | 'ց' => 'g',
        'һ' | 'հ' => 'h',
        'і' | 'ι' | 'ı' | 'ӏ' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ł' | 'ⅼ' | 'ǀ' => 'l',
        'м' => 'm',
        'п' | 'ո' => 'n',
        'о' | 'ο' | 'օ' | 'ø' | 'σ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' | 'ᴦ' => 'r',
        'ѕ' | 'ꜱ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' | 'ω' | 'ѡ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        c => c,
    }
}
