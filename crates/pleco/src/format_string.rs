// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Taking printf formats apart [C11 §7.21.6.1]. Used by the compiler to check
//! them, and by readers to print events whose description is a format.

/// A part of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Literal text; `%%` yields the text `%`.
    Text(&'a str),
    /// A conversion, which takes the next field.
    Conversion(Conversion<'a>),
    /// A `%` followed by something that is not a conversion here.
    Unusable(&'a str),
}

/// One conversion, like `%-08.3lx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion<'a> {
    /// Unchanged from the format.
    pub written: &'a str,
    /// The flags among `-+ #0'`.
    pub flags: &'a str,
    /// Least width in characters; 0 if not given.
    pub width: u16,
    /// Precision, if given.
    pub precision: Option<u16>,
    /// One of `d i u x X o c p s f F e E g G a A`. Length modifiers are accepted
    /// and have no meaning: the field's type says the size.
    pub letter: char,
}

/// Greatest width and precision, so that printing costs bounded memory.
pub const WIDTH_MAX: u16 = 1000;

/// The parts of `format`, in order. Cost: O(length).
pub fn pieces(format: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = format;
    while !rest.is_empty() {
        let text_end = rest.find('%').unwrap_or(rest.len());
        if text_end > 0 {
            found.push(Piece::Text(&rest[..text_end]));
            rest = &rest[text_end..];
            continue;
        }
        if rest.starts_with("%%") {
            found.push(Piece::Text(&rest[..1]));
            rest = &rest[2..];
            continue;
        }
        let (piece, length) = conversion(rest);
        found.push(piece);
        rest = &rest[length..];
    }
    found
}

/// The piece at the start of `rest`, which begins with `%`, and its length.
fn conversion(rest: &str) -> (Piece<'_>, usize) {
    let mut at = 1;
    let digits = |at: usize| {
        let end = rest[at..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| at + n);
        (end, rest[at..end].parse::<u16>().ok().filter(|value| *value <= WIDTH_MAX))
    };
    at += rest[at..].find(|c| !"-+ #0'".contains(c)).unwrap_or(rest.len() - at);
    let flags = &rest[1..at];
    let (end, width) = digits(at);
    let is_width_bad = end > at && width.is_none();
    at = end;
    let mut precision = None;
    let mut is_precision_bad = false;
    if rest[at..].starts_with('.') {
        let (end, value) = digits(at + 1);
        is_precision_bad = end > at + 1 && value.is_none();
        precision = Some(value.unwrap_or(0));
        at = end;
    }
    at += rest[at..].find(|c| !"hljztL".contains(c)).unwrap_or(rest.len() - at);
    let letter = rest[at..].chars().next();
    let end = at + letter.map_or(0, char::len_utf8);
    let letter = letter.filter(|c| "diuxXocpsfFeEgGaA".contains(*c));
    match letter {
        Some(letter) if !is_width_bad && !is_precision_bad => {
            let width = width.unwrap_or(0);
            let written = &rest[..end];
            (Piece::Conversion(Conversion { written, flags, width, precision, letter }), end)
        }
        _ => (Piece::Unusable(&rest[..end]), end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_format() {
        let found = pieces("a %d%%, %-08.3lx %*d %");
        let letters: Vec<String> = found
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => format!("text {text}"),
                Piece::Conversion(c) => {
                    format!("{} [{}] {} {:?}", c.letter, c.flags, c.width, c.precision)
                }
                Piece::Unusable(text) => format!("bad {text}"),
            })
            .collect();
        assert_eq!(
            letters,
            [
                "text a ",
                "d [] 0 None",
                "text %",
                "text , ",
                "x [-0] 8 Some(3)",
                "text  ",
                "bad %*",
                "text d ",
                "bad %",
            ]
        );
    }

    #[test]
    fn huge_widths_are_refused() {
        assert_eq!(pieces("%99999999999d"), [Piece::Unusable("%99999999999d")]);
        assert_eq!(pieces("%.2000f"), [Piece::Unusable("%.2000f")]);
    }
}
