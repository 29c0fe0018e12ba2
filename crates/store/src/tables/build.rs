// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arrow arrays that grow by rows, or by whole columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array,
    ListArray, StringArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field as ArrowField};
use lateralis_model::{Column, Encoding, Field, FieldClass, FieldKind, Value};

use super::json;

/// Type of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// Integers below 2^63.
    Int,
    /// Unsigned 64-bit integers.
    Unsigned,
    /// Floating point.
    Real,
    /// Booleans.
    Bool,
    /// Text; JSON for fields of other types.
    Text,
    /// Bytes.
    Bytes,
    /// Text with few distinct values.
    Word,
    /// Lists of one type.
    List(Box<Holds>),
}

impl Holds {
    /// The corresponding Arrow type.
    pub fn arrow(&self) -> DataType {
        match self {
            Self::Int => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
            Self::Real => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Text => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::Word => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Self::List(element) => {
                DataType::List(Arc::new(ArrowField::new("item", element.arrow(), true)))
            }
        }
    }
}

/// A text or a list is too long for a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Largest size of a single value in bytes.
const VALUE_BYTES: usize = 1 << 28;

/// Concatenated texts.
#[derive(Debug, Default)]
struct Texts {
    data: Vec<u8>,
    ends: Vec<i32>,
}

impl Texts {
    fn push(&mut self, text: &[u8]) -> Result<(), TooLong> {
        if text.len() > VALUE_BYTES || self.data.len() + text.len() > i32::MAX as usize {
            return Err(TooLong);
        }
        self.data.extend_from_slice(text);
        self.ends.push(self.data.len() as i32);
        Ok(())
    }

    fn offsets(ends: Vec<i32>) -> OffsetBuffer<i32> {
        let mut all = Vec::with_capacity(ends.len() + 1);
        all.push(0);
        all.extend(ends);
        OffsetBuffer::new(ScalarBuffer::from(all))
    }
}

/// A growing column.
#[derive(Debug)]
pub struct Builder {
    values: Values,
    nulls: NullBufferBuilder,
    /// Approximate size in bytes.
    bytes: usize,
}

#[derive(Debug)]
enum Values {
    Int(Vec<i64>),
    Unsigned(Vec<u64>),
    Real(Vec<f64>),
    Bool(Vec<bool>),
    Text(Texts),
    Bytes(Texts),
    Word { keys: Vec<i32>, texts: Texts, known: HashMap<Box<str>, i32>, numbers: Numbers },
    List { element: Box<Builder>, ends: Vec<i32> },
}

/// Keys of words by number: of classes, processes, states. The last one is the most likely to repeat.
#[derive(Debug, Default)]
struct Numbers {
    last: Option<(u64, i32)>,
    known: HashMap<u64, i32>,
}

impl Builder {
    /// An empty column.
    pub fn new(holds: &Holds) -> Self {
        let values = match holds {
            Holds::Int => Values::Int(Vec::new()),
            Holds::Unsigned => Values::Unsigned(Vec::new()),
            Holds::Real => Values::Real(Vec::new()),
            Holds::Bool => Values::Bool(Vec::new()),
            Holds::Text => Values::Text(Texts::default()),
            Holds::Bytes => Values::Bytes(Texts::default()),
            Holds::Word => Values::Word {
                keys: Vec::new(),
                texts: Texts::default(),
                known: HashMap::new(),
                numbers: Numbers::default(),
            },
            Holds::List(element) => {
                Values::List { element: Box::new(Self::new(element)), ends: Vec::new() }
            }
        };
        Self { values, nulls: NullBufferBuilder::new(0), bytes: 0 }
    }

