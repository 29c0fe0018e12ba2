// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of TSDL [CTF 1.8.3 §4, §C.2.2].

use std::collections::HashSet;
use std::sync::Arc;

use lateralis_model::{Encoding, EnvValue};

use super::super::brief;
use super::super::field::{
    ArrayClass, FieldClass, Length, Location, MemberClass, OptionClass, Roles, Selection,
    StructClass, TextClass, VariantClass,
};
use super::lexer::Token;
use super::words::{alignment, location};
use super::{Names, Parsed, Parser};

/// Words of which C makes names of types; any sequence is one name.
const C_WORDS: [&str; 13] = [
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "_Bool",
    "_Complex",
    "_Imaginary",
    "const",
];

/// How many brackets a declarator may have.
const DIMENSION_LIMIT: usize = 16;

/// Right side of an assignment.
pub(super) enum Value {
    Number(i128),
    Text(String),
    /// A name, dotted for `clock.x.value`.
    Name(String),
}

impl Value {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) | Self::Name(text) => text,
        }
    }
}

impl Parser<'_, '_> {
    /// A number, a string or a dotted name, in any number of parentheses.
    pub(super) fn value(&mut self) -> Parsed<Value> {
        let (mut negative, mut parentheses) = (false, 0u32);
        loop {
            let minus = self.take_mark("-");
            negative ^= minus;
            if !minus {
                self.take_mark("+");
            }
            if !self.take_mark("(") {
                break;
            }
            parentheses += 1;
        }
        let value = match self.peek() {
            Some(Token::Number(number)) => {
                let number = i128::from(*number);
                self.next += 1;
                Value::Number(if negative { -number } else { number })
            }
            Some(Token::Text(text)) if !negative => {
                let mut text = text.clone();
                self.next += 1;
                while let Some(Token::Text(more)) = self.peek() {
                    text.push_str(more);
                    self.next += 1;
                }
                Value::Text(text)
            }
            Some(Token::Word(_)) if !negative => Value::Name(self.dotted()?),
            _ => return Err(self.unexpected("a value")),
        };
        (0..parentheses).try_for_each(|_| self.expect_mark(")"))?;
        Ok(value)
    }

    pub(super) fn number(&mut self) -> Parsed<i128> {
        match self.value()? {
            Value::Number(number) => Ok(number),
            Value::Text(text) | Value::Name(text) => {
                Err(format!("expected a number, found `{}`", brief(text)))
            }
        }
    }

    /// `a.b->c` with dots.
    pub(super) fn dotted(&mut self) -> Parsed<String> {
        let mut name = self.expect_word()?.to_owned();
        while self.take_mark(".") || self.take_mark("->") {
            name.push('.');
            name.push_str(self.expect_word()?);
        }
        Ok(name)
    }

    pub(super) fn lookup(
        &self,
        find: impl Fn(&Names) -> Option<&FieldClass>,
    ) -> Option<FieldClass> {
        self.scopes.iter().rev().find_map(|names| find(names).cloned())
    }

    pub(super) fn declare(
        &mut self,
        name: &str,
        insert: impl FnOnce(&mut Names) -> Option<FieldClass>,
    ) {
        let token = self.next;
        let again = self.scopes.last_mut().is_some_and(|names| insert(names).is_some());
        if again {
            self.report(
                token,
                format!("`{}` is declared twice; the later one counts", brief(name)),
            );
        }
    }

    /// A type without declarator.
    pub(super) fn specifier(&mut self) -> Parsed<FieldClass> {
        let qualified = self.next;
        while self.take_word("const") {}
        let word = self.peek_word().ok_or_else(|| self.unexpected("a type"))?;
        match word {
            "struct" => self.struct_specifier(),
            "variant" => self.variant_specifier(),
            "enum" => self.enum_specifier(),
            "integer" => self.integer_specifier().map(|class| self.once.class(class)),
            "floating_point" => self.float_specifier().map(|class| self.once.class(class)),
            "string" => self.string_specifier().map(|class| self.once.class(class)),
            _ => {
                self.next = qualified;
                self.named_type()
            }
        }
    }

    /// `unsigned long`, `uint8_t`, with pointers: a name declared before.
    fn named_type(&mut self) -> Parsed<FieldClass> {
        let start = self.next;
        let mut name = String::new();
        let mut complete = false;
        while let Some(word) = self.peek_word() {
            let c_word = C_WORDS.contains(&word);
            if complete && !c_word || !c_word && !name.is_empty() && !name.ends_with("const") {
                break;
            }
            if !name.is_empty() {
                name.push(' ');
            }
            name.push_str(word);
            complete |= !c_word;
            self.next += 1;
        }
        while self.at_mark("*") {
            name.push_str(" *");
            self.next += 1;
            while self.take_word("const") {}
        }
        let found = self.lookup(|names| names.aliases.get(&name)).or_else(|| {
            let plain = name.strip_prefix("const ")?;
            self.lookup(|names| names.aliases.get(plain))
        });
        match found {
            Some(class) => self.used(class),
            None => {
                self.next = start;
                Err(format!("unknown type `{}`", brief(name)))
            }
        }
    }

