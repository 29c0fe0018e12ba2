// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events whose description is a printf format: the program recorded the raw arguments, and the text is
//! formatted here [C11 §7.21.6.1].

use std::io::Write as _;

use lateralis_model::{Event, Field, FieldKind, Source, Value};
use lateralis_pleco::format_string::{Conversion, Piece, pieces};

use super::text;
use lateralis_store::{Recording, is_length};

/// The formats of a recording, by stream class and event class.
pub struct Messages<'r> {
    classes: Vec<Vec<Option<Message<'r>>>>,
}

/// A parsed format.
pub struct Message<'r> {
    pieces: Vec<Piece<'r>>,
}

impl<'r> Messages<'r> {
    /// Parses the formats in the schemas.
    pub fn new(recording: &'r Recording) -> Self {
        let streams = recording.source.trace().stream_classes.iter().enumerate();
        let classes = streams.map(|(stream, class)| {
            let message = |event| {
                let meaning = recording.meanings.get(stream, event)?;
                let pieces = pieces(&meaning.description);
                meaning.is_format.then_some(Message { pieces })
            };
            (0..class.event_classes.len()).map(message).collect()
        });
        Self { classes: classes.collect() }
    }

    /// Returns the format of an event's class.
    #[inline]
    pub fn get(&self, event: &Event<'_>) -> Option<&Message<'r>> {
        self.classes
            .get(event.stream_class_index as usize)?
            .get(event.class_index as usize)?
            .as_ref()
    }
}

impl Message<'_> {
    /// Appends the message. Conversions consume the fields in order. A conversion without a field, or of a
    /// type that differs from its field's, prints the plain value.
    pub fn write(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        let payload = event.payload().into_iter().flatten();
        let mut fields = payload.filter(|(member, _)| !is_length(&member.name));
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) | Piece::Unusable(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Conversion(conversion) => match fields.next() {
                    Some((_, field)) => convert(out, conversion, field),
                    None => out.extend_from_slice(conversion.written.as_bytes()),
                },
            }
        }
    }
}

fn convert(out: &mut Vec<u8>, conversion: &Conversion<'_>, field: Field<'_>) {
    let mut body = Vec::new();
    // The part that precedes the zeros of the `0` flag: sign, `0x`.
    let mut prefix = "";
    let flag = |letter| conversion.flags.contains(letter);
    let positive = if flag('+') {
        "+"
    } else if flag(' ') {
        " "
    } else {
        ""
    };
    let mut numeric = true;
    match (conversion.letter, field.value()) {
        ('d' | 'i', value) if integer(value).is_some() => {
            let number = signed(field);
            prefix = if number < 0 { "-" } else { positive };
            body.extend_from_slice(number.unsigned_abs().to_string().as_bytes());
            digits(&mut body, conversion.precision);
        }
        ('u' | 'x' | 'X' | 'o', value) if integer(value).is_some() => {
            let number = masked(field);
            let text = match conversion.letter {
                'x' => format!("{number:x}"),
                'X' => format!("{number:X}"),
                'o' if flag('#') && number != 0 => format!("0{number:o}"),
                'o' => format!("{number:o}"),
                _ => number.to_string(),
            };
            prefix = match conversion.letter {
                'x' if flag('#') && number != 0 => "0x",
                'X' if flag('#') && number != 0 => "0X",
                _ => "",
            };
            body.extend_from_slice(text.as_bytes());
            digits(&mut body, conversion.precision);
        }
        ('p', value) if integer(value).is_some() => {
            let _ = write!(body, "{:#x}", masked(field));
        }
        ('c', value) if integer(value).is_some() => {
            let code = u32::try_from(masked(field)).ok().and_then(char::from_u32);
            let character = code.unwrap_or(char::REPLACEMENT_CHARACTER);
            body.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            numeric = false;
        }
        ('s', Value::Text(text)) => {
            let text = text.to_str();
            let most = conversion.precision.map_or(usize::MAX, usize::from);
            body.extend(text.chars().take(most).collect::<String>().into_bytes());
            numeric = false;
        }
        ('f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A', Value::Real(number)) => {
            prefix = if number.is_sign_negative() { "-" } else { positive };
            real(&mut body, conversion, number.abs());
        }
        _ => {
            text::value(&mut body, field);
            numeric = false;
        }
    }
    pad(out, conversion, prefix, &body, numeric);
}