    /// Approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        match &self.values {
            Values::List { element, .. } => self.bytes + element.bytes(),
            _ => self.bytes,
        }
    }

    /// Adds a null.
    pub fn null(&mut self) {
        match &mut self.values {
            Values::Int(values) => values.push(0),
            Values::Unsigned(values) => values.push(0),
            Values::Real(values) => values.push(0.0),
            Values::Bool(values) => values.push(false),
            Values::Text(texts) | Values::Bytes(texts) => texts.ends.push(texts.data.len() as i32),
            Values::Word { keys, .. } => keys.push(0),
            Values::List { element, ends } => ends.push(element.len() as i32),
        }
        self.bytes += 8;
        self.nulls.append_null();
    }

    fn len(&self) -> usize {
        self.nulls.len()
    }

    fn there(&mut self) {
        self.bytes += 8;
        self.nulls.append_non_null();
    }

    /// Adds an integer or a null.
    pub fn int(&mut self, value: impl Into<Option<i64>>) {
        match (&mut self.values, value.into()) {
            (Values::Int(values), Some(value)) => values.push(value),
            (Values::Unsigned(values), Some(value)) => values.push(value as u64),
            (Values::Real(values), Some(value)) => values.push(value as f64),
            (Values::Bool(values), Some(value)) => values.push(value != 0),
            _ => return self.null(),
        }
        self.there();
    }

    /// Adds integers.
    pub fn ints(&mut self, numbers: impl ExactSizeIterator<Item = i64>) {
        match &mut self.values {
            Values::Int(values) => {
                let count = numbers.len();
                values.extend(numbers);
                self.bytes += 8 * count;
                self.nulls.append_n_non_nulls(count);
            }
            _ => numbers.for_each(|number| self.int(number)),
        }
    }

    /// Repeats the last row a number of times; no effect without rows. For lists, which are never common
    /// to events, nulls are added.
    ///
    /// Errors: the texts are too long in total.
    pub fn repeat_last(&mut self, count: usize) -> Result<(), TooLong> {
        let Some(last) = self.len().checked_sub(1) else { return Ok(()) };
        if !self.nulls.is_valid(last) || matches!(self.values, Values::List { .. }) {
            (0..count).for_each(|_| self.null());
            return Ok(());
        }
        fn again<T: Copy>(values: &mut Vec<T>, count: usize) {
            if let Some(&last) = values.last() {
                values.resize(values.len() + count, last);
            }
        }
        match &mut self.values {
            Values::Int(values) => again(values, count),
            Values::Unsigned(values) => again(values, count),
            Values::Real(values) => again(values, count),
            Values::Bool(values) => again(values, count),
            Values::Word { keys, .. } => again(keys, count),
            Values::Text(texts) | Values::Bytes(texts) => {
                let begin = last.checked_sub(1).map_or(0, |before| texts.ends[before] as usize);
                let text = texts.data[begin..].to_vec();
                for _ in 0..count {
                    texts.push(&text)?;
                }
                self.bytes += text.len() * count;
            }
            Values::List { .. } => {}
        }
        self.bytes += 8 * count;
        self.nulls.append_n_non_nulls(count);
        Ok(())
    }

    /// Adds a floating point number or a null.
    pub fn real(&mut self, value: impl Into<Option<f64>>) {
        match (&mut self.values, value.into()) {
            (Values::Real(values), Some(value)) => values.push(value),
            _ => return self.null(),
        }
        self.there();
    }

    /// Adds a text or a word, or a null.
    pub fn text<'a>(&mut self, value: impl Into<Option<&'a str>>) -> Result<(), TooLong> {
        let Some(text) = value.into() else {
            self.null();
            return Ok(());
        };
        match &mut self.values {
            Values::Text(texts) | Values::Bytes(texts) => texts.push(text.as_bytes())?,
            Values::Word { keys, texts, known, .. } => keys.push(word(texts, known, text)?),
            _ => {
                self.null();
                return Ok(());
            }
        }
        self.bytes += text.len();
        self.there();
        Ok(())
    }

    /// Adds the word for a number, which is computed only once.
    pub fn word_of<'a>(
        &mut self,
        number: u64,
        make: impl FnOnce() -> Option<std::borrow::Cow<'a, str>>,
    ) -> Result<(), TooLong> {
        let Values::Word { keys, texts, known, numbers } = &mut self.values else {
            return self.text(make().as_deref());
        };
        let key = match numbers.last {
            Some((last, key)) if last == number => key,
            _ => {
                let key = match numbers.known.get(&number) {
                    Some(key) => *key,
                    None => {
                        let key = match make() {
                            Some(text) => word(texts, known, &text)?,
                            None => -1,
                        };
                        numbers.known.insert(number, key);
                        key
                    }
                };
                numbers.last = Some((number, key));
                key
            }
        };
        if key < 0 {
            self.null();
        } else {
            keys.push(key);
            self.there();
        }
        Ok(())
    }

    /// Adds the value of a field, as far as the column can represent it.
    pub fn field(&mut self, field: Field<'_>) -> Result<(), TooLong> {
        let value = field.value();
        if let Value::Optional(inner) = value {
            match inner {
                Some(inner) => self.field(inner)?,
                None => self.null(),
            }
            return Ok(());
        }
        if matches!(self.values, Values::Text(_)) && has_labels(field.class()) {
            return self.label(field.class(), value);
        }
        if let (Values::Text(texts), true) = (&mut self.values, !matches!(value, Value::Text(_))) {
            let mut text = String::new();
            json::value(&mut text, field);
            texts.push(text.as_bytes())?;
            self.bytes += text.len();
            self.there();
            return Ok(());
        }
        match (&mut self.values, value) {
            (Values::Text(_), Value::Text(text)) => return self.text(&*text.to_str()),
            (Values::Bytes(texts), Value::Bytes(bytes)) => {
                texts.push(bytes)?;
                self.bytes += bytes.len();
            }
            (Values::Word { .. }, Value::Unsigned(_) | Value::Signed(_)) => {
                return self.label(field.class(), value);
            }
            (Values::Unsigned(values), Value::Unsigned(value) | Value::Bits(value)) => {
                values.push(value);
            }
            (Values::Int(values), Value::Unsigned(value) | Value::Bits(value)) => {
                values.push(value as i64);
            }
            (Values::Real(_), Value::Unsigned(value) | Value::Bits(value)) => {
                self.real(value as f64);
                return Ok(());
            }
            (Values::Int(values), Value::Bool(value)) => values.push(i64::from(value)),
            (_, Value::Signed(value)) => {
                self.int(value);
                return Ok(());
            }
            (Values::Real(values), Value::Real(value)) => values.push(value),
            (Values::Bool(values), Value::Bool(value)) => values.push(value),
            (Values::List { element, ends }, Value::Array(elements)) => {
                if elements.len().saturating_mul(8) > VALUE_BYTES
                    || element.len() + elements.len() > i32::MAX as usize
                {
                    return Err(TooLong);
                }
                for each in elements {
                    element.field(each)?;
                }
                ends.push(element.len() as i32);
            }
            _ => {
                self.null();
                return Ok(());
            }
        }
        self.there();
        Ok(())
    }

    /// Adds the label of a value of an enumeration, otherwise its number.
    fn label(&mut self, class: &FieldClass, value: Value<'_>) -> Result<(), TooLong> {
        let number = match value {
            Value::Unsigned(value) => i128::from(value),
            Value::Signed(value) => i128::from(value),
            _ => 0,
        };
        // Two classes of one table may have different labels for a number.
        let (FieldKind::Unsigned(integer) | FieldKind::Signed(integer)) = &class.kind else {
            self.null();
            return Ok(());
        };
        match json::label(integer, number) {
            Some(name) => self.text(name),
            None => self.text(&*number.to_string()),
        }
    }

    /// Adds the values of some events of a column.
    pub fn column(
        &mut self,
        class: &FieldClass,
        column: &Column<'_>,
        chosen: &Chosen<'_>,
        bytes: &[u8],
    ) -> Result<(), TooLong> {
        let count = chosen.len();
        match (&mut self.values, column) {
            (Values::Int(values), Column::Unsigned(from)) => {
                chosen.each(|event| values.push(from[event] as i64));
            }
            (Values::Int(values), Column::Signed(from)) => {
                chosen.each(|event| values.push(from[event]));
            }
            (Values::Unsigned(values), Column::Unsigned(from)) => {
                chosen.each(|event| values.push(from[event]));
            }
            (Values::Real(values), Column::Real(from)) => {
                chosen.each(|event| values.push(from[event]));
            }
            (Values::Bool(values), Column::Unsigned(from)) => {
                chosen.each(|event| values.push(from[event] != 0));
            }
            (Values::Text(_), Column::Spans(spans))
                if class.kind == FieldKind::Text(Encoding::Utf8) =>
            {
                let mut result = Ok(());
                chosen.each(|event| {
                    if result.is_ok() {
                        result = self.text(&*String::from_utf8_lossy(spans.get(event)));
                    }
                });
                return result;
            }
            _ => {
                let mut result = Ok(());
                chosen.each(|event| {
                    if result.is_ok() {
                        result = match column.slot(event) {
                            Some(slot) => self.field(Field::new(class, &[slot], bytes)),
                            None => {
                                self.null();
                                Ok(())
                            }
                        };
                    }
                });
                return result;
            }
        }
        self.bytes += 8 * count;
        self.nulls.append_n_non_nulls(count);
        Ok(())
    }

    /// Returns the array, and empties the column.
    pub fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish();
        self.bytes = 0;
        match &mut self.values {
            Values::Int(values) => Arc::new(Int64Array::new(std::mem::take(values).into(), nulls)),
            Values::Unsigned(values) => {
                Arc::new(UInt64Array::new(std::mem::take(values).into(), nulls))
            }
            Values::Real(values) => {
                Arc::new(Float64Array::new(std::mem::take(values).into(), nulls))
            }
            Values::Bool(values) => {
                Arc::new(BooleanArray::new(BooleanBuffer::from(std::mem::take(values)), nulls))
            }
            Values::Text(texts) => {
                let Texts { data, ends } = std::mem::take(texts);
                Arc::new(StringArray::new(Texts::offsets(ends), Buffer::from_vec(data), nulls))
            }
            Values::Bytes(texts) => {
                let Texts { data, ends } = std::mem::take(texts);
                Arc::new(BinaryArray::new(Texts::offsets(ends), Buffer::from_vec(data), nulls))
            }
            Values::Word { keys, texts, known, numbers } => {
                let Texts { data, ends } = std::mem::take(texts);
                known.clear();
                *numbers = Numbers::default();
                let words = StringArray::new(Texts::offsets(ends), Buffer::from_vec(data), None);
                let keys = Int32Array::new(std::mem::take(keys).into(), nulls);
                Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(words)))
            }
            Values::List { element, ends } => {
                let offsets = Texts::offsets(std::mem::take(ends));
                let values = element.finish();
                let item = ArrowField::new("item", values.data_type().clone(), true);
                Arc::new(ListArray::new(Arc::new(item), offsets, values, nulls))
            }
        }
    }
}

