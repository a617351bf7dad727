//! Canonical JSON (RFC 8785): one text for all ways of writing the same value, and none for a value that the text could
//! not tell from another one.

use serde_json::{Map, Number, Value};

/// Largest integer that canonical JSON tells from its neighbours, whose numbers are doubles: 2^53 - 1.
const MAX_EXACT: u64 = (1 << 53) - 1;

/// A number without a canonical text of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inexact {
    /// As received.
    pub(super) number: String,
    /// Keys and positions that lead to it, innermost first.
    pub(super) path: Vec<String>,
}

/// Appends the canonical text of `value`.
pub(super) fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), Inexact> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out)?,
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out).map_err(|fault| fault.below(index))?;
            }
            out.push(b']');
        }
        Value::Object(members) => write_object(members, |_| true, out)?,
    }
    Ok(())
}

/// Appends the canonical text of an object of those members whose name is `wanted`.
pub(super) fn write_object(
    members: &Map<String, Value>,
    wanted: impl Fn(&str) -> bool,
    out: &mut Vec<u8>,
) -> Result<(), Inexact> {
    let mut sorted: Vec<_> = members.iter().filter(|(name, _)| wanted(name)).collect();
    sorted.sort_unstable_by(|(a, _), (b, _)| {
        if a.is_ascii() && b.is_ascii() {
            a.cmp(b)
        } else {
            a.encode_utf16().cmp(b.encode_utf16())
        }
    });
    out.push(b'{');
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(name, out);
        out.push(b':');
        write(value, out).map_err(|fault| fault.below(name))?;
    }
    out.push(b'}');
    Ok(())
}

/// The escapes of RFC 8785 §3.2.2.2, which are those of `JSON.stringify`.
pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            b'"' | b'\\' => byte,
            0x00..0x20 => 0,
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[plain..at]);
        plain = at + 1;
        match short {
            0 => {
                out.extend_from_slice(b"\\u00");
                out.extend([byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]));
            }
            short => out.extend_from_slice(&[b'\\', short]),
        }
    }
    out.extend_from_slice(&text.as_bytes()[plain..]);
    out.push(b'"');
}

fn write_number(number: &Number, out: &mut Vec<u8>) -> Result<(), Inexact> {
    let text = number.as_str();
    let inexact = || Inexact {
        number: text.to_owned(),
        path: Vec::new(),
    };
    if let Ok(integer) = text.parse::<i64>() {
        if integer.unsigned_abs() > MAX_EXACT {
            return Err(inexact());
        }
        out.extend_from_slice(integer.to_string().as_bytes());
        return Ok(());
    }
    let is_integer = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let double = text.parse::<f64>().ok().filter(|double| double.is_finite());
    let Some(double) = double.filter(|_| !is_integer) else {
        return Err(inexact());
    };
    let mut buffer = ryu_js::Buffer::new();
    let written = buffer.format_finite(double);
    if Decimal::of(text).is_none_or(|received| Decimal::of(written) != Some(received)) {
        return Err(inexact());
    }
    out.extend_from_slice(written.as_bytes());
    Ok(())
}

impl Inexact {
    fn below(mut self, step: impl ToString) -> Self {
        self.path.push(step.to_string());
        self
    }
}

/// What a number means, however it is written: `digits` × 10^`exponent`, without zeros at either end.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Of a JSON number; `None` where its exponent is beyond all use.
    fn of(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let kept = all.trim_end_matches('0');
        let digits = kept.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Self {
                negative: false,
                digits: String::new(),
                exponent: 0,
            });
        }
        let shift = i64::try_from(all.len() - kept.len()).ok()? - i64::try_from(fraction.len()).ok()?;
        Some(Self {
            negative,
            digits: digits.to_owned(),
            exponent: i64::from(exponent) + shift,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Result<String, Inexact> {
        let mut out = Vec::new();
        write(&serde_json::from_str(text).unwrap(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_examples_of_the_rfc_come_out_as_it_prints_them() {
        let members = r#"{
            "numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        assert_eq!(
            canonical(members).unwrap(),
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
        let order = r#"{"\u20ac": 5, "\r": 1, "\ufb33": 7, "1": 2, "\ud83d\ude00": 6, "\u0080": 3, "\u00f6": 4}"#;
        assert_eq!(
            canonical(order).unwrap(),
            "{\"\\r\":1,\"1\":2,\"\u{80}\":3,\"ö\":4,\"€\":5,\"😀\":6,\"\u{fb33}\":7}"
        );
    }

    #[test]
    fn the_numbers_of_the_rfc_come_out_as_it_prints_them() {
        for (bits, expected) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        ] {
            let text = format!("{:e}", f64::from_bits(bits));
            assert_eq!(canonical(&text).unwrap(), expected, "{text}");
        }
        // Rust itself writes the other one of two texts that are equally near.
        assert_eq!(f64::from_bits(0x4314_3ff3_c1cb_0959), 1_424_953_923_781_206.2);
        assert_eq!(canonical("1424953923781206.2").unwrap(), "1424953923781206.2");
    }

    #[test]
    fn one_value_has_one_text_however_it_is_written() {
        for (many, one) in [
            (&["1", "1.0", "10e-1", "1E0", "0.1e+1"][..], "1"),
            (&["0", "-0", "0.000", "-0e5", "0E999999999"], "0"),
            (&["1.10", "1.1", "11e-1"], "1.1"),
            (&["9007199254740991", "9007199254740991.0"], "9007199254740991"),
            (&["[ 1 ,\n2]", "[1,2]"], "[1,2]"),
            (&[r#""\u0061\/""#, r#""a/""#], r#""a/""#),
        ] {
            for text in many {
                assert_eq!(canonical(text).unwrap(), one, "{text}");
            }
        }
        assert_ne!(canonical(r#""é""#), canonical("\"e\u{301}\""), "no normalisation");
    }

    #[test]
    fn a_number_that_a_double_cannot_hold_has_no_text() {
        for number in [
            "9007199254740992",
            "-9007199254740992",
            "9007199254740993.0",
            "18446744073709551615",
            "12345678901234567890123",
            "333333333.33333329",
            "0.1000000000000000000001",
            "1e400",
            "1e-400",
            "1e99999999999",
            "-1e-99999999999",
        ] {
            assert!(canonical(number).is_err(), "{number}");
        }
    }

    #[test]
    fn the_place_of_a_number_is_told() {
        let fault = canonical(r#"{"a": [1, {"b": 9007199254740993}]}"#).unwrap_err();
        assert_eq!(fault.path, ["b", "1", "a"]);
    }
}
