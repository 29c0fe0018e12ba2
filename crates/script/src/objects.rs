// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events as objects of the engine, and values of the engine as values of ours.
//!
//! Objects have no prototype, so that missing members are `undefined` and changes of a script to
//! `Object.prototype` have no effect on them. Each call gets an object of its own.

use lateralis_analysis::filter::{Context, Fact, Known, fact, text_of};
use lateralis_model::{Elements, Event, Field, Fields, Value as ModelValue};
use rquickjs::{Array, BigInt, Coerced, Ctx, Exception, Object, Result, String as Text, Value};

use crate::expression::{SAFE_MAX, label, scopes};
use crate::scalar::Scalar;

/// What an event has besides fields, by the name that scripts know.
const FACTS: [(&str, Known); 9] = [
    ("name", Known::Event),
    ("subsystem", Known::Subsystem),
    ("time", Known::Time),
    ("cpu", Known::Cpu),
    ("pid", Known::Pid),
    ("tid", Known::Tid),
    ("process", Known::Process),
    ("thread", Known::Thread),
    ("stream", Known::Stream),
];

/// An event as a script sees it.
///
/// Cost: proportional to the fields of the event.
pub fn event<'js>(ctx: &Ctx<'js>, event: &Event<'_>, context: &Context<'_>) -> Result<Object<'js>> {
    let object = Object::new_proto(ctx.clone(), None)?;
    for (name, known) in FACTS {
        let value = match fact(known, event, context) {
            Some(Fact::Integer(time)) if known == Known::Time => big(ctx, time)?,
            Some(Fact::Integer(value)) => integer(ctx, value)?,
            Some(Fact::Text(text)) => Text::from_str(ctx.clone(), &text)?.into_value(),
            None => continue,
        };
        object.set(name, value)?;
    }
    let fields = Object::new_proto(ctx.clone(), None)?;
    let labels = Object::new_proto(ctx.clone(), None)?;
    let scopes: Vec<Fields<'_>> = scopes(event).collect();
    for (index, scope) in scopes.iter().enumerate() {
        for (member, field) in *scope {
            // The first of a name is the one that counts, as in expressions.
            let is_hidden = || scopes[..index].iter().any(|s| s.get(&member.name).is_some());
            if index > 0 && is_hidden() || fields.contains_key(member.name.as_str())? {
                continue;
            }
            fields.set(member.name.as_str(), value(ctx, field)?)?;
            if let Some(label) = label(field) {
                labels.set(member.name.as_str(), label)?;
            }
        }
    }
    object.set("fields", fields)?;
    object.set("labels", labels)?;
    Ok(object)
}

fn integer<'js>(ctx: &Ctx<'js>, value: i128) -> Result<Value<'js>> {
    match i32::try_from(value) {
        Ok(small) => Ok(Value::new_int(ctx.clone(), small)),
        Err(_) if (-SAFE_MAX..=SAFE_MAX).contains(&value) => {
            Ok(Value::new_float(ctx.clone(), value as f64))
        }
        Err(_) => big(ctx, value),
    }
}

fn big<'js>(ctx: &Ctx<'js>, value: i128) -> Result<Value<'js>> {
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => Ok(BigInt::from_i64(ctx.clone(), value)?.into_value()),
        (_, Ok(value)) => Ok(BigInt::from_u64(ctx.clone(), value)?.into_value()),
        // No field is wider than 64 bits.
        _ => Ok(Value::new_undefined(ctx.clone())),
    }
}

fn value<'js>(ctx: &Ctx<'js>, field: Field<'_>) -> Result<Value<'js>> {
    Ok(match field.value() {
        ModelValue::Bool(value) => Value::new_bool(ctx.clone(), value),
        ModelValue::Unsigned(number) | ModelValue::Bits(number) => integer(ctx, number.into())?,
        ModelValue::Signed(number) => integer(ctx, number.into())?,
        // Not `new_number`, which makes an integer of it where it can: of -0.0 as well, and 1 / -0.0 is not
        // 1 / 0.
        ModelValue::Real(number) => Value::new_float(ctx.clone(), number),
        ModelValue::Text(text) => Text::from_str(ctx.clone(), &text.to_str())?.into_value(),
        ModelValue::Variant(_, inner) | ModelValue::Optional(Some(inner)) => value(ctx, inner)?,
        ModelValue::Optional(None) => Value::new_undefined(ctx.clone()),
        ModelValue::Bytes(bytes) => {
            let array = Array::new(ctx.clone())?;
            for (index, byte) in bytes.iter().enumerate() {
                array.set(index, *byte)?;
            }
            array.into_value()
        }
        ModelValue::Struct(fields) => {
            let object = Object::new_proto(ctx.clone(), None)?;
            for (member, field) in fields {
                if !object.contains_key(member.name.as_str())? {
                    object.set(member.name.as_str(), value(ctx, field)?)?;
                }
            }
            object.into_value()
        }
        ModelValue::Array(elements) => array(ctx, elements)?,
    })
}

fn array<'js>(ctx: &Ctx<'js>, elements: Elements<'_>) -> Result<Value<'js>> {
    if let Some(text) = text_of(elements) {
        return Ok(Text::from_str(ctx.clone(), &text)?.into_value());
    }
    let array = Array::new(ctx.clone())?;
    for (index, element) in elements.enumerate() {
        array.set(index, value(ctx, element)?)?;
    }
    Ok(array.into_value())
}

/// Longest text of a key or an attribute, in bytes.
const TEXT_MAX: usize = 4096;

/// A value of a script as a key or an attribute.
///
/// Errors: throws into the script what is neither number, text, yes or no, nor nothing.
pub fn scalar<'js>(ctx: &Ctx<'js>, what: &str, value: &Value<'js>) -> Result<Scalar> {
    if value.is_undefined() || value.is_null() {
        return Ok(Scalar::Nothing);
    }
    if let Some(value) = value.as_bool() {
        return Ok(Scalar::Bool(value));
    }
    if let Some(number) = value.as_number() {
        return Ok(Scalar::number(number));
    }
    if value.is_big_int() {
        let Coerced(digits) = value.get::<Coerced<String>>()?;
        let number = digits.parse().map_err(|_| {
            Exception::throw_range(ctx, &format!("{what} is a BigInt of more than 128 bits"))
        })?;
        return Ok(Scalar::Integer(number));
    }
    if let Some(text) = value.as_string() {
        let text = text.to_string().map_err(|_| {
            Exception::throw_type(ctx, &format!("{what} is a text with halves of characters"))
        })?;
        if text.len() > TEXT_MAX {
            let message = format!("{what} is a text of more than {TEXT_MAX} bytes");
            return Err(Exception::throw_range(ctx, &message));
        }
        return Ok(Scalar::Text(text));
    }
    let message = format!("{what} is neither a number nor a text, true or false");
    Err(Exception::throw_type(ctx, &message))
}