fn has_labels(class: &FieldClass) -> bool {
    matches!(&class.kind, FieldKind::Unsigned(integer) | FieldKind::Signed(integer)
        if !integer.labels.is_empty())
}

fn word(texts: &mut Texts, known: &mut HashMap<Box<str>, i32>, text: &str) -> Result<i32, TooLong> {
    if let Some(key) = known.get(text) {
        return Ok(*key);
    }
    let key = texts.ends.len() as i32;
    texts.push(text.as_bytes())?;
    known.insert(text.into(), key);
    Ok(key)
}

/// Some events of a class in a batch, by index.
pub enum Chosen<'a> {
    /// All of a range.
    Range(std::ops::Range<usize>),
    /// These.
    These(&'a [u32]),
}

impl Chosen<'_> {
    /// Number of events.
    pub fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::These(these) => these.len(),
        }
    }

    /// The first of them.
    pub fn first(&self) -> Option<usize> {
        match self {
            Self::Range(range) => (!range.is_empty()).then_some(range.start),
            Self::These(these) => these.first().map(|&event| event as usize),
        }
    }

    /// Adds an integer for each.
    pub fn ints(&self, builder: &mut Builder, number: impl Fn(usize) -> i64) {
        match self {
            Self::Range(range) => builder.ints(range.clone().map(number)),
            Self::These(these) => builder.ints(these.iter().map(|&event| number(event as usize))),
        }
    }

    /// The indices in order.
    #[inline(always)]
    pub fn each(&self, mut see: impl FnMut(usize)) {
        match self {
            Self::Range(range) => range.clone().for_each(see),
            Self::These(these) => these.iter().for_each(|&event| see(event as usize)),
        }
    }
}
