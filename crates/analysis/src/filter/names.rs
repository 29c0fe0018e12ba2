// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds fields in an expression that no event of a trace can have.

use std::collections::BTreeSet;

use lateralis_model::{FieldClass, FieldKind, Trace};

use super::{Expression, Filter, Operand, Step};

impl Filter {
    /// Fields of the expression that no event of the trace can have, each once, as written: every
    /// comparison with them fails.
    ///
    /// Cost: a walk over the classes for each field in the expression.
    #[must_use]
    pub fn unknown_fields(&self, trace: &Trace) -> Vec<String> {
        let mut named = Vec::new();
        collect(&self.root, &mut named);
        let mut unknown: Vec<String> = Vec::new();
        for steps in named {
            let Some((Step::Member(first), rest)) = steps.split_first() else { continue };
            let known = scopes(trace).any(|class| {
                let member = class.members().iter().find(|member| member.name == *first);
                member.is_some_and(|member| leads_somewhere(&member.class, rest))
            });
            let text = written(steps);
            if !known && !unknown.contains(&text) {
                unknown.push(text);
            }
        }
        unknown
    }
}

/// Names of the fields of events of a trace: of their payload, contexts and packets, without nested ones;
/// sorted.
///
/// Cost: a walk over the classes.
#[must_use]
pub fn field_names(trace: &Trace) -> Vec<&str> {
    let members = scopes(trace).flat_map(FieldClass::members);
    let names: BTreeSet<&str> = members.map(|member| member.name.as_str()).collect();
    names.into_iter().filter(|name| !name.is_empty()).collect()
}

fn scopes(trace: &Trace) -> impl Iterator<Item = &FieldClass> {
    trace.stream_classes.iter().flat_map(|stream| {
        let of_stream = [&stream.common_context, &stream.packet_context];
        let events = stream.event_classes.iter();
        let of_events = events.flat_map(|event| [&event.payload, &event.context]);
        of_stream.into_iter().chain(of_events).flatten()
    })
}

fn collect<'f>(expression: &'f Expression, named: &mut Vec<&'f [Step]>) {
    let mut operand = |operand: &'f Operand| {
        if let Operand::Field(steps) = operand {
            named.push(steps);
        }
    };
    match expression {
        Expression::And(left, right) | Expression::Or(left, right) => {
            collect(left, named);
            collect(right, named);
        }
        Expression::Not(inner) => collect(inner, named),
        Expression::Compare(left, _, right) => {
            operand(left);
            operand(right);
        }
        Expression::Truth(inner) => operand(inner),
    }
}

/// Whether a field of this class can have a value at the path.
fn leads_somewhere(class: &FieldClass, steps: &[Step]) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return true;
    };
    let named = |members: &[lateralis_model::Member]| {
        let Step::Member(name) = step else { return false };
        let mut found = members.iter().filter(|member| member.name == *name);
        found.any(|member| leads_somewhere(&member.class, rest))
    };
    match &class.kind {
        FieldKind::Struct(members) => named(members),
        FieldKind::Variant(options) => {
            named(options) || options.iter().any(|option| leads_somewhere(&option.class, steps))
        }
        FieldKind::Optional(inner) => leads_somewhere(inner, steps),
        FieldKind::Array { element, .. } => {
            matches!(step, Step::Element(_)) && leads_somewhere(element, rest)
        }
        _ => false,
    }
}

fn written(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Member(name) if text.is_empty() => text.push_str(name),
            Step::Member(name) => text.push_str(&format!(".{name}")),
            Step::Element(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::{EventClass, StreamClass};

    fn trace() -> Trace {
        let at = FieldClass::structure([("port", FieldClass::u64())]);
        let payload = FieldClass::structure([
            ("bytes", FieldClass::u64()),
            ("at", FieldClass::optional(at)),
            ("list", FieldClass::array(FieldClass::u64(), None)),
        ]);
        let either = FieldClass::structure([("code", FieldClass::i64())]);
        let member = lateralis_model::Member { name: "some".into(), class: either };
        let context =
            FieldClass::structure([("v", FieldClass::new(FieldKind::Variant(vec![member])))]);
        let event =
            EventClass { payload: Some(payload), context: Some(context), ..EventClass::default() };
        let stream = StreamClass {
            packet_context: Some(FieldClass::structure([("cpu_id", FieldClass::u64())])),
            event_classes: vec![event],
            ..StreamClass::default()
        };
        Trace { stream_classes: vec![stream], ..Trace::default() }
    }

    #[test]
    fn only_what_no_event_can_have_is_unknown() {
        let trace = trace();
        for (expression, expected) in [
            ("bytes > 4k && cpu_id == 1 || list[3] == 2", vec![]),
            ("at.port == 80 && v.code == 1 && v.some.code == 1 && v.some", vec![]),
            ("$cpu == 1 && $event =~ WORD && bytes == WORD", vec![]),
            ("byts > 4k || !(byts < 1)", vec!["byts"]),
            ("at.prt == 80 && list.x == 1 && bytes[2] == 1", vec!["at.prt", "list.x", "bytes[2]"]),
            ("v.other && !(list[1] == at.none)", vec!["v.other", "at.none"]),
        ] {
            let filter = Filter::parse(expression).unwrap();
            assert_eq!(filter.unknown_fields(&trace), expected, "{expression}");
        }
        assert_eq!(field_names(&trace), ["at", "bytes", "cpu_id", "list", "v"]);
    }
}