fn integer(value: Value<'_>) -> Option<()> {
    matches!(value, Value::Unsigned(_) | Value::Signed(_) | Value::Bool(_) | Value::Bits(_))
        .then_some(())
}

fn signed(field: Field<'_>) -> i128 {
    match field.value() {
        Value::Signed(number) => i128::from(number),
        _ => i128::from(field.as_u64().unwrap_or(0)),
    }
}

/// Returns the value as unsigned; a negative number is masked to the width of its type.
fn masked(field: Field<'_>) -> u64 {
    let value = field.as_u64().unwrap_or(0);
    match &field.class().kind {
        FieldKind::Signed(class) if class.bits < 64 => value & ((1 << class.bits) - 1),
        _ => value,
    }
}

/// Pads with zeros to the precision.
fn digits(body: &mut Vec<u8>, precision: Option<u16>) {
    let least = precision.map_or(1, usize::from);
    if body.len() < least {
        let missing = least - body.len();
        body.splice(0..0, std::iter::repeat_n(b'0', missing));
    } else if least == 0 && body == b"0" {
        body.clear();
    }
}

fn real(body: &mut Vec<u8>, conversion: &Conversion<'_>, number: f64) {
    let precision = conversion.precision.map_or(6, usize::from);
    let alternative = conversion.flags.contains('#');
    let text = if number.is_nan() {
        "nan".to_owned()
    } else if number.is_infinite() {
        "inf".to_owned()
    } else {
        match conversion.letter.to_ascii_lowercase() {
            'f' => format!("{number:.precision$}"),
            'e' => exponent(number, precision),
            'g' => general(number, precision.max(1), alternative),
            _ => hexadecimal(number, conversion.precision.map(usize::from)),
        }
    };
    let upper = conversion.letter.is_ascii_uppercase();
    body.extend_from_slice(if upper { text.to_uppercase() } else { text }.as_bytes());
}

/// `d.ddde±dd`
fn exponent(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.unsigned_abs())
}

