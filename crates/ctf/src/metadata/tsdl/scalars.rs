// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Enumerations, integers, floating point numbers and strings [CTF 1.8.3 §4.1,
//! §4.2.5].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lateralis_model::{Base, Encoding, Label, Range, Scalar, ScalarKind};

use super::super::field::{FieldClass, Length, Meaning, Role, Roles, ScalarClass, TextClass};
use super::super::{brief, wide};
use super::lexer::Token;
use super::types::Value;
use super::words::{alignment, byte_order, clock_name, encoding, integer_base, truth};
use super::{Parsed, Parser};

/// The labels of an enumeration, by order and by name: there may be very many.
#[derive(Default)]
struct Labels {
    all: Vec<Label>,
    index: HashMap<String, usize>,
}

impl Labels {
    fn add(&mut self, name: String, range: Range) {
        match self.index.get(&name) {
            Some(&index) => self.all[index].ranges.push(range),
            None => {
                self.index.insert(name.clone(), self.all.len());
                self.all.push(Label { name, ranges: vec![range] });
            }
        }
    }
}

impl Parser<'_, '_> {
    pub(super) fn enum_specifier(&mut self) -> Parsed<FieldClass> {
        self.next += 1;
        let name = self.peek_word();
        self.next += usize::from(name.is_some());
        let container = if self.take_mark(":") { Some(self.specifier()?) } else { None };
        if !self.at_mark("{") {
            let name = name.ok_or_else(|| self.unexpected("`{`"))?;
            let class = self.lookup(|names| names.enums.get(name));
            return class.ok_or_else(|| format!("unknown type `enum {}`", brief(name)));
        }
        // Without a container an enumeration is an `int` [§4.1.8].
        let container = match container.or_else(|| self.alias("int")) {
            Some(FieldClass::Scalar(class)) => class,
            Some(_) => return Err("the container of an enumeration must be an integer".to_owned()),
            None => {
                return Err("`int` must be declared for an enumeration without container".into());
            }
        };
        let mut labels = Labels::default();
        let mut following = 0i128;
        self.braces(|parser| parser.enumerator(&mut labels, &mut following))?;
        let Meaning::Integer { base, .. } = container.meaning else {
            return Err("the container of an enumeration must be an integer".to_owned());
        };
        let mut scalar = (*container).clone();
        scalar.meaning = Meaning::Integer { base, labels: labels.all.into() };
        let class = FieldClass::Scalar(Arc::new(scalar));
        if let Some(name) = name {
            let declared = class.clone();
            self.declare(name, |names| names.enums.insert(name.to_owned(), declared));
        }
        Ok(class)
    }

    fn enumerator(&mut self, labels: &mut Labels, following: &mut i128) -> Parsed<()> {
        let name = match self.peek() {
            Some(Token::Text(text)) => text.clone(),
            Some(Token::Word(word)) => (*word).to_owned(),
            _ => return Err(self.unexpected("the name of an enumerator")),
        };
        self.next += 1;
        let mut range = Range { low: *following, high: *following };
        if self.take_mark("=") {
            range.low = self.number()?;
            range.high = if self.take_mark("...") { self.number()? } else { range.low };
        }
        if range.high < range.low {
            return Err(format!("the range of `{}` ends before it begins", brief(name)));
        }
        *following = range.high + 1;
        labels.add(name, range);
        if !self.take_mark(",") && !self.at_mark("}") {
            return Err(self.unexpected("`,` or `}`"));
        }
        Ok(())
    }

    /// Runs `set` for each `key = value;` between braces.
    pub(super) fn attributes(
        &mut self,
        mut set: impl FnMut(&mut Self, &str, Value) -> Parsed<()>,
    ) -> Parsed<()> {
        let mut seen = HashSet::new();
        self.braces(|parser| {
            let key = parser.dotted()?;
            if !seen.insert(key.clone()) {
                parser.remark(format!("`{}` is said twice; the later one counts", brief(&key)));
            }
            parser.expect_mark("=")?;
            let value = parser.value()?;
            set(parser, &key, value)?;
            parser.expect_mark(";")
        })
    }

    /// Unknown attributes do not change anything that can be read.
    fn unknown_attribute(&mut self, key: &str, of: &str) {
        let key = brief(key);
        self.report(self.next, format!("unknown attribute `{key}` of {of}; it is passed over"));
    }

