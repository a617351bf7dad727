//! Which characters nobody sees and a model reads, and where they are in order all the same. Pure. The window marks the
//! same ones: its table, and texts with what is hidden in them, are made from here.
//!
//! In order are the joiners and selectors inside emoji, the flags of countries' parts, the joiners and marks of scripts
//! that need them, and the line ends of Windows.

#[cfg(test)]
mod table;
#[cfg(test)]
mod tests;

/// What kind of hidden character one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Control,
    ZeroWidth,
    /// Turns the direction of the text around it.
    Direction,
    /// A letter of the TAG block: whole texts can be written with them.
    Tag,
    /// Chooses how the character before it looks; any byte can be written with them.
    Selector,
    /// Looks like nothing but counts as a letter or sign.
    Filler,
    PrivateUse,
}

/// Whether nobody sees `c`, wherever it stands.
pub(in crate::trust) fn is_hidden(c: char) -> bool {
    class(c).is_some()
}

/// Which kind of hidden character `c` is, wherever it stands.
pub(super) fn class(c: char) -> Option<Class> {
    Some(match c {
        '\t' | '\n' | ' '..='~' => return None,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Class::Control,
        '\u{ad}'
        | '\u{34f}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0080}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}' => Class::ZeroWidth,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Class::Direction,
        '\u{e0000}'..='\u{e007f}' => Class::Tag,
        '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => Class::Selector,
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{16fe4}'
        | '\u{1d159}' => Class::Filler,
        '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{f0000}'..='\u{10ffff}' => Class::PrivateUse,
        // Never a character.
        _ if u32::from(c) & 0xfffe == 0xfffe => Class::PrivateUse,
        _ => return None,
    })
}

/// The black flag, which tag letters after it make the flag of a part of a country.
pub(super) const FLAG: char = '\u{1f3f4}';

/// Bytes of the tag letters that make a flag; 0 where they make none.
pub(super) fn flag_tags(after: &str) -> usize {
    // Two letters for the country and up to three for the part, then the end.
    let letters = after
        .chars()
        .take_while(|c| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}'))
        .count();
    match after.chars().nth(letters) {
        Some('\u{e007f}') if (3..=5).contains(&letters) => (letters + 1) * FLAG.len_utf8(),
        Some(_) | None => 0,
    }
}

/// Whether a hidden character belongs where it stands.
pub(super) fn in_order(c: char, before: &str, after: &str) -> bool {
    let previous = before.chars().next_back();
    let next = after.chars().next();
    match c {
        '\r' => next == Some('\n'),
        '\u{200d}' => {
            let in_emoji = previous.is_some_and(|c| is_pictograph(c) || c == '\u{fe0f}' || c == '\u{e007f}')
                && next.is_some_and(is_pictograph);
            in_emoji || (previous.is_some_and(is_joining) && next.is_none_or(|c| is_joining(c) || is_gap(c)))
        }
        '\u{200c}' => previous.is_some_and(is_joining) && next.is_some_and(is_joining),
        '\u{fe0e}' | '\u{fe0f}' => previous.is_some_and(|previous| {
            is_pictograph(previous) || (matches!(previous, '0'..='9' | '#' | '*') && next == Some('\u{20e3}'))
        }),
        '\u{fe00}'..='\u{fe02}' | '\u{e0100}'..='\u{e01ef}' => previous.is_some_and(is_han),
        '\u{180b}'..='\u{180f}' => previous.is_some_and(is_mongolian),
        '\u{2800}' => previous.is_some_and(is_braille) || next.is_some_and(is_braille),
        '\u{200e}' | '\u{200f}' | '\u{61c}' => {
            let is_mark = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}');
            let near = |chars: &mut dyn Iterator<Item = char>| chars.take(NEAR).any(is_right_to_left);
            !previous.is_some_and(is_mark) && (near(&mut before.chars().rev()) || near(&mut after.chars()))
        }
        _ => false,
    }
}

/// A mark of direction belongs to letters at most so many characters away.
const NEAR: usize = 6;

fn is_pictograph(c: char) -> bool {
    matches!(c, '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2100}'..='\u{27ff}' | '\u{2900}'..='\u{2bff}' | '\u{3030}'
        | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}')
        && class(c).is_none()
}

/// Letters whose shape depends on joiners: Arabic and its kin, and the scripts of India.
fn is_joining(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
        && class(c).is_none()
}

/// What a word ends at: blanks and signs.
fn is_gap(c: char) -> bool {
    match c {
        '\t' | '\n' => true,
        ' '..='~' => !c.is_ascii_alphanumeric(),
        '\u{a0}'..='\u{bf}'
        | '\u{2000}'..='\u{200a}'
        | '\u{2010}'..='\u{2027}'
        | '\u{202f}'..='\u{205f}'
        | '\u{3000}'..='\u{3003}' => !matches!(c, '\u{aa}' | '\u{ad}' | '\u{b5}' | '\u{ba}'),
        _ => is_pictograph(c),
    }
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}') && class(c).is_none()
}

fn is_mongolian(c: char) -> bool {
    matches!(c, '\u{1820}'..='\u{18aa}')
}

/// A sign of the blind's writing, of which U+2800 is the blank.
fn is_braille(c: char) -> bool {
    matches!(c, '\u{2801}'..='\u{28ff}')
}