fn general(number: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = exponent(number, precision - 1);
    let power: i32 = scientific.split_once('e').and_then(|(_, p)| p.parse().ok()).unwrap_or(0);
    let trim = |text: &str| match text.contains('.') && !keep_zeros {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if power < -4 || power >= precision as i32 {
        let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        format!("{}e{power}", trim(mantissa))
    } else {
        let decimals = (precision as i32 - 1 - power).max(0) as usize;
        trim(&format!("{number:.decimals$}"))
    }
}

/// `0x1.8p+3`, rounded to `precision` hexadecimal digits, half to even.
fn hexadecimal(number: f64, precision: Option<usize>) -> String {
    let bits = number.to_bits();
    let (raw_power, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (mut lead, power) = match (raw_power, fraction) {
        (0, 0) => (0u64, 0),
        (0, _) => (0, -1022),
        (power, _) => (1, power - 1023),
    };
    let mut digits = fraction;
    let mut shown = 13;
    if let Some(precision) = precision.filter(|&precision| precision < 13) {
        let dropped = 4 * (13 - precision) as u32;
        let whole = lead << 52 | fraction;
        let (kept, rest) = (whole >> dropped, whole & ((1 << dropped) - 1));
        let half = 1u64 << (dropped - 1);
        let up = rest > half || rest == half && kept & 1 == 1;
        let rounded = (kept + u64::from(up)) << dropped;
        lead = rounded >> 52;
        digits = rounded & ((1 << 52) - 1);
        shown = precision;
    }
    let mut text = format!("{digits:013x}");
    text.truncate(shown);
    if precision.is_none() {
        text.truncate(text.trim_end_matches('0').len());
    }
    let more = "0".repeat(precision.map_or(0, |precision| precision.saturating_sub(13)));
    let point = if text.is_empty() && more.is_empty() { "" } else { "." };
    let sign = if power < 0 { '-' } else { '+' };
    format!("0x{lead}{point}{text}{more}p{sign}{}", power.unsigned_abs())
}

fn pad(out: &mut Vec<u8>, conversion: &Conversion<'_>, prefix: &str, body: &[u8], numeric: bool) {
    let characters = body.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
    let missing = usize::from(conversion.width).saturating_sub(characters + prefix.len());
    let has = |flag| conversion.flags.contains(flag);
    let whole = !"diuxXo".contains(conversion.letter) || conversion.precision.is_none();
    let fill = |out: &mut Vec<u8>, byte| out.resize(out.len() + missing, byte);
    if has('-') {
        out.extend_from_slice(prefix.as_bytes());
        out.extend_from_slice(body);
        fill(out, b' ');
    } else if has('0') && numeric && whole && body.first().is_some_and(u8::is_ascii_hexdigit) {
        out.extend_from_slice(prefix.as_bytes());
        fill(out, b'0');
        out.extend_from_slice(body);
    } else {
        fill(out, b' ');
        out.extend_from_slice(prefix.as_bytes());
        out.extend_from_slice(body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::{Encoding, FieldClass, Fields, IntegerClass, Member, Slot};

    fn show(format: &str, class: FieldKind, slot: Slot, bytes: &[u8]) -> String {
        let member = Member { name: "x".to_owned(), class: FieldClass::new(class) };
        let class = FieldClass::new(FieldKind::Struct(vec![member]));
        let slots = [slot];
        let field = Fields::new(&class, &slots, bytes).get("x").unwrap();
        let mut out = Vec::new();
        for piece in pieces(format) {
            match piece {
                Piece::Text(text) | Piece::Unusable(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Conversion(conversion) => convert(&mut out, &conversion, field),
            }
        }
        String::from_utf8(out).unwrap()
    }

    fn int(format: &str, value: i64) -> String {
        let class = IntegerClass { bits: 32, ..Default::default() };
        show(format, FieldKind::Signed(class), Slot::Signed(value), &[])
    }

    fn float(format: &str, value: f64) -> String {
        show(format, FieldKind::Real(64), Slot::Real(value), &[])
    }

    // Expected texts are the output of printf in the C library of Debian 12.
    #[test]
    fn integers_as_c_prints_them() {
        assert_eq!(int("%d", -42), "-42");
        assert_eq!(int("[%6d]", -42), "[   -42]");
        assert_eq!(int("[%-6d]", -42), "[-42   ]");
        assert_eq!(int("[%06d]", -42), "[-00042]");
        assert_eq!(int("[%+d]", 42), "[+42]");
        assert_eq!(int("[% d]", 42), "[ 42]");
        assert_eq!(int("[%.4d]", 42), "[0042]");
        assert_eq!(int("[%08.4d]", 42), "[    0042]");
        assert_eq!(int("%u", -1), "4294967295");
        assert_eq!(int("%#x %X", 255), "0xff FF");
        assert_eq!(int("[%#010x]", 255), "[0x000000ff]");
        assert_eq!(int("%#o", 8), "010");
        assert_eq!(int("%c%%", 65), "A%");
        assert_eq!(int("%p", 4096), "0x1000");
        assert_eq!(int("%lld", 7), "7");
    }

    #[test]
    fn reals_as_c_prints_them() {
        assert_eq!(float("%f", 2.75), "2.750000");
        assert_eq!(float("%.2f", -2.5), "-2.50");
        assert_eq!(float("%e", 12345.678), "1.234568e+04");
        assert_eq!(float("%g", 0.0001), "0.0001");
        assert_eq!(float("%g", 1e10), "1e+10");
        assert_eq!(float("%G", 1e-10), "1E-10");
        assert_eq!(float("%.3g", 1234.5), "1.23e+03");
        assert_eq!(float("%a", 12.0), "0x1.8p+3");
        assert_eq!(float("%.1a", 1.97), "0x2.0p+0");
        assert_eq!(float("[%8.2f]", 1.5), "[    1.50]");
        assert_eq!(float("[%08.2f]", -1.5), "[-0001.50]");
        assert_eq!(float("[%06f]", f64::INFINITY), "[   inf]");
    }

    #[test]
    fn text_is_cut_and_padded_by_characters() {
        let text = "größe".as_bytes();
        let slot = Slot::Span { len: text.len() as u32, start: 0 };
        let class = || FieldKind::Text(Encoding::Utf8);
        assert_eq!(show("[%s]", class(), slot, text), "[größe]");
        assert_eq!(show("[%7s]", class(), slot, text), "[  größe]");
        assert_eq!(show("[%-7.3s]", class(), slot, text), "[grö    ]");
    }

    #[test]
    fn a_conversion_of_another_kind_shows_the_value() {
        assert_eq!(int("%s", 5), "5");
        assert_eq!(float("%d", 1.5), "1.5");
    }
}
