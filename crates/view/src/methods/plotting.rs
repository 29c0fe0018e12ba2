// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `fields`, `values`: numeric fields of events, to plot against each other or against time.

use lateralis_lanes::PointRef;
use lateralis_model::{FieldClass, FieldKind};
use serde_json::{Value, json};

use super::selecting::stretch;
use crate::answer::{Answer, Numbers, Problem};
use crate::params::Params;
use crate::session::Session;
use crate::told;

/// Maximum number of events in a response.
const POINTS_MAX: u64 = 20_000;
/// Maximum number of fields in a response.
const FIELDS_MAX: usize = 8;

/// The fields of a class that may contain a number.
pub fn fields(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let name = class_name(session, params.id("class")?)?;
    let source = session.source()?;
    let streams = source.trace.stream_classes.iter().flat_map(|stream| &stream.event_classes);
    let mut names: Vec<String> = Vec::new();
    for class in streams.filter(|class| class.name == name) {
        for part in [&class.context, &class.payload] {
            for member in part.as_ref().map_or(&[][..], FieldClass::members) {
                if may_count(&member.class) && !names.contains(&member.name) {
                    names.push(member.name.clone());
                }
            }
        }
    }
    Ok(json!({ "fields": names }))
}

/// Whether values of a field are single numbers; strings, bytes and compound fields are not.
fn may_count(class: &FieldClass) -> bool {
    matches!(class.kind, FieldKind::Unsigned(_) | FieldKind::Signed(_) | FieldKind::Real(_))
}

fn class_name(session: &Session, class: u32) -> Result<String, Problem> {
    let of = session.lanes.meta().classes.get(class as usize);
    let none = || Problem::new("no such event", class.to_string(), "load the page again");
    Ok(of.ok_or_else(none)?.name.clone())
}

/// Times and fields of the events of a class that a filter keeps: all, or a selection at equal
/// distances in their order.
pub fn values(session: &Session, params: Params<'_>) -> Result<Answer, Problem> {
    let class = params.id("class")?;
    class_name(session, class)?;
    let names = params.get("fields").and_then(Value::as_array);
    let names: Option<Vec<&str>> = names
        .filter(|names| names.len() <= FIELDS_MAX)
        .and_then(|names| names.iter().map(Value::as_str).collect());
    let wrong = || Problem::new("cannot read the request", "fields", "expected a list of names");
    let names = names.ok_or_else(wrong)?;
    let most = params.count("most", 2000)?.clamp(1, POINTS_MAX) as usize;
    let all = points(session, params, class)?;
    let count = all.len();
    let shown: Vec<PointRef> = if count <= most {
        all
    } else {
        (0..most).map(|index| all[index * count / most]).collect()
    };
    let told = told::fields(session, &shown)?;
    let mut columns: Vec<Vec<f64>> = vec![Vec::with_capacity(shown.len()); names.len() + 1];
    for (point, fields) in shown.iter().zip(&told) {
        let time = session.lanes.points(point.lane).map_or(0, |p| p.time(point.index as usize));
        columns[0].push(time as f64);
        let fields = fields.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (name, column) in names.iter().zip(&mut columns[1..]) {
            let field = fields.iter().find(|field| field["name"] == *name);
            column.push(field.map_or(f64::NAN, |field| number(&field["value"])));
        }
    }
    let unit = |name: &&str| {
        let fields = told.iter().flatten().filter_map(Value::as_array).flatten();
        fields.filter(|field| field["name"] == **name).find_map(|field| field.get("unit").cloned())
    };
    let units: Vec<Option<Value>> = names.iter().map(unit).collect();
    const NAMES: [&str; FIELDS_MAX + 1] =
        ["time", "field0", "field1", "field2", "field3", "field4", "field5", "field6", "field7"];
    let columns = NAMES.into_iter().zip(columns.into_iter().map(Numbers::F64)).collect();
    Ok(Answer::Columns(json!({ "count": count, "units": units }), columns))
}

/// Events of a class in the time range and filter of the request, in the order of time.
fn points(session: &Session, params: Params<'_>, class: u32) -> Result<Vec<PointRef>, Problem> {
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let (begin, end) = stretch(session, params)?;
    let mut found: Vec<(u64, PointRef)> = Vec::new();
    for lane in 0..session.lanes.count() {
        let Some(points) = session.lanes.points(lane) else { continue };
        let bits = chosen.as_ref().and_then(|chosen| chosen.bits(lane));
        let (from, to) = (points.before(begin), points.before(end));
        for (index, (of, _)) in (from..to).zip(points.kinds(from, to)) {
            if u32::from(of) == class && bits.is_none_or(|bits| bits.get(index)) {
                found.push((points.time(index), PointRef { lane, index: index as u32 }));
            }
        }
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|(_, point)| point).collect())
}

/// Value of a field; large integers arrive as decimal strings, and addresses as hexadecimal ones.
fn number(value: &Value) -> f64 {
    let text = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|number| number as f64),
        None => text.parse().ok(),
    };
    value.as_f64().or_else(|| text(value.as_str()?)).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers_however_they_are_told() {
        let of = |value: Value| number(&value);
        assert_eq!(of(json!(-3)), -3.0);
        assert_eq!(of(json!("18446744073709551615")), 18446744073709551615.0);
        assert_eq!(of(json!("0xff")), 255.0);
        assert!(
            [json!("ready"), json!(null), json!([1]), json!(true)]
                .into_iter()
                .all(|v| of(v).is_nan())
        );
    }
}