    fn struct_specifier(&mut self) -> Parsed<FieldClass> {
        self.next += 1;
        let name = self.peek_word().filter(|&word| word != "align" || !self.mark_follows("("));
        self.next += usize::from(name.is_some());
        if !self.at_mark("{") {
            let name = name.ok_or_else(|| self.unexpected("`{`"))?;
            let pointers = self.pointers();
            let class = match pointers.is_empty() {
                true => self.lookup(|names| names.structs.get(name)),
                false => self.alias(&format!("struct {name}{pointers}")),
            };
            // An alias may name what no structure is: `struct page *`.
            let class = class.or_else(|| self.alias(&format!("struct {name}")));
            let class = class.ok_or_else(|| {
                let shown = (brief(name), brief(&pointers));
                format!("unknown type `struct {}{}`", shown.0, shown.1)
            })?;
            let class = self.used(class)?;
            let align = self.align_attribute()?;
            return Ok(widen(class, align));
        }
        let mut members = Vec::new();
        let mut names = HashSet::new();
        self.braces(|parser| parser.members(&mut members, &mut names))?;
        let min_align_bits = self.align_attribute()?;
        members.shrink_to_fit();
        let class = FieldClass::Struct(Arc::new(StructClass { members, min_align_bits }));
        if let Some(name) = name {
            let declared = class.clone();
            self.declare(name, |names| names.structs.insert(name.to_owned(), declared));
        }
        Ok(class)
    }

    fn pointers(&mut self) -> String {
        let mut pointers = String::new();
        while self.take_mark("*") {
            pointers.push_str(" *");
            while self.take_word("const") {}
        }
        pointers
    }

    pub(super) fn alias(&self, name: &str) -> Option<FieldClass> {
        self.lookup(|names| names.aliases.get(name))
    }

    fn align_attribute(&mut self) -> Parsed<u32> {
        if !self.take_word("align") {
            return Ok(1);
        }
        self.expect_mark("(")?;
        let align = self.number()?;
        self.expect_mark(")")?;
        alignment(align)
    }

    /// One declaration between the braces of a structure.
    fn members(
        &mut self,
        members: &mut Vec<MemberClass>,
        names: &mut HashSet<String>,
    ) -> Parsed<()> {
        if matches!(self.peek_word(), Some("typealias" | "typedef")) {
            self.declaration()?;
            return self.expect_mark(";");
        }
        let class = self.specifier()?;
        // A named type alone declares it for the rest of the structure.
        if self.take_mark(";") {
            return Ok(());
        }
        loop {
            let (name, class) = self.declarator(class.clone())?;
            members.push(MemberClass { name: self.shown(&name), class });
            if names.contains(&name) {
                self.remark(format!("a structure has two fields `{}`", brief(&name)));
            }
            names.insert(name);
            if !self.take_mark(",") {
                return self.expect_mark(";");
            }
        }
    }

    /// `name`, `name[3]`, `name[length]`, `name:5`.
    fn declarator(&mut self, class: FieldClass) -> Parsed<(String, FieldClass)> {
        self.pointers();
        let name = self.expect_word()?.to_owned();
        let class = if self.take_mark(":") {
            let bits = self.number()?;
            bit_field(&class, bits)?
        } else {
            self.dimensions(class)?
        };
        Ok((name, class))
    }

    /// A field, or a number of the environment.
    fn named_length(&mut self) -> Parsed<Length> {
        let path = self.dotted()?;
        let Some(name) = path.strip_prefix("env.") else {
            return Ok(Length::Field(location(&path)));
        };
        let entry = self.trace.environment.iter().find(|(key, _)| key == name);
        match entry {
            Some((_, EnvValue::Integer(number))) => {
                let length = u64::try_from(*number);
                Ok(Length::Fixed(
                    length.map_err(|_| format!("`{}` is no length: {number}", brief(&path)))?,
                ))
            }
            _ => Err(format!("`{}` is no number of the environment", brief(&path))),
        }
    }

    /// `x[2][3]` is two arrays of three, so the last bracket binds closest.
    fn dimensions(&mut self, class: FieldClass) -> Parsed<FieldClass> {
        let mut lengths = Vec::new();
        while self.take_mark("[") {
            let length = match self.peek() {
                Some(Token::Word(_)) => self.named_length()?,
                _ => {
                    let number = self.number()?;
                    let number = u64::try_from(number);
                    Length::Fixed(number.map_err(|_| "an array cannot have a negative length")?)
                }
            };
            self.expect_mark("]")?;
            lengths.push(length);
            if lengths.len() > DIMENSION_LIMIT {
                return Err(format!("more than {DIMENSION_LIMIT} dimensions"));
            }
        }
        Ok(lengths.into_iter().rev().fold(class, array))
    }

