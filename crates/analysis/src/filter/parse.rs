// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parser of expressions: recursive descent with a bound on the depth.

use std::fmt;

use super::{Comparison, Expression, Known, Operand, Step};

/// Maximum nesting of parentheses and negations.
const DEPTH_MAX: usize = 64;

/// Syntax error in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Column in characters, from 1.
    pub column: usize,
    /// What was expected there.
    pub message: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for SyntaxError {}

pub(super) fn expression(text: &str) -> Result<Expression, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let expression = parser.or()?;
    parser.blanks();
    match parser.rest() {
        "" => Ok(expression),
        _ => Err(parser.error("expected && or || or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, message: &str) -> SyntaxError {
        let column = self.text[..self.at].chars().count() + 1;
        SyntaxError { column, message: message.to_owned() }
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn or(&mut self) -> Result<Expression, SyntaxError> {
        let mut left = self.and()?;
        while self.take("||") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, SyntaxError> {
        let mut left = self.unary()?;
        while self.take("&&") {
            left = Expression::And(Box::new(left), Box::new(self.unary()?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error("nested too deeply"));
        }
        self.blanks();
        let negated = self.rest().starts_with('!') && !self.rest().starts_with("!~");
        let expression = if negated {
            self.at += 1;
            Expression::Not(Box::new(self.unary()?))
        } else if self.take("(") {
            let inner = self.or()?;
            if !self.take(")") {
                return Err(self.error("expected )"));
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn comparison(&mut self) -> Result<Expression, SyntaxError> {
        const OPERATORS: [(&str, Comparison); 8] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("=~", Comparison::Matches),
            ("!~", Comparison::MatchesNot),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let left = self.operand()?;
        for (token, comparison) in OPERATORS {
            if self.take(token) {
                let right = match self.operand()? {
                    // A bare word on the right is text: labels need no quotes.
                    Operand::Field(steps) => match steps.as_slice() {
                        [Step::Member(word)] => Operand::Text(word.clone()),
                        _ => Operand::Field(steps),
                    },
                    operand => operand,
                };
                return Ok(Expression::Compare(left, comparison, right));
            }
        }
        if self.rest().starts_with('=') {
            return Err(self.error("expected == for a comparison"));
        }
        Ok(Expression::Truth(left))
    }

    fn operand(&mut self) -> Result<Operand, SyntaxError> {
        self.blanks();
        match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            Some('$') => self.known(),
            Some(first) if first.is_ascii_digit() || first == '-' => self.number(),
            Some(first) if first.is_alphabetic() || first == '_' => self.field(),
            _ => Err(self.error("expected a field, a number or a text in quotes")),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Operand, SyntaxError> {
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                _ if character == quote => {
                    self.at += at + 1;
                    return Ok(Operand::Text(text));
                }
                other => text.push(other),
            }
        }
        Err(self.error("this text has no closing quote"))
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn known(&mut self) -> Result<Operand, SyntaxError> {
        const NAMES: [(&str, Known); 10] = [
            ("event", Known::Event),
            ("subsystem", Known::Subsystem),
            ("phase", Known::Phase),
            ("cpu", Known::Cpu),
            ("pid", Known::Pid),
            ("tid", Known::Tid),
            ("process", Known::Process),
            ("thread", Known::Thread),
            ("stream", Known::Stream),
            ("time", Known::Time),
        ];
        let error = self.error(
            "expected $event, $subsystem, $phase, $cpu, $pid, $tid, $process, $thread, $stream or \
             $time",
        );
        self.at += 1;
        let word = self.word();
        let found = NAMES.iter().find(|(name, _)| *name == word);
        found.map(|(_, known)| Operand::Known(*known)).ok_or(error)
    }

    fn number(&mut self) -> Result<Operand, SyntaxError> {
        let error = self.error("expected a number like 12, 0x1f, 1.5ms or 4k");
        let rest = self.rest();
        let (negative, digits) = match rest.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, rest),
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
        let end = digits.find(|c| !is_part(c)).unwrap_or(digits.len());
        let written = digits[..end].replace('_', "");
        self.at += end + usize::from(negative);
        if let Some(hexadecimal) = written.strip_prefix("0x") {
            let value = u64::from_str_radix(hexadecimal, 16).map_err(|_| error)?;
            let value = i128::from(value);
            return Ok(Operand::Integer(if negative { -value } else { value }));
        }
        let unit = written.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(written.len());
        let factor: i128 = match &written[unit..] {
            "" | "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "k" | "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            _ => return Err(error),
        };
        let number = &written[..unit];
        if number.contains('.') {
            let value: f64 = number.parse().map_err(|_| error)?;
            let value = value * factor as f64;
            return Ok(Operand::Real(if negative { -value } else { value }));
        }
        let value: u64 = number.parse().map_err(|_| error)?;
        let value = i128::from(value) * factor;
        Ok(Operand::Integer(if negative { -value } else { value }))
    }

    fn field(&mut self) -> Result<Operand, SyntaxError> {
        let mut steps = vec![Step::Member(self.word().to_owned())];
        loop {
            if self.rest().starts_with('.') {
                self.at += 1;
                match self.word() {
                    "" => return Err(self.error("expected the name of a field")),
                    word => steps.push(Step::Member(word.to_owned())),
                }
            } else if self.rest().starts_with('[') {
                self.at += 1;
                let index = self.word().parse();
                let index = index.map_err(|_| self.error("expected the number of an element"))?;
                if !self.rest().starts_with(']') {
                    return Err(self.error("expected ]"));
                }
                self.at += 1;
                steps.push(Step::Element(index));
            } else {
                return Ok(Operand::Field(steps));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_column_and_expectation() {
        for (text, column, part) in [
            ("", 1, "expected a field"),
            ("a = 1", 3, "expected =="),
            ("a == ", 6, "expected a field"),
            ("a == 1 b", 8, "expected && or ||"),
            ("(a == 1", 8, "expected )"),
            ("a == \"x", 6, "no closing quote"),
            ("$soon == 1", 1, "expected $event"),
            ("a == 12parsec", 6, "expected a number"),
            ("a[x] == 1", 4, "number of an element"),
            ("a. == 1", 3, "name of a field"),
            ("ü == 1 ü", 8, "expected && or ||"),
        ] {
            let error = expression(text).unwrap_err();
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let text = "(".repeat(100_000);
        assert_eq!(expression(&text).unwrap_err().message, "nested too deeply");
        assert!(expression(&"!".repeat(100_000)).is_err());
        let wide = vec!["a"; 10_000].join(" && ");
        assert!(expression(&wide).is_ok());
    }

    #[test]
    fn numbers_have_units() {
        let value = |text| match expression(&format!("a == {text}")).unwrap() {
            Expression::Compare(_, _, value) => value,
            other => panic!("{other:?}"),
        };
        assert_eq!(value("0x1F"), Operand::Integer(31));
        assert_eq!(value("-4k"), Operand::Integer(-4096));
        assert_eq!(value("1.5ms"), Operand::Real(1.5e6));
        assert_eq!(value("18446744073709551615"), Operand::Integer(u64::MAX.into()));
        assert_eq!(value("1_000"), Operand::Integer(1000));
    }
}
