use super::{super::visible::runs, *};

/// The characters that fonts show nothing for (Unicode's `Default_Ignorable_Code_Point`), and others that look like it.
#[test]
fn whatever_shows_nothing_is_known() {
    for (first, last) in [
        (0xad, 0xad),
        (0x34f, 0x34f),
        (0x61c, 0x61c),
        (0x115f, 0x1160),
        (0x17b4, 0x17b5),
        (0x180b, 0x180f),
        (0x200b, 0x200f),
        (0x2028, 0x202e),
        (0x2060, 0x206f),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xe000, 0xf8ff),
        (0xfdd0, 0xfdef),
        (0xfe00, 0xfe0f),
        (0xfeff, 0xfeff),
        (0xffa0, 0xffa0),
        (0xfff0, 0xfffb),
        (0xfffe, 0xffff),
        (0x1bca0, 0x1bca3),
        (0x1d173, 0x1d17a),
        (0xe0000, 0xe0fff),
        (0xf0000, 0x10_ffff),
    ] {
        for c in (first..=last).filter_map(char::from_u32) {
            assert!(class(c).is_some(), "U+{:04X}", u32::from(c));
            let text = format!("Reads{c} a file.");
            assert!(!runs(&text).is_empty(), "U+{:04X}", u32::from(c));
        }
    }
}

#[test]
fn no_message_is_spelled_with_marks_of_any_script() {
    let bits = |zero: char, one: char| -> String {
        let bits = b"run it".iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
        bits.map(|bit| if bit == 0 { zero } else { one }).collect()
    };
    for (around, zero, one) in [
        ('e', '\u{180b}', '\u{180c}'),
        ('ᠠ', '\u{180b}', '\u{180c}'),
        ('e', '\u{2800}', '\u{2800}'),
        ('⠓', '\u{2800}', '\u{2800}'),
        ('中', '\u{200c}', '\u{200d}'),
        ('م', '\u{200c}', '\u{200d}'),
        ('א', '\u{200e}', '\u{200f}'),
        ('م', '\u{61c}', '\u{200f}'),
        ('중', '\u{115f}', '\u{1160}'),
        ('中', '\u{e0100}', '\u{e0101}'),
        ('😀', '\u{fe0e}', '\u{fe0f}'),
    ] {
        let text = format!("{around}{}{around}", bits(zero, one));
        let hidden: usize = runs(&text).iter().map(|run| run.count).sum();
        assert!(hidden >= 44, "U+{:04X}: {hidden}", u32::from(zero));
    }
}

#[test]
fn scripts_that_need_such_characters_hide_nothing() {
    for text in [
        "ᠰᠠᠶᠢᠨ\u{180b}",
        "⠓⠑⠇⠇⠕⠀⠺⠕⠗⠇⠙",
        "مم\u{200d}.",
        "مم\u{200d}",
        "مم\u{200d} b",
    ] {
        assert_eq!(runs(text), [], "{text}");
    }
}