    fn variant_specifier(&mut self) -> Parsed<FieldClass> {
        self.next += 1;
        let name = self.peek_word();
        self.next += usize::from(name.is_some());
        let selector = if self.take_mark("<") {
            let path = self.dotted()?;
            self.expect_mark(">")?;
            Some(location(&path))
        } else {
            None
        };
        if !self.at_mark("{") {
            let name = name.ok_or_else(|| self.unexpected("`{`"))?;
            let class = self.lookup(|names| names.variants.get(name));
            let class = class.ok_or_else(|| format!("unknown type `variant {}`", brief(name)))?;
            let class = self.used(class)?;
            return Ok(with_selector(class, selector));
        }
        let mut members = Vec::new();
        self.braces(|parser| parser.variant_options(&mut members))?;
        if members.is_empty() {
            self.remark("a variant needs at least one option".to_owned());
        }
        let class = FieldClass::Variant(Arc::new(VariantClass { options: members, selector }));
        if let Some(name) = name {
            let declared = class.clone();
            self.declare(name, |names| names.variants.insert(name.to_owned(), declared));
        }
        Ok(class)
    }

    fn variant_options(&mut self, options: &mut Vec<OptionClass>) -> Parsed<()> {
        if matches!(self.peek_word(), Some("typealias" | "typedef")) {
            self.declaration()?;
            return self.expect_mark(";");
        }
        let class = self.specifier()?;
        if self.take_mark(";") {
            return Ok(());
        }
        loop {
            let (name, class) = self.declarator(class.clone())?;
            let selection = Selection::Label(Arc::from(name.as_str()));
            options.push(OptionClass { name: self.shown(&name), class, selection });
            if !self.take_mark(",") {
                return self.expect_mark(";");
            }
        }
    }

    pub(super) fn typealias(&mut self) -> Parsed<()> {
        let class = self.specifier()?;
        let class = self.dimensions(class)?;
        self.expect_mark(":=")?;
        let mut name = String::new();
        while let Some(token) = self.peek() {
            let word = match token {
                Token::Word(word) => word,
                Token::Mark("*") => "*",
                _ => break,
            };
            if !name.is_empty() {
                name.push(' ');
            }
            name.push_str(word);
            self.next += 1;
        }
        if name.is_empty() {
            return Err(self.unexpected("the name of the alias"));
        }
        let class = self.dimensions(class)?;
        self.declare(&name, |names| names.aliases.insert(name.clone(), class));
        Ok(())
    }

    pub(super) fn typedef(&mut self) -> Parsed<()> {
        let class = self.specifier()?;
        self.typedef_names(&class)
    }

    pub(super) fn typedef_names(&mut self, class: &FieldClass) -> Parsed<()> {
        loop {
            let pointers = self.pointers();
            let name = format!("{}{pointers}", self.expect_word()?);
            let class = self.dimensions(class.clone())?;
            self.declare(&name, |names| names.aliases.insert(name.clone(), class));
            if !self.take_mark(",") {
                return Ok(());
            }
        }
    }
}

/// Array of the class; text, if its elements are characters.
fn array(element: FieldClass, length: Length) -> FieldClass {
    match &element {
        FieldClass::Scalar(class) if class.character => FieldClass::Text(Arc::new(TextClass {
            length,
            encoding: Some(Encoding::Utf8),
            media_type: Arc::default(),
            roles: Roles::default(),
        })),
        _ => FieldClass::Array(Arc::new(ArrayClass { length, element, min_align_bits: 1 })),
    }
}

fn widen(class: FieldClass, align: u32) -> FieldClass {
    match class {
        FieldClass::Struct(inner) if inner.min_align_bits < align => {
            let mut widened = (*inner).clone();
            widened.min_align_bits = align;
            FieldClass::Struct(Arc::new(widened))
        }
        class => class,
    }
}

fn with_selector(class: FieldClass, selector: Option<Location>) -> FieldClass {
    match (class, selector) {
        (FieldClass::Variant(inner), Some(selector)) => {
            let mut variant = (*inner).clone();
            variant.selector = Some(selector);
            FieldClass::Variant(Arc::new(variant))
        }
        (class, _) => class,
    }
}

/// A C bit field has its own width and no alignment [§4.1.6].
fn bit_field(class: &FieldClass, bits: i128) -> Parsed<FieldClass> {
    let FieldClass::Scalar(class) = class else {
        return Err("only an integer can be a bit field".to_owned());
    };
    let bits = u32::try_from(bits).ok().filter(|&bits| bits > 0 && bits <= class.scalar.bits);
    let bits = bits.ok_or("a bit field has between 1 bit and those of its type")?;
    let mut field = (**class).clone();
    field.scalar.bits = bits;
    field.scalar.align_bits = 1;
    field.character = false;
    Ok(FieldClass::Scalar(Arc::new(field)))
}
