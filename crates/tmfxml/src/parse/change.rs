// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State changes and segments.

use std::sync::Arc;

use roxmltree::Node;

use super::{Checked, Reader};
use crate::datum::{Datum, Type};
use crate::plan::{Action, Change, How, Operand, SegmentPlan, What};

impl<'d, 'i> Reader<'d, 'i> {
    /// A `<stateChange>`, or the `<then>` or `<else>` of one.
    pub(super) fn change(&mut self, node: Node<'d, 'i>) -> Checked<Action> {
        let elements = ["if", "then", "else", "stateAttribute", "stateValue", "futureTime"];
        let children = self.only(node, &[], &elements)?;
        let named = |name: &str| -> Vec<Node<'d, 'i>> {
            children.iter().copied().filter(|child| child.has_tag_name(name)).collect()
        };
        let (ifs, thens, elses) = (named("if"), named("then"), named("else"));
        let (values, later) = (named("stateValue"), named("futureTime"));
        match (ifs.as_slice(), thens.as_slice(), elses.as_slice(), values.as_slice()) {
            ([condition], [then], [] | [_], []) => {
                let condition = self.inner_condition(*condition)?;
                let then = Box::new(self.change(*then)?);
                let otherwise = match elses.first() {
                    Some(otherwise) => Some(Box::new(self.change(*otherwise)?)),
                    None => None,
                };
                Ok(Action::If(condition, then, otherwise))
            }
            ([], [], [], [value]) if later.len() <= 1 => {
                let path = self.path(node, &children)?;
                let how = self.how(*value)?;
                let value = self.operand(*value)?;
                let later = match later.first() {
                    Some(later) => Some(self.operand(*later)?),
                    None => None,
                };
                Ok(Action::Change(Change { path, value, how, later }))
            }
            _ => self.refuse(
                node,
                "a state change is a path, one <stateValue> and perhaps a <futureTime>; or an \
                 <if>, a <then> and perhaps an <else>",
            ),
        }
    }

    /// How a value changes the attribute.
    fn how(&mut self, node: Node<'d, 'i>) -> Checked<How> {
        let adds = self.flag(node, "increment", false)?;
        let updates = self.flag(node, "update", false)?;
        let stack = node.attribute("stack").unwrap_or_default();
        match (adds, updates, stack) {
            (false, false, "" | "peek") => Ok(How::Set),
            (true, false, "") => Ok(How::Add),
            (false, true, "") => Ok(How::Update),
            (false, false, "push") => Ok(How::Push),
            (false, false, "pop") => Ok(How::Pop),
            (false, false, "popAll") => Ok(How::PopAll),
            (false, false, other) => self.refuse(node, format!("a stack is not used by `{other}`")),
            _ => self.refuse(node, "only one of `increment`, `update` and `stack` can be"),
        }
    }

    pub(super) fn segment(&mut self, node: Node<'d, 'i>) -> Checked<SegmentPlan> {
        let children = self.only(node, &[], &["segType", "segTime", "segContent"])?;
        let one = |name: &str| children.iter().copied().find(|child| child.has_tag_name(name));
        let Some(kind) = one("segType") else {
            return self.refuse(node, "a <segment> needs a <segType>");
        };
        let names = self.only(kind, &["segName"], &["segName"])?;
        let name = match (kind.attribute("segName"), names.as_slice()) {
            (Some(name), []) => Operand::new(What::Constant(Datum::text(name))),
            (None | Some(""), [name]) => self.only_value(*name)?,
            _ => return self.refuse(kind, "a <segType> has one name: a value in <segName>"),
        };
        let mut segment =
            SegmentPlan { name, begin: None, end: None, duration: None, fields: Vec::new() };
        if let Some(time) = one("segTime") {
            for child in self.only(time, &[], &["begin", "end", "duration"])? {
                let value = Some(self.operand(child)?.forced(Type::Integer));
                match child.tag_name().name() {
                    "begin" => segment.begin = value,
                    "end" => segment.end = value,
                    _ => segment.duration = value,
                }
            }
            if segment.begin.is_none() || segment.end.is_some() == segment.duration.is_some() {
                return self
                    .refuse(time, "a <segTime> has a <begin>, and an <end> or a <duration>");
            }
        }
        if let Some(content) = one("segContent") {
            for child in self.only(content, &[], &["segField"])? {
                let field = self.field(child)?;
                if segment.fields.iter().any(|(known, _)| *known == field.0) {
                    return self.refuse(child, format!("the field `{}` is there twice", field.0));
                }
                segment.fields.push(field);
            }
        }
        Ok(segment)
    }

    fn field(&mut self, node: Node<'d, 'i>) -> Checked<(Arc<str>, Operand)> {
        let children = self.only(node, &["name", "type", "value"], &["stateValue"])?;
        let name: Arc<str> = self.needed(node, "name")?.into();
        let kind = self.needed(node, "type")?;
        let forced = self.forced(node, kind)?;
        let value = node.attribute("value").filter(|value| !value.is_empty());
        let operand = match (forced, value, children.as_slice()) {
            (None, ..) => Operand::new(What::Constant(Datum::Null)),
            (Some(to), Some(value), []) => {
                let value = self.resolved(node, value)?;
                Operand::new(What::Constant(Datum::text(&value).forced(to)))
            }
            (Some(to), None, [value]) => {
                let operand = self.operand(*value)?;
                // A type of its own goes first.
                if operand.forced.is_some() { operand } else { operand.forced(to) }
            }
            _ => return self.refuse(node, "a <segField> has a `value` or one <stateValue>"),
        };
        Ok((name, operand))
    }

    /// The one value inside of an element.
    fn only_value(&mut self, node: Node<'d, 'i>) -> Checked<Operand> {
        let values = self.only(node, &[], &["stateValue"])?;
        match values.as_slice() {
            [value] => self.operand(*value),
            _ => {
                let name = node.tag_name().name();
                self.refuse(node, format!("<{name}> has one <stateValue>"))
            }
        }
    }
}
