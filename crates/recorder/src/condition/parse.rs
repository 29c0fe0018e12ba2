// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses conditions. Grammar and meaning: docs/guides/keep.md.

use std::fmt;

use super::{
    Compare, Condition, DEPTH_MAX, EventName, FieldTest, Literal, PARTS_MAX, TESTS_MAX, TEXT_MAX,
    Term, Test,
};

/// A parse error of a condition, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionError {
    /// The condition.
    pub text: String,
    /// Offset of the error in characters.
    pub at: usize,
    /// What is wrong there.
    pub what: String,
    /// What to write instead.
    pub advice: String,
}

impl ConditionError {
    /// The text with a caret below the error.
    #[must_use]
    pub fn picture(&self) -> String {
        // Other white space would shift the caret.
        let line: String =
            self.text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        format!("  {line}\n  {}^", " ".repeat(self.at))
    }
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cannot understand condition: {}; {}\n{}", self.what, self.advice, self.picture())
    }
}

impl std::error::Error for ConditionError {}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    /// Digits and the characters that directly follow them.
    Number(String),
    Text(String),
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 12] = [">=", "<=", "==", "!=", ">", "<", "=", "(", ")", ",", ":", "-"];
const TESTS: [&str; 6] = ["span", "sequence", "missing", "rate", "counter", "event"];
const TESTS_ADVICE: &str = "write span(NAME) > TIME, sequence(EVENT, EVENT) within TIME, \
    missing(EVENT) for TIME, rate(EVENT) > N/s, counter(NAME) > N or event(EVENT, FIELD == VALUE)";
const TIME_ADVICE: &str = "write a time like 5ms: a number and ns, us, ms, s, min or h";
const NAME_ADVICE: &str = "write SUBSYSTEM:EVENT";

struct Parser<'a> {
    characters: Vec<char>,
    text: &'a str,
    tokens: Vec<(Token, usize)>,
    next: usize,
}

impl Condition {
    /// Parses a condition.
    ///
    /// Errors: the first error in the text.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        if text.len() > TEXT_MAX {
            let what = format!("it has more than {TEXT_MAX} bytes");
            let advice = "give several conditions, each with --when".to_owned();
            let text = text.chars().take(40).collect();
            return Err(ConditionError { text, at: 0, what, advice });
        }
        let characters = text.chars().collect();
        let mut parser = Parser { characters, text, tokens: Vec::new(), next: 0 };
        parser.split()?;
        parser.condition()
    }
}

