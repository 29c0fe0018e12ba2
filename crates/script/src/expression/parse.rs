// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the text of a function to an expression: precedence climbing, bounded.

use lateralis_analysis::filter::Known;

use super::lex::{Placed, Token, tokens};
use super::value::{Binary, Value, negated};
use super::{Expression, Key, Node, Path, Step, TextTest, Unary, Unsupported};

/// Bytes of a function that is worth compiling.
const TEXT_MAX: usize = 1 << 16;
/// Parentheses and unary operators inside each other.
const DEPTH_MAX: usize = 64;
/// Operators and operands; also bounds how deep a chain of operators nests.
const NODES_MAX: usize = 1000;

pub(super) fn function(text: &str) -> Result<Expression, Unsupported> {
    let mut parser = Parser::new(text)?;
    let mut parameter = None;
    if parser.take_word("function") {
        if let Token::Word(name) = parser.peek() {
            if is_global(name) {
                return Err(parser.unsupported("a function with such a name"));
            }
            parser.next();
        }
        parser.expect("(")?;
        if !parser.take(")") {
            parameter = Some(parser.name()?);
            parser.expect(")")?;
        }
        parser.parameter = parameter;
        let root = parser.block()?;
        return parser.finish(root);
    }
    if parser.take("(") {
        if !parser.take(")") {
            parameter = Some(parser.name()?);
            parser.expect(")")?;
        }
    } else {
        parameter = Some(parser.name()?);
    }
    parser.expect("=>")?;
    parser.parameter = parameter;
    let root = if parser.is_sign("{") { parser.block()? } else { parser.choice()? };
    parser.finish(root)
}

pub(super) fn expression(text: &str, parameter: &str) -> Result<Expression, Unsupported> {
    let mut parser = Parser::new(text)?;
    parser.parameter = Some(parameter);
    let root = parser.choice()?;
    parser.take(";");
    parser.finish(root)
}

fn is_global(word: &str) -> bool {
    matches!(word, "undefined" | "NaN" | "Infinity")
}

