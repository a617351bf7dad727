//! The same for the window: a table of the characters, and texts with what is hidden in them for its tests.

use serde_json::json;

use super::{Class, class, is_braille, is_gap, is_han, is_joining, is_mongolian, is_pictograph, is_right_to_left};
use crate::trust::scan::visible::visible_text;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// First and last of each stretch of characters for which it holds.
fn ranges(holds: impl Fn(char) -> bool) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for c in ('\0'..=char::MAX).filter(|c| holds(*c)) {
        let code = u32::from(c);
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == code => *last = code,
            Some(_) | None => ranges.push((code, code)),
        }
    }
    ranges
}

fn table() -> String {
    let line = |name: &str, holds: &dyn Fn(char) -> bool| {
        let ranges: Vec<_> = ranges(holds)
            .into_iter()
            .map(|(first, last)| format!("[{first:#x}, {last:#x}]"))
            .collect();
        format!("  {name}: [{}],\n", ranges.join(", "))
    };
    let classes = [
        ("control", Class::Control),
        ("zero_width", Class::ZeroWidth),
        ("direction", Class::Direction),
        ("tag", Class::Tag),
        ("selector", Class::Selector),
        ("filler", Class::Filler),
        ("private_use", Class::PrivateUse),
    ];
    let classes: String = classes
        .iter()
        .map(|(name, one)| line(name, &|c| class(c) == Some(*one)))
        .collect();
    let places: String = [
        line("pictograph", &is_pictograph),
        line("right_to_left", &is_right_to_left),
        line("joining", &is_joining),
        line("gap", &is_gap),
        line("han", &is_han),
        line("mongolian", &is_mongolian),
        line("braille", &is_braille),
    ]
    .concat();
    format!(
        "// Generated from the bridge's scan by `make types`; never edited by hand.\n\n\
         /** First and last of a stretch of characters. */\nexport type Range = readonly [number, number];\n\n\
         /** Characters that nothing shows, by kind. */\nexport const classes = {{\n{classes}}} satisfies Record<string, readonly Range[]>;\n\n\
         /** Characters beside which some of them are in order. */\nexport const places = {{\n{places}}} satisfies Record<string, readonly Range[]>;\n"
    )
}

/// Texts of everything that is hidden, everything that it may be in order beside, and what lies next to either.
fn cases() -> String {
    let mut letters: Vec<char> = "aZ9#*- \n\r.éßЖ中한\u{20e3}".chars().collect();
    let tables: [&dyn Fn(char) -> bool; 8] = [
        &|c| class(c).is_some(),
        &is_pictograph,
        &is_right_to_left,
        &is_joining,
        &is_gap,
        &is_han,
        &is_mongolian,
        &is_braille,
    ];
    for holds in tables {
        for (first, last) in ranges(holds) {
            let beside = [first.saturating_sub(1), first, last, last + 1];
            letters.extend(beside.into_iter().filter_map(char::from_u32));
        }
    }
    // Joiners and the like stand often where they are decided on.
    let often: Vec<char> = "\u{200c}\u{200d}\u{200e}\u{200f}\u{61c}\u{fe0f}\u{fe00}\u{e0100}\u{180b}\u{180c}\u{2800}\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}\u{e0041}مक中ᠠ⠓😀א"
        .chars()
        .collect();
    let mut seed = 1_u64;
    let mut draw = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let mut cases: Vec<[String; 2]> = Vec::new();
    let mut add = |text: String| {
        let shown = visible_text(&text);
        cases.push([text, shown]);
    };
    letters.iter().for_each(|c| add(format!("a{c}b")));
    for _ in 0..2_000 {
        let length = 2 + draw(7);
        let mut text = String::new();
        for _ in 0..length {
            let from = if draw(2) == 0 { &letters } else { &often };
            text.push(from[draw(from.len())]);
        }
        add(text);
    }
    let rows: Vec<_> = cases.iter().map(|case| json!(case).to_string()).collect();
    let out = format!("[\n{}\n]\n", rows.join(",\n"));
    // Whoever opens the file sees what is in it.
    let escaped = |c: char| -> String {
        let mut units = [0; 2];
        c.encode_utf16(&mut units)
            .iter()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect()
    };
    out.chars()
        .map(|c| match class(c) {
            Some(_) => escaped(c),
            None => c.to_string(),
        })
        .collect()
}

/// `make types` sets `UPDATE_TYPES` to write the files instead.
#[test]
fn the_windows_types_of_hidden_characters_are_those_of_the_scan() {
    for (path, made) in [
        ("../ui/src/lib/hidden.ts", table()),
        ("../ui/test/hidden-cases.json", cases()),
    ] {
        let whole = format!("{HERE}/{path}");
        if std::env::var_os("UPDATE_TYPES").is_some() {
            std::fs::write(&whole, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&whole).unwrap_or_default();
        assert!(kept == made, "{path} is stale; run `make types`");
    }
}
