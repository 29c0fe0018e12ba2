// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Constant C expressions in print formats of the kernel.

/// Expressions nested deeper are not evaluated.
const DEPTH_MAX: u32 = 32;

/// The value of a constant expression: numbers with their suffixes, characters, `| ^ & << >> + - ~`,
/// parentheses, casts (which have no effect). `None` for everything else, including unknown names.
pub fn evaluate(text: &str) -> Option<i128> {
    let mut parser = Parser { rest: text.as_bytes() };
    let value = parser.binary(0, DEPTH_MAX)?;
    parser.blanks();
    parser.rest.is_empty().then_some(value)
}

/// From loosest to tightest.
const OPERATORS: [&[&str]; 5] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"]];

struct Parser<'a> {
    rest: &'a [u8],
}

impl Parser<'_> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.blanks();
        let rest = self.rest.strip_prefix(token.as_bytes());
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn binary(&mut self, level: usize, depth: u32) -> Option<i128> {
        let Some(operators) = OPERATORS.get(level) else {
            return self.unary(depth);
        };
        let mut left = self.binary(level + 1, depth)?;
        loop {
            self.blanks();
            let Some(operator) = operators.iter().find(|operator| self.eat(operator)) else {
                return Some(left);
            };
            // `||` and `&&` are not supported.
            if self.rest.starts_with(operator.as_bytes()) && operator.len() == 1 {
                return None;
            }
            let right = self.binary(level + 1, depth)?;
            left = apply(operator, left, right)?;
        }
    }

    fn unary(&mut self, depth: u32) -> Option<i128> {
        let depth = depth.checked_sub(1)?;
        if self.eat("~") {
            return Some(!self.unary(depth)?);
        }
        if self.eat("-") {
            return self.unary(depth)?.checked_neg();
        }
        if self.eat("(") {
            self.blanks();
            if self.rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
                // A cast.
                let end = self.rest.iter().position(|&byte| byte == b')')?;
                self.rest = &self.rest[end + 1..];
                return self.unary(depth);
            }
            let value = self.binary(0, depth)?;
            return self.eat(")").then_some(value);
        }
        self.number()
    }

    fn number(&mut self) -> Option<i128> {
        self.blanks();
        if let [b'\'', character, b'\'', rest @ ..] = self.rest {
            self.rest = rest;
            return Some(i128::from(*character));
        }
        let end = self.rest.iter().position(|byte| !byte.is_ascii_alphanumeric());
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let word = std::str::from_utf8(word).ok()?.to_ascii_lowercase();
        let digits = word.trim_end_matches(['u', 'l']);
        let value = if let Some(hex) = digits.strip_prefix("0x") {
            u64::from_str_radix(hex, 16).ok()?
        } else if digits.len() > 1 && digits.starts_with('0') {
            u64::from_str_radix(digits, 8).ok()?
        } else {
            digits.parse::<u64>().ok()?
        };
        self.rest = rest;
        Some(i128::from(value))
    }
}

fn apply(operator: &str, left: i128, right: i128) -> Option<i128> {
    match operator {
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "&" => Some(left & right),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        shift => {
            let by = u32::try_from(right).ok().filter(|&by| by < 64)?;
            let small = i64::try_from(left).ok()?;
            Some(if shift == "<<" { i128::from(small) << by } else { i128::from(small >> by) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    #[test]
    fn expressions_of_the_kernel_have_their_values() {
        for (text, value) in [
            ("0x00000001", 1),
            ("1UL << 3", 8),
            ("(( gfp_t)(0x400u|0x800u))", 0xc00),
            ("( unsigned long)(((gfp_t)0x10u) | ((gfp_t)0))", 16),
            ("(((0x1 | 0x2) + 1) << 1) - 1", 7),
            ("-1", -1),
            ("~0 & 0xff", 255),
            ("010", 8),
            ("'I'", 73),
        ] {
            assert_eq!(evaluate(text), Some(value), "{text}");
        }
    }

    #[test]
    fn everything_else_has_none() {
        let deep = "(".repeat(100_000);
        for text in ["", "TASK_RUNNING", "1 ||| 2", "1 || 2", "f(1)", "1 << 64", "(1", "1 2", &deep]
        {
            assert_eq!(evaluate(text), None);
        }
    }
}
