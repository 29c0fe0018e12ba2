// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles a condition to the steps of an event: no loops, each step leads to a later one.

use lateralis_pleco::Schema;
use lateralis_pleco::schema::{Event, Field, FieldType, Integer, Scalar};
use lateralis_ring::{FilterStep, abi};

use super::{Comparison, Expression, Filter, FilterError, Value};

/// Compiles the steps for an event of a schema.
///
/// Errors: a field that does not exist or has no fixed offset, a value out of the field's range, or
/// more comparisons than a filter has steps.
pub fn compile(
    filter: &Filter,
    schema: &Schema,
    event: &Event,
) -> Result<Vec<FilterStep>, FilterError> {
    let layout = event.layout();
    let mut compiler = Compiler { schema, event, offsets: &layout.offsets, steps: Vec::new() };
    let compiled = compiler.condition(&filter.condition, Next::Accept, Next::Reject);
    let error = |what| FilterError { filter: filter.to_string(), what };
    compiled.map_err(error)?;
    if compiler.steps.len() > abi::FILTER_STEPS {
        let (count, most) = (compiler.steps.len(), abi::FILTER_STEPS);
        return Err(error(format!("it has {count} comparisons, at most {most} are possible")));
    }
    Ok(compiler.steps)
}

/// The target of a step; its number is known once the steps before it are.
#[derive(Clone, Copy)]
enum Next {
    Accept,
    Reject,
    /// The first step of the part compiled next.
    Step(u8),
}

impl Next {
    fn word(self) -> u8 {
        match self {
            Next::Accept => abi::FILTER_ACCEPT,
            Next::Reject => abi::FILTER_REJECT,
            Next::Step(number) => number,
        }
    }
}

struct Compiler<'a> {
    schema: &'a Schema,
    event: &'a Event,
    offsets: &'a [Option<u32>],
    steps: Vec<FilterStep>,
}

/// Number of comparisons.
fn count(expression: &Expression) -> usize {
    match expression {
        Expression::Compare { .. } => 1,
        Expression::Not(inner) => count(inner),
        Expression::And(left, right) | Expression::Or(left, right) => count(left) + count(right),
    }
}

impl Compiler<'_> {
    /// The step after `left`, if that does not decide.
    fn behind(&self, left: &Expression) -> Next {
        // More than a byte can hold are too many anyway, which is reported at the end.
        Next::Step((self.steps.len() + count(left)).min(abi::FILTER_STEPS) as u8)
    }

    fn condition(
        &mut self,
        expression: &Expression,
        if_true: Next,
        if_false: Next,
    ) -> Result<(), String> {
        match expression {
            Expression::Not(inner) => self.condition(inner, if_false, if_true),
            Expression::And(left, right) => {
                let behind = self.behind(left);
                self.condition(left, behind, if_false)?;
                self.condition(right, if_true, if_false)
            }
            Expression::Or(left, right) => {
                let behind = self.behind(left);
                self.condition(left, if_true, behind)?;
                self.condition(right, if_true, if_false)
            }
            Expression::Compare { field, mask, comparison, value } => {
                let step = self.compare(field, *mask, *comparison, value)?;
                let (if_true, if_false) = (if_true.word(), if_false.word());
                self.steps.push(FilterStep { if_true, if_false, ..step });
                Ok(())
            }
        }
    }

    fn compare(
        &self,
        name: &str,
        mask: Option<u64>,
        comparison: Comparison,
        value: &Value,
    ) -> Result<FilterStep, String> {
        let (field, offset) = self.field(name)?;
        let FieldType::Scalar(scalar) = field.ty else {
            return Err(format!(
                "`{name}` is no single number: texts, bytes and lists are filtered when reading, \
                 with --where"
            ));
        };
        let integer = match scalar {
            Scalar::Integer(integer) | Scalar::Enum { container: integer, .. } => integer,
            Scalar::Bool => Integer::U8,
            Scalar::F32 | Scalar::F64 => {
                return Err(format!("`{name}` is a floating-point number: only whole ones here"));
            }
        };
        let number = self.number(name, scalar, value)?;
        let (least, greatest) = integer.range();
        if mask.is_none() && !(least..=greatest).contains(&number) {
            return Err(format!("`{name}` is from {least} to {greatest}, never {number}"));
        }
        // Masked bits are compared as unsigned.
        let is_signed = integer.is_signed() && mask.is_none();
        if mask.is_some() && number < 0 {
            return Err(format!("bits of `{name}` are never {number}"));
        }
        let sign = if is_signed { abi::FILTER_SIGNED } else { 0 };
        Ok(FilterStep {
            offset,
            bytes: integer.size_bytes() as u8,
            compare: word_of(comparison) | sign,
            if_true: abi::FILTER_ACCEPT,
            if_false: abi::FILTER_REJECT,
            mask: mask.unwrap_or(u64::MAX),
            // Two's complement, like the sign-extended field.
            value: number as u64,
        })
    }

    fn field(&self, name: &str) -> Result<(&Field, u16), String> {
        let mut fields = self.event.fields.iter().zip(self.offsets);
        let Some((field, offset)) = fields.find(|(field, _)| field.name == name) else {
            let names: Vec<&str> =
                self.event.fields.iter().map(|field| field.name.as_str()).collect();
            let advice = crate::policy::advice(name, &names);
            return Err(match names.is_empty() {
                true => format!("`{}` has no fields", self.event.name),
                false => format!("`{}` has no field `{name}`: {advice}", self.event.name),
            });
        };
        let offset = offset.and_then(|offset| u16::try_from(offset).ok()).ok_or_else(|| {
            format!("`{name}` has no fixed place: it stands behind a field of variable length")
        })?;
        Ok((field, offset))
    }

    fn number(&self, name: &str, scalar: Scalar, value: &Value) -> Result<i128, String> {
        let label = match value {
            Value::Number(number) => return Ok(*number),
            Value::Label(label) => label,
        };
        match scalar {
            Scalar::Bool if label == "true" => Ok(1),
            Scalar::Bool if label == "false" => Ok(0),
            Scalar::Enum { index, .. } => {
                let labels = self.schema.enums.get(index).map(|one| &one.labels[..]);
                let labels = labels.unwrap_or_default();
                let found = labels.iter().find(|(known, _)| known == label);
                found.map(|(_, number)| *number).ok_or_else(|| {
                    let names: Vec<&str> = labels.iter().map(|(name, _)| name.as_str()).collect();
                    let advice = crate::policy::advice(label, &names);
                    format!("`{name}` is never `{label}`: {advice}")
                })
            }
            _ => Err(format!("`{name}` is a number, and `{label}` is none")),
        }
    }
}

fn word_of(comparison: Comparison) -> u8 {
    match comparison {
        Comparison::Equal => abi::FILTER_EQ,
        Comparison::Unequal => abi::FILTER_NE,
        Comparison::Less => abi::FILTER_LT,
        Comparison::LessOrEqual => abi::FILTER_LE,
        Comparison::Greater => abi::FILTER_GT,
        Comparison::GreaterOrEqual => abi::FILTER_GE,
    }
}