impl Parser<'_> {
    fn error<T>(
        &self,
        at: usize,
        what: impl Into<String>,
        advice: &str,
    ) -> Result<T, ConditionError> {
        let (what, advice) = (what.into(), advice.to_owned());
        Err(ConditionError { text: self.text.to_owned(), at, what, advice })
    }

    /// Splits the text into tokens.
    fn split(&mut self) -> Result<(), ConditionError> {
        let mut at = 0;
        while let Some(first) = self.characters.get(at).copied() {
            let start = at;
            let while_is = |from: usize, is: &dyn Fn(char) -> bool| {
                let rest = self.characters.iter().skip(from);
                from + rest.take_while(|c| is(**c)).count()
            };
            if first.is_whitespace() {
                at += 1;
                continue;
            }
            let token = if first.is_ascii_digit() {
                at = while_is(at, &|c| {
                    c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | 'µ' | '_')
                });
                Token::Number(self.characters[start..at].iter().collect())
            } else if first.is_alphabetic() || first == '_' {
                at = while_is(at, &|c| c.is_alphanumeric() || matches!(c, '_' | '\''));
                Token::Word(self.characters[start..at].iter().collect())
            } else if first == '"' {
                let end = while_is(at + 1, &|c| c != '"');
                if end == self.characters.len() {
                    return self.error(start, "the text has no end", "close it with \"");
                }
                at = end + 1;
                Token::Text(self.characters[start + 1..end].iter().collect())
            } else {
                let rest: String = self.characters[at..].iter().take(2).collect();
                let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(*symbol))
                else {
                    return self.error(
                        start,
                        format!("{first:?} means nothing here"),
                        TESTS_ADVICE,
                    );
                };
                at += symbol.len();
                Token::Symbol(symbol)
            };
            self.tokens.push((token, start));
        }
        self.tokens.push((Token::End, self.characters.len()));
        Ok(())
    }

    fn peek(&self) -> (&Token, usize) {
        let (token, at) = &self.tokens[self.next.min(self.tokens.len() - 1)];
        (token, *at)
    }

    fn take(&mut self) -> (Token, usize) {
        let (token, at) = self.peek();
        let taken = (token.clone(), at);
        self.next += 1;
        taken
    }

    fn takes(&mut self, symbol: &'static str) -> bool {
        let is_it = *self.peek().0 == Token::Symbol(symbol);
        self.next += usize::from(is_it);
        is_it
    }

    fn symbol(&mut self, symbol: &'static str, advice: &str) -> Result<(), ConditionError> {
        let at = self.peek().1;
        if self.takes(symbol) {
            Ok(())
        } else {
            self.error(at, format!("expected {symbol:?}"), advice)
        }
    }

    fn word(&mut self, wanted: &str, advice: &str) -> Result<String, ConditionError> {
        match self.take() {
            (Token::Word(word), _) => Ok(word),
            (_, at) => self.error(at, format!("expected {wanted}"), advice),
        }
    }

    fn keyword(&mut self, word: &str, advice: &str) -> Result<(), ConditionError> {
        match self.take() {
            (Token::Word(found), _) if found == word => Ok(()),
            (_, at) => self.error(at, format!("expected {word:?}"), advice),
        }
    }

    fn condition(&mut self) -> Result<Condition, ConditionError> {
        let mut tests = Vec::new();
        let alternatives = self.any(&mut tests, 0)?;
        match self.take() {
            (Token::End, _) => Ok(Condition { tests, alternatives }),
            (Token::Symbol(")"), at) => {
                self.error(at, "there is no \"(\" to this \")\"", "leave it out, or add one")
            }
            (_, at) => self.error(at, "expected `or`, `and` or the end", TESTS_ADVICE),
        }
    }

    fn is_next(&self, word: &str) -> bool {
        matches!(self.peek().0, Token::Word(next) if next == word)
    }

    /// The operands of `or`, each with its text.
    fn any(
        &mut self,
        tests: &mut Vec<(String, Test)>,
        depth: usize,
    ) -> Result<Vec<(String, Term)>, ConditionError> {
        let mut alternatives = Vec::new();
        loop {
            let start = self.peek().1;
            let term = self.all(tests, depth)?;
            alternatives.push((self.text_from(start), term));
            if !self.is_next("or") {
                return Ok(alternatives);
            }
            self.next += 1;
        }
    }

    fn text_from(&self, start: usize) -> String {
        let text: String = self.characters[start..self.peek().1].iter().collect();
        text.trim_end().to_owned()
    }

    /// The operands of `and`, with the time within which all must fire.
    fn all(
        &mut self,
        tests: &mut Vec<(String, Test)>,
        depth: usize,
    ) -> Result<Term, ConditionError> {
        let mut terms = vec![self.part(tests, depth)?];
        let first_and = self.peek().1;
        while self.is_next("and") {
            self.next += 1;
            terms.push(self.part(tests, depth)?);
        }
        match (terms.pop(), terms.is_empty()) {
            (Some(only), true) => Ok(only),
            (last, _) => {
                terms.extend(last);
                if !self.is_next("within") {
                    let what = "two things that happen are never at the same moment";
                    let advice = "say how near they are: A and B within TIME";
                    return self.error(first_and, what, advice);
                }
                self.next += 1;
                Ok(Term::All { terms, within_ns: self.time()? })
            }
        }
    }

    fn part(
        &mut self,
        tests: &mut Vec<(String, Test)>,
        depth: usize,
    ) -> Result<Term, ConditionError> {
        let start = self.peek().1;
        if self.takes("(") {
            if depth == DEPTH_MAX {
                let what = format!("there are more than {DEPTH_MAX} parentheses within each other");
                return self.error(start, what, "leave some out");
            }
            let inner = self.any(tests, depth + 1)?;
            self.symbol(")", "close what was opened with \"(\"")?;
            let mut terms: Vec<Term> = inner.into_iter().map(|(_, term)| term).collect();
            return Ok(match (terms.len(), terms.pop()) {
                (1, Some(only)) => only,
                (_, last) => {
                    terms.extend(last);
                    Term::Any(terms)
                }
            });
        }
        if tests.len() == TESTS_MAX {
            let what = format!("there are more than {TESTS_MAX} tests");
            return self.error(start, what, "leave some out");
        }
        let test = self.test()?;
        tests.push((self.text_from(start), test));
        Ok(Term::Test(tests.len() - 1))
    }

    fn test(&mut self) -> Result<Test, ConditionError> {
        let at = self.peek().1;
        let kind = self.word("a test", TESTS_ADVICE)?;
        if !TESTS.contains(&kind.as_str()) {
            let near = lateralis_pleco::nearest(&kind, TESTS);
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            return self.error(at, format!("there is no test {kind:?}{near}"), TESTS_ADVICE);
        }
        self.symbol("(", TESTS_ADVICE)?;
        match kind.as_str() {
            "span" => {
                let name = self.word("the name of a span", "write span(NAME) > TIME")?;
                self.symbol(")", "write span(NAME) > TIME")?;
                if !self.takes(">") && !self.takes(">=") {
                    let at = self.peek().1;
                    return self.error(at, "expected \">\"", "write span(NAME) > TIME");
                }
                Ok(Test::Span { name, limit_ns: self.time()? })
            }
            "sequence" => self.sequence(),
            "missing" => {
                let event = self.event_name()?;
                self.symbol(")", "write missing(EVENT) for TIME")?;
                self.keyword("for", "write missing(EVENT) for TIME")?;
                Ok(Test::Missing { event, limit_ns: self.time()? })
            }
            "rate" => self.rate(),
            "counter" => {
                let advice = "write counter(NAME) > N";
                let name = self.word("the name of a counter", advice)?;
                self.symbol(")", advice)?;
                let compare = self.compare(advice)?;
                let at = self.peek().1;
                match self.literal()? {
                    Literal::Integer(value) => {
                        Ok(Test::Counter { name, compare, value: value as f64 })
                    }
                    Literal::Real(value) => Ok(Test::Counter { name, compare, value }),
                    _ => self.error(at, "expected a number", advice),
                }
            }
            _ => self.event(),
        }
    }

    fn event_name(&mut self) -> Result<EventName, ConditionError> {
        let first = self.word("an event", NAME_ADVICE)?;
        if !self.takes(":") {
            return Ok(EventName { subsystem: None, event: first });
        }
        let event = self.word("the event's name", NAME_ADVICE)?;
        Ok(EventName { subsystem: Some(first), event })
    }

    fn sequence(&mut self) -> Result<Test, ConditionError> {
        let advice = "write sequence(EVENT, EVENT) within TIME";
        let mut events = vec![self.event_name()?];
        while self.takes(",") {
            if events.len() == PARTS_MAX {
                let what = format!("there are more than {PARTS_MAX} events");
                return self.error(self.peek().1, what, advice);
            }
            events.push(self.event_name()?);
        }
        let at = self.peek().1;
        self.symbol(")", advice)?;
        if events.len() < 2 {
            return self.error(at, "a sequence has at least two events", advice);
        }
        self.keyword("within", advice)?;
        Ok(Test::Sequence { events, within_ns: self.time()? })
    }

    fn rate(&mut self) -> Result<Test, ConditionError> {
        let advice = "write rate(EVENT) > N/s, or rate(EVENT) < N/s over TIME";
        let event = self.event_name()?;
        self.symbol(")", advice)?;
        let at = self.peek().1;
        let compare = self.compare(advice)?;
        if matches!(compare, Compare::Equal | Compare::Different) {
            return self.error(at, "a rate is greater or less", advice);
        }
        let (number, at) = match self.take() {
            (Token::Number(number), at) => (number, at),
            (_, at) => return self.error(at, "expected a number of events a second", advice),
        };
        let per_second = number.strip_suffix("/s").and_then(|number| number.parse::<f64>().ok());
        let Some(per_second) = per_second.filter(|rate| rate.is_finite()) else {
            return self.error(at, "expected a number of events a second", advice);
        };
        let mut over_ns = 1_000_000_000;
        if *self.peek().0 == Token::Word("over".to_owned()) {
            self.next += 1;
            over_ns = self.time()?;
        }
        Ok(Test::Rate { event, compare, per_second, over_ns })
    }

    fn event(&mut self) -> Result<Test, ConditionError> {
        let advice = "write event(SUBSYSTEM:EVENT, FIELD == VALUE)";
        let event = self.event_name()?;
        let mut fields = Vec::new();
        while self.takes(",") {
            if fields.len() == PARTS_MAX {
                let what = format!("there are more than {PARTS_MAX} fields");
                return self.error(self.peek().1, what, advice);
            }
            let field = self.word("the name of a field", advice)?;
            let compare = self.compare(advice)?;
            fields.push(FieldTest { field, compare, value: self.literal()? });
        }
        self.symbol(")", advice)?;
        Ok(Test::Event { event, fields })
    }

    fn compare(&mut self, advice: &str) -> Result<Compare, ConditionError> {
        let (token, at) = self.take();
        Ok(match token {
            Token::Symbol(">") => Compare::Greater,
            Token::Symbol(">=") => Compare::AtLeast,
            Token::Symbol("<") => Compare::Less,
            Token::Symbol("<=") => Compare::AtMost,
            Token::Symbol("==" | "=") => Compare::Equal,
            Token::Symbol("!=") => Compare::Different,
            _ => return self.error(at, "expected a comparison like > or ==", advice),
        })
    }

    fn literal(&mut self) -> Result<Literal, ConditionError> {
        let advice = "write a number, \"text\", or the label of an enum";
        let sign = if self.takes("-") { -1 } else { 1 };
        let (number, at) = match self.take() {
            (Token::Number(number), at) => (number, at),
            (Token::Text(text), _) if sign > 0 => return Ok(Literal::Text(text)),
            (Token::Word(word), _) if sign > 0 => return Ok(Literal::Word(word)),
            (_, at) => return self.error(at, "expected a value", advice),
        };
        let digits = number.replace('_', "");
        let integer = match digits.strip_prefix("0x") {
            Some(hex) => i128::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        };
        if let Some(integer) = integer.and_then(|integer: i128| integer.checked_mul(sign)) {
            return Ok(Literal::Integer(integer));
        }
        match digits.parse::<f64>() {
            Ok(real) if real.is_finite() => Ok(Literal::Real(real * sign as f64)),
            _ => self.error(at, format!("{number:?} is no number"), advice),
        }
    }

    fn time(&mut self) -> Result<u64, ConditionError> {
        let (number, at) = match self.take() {
            (Token::Number(number), at) => (number, at),
            (_, at) => return self.error(at, "expected a time", TIME_ADVICE),
        };
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        let (digits, mut unit) = number.split_at(end);
        let separate = match self.peek().0 {
            Token::Word(word) if unit.is_empty() => Some(word.clone()),
            _ => None,
        };
        if let Some(word) = &separate {
            self.next += 1;
            unit = word;
        }
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "min" | "m" => 60e9,
            "h" => 3600e9,
            "" => return self.error(at, "the time has no unit", TIME_ADVICE),
            _ => return self.error(at, format!("{unit:?} is no unit of time"), TIME_ADVICE),
        };
        // A year is sufficient, and leaves room for sums of times.
        let most = 365.0 * 86_400e9;
        match digits.parse::<f64>().map(|number| number * scale) {
            Ok(ns) if (1.0..=most).contains(&ns) => Ok(ns as u64),
            Ok(_) => self.error(at, "the time is not between 1 ns and a year", TIME_ADVICE),
            Err(_) => self.error(at, "expected a time", TIME_ADVICE),
        }
    }
}