struct Parser<'a> {
    tokens: Vec<Placed<'a>>,
    next: usize,
    parameter: Option<&'a str>,
    depth: usize,
    nodes: usize,
    paths: Vec<Path>,
    names_globals: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, Unsupported> {
        if text.len() > TEXT_MAX {
            return Err(Unsupported::new(0, "a very long function"));
        }
        Ok(Self {
            tokens: tokens(text)?,
            next: 0,
            parameter: None,
            depth: 0,
            nodes: 0,
            paths: Vec::new(),
            names_globals: false,
        })
    }

    fn finish(self, root: Node) -> Result<Expression, Unsupported> {
        if *self.peek() != Token::End {
            return Err(self.unsupported_here());
        }
        Ok(Expression { root, paths: self.paths, names_globals: self.names_globals })
    }

    fn placed(&self) -> &Placed<'a> {
        // The last token is the end, which is never consumed.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> &Token<'a> {
        &self.placed().token
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn unsupported(&self, what: impl Into<String>) -> Unsupported {
        Unsupported::new(self.placed().at, what)
    }

    fn unsupported_here(&self) -> Unsupported {
        self.unsupported(match self.peek() {
            Token::Word(word) => format!("`{word}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "an end too early".to_owned(),
            _ => "a literal in an unusual place".to_owned(),
        })
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.next += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(found) if *found == word);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Unsupported> {
        if self.take(sign) { Ok(()) } else { Err(self.unsupported_here()) }
    }

    fn name(&mut self) -> Result<&'a str, Unsupported> {
        match *self.peek() {
            Token::Word(word) => {
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.unsupported_here()),
        }
    }

    fn node(&mut self, node: Node) -> Result<Node, Unsupported> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(self.unsupported("a very long expression"));
        }
        Ok(node)
    }

    /// `{ return …; }`
    fn block(&mut self) -> Result<Node, Unsupported> {
        self.expect("{")?;
        if !self.take_word("return") {
            return Err(self.unsupported("more than one `return`"));
        }
        // A line break after `return` ends the statement.
        if self.placed().on_new_line {
            return Err(self.unsupported("a `return` of nothing"));
        }
        let node = self.choice()?;
        self.take(";");
        self.expect("}")?;
        Ok(node)
    }

    fn choice(&mut self) -> Result<Node, Unsupported> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.unsupported("too deep a nesting"));
        }
        let condition = self.nullish()?;
        let node = if self.take("?") {
            let yes = self.choice()?;
            self.expect(":")?;
            let no = self.choice()?;
            self.node(Node::Choose(Box::new(condition), Box::new(yes), Box::new(no)))?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(node)
    }

    fn nullish(&mut self) -> Result<Node, Unsupported> {
        let mut left = self.or()?;
        while self.take("??") {
            let right = self.or()?;
            left = self.node(Node::Nullish(Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn or(&mut self) -> Result<Node, Unsupported> {
        let mut left = self.and()?;
        while self.take("||") {
            let right = self.and()?;
            left = self.node(Node::Or(Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Node, Unsupported> {
        let mut left = self.binary(0)?;
        while self.take("&&") {
            let right = self.binary(0)?;
            left = self.node(Node::And(Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn operator(&self, level: usize) -> Option<Binary> {
        use Binary::*;
        const LEVELS: [&[(&str, Binary)]; 8] = [
            &[("|", Or)],
            &[("^", Xor)],
            &[("&", And)],
            &[("===", Same), ("!==", NotSame), ("==", Equal), ("!=", NotEqual)],
            &[("<", Less), ("<=", LessOrEqual), (">", Greater), (">=", GreaterOrEqual)],
            &[("<<", ShiftLeft), (">>", ShiftRight), (">>>", ShiftRightUnsigned)],
            &[("+", Add), ("-", Subtract)],
            &[("*", Multiply), ("/", Divide), ("%", Remainder)],
        ];
        let Token::Sign(sign) = *self.peek() else { return None };
        LEVELS.get(level)?.iter().find(|(known, _)| *known == sign).map(|(_, binary)| *binary)
    }

    fn binary(&mut self, level: usize) -> Result<Node, Unsupported> {
        const HIGHEST: usize = 8;
        if level == HIGHEST {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            self.next += 1;
            let right = self.binary(level + 1)?;
            left = self.node(Node::Binary(operator, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, Unsupported> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.unsupported("too deep a nesting"));
        }
        let node = if self.take("!") {
            let inner = self.unary()?;
            self.node(Node::Not(Box::new(inner)))?
        } else {
            let operator = match *self.peek() {
                Token::Sign("-") => Some(Unary::Negate),
                Token::Sign("+") => Some(Unary::Plus),
                Token::Sign("~") => Some(Unary::Invert),
                Token::Word("typeof") if self.parameter != Some("typeof") => Some(Unary::TypeOf),
                _ => None,
            };
            match operator {
                None => self.primary()?,
                Some(operator) => {
                    self.next += 1;
                    match (operator, self.unary()?) {
                        (Unary::Negate, Node::Constant(value)) if negated(&value).is_some() => {
                            Node::Constant(negated(&value).unwrap_or(Value::Undefined))
                        }
                        (operator, inner) => self.node(Node::Unary(operator, Box::new(inner)))?,
                    }
                }
            }
        };
        self.depth -= 1;
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node, Unsupported> {
        let here = self.unsupported_here();
        let node = match self.next() {
            Token::Number(value) => Node::Constant(Value::Number(value)),
            Token::Big(value) => Node::Constant(Value::Big(value)),
            Token::Text(text) => Node::Constant(Value::Text(text.into())),
            Token::Sign("(") => {
                let inner = self.choice()?;
                self.expect(")")?;
                inner
            }
            Token::Word(word) if Some(word) == self.parameter => return self.chain(),
            Token::Word("true") => Node::Constant(Value::Bool(true)),
            Token::Word("false") => Node::Constant(Value::Bool(false)),
            Token::Word("null") => Node::Constant(Value::Null),
            Token::Word(word) if is_global(word) => {
                self.names_globals = true;
                Node::Constant(match word {
                    "NaN" => Value::Number(f64::NAN),
                    "Infinity" => Value::Number(f64::INFINITY),
                    _ => Value::Undefined,
                })
            }
            Token::Sign("/") => return Err(Unsupported::new(here.at, "a regular expression")),
            _ => return Err(here),
        };
        // A step into what is no part of an event, a call.
        if let Token::Sign("." | "?." | "[" | "(" | "++" | "--") = self.peek() {
            return Err(self.unsupported_here());
        }
        self.node(node)
    }

    /// What follows the parameter: `.fields.bytes`.
    fn chain(&mut self) -> Result<Node, Unsupported> {
        let Some((Key::Name(first), _)) = self.step()? else {
            return Err(self.unsupported("the event as a whole"));
        };
        let path = match first.as_str() {
            "fields" | "labels" => {
                let mut steps = Vec::new();
                let mut test = None;
                while let Some((key, is_optional)) = self.step()? {
                    if self.is_sign("(") {
                        test = Some((key, is_optional));
                        break;
                    }
                    steps.push(Step { key, is_optional });
                }
                let path = match (first.as_str(), steps.as_slice()) {
                    (_, []) => return Err(self.unsupported(format!("`{first}` as a whole"))),
                    ("fields", _) => Path::Field(steps),
                    (_, [Step { key: Key::Name(name), .. }]) => Path::Label(name.clone()),
                    _ => return Err(self.unsupported("a step into a label")),
                };
                return self.value_of(path, test);
            }
            "name" => Path::Known(Known::Event),
            "subsystem" => Path::Known(Known::Subsystem),
            "time" => Path::Known(Known::Time),
            "cpu" => Path::Known(Known::Cpu),
            "pid" => Path::Known(Known::Pid),
            "tid" => Path::Known(Known::Tid),
            "process" => Path::Known(Known::Process),
            "thread" => Path::Known(Known::Thread),
            "stream" => Path::Known(Known::Stream),
            other => return Err(self.unsupported(format!("`{other}`, which no event has"))),
        };
        let test = self.step()?;
        if test.is_some() && !self.is_sign("(") {
            return Err(self.unsupported(format!("a step into `{first}`")));
        }
        self.value_of(path, test)
    }

    /// A path, perhaps with a question about its text.
    fn value_of(&mut self, path: Path, test: Option<(Key, bool)>) -> Result<Node, Unsupported> {
        let index = self.paths.iter().position(|known| *known == path).unwrap_or_else(|| {
            self.paths.push(path);
            self.paths.len() - 1
        });
        let value = self.node(Node::Path(index))?;
        let Some((key, is_optional)) = test else {
            return match self.peek() {
                Token::Sign("(" | "++" | "--") => Err(self.unsupported_here()),
                _ => Ok(value),
            };
        };
        let test = match &key {
            Key::Name(name) if name == "startsWith" => TextTest::StartsWith,
            Key::Name(name) if name == "endsWith" => TextTest::EndsWith,
            Key::Name(name) if name == "includes" => TextTest::Includes,
            Key::Name(name) => return Err(self.unsupported(format!("a call of `{name}`"))),
            Key::Index(_) => return Err(self.unsupported("a call of an element")),
        };
        self.expect("(")?;
        let Token::Text(text) = self.next() else {
            return Err(self.unsupported("a call with something else than a text"));
        };
        self.expect(")")?;
        if let Token::Sign("." | "?." | "[" | "(") = self.peek() {
            return Err(self.unsupported_here());
        }
        self.node(Node::Text(test, Box::new(value), text, is_optional))
    }

    /// `.name`, `?.name`, `["name"]`, `[3]`, `?.[3]`; whether it is optional.
    fn step(&mut self) -> Result<Option<(Key, bool)>, Unsupported> {
        let is_optional = self.take("?.");
        if self.take("[") {
            let key = match self.next() {
                Token::Text(name) => Key::Name(name),
                Token::Number(index)
                    if index.fract() == 0.0 && (0.0..f64::from(u32::MAX)).contains(&index) =>
                {
                    Key::Index(index as u32)
                }
                _ => return Err(self.unsupported("a step that is computed")),
            };
            self.expect("]")?;
            return Ok(Some((key, is_optional)));
        }
        if is_optional || self.take(".") {
            return Ok(Some((Key::Name(self.name()?.to_owned()), is_optional)));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        function(text).map_or_else(|why| why.what, |_| "compiled".to_owned())
    }

    #[test]
    fn functions_that_only_look_are_compiled() {
        for text in [
            "e => e.cpu === 2",
            "(e) => e.fields.bytes > 4096 && e.cpu === 2",
            "e => { return e.name.startsWith('a:') }",
            "function (event) { return !event.fields.at?.port; }",
            "function keep(event) { return (event.tid ?? -1) > 0 ? true : event.pid & 1 }",
            "() => true",
            "e => e.fields['odd name'][2].x !== undefined",
            "e => typeof e.fields.x == 'number' // why",
            "async => async.time >= 12n",
            "e => e.process?.startsWith('redis')",
        ] {
            assert_eq!(reason(text), "compiled", "{text}");
        }
    }

    #[test]
    fn everything_else_has_a_reason() {
        for (text, expected) in [
            ("e => e.fields.bytes > limit", "`limit`"),
            ("e => { const x = 1; return x }", "more than one `return`"),
            ("e => { return\n e.cpu }", "a `return` of nothing"),
            ("e => e", "the event as a whole"),
            ("e => e.fields", "`fields` as a whole"),
            ("e => e.fields[e.name]", "a step that is computed"),
            ("e => e.colour", "`colour`, which no event has"),
            ("e => e.name.length > 2", "a step into `name`"),
            ("e => e.fields.x.toString()", "a call of `toString`"),
            ("e => /a/.test(e.name)", "a regular expression"),
            ("e => `a` == e.name", "a template"),
            ("(e, f) => e.cpu", "`,`"),
            ("({cpu}) => cpu", "`{`"),
            ("e => e.cpu = 3", "`=`"),
            ("e => e.cpu, 1", "`,`"),
            ("e => e.cpu ** 2", "`**`"),
            ("async e => e.cpu", "`e`"),
            ("function* (e) { return e.cpu }", "`*`"),
            ("function undefined(e) { return 1 }", "a function with such a name"),
            ("e => e.fields.x++", "`++`"),
            ("e => 'a'.length", "`.`"),
            ("e => e.name.startsWith(e.process)", "a call with something else than a text"),
            ("function (e) { [native code] }", "more than one `return`"),
        ] {
            assert_eq!(reason(text), expected, "{text}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let deep = format!("e => {}1", "(".repeat(100_000));
        assert_eq!(reason(&deep), "a very long function");
        let deep = format!("e => {}1", "!".repeat(1000));
        assert_eq!(reason(&deep), "too deep a nesting");
        let wide = format!("e => {}", vec!["e.cpu"; 2000].join(" && "));
        assert_eq!(reason(&wide), "a very long expression");
        let fits = format!("e => {}", vec!["e.cpu == 1"; 200].join(" && "));
        assert_eq!(reason(&fits), "compiled");
    }

    #[test]
    fn precedence_is_javascripts() {
        let of = |text: &str| expression(text, "event").unwrap().root;
        assert_eq!(of("1 + 2 * 3 == 7 && 1 | 2"), of("(((1 + (2 * 3)) == 7) && (1 | 2))"));
        assert_eq!(of("1 << 2 < 3 === true"), of("((1 << 2) < 3) === true"));
        assert_eq!(of("1 & 2 == 2"), of("1 & (2 == 2)"));
        assert_eq!(of("1 ? 2 : 3 ? 4 : 5"), of("1 ? 2 : (3 ? 4 : 5)"));
        assert_eq!(of("8 - 4 - 2"), of("(8 - 4) - 2"));
        assert_eq!(of("1?.5:2"), of("1 ? 0.5 : 2"));
    }
}
