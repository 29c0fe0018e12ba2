// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditions, of state changes and of transitions alike.

use roxmltree::Node;

use super::{Checked, Reader};
use crate::plan::{Condition, Operand, Operator, What};

const CONDITIONS: [&str; 4] = ["condition", "not", "and", "or"];

impl<'d, 'i> Reader<'d, 'i> {
    /// The one condition inside of an `<if>` or a `<not>`.
    pub(super) fn inner_condition(&mut self, node: Node<'d, 'i>) -> Checked<Condition> {
        let children = self.only(node, &[], &CONDITIONS)?;
        match children.as_slice() {
            [child] => self.condition(*child),
            _ => {
                let name = node.tag_name().name();
                self.refuse(node, format!("<{name}> has exactly one condition"))
            }
        }
    }

    fn condition(&mut self, node: Node<'d, 'i>) -> Checked<Condition> {
        match node.tag_name().name() {
            "not" => Ok(Condition::Not(Box::new(self.inner_condition(node)?))),
            name @ ("and" | "or") => {
                let children = self.only(node, &[], &CONDITIONS)?;
                if children.is_empty() {
                    return self.refuse(node, format!("<{name}> has no condition"));
                }
                let mut all = Vec::new();
                for child in children {
                    all.push(self.condition(child)?);
                }
                Ok(if name == "and" { Condition::All(all) } else { Condition::Any(all) })
            }
            _ => self.single(node),
        }
    }

    fn single(&mut self, node: Node<'d, 'i>) -> Checked<Condition> {
        let elements = ["stateAttribute", "field", "stateValue", "timerange", "elapsedTime"];
        let children = self.only(node, &["operator"], &elements)?;
        let named = |name: &str| -> Vec<Node<'d, 'i>> {
            children.iter().copied().filter(|child| child.has_tag_name(name)).collect()
        };
        let operator = match node.attribute("operator").unwrap_or_default() {
            "" | "eq" => Operator::Equal,
            "ne" => Operator::NotEqual,
            "ge" => Operator::AtLeast,
            "gt" => Operator::Greater,
            "le" => Operator::AtMost,
            "lt" => Operator::Less,
            other => return self.refuse(node, format!("no operator is named `{other}`")),
        };
        let (values, fields) = (named("stateValue"), named("field"));
        let is_path = children.iter().any(|child| child.has_tag_name("stateAttribute"));
        if let ([child], true) = (children.as_slice(), values.is_empty()) {
            match child.tag_name().name() {
                "timerange" => return self.time_range(*child),
                "elapsedTime" => return self.elapsed(*child),
                _ => {}
            }
        }
        match (values.as_slice(), fields.as_slice(), is_path) {
            ([first, second], [], false) => {
                Ok(Condition::Compare(operator, self.operand(*first)?, self.operand(*second)?))
            }
            ([value], [field], false) => {
                self.only(*field, &["name"], &[])?;
                let name = self.needed(*field, "name")?;
                let name = self.resolved(*field, name)?;
                let first = Operand::new(What::Field(name.as_str().into()));
                Ok(Condition::Compare(operator, first, self.operand(*value)?))
            }
            ([value], [], true) => {
                let first = Operand::new(What::Query(self.path(node, &children)?));
                Ok(Condition::Compare(operator, first, self.operand(*value)?))
            }
            _ => self.refuse(
                node,
                "a <condition> compares two <stateValue>, or a <field> or an attribute with one, \
                 or is a <timerange> or an <elapsedTime>",
            ),
        }
    }

    fn time_range(&mut self, node: Node<'d, 'i>) -> Checked<Condition> {
        let children = self.only(node, &["unit"], &["in", "out"])?;
        let [child] = children.as_slice() else {
            return self.refuse(node, "a <timerange> has one <in> or one <out>");
        };
        self.only(*child, &["begin", "end"], &[])?;
        let (begin, end) = (self.needed(*child, "begin")?, self.needed(*child, "end")?);
        let begin = self.nanos(node, begin)?;
        let end = self.nanos(node, end)?;
        Ok(Condition::Time { begin, end, inside: child.has_tag_name("in") })
    }

    fn elapsed(&mut self, node: Node<'d, 'i>) -> Checked<Condition> {
        let children = self.only(node, &["unit"], &["less", "equal", "more"])?;
        let [child] = children.as_slice() else {
            return self.refuse(node, "an <elapsedTime> has one <less>, <equal> or <more>");
        };
        self.only(*child, &["since", "value"], &[])?;
        let operator = match child.tag_name().name() {
            "less" => Operator::Less,
            "equal" => Operator::Equal,
            _ => Operator::Greater,
        };
        let (since, value) = (self.needed(*child, "since")?, self.needed(*child, "value")?);
        let value = self.nanos(node, value)?;
        Ok(Condition::Elapsed(operator, since.into(), value))
    }

    /// Nanoseconds of a number in the unit of `node`.
    fn nanos(&mut self, node: Node<'d, 'i>, text: &str) -> Checked<i64> {
        let each = match node.attribute("unit").unwrap_or("ns") {
            "" | "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            other => return self.refuse(node, format!("no unit is named `{other}`")),
        };
        Ok(self.number(node, text)?.saturating_mul(each))
    }
}
