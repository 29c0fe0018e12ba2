// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Format strings of C, whose arguments are all machine words.

/// Widths beyond it are hostile.
const WIDEST: usize = 256;

/// Puts arguments into a format string. A conversion without an argument, or an unknown one, is
/// copied unchanged; `%s` shows the address, because the string is not recorded; `%f` and similar
/// show the word as bits of a double.
pub(crate) fn format(format: &str, arguments: &[u64]) -> String {
    let mut out = String::with_capacity(format.len() + 16);
    let mut arguments = arguments.iter().copied();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((conversion, length)) = Conversion::parse(rest, &mut arguments) else {
            out.push('%');
            rest = &rest[1..];
            continue;
        };
        match conversion {
            Some(conversion) => conversion.write(&mut out),
            None => out.push('%'),
        }
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

#[derive(Debug, Default)]
struct Conversion {
    left: bool,
    zero: bool,
    plus: bool,
    blank: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    /// Bits of the argument that count.
    bits: u32,
    kind: char,
    value: u64,
}

impl Conversion {
    /// The conversion that begins `text`, and its length; `Some(None)` is `%%`.
    fn parse(
        text: &str,
        arguments: &mut (impl Iterator<Item = u64> + Clone),
    ) -> Option<(Option<Self>, usize)> {
        let mut taken = arguments.clone();
        let mut this = Self { bits: 32, ..Self::default() };
        let mut characters = text.char_indices().skip(1).peekable();
        while let Some((_, flag)) = characters.next_if(|(_, c)| "-+ #0".contains(*c)) {
            match flag {
                '-' => this.left = true,
                '+' => this.plus = true,
                ' ' => this.blank = true,
                '#' => this.alternate = true,
                _ => this.zero = true,
            }
        }
        let mut number = |characters: &mut std::iter::Peekable<_>| -> Option<usize> {
            let characters: &mut std::iter::Peekable<std::iter::Skip<std::str::CharIndices<'_>>> =
                characters;
            if characters.next_if(|(_, c)| *c == '*').is_some() {
                return Some((taken.next()? as usize).min(WIDEST));
            }
            let mut value = 0usize;
            while let Some((_, digit)) = characters.next_if(|(_, c)| c.is_ascii_digit()) {
                value = (value * 10 + digit as usize - '0' as usize).min(WIDEST);
            }
            Some(value)
        };
        this.width = number(&mut characters)?;
        if characters.next_if(|(_, c)| *c == '.').is_some() {
            this.precision = Some(number(&mut characters)?);
        }
        while let Some((_, length)) = characters.next_if(|(_, c)| "hlLqjzt".contains(*c)) {
            this.bits = match (length, this.bits) {
                ('h', 16) => 8,
                ('h', _) => 16,
                _ => 64,
            };
        }
        let (at, kind) = characters.next()?;
        let length = at + kind.len_utf8();
        if kind == '%' {
            return Some((None, length));
        }
        if !"diuxXocspfFeEgGaA".contains(kind) {
            return None;
        }
        (this.kind, this.value) = (kind, taken.next()?);
        *arguments = taken;
        Some((Some(this), length))
    }

    fn write(&self, out: &mut String) {
        let unsigned =
            if self.bits == 64 { self.value } else { self.value & ((1 << self.bits) - 1) };
        let signed = (self.value << (64 - self.bits)) as i64 >> (64 - self.bits);
        let alternate = |prefix| if self.alternate && unsigned != 0 { prefix } else { "" };
        let (sign, digits) = match self.kind {
            'd' | 'i' => {
                let sign = match (signed < 0, self.plus, self.blank) {
                    (true, ..) => "-",
                    (_, true, _) => "+",
                    (.., true) => " ",
                    _ => "",
                };
                (sign, signed.unsigned_abs().to_string())
            }
            'u' => ("", unsigned.to_string()),
            'x' => (alternate("0x"), format!("{unsigned:x}")),
            'X' => (alternate("0X"), format!("{unsigned:X}")),
            'o' => (alternate("0"), format!("{unsigned:o}")),
            'p' | 's' => ("0x", format!("{:x}", self.value)),
            'c' => ("", char::from(self.value as u8).to_string()),
            _ => {
                let digits = self.precision.unwrap_or(6);
                ("", format!("{:.digits$}", f64::from_bits(self.value)))
            }
        };
        let whole = "diuxXo".contains(self.kind);
        let least = self.precision.filter(|_| whole).unwrap_or(0);
        let zeros = least.saturating_sub(digits.len());
        let used = sign.len() + zeros + digits.chars().count();
        let padding = self.width.saturating_sub(used);
        let fill = self.zero && !self.left && self.precision.is_none() && self.kind != 'c';
        if !self.left && !fill {
            out.extend(std::iter::repeat_n(' ', padding));
        }
        out.push_str(sign);
        out.extend(std::iter::repeat_n('0', zeros + if fill { padding } else { 0 }));
        out.push_str(&digits);
        if self.left {
            out.extend(std::iter::repeat_n(' ', padding));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_those_of_c() {
        let cases: [(&str, &[u64], &str); 14] = [
            ("a %d, b %u", &[u64::MAX, 7], "a -1, b 7"),
            ("%ld", &[u64::MAX], "-1"),
            ("%x %#lx %08x", &[255, 255, 255], "ff 0xff 000000ff"),
            ("[%5d|%-5d|%+d]", &[42, 42, 42], "[   42|42   |+42]"),
            ("[%*d]", &[4, 42], "[  42]"),
            ("[%.3u]", &[7], "[007]"),
            ("%hhd %hu", &[0xff, 0x1_2345], "-1 9029"),
            ("%c%%", &[65], "A%"),
            ("%p %s", &[4096, 4096], "0x1000 0x1000"),
            ("%.2f", &[1.5f64.to_bits()], "1.50"),
            ("%d %d", &[1], "1 %d"),
            ("%y %", &[1], "%y %"),
            ("ü%dü", &[1], "ü1ü"),
            ("%999999999999d", &[1], &format!("{:>256}", 1)),
        ];
        for (text, arguments, expected) in cases {
            assert_eq!(format(text, arguments), expected, "{text}");
        }
    }
}