    pub(super) fn integer_specifier(&mut self) -> Parsed<FieldClass> {
        self.next += 1;
        let (mut size, mut align, mut signed) = (None, None, false);
        let (mut order, mut base, mut character) = (self.native, Base::Decimal, false);
        let mut clock = None;
        self.attributes(|parser, key, value| {
            match (key, value) {
                ("size", Value::Number(bits)) => size = Some(bits),
                ("align", Value::Number(bits)) => align = Some(alignment(bits)?),
                ("signed", value) => signed = truth(&value.into_text())?,
                ("byte_order", value) => order = byte_order(&value.into_text(), parser.native)?,
                ("base", value) => base = integer_base(&value.into_text())?,
                ("encoding", value) => character = encoding(&value.into_text())?.is_some(),
                ("map", value) => clock = Some(clock_name(&value.into_text())?),
                (key, _) => parser.unknown_attribute(key, "an integer"),
            }
            Ok(())
        })?;
        let size = size.ok_or("an integer needs a size")?;
        let bits = u32::try_from(size).ok().filter(|bits| (1..=wide::WIDEST).contains(bits));
        let bits = bits.ok_or_else(|| {
            format!("an integer of {size} bits cannot be read: 1 to {}", wide::WIDEST)
        })?;
        // Without an alignment it is that of a byte for whole bytes [§4.1.2].
        let align_bits = align.unwrap_or(if bits % 8 == 0 { 8 } else { 1 });
        let kind = if signed { ScalarKind::Signed } else { ScalarKind::Unsigned };
        let scalar = Scalar { bits, align_bits, order, reversed: false, kind };
        if bits > 64 {
            if clock.is_some() {
                self.remark(format!("{bits} bits are too many for a reading of a clock"));
            }
            return Ok(wide::integer(scalar));
        }
        let mut roles = Roles::default();
        if clock.is_some() && !signed {
            roles.insert(Role::Clock);
        }
        Ok(FieldClass::Scalar(Arc::new(ScalarClass {
            scalar,
            meaning: Meaning::Integer { base, labels: Arc::default() },
            roles,
            clock,
            character: character && bits == 8 && align_bits == 8,
        })))
    }

    pub(super) fn float_specifier(&mut self) -> Parsed<FieldClass> {
        self.next += 1;
        let (mut exponent, mut mantissa, mut align, mut order) = (0, 0, 8, self.native);
        self.attributes(|parser, key, value| {
            match (key, value) {
                ("exp_dig", Value::Number(bits)) => exponent = bits,
                ("mant_dig", Value::Number(bits)) => mantissa = bits,
                ("align", Value::Number(bits)) => align = alignment(bits)?,
                ("byte_order", value) => order = byte_order(&value.into_text(), parser.native)?,
                (key, _) => parser.unknown_attribute(key, "a floating point number"),
            }
            Ok(())
        })?;
        let bits = match (exponent, mantissa) {
            (8, 24) => 32,
            (11, 53) => 64,
            (5, 11) => 16,
            // The x87: its leading digit is stored.
            (16, 64) => 80,
            (15, 113) => 128,
            _ => {
                return Err(format!(
                    "unsupported floating point: exp_dig={exponent}, mant_dig={mantissa}; \
                     5 and 11, 8 and 24, 11 and 53, 16 and 64, 15 and 113 can be read"
                ));
            }
        };
        let kind = ScalarKind::Real;
        Ok(FieldClass::Scalar(Arc::new(ScalarClass {
            scalar: Scalar { bits, align_bits: align, order, reversed: false, kind },
            meaning: Meaning::Real,
            roles: Roles::default(),
            clock: None,
            character: false,
        })))
    }

    pub(super) fn string_specifier(&mut self) -> Parsed<FieldClass> {
        self.next += 1;
        if self.at_mark("{") {
            self.attributes(|parser, key, value| match key {
                "encoding" => encoding(&value.into_text()).map(|_| ()),
                key => {
                    parser.unknown_attribute(key, "a string");
                    Ok(())
                }
            })?;
        }
        Ok(FieldClass::Text(Arc::new(TextClass {
            length: Length::Terminated,
            encoding: Some(Encoding::Utf8),
            media_type: Arc::default(),
            roles: Roles::default(),
        })))
    }
}
