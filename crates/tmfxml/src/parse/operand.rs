// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values, and paths to attributes.

use roxmltree::Node;

use super::{Checked, Reader};
use crate::datum::{Datum, Type};
use crate::plan::{Name, Operand, Path, What};

/// The scenario that runs, at the beginning of a path.
const CURRENT: &str = "#CurrentScenario";

/// What is understood of a value; `increment`, `update` and the other actions on stacks are
/// for the value of a state change.
const ATTRIBUTES: [&str; 9] = [
    "id",
    "type",
    "value",
    "increment",
    "update",
    "stack",
    "forcedType",
    "mappingGroup",
    "scriptEngine",
];

impl<'d, 'i> Reader<'d, 'i> {
    /// A `<stateValue>`, or another element of its shape.
    pub(super) fn operand(&mut self, node: Node<'d, 'i>) -> Checked<Operand> {
        let kind = self.needed(node, "type")?;
        if kind == "script" {
            return self.refuse(node, "scripts are not understood");
        }
        let children = self.only(node, &ATTRIBUTES, &["stateAttribute"])?;
        let value = self.resolved(node, node.attribute("value").unwrap_or_default())?;
        let number =
            |reader: &mut Self| Ok(What::Constant(Datum::Integer(reader.number(node, &value)?)));
        let what = match (kind, node.attribute("stack")) {
            (_, Some("peek")) => What::Peek(self.path(node, &children)?),
            ("int" | "long", _) => number(self)?,
            ("string", _) => What::Constant(Datum::text(&value)),
            ("null" | "delete", _) => What::Constant(Datum::Null),
            ("eventField", _) if value.is_empty() => {
                return self.refuse(node, "a field needs its name in `value`");
            }
            ("eventField", _) => What::Field(value.as_str().into()),
            ("eventName", _) => What::Event,
            ("query", _) => What::Query(self.path(node, &children)?),
            (other, _) => {
                return self.refuse(node, format!("values of type `{other}` are not understood"));
            }
        };
        if !children.is_empty() && !matches!(what, What::Query(_) | What::Peek(_)) {
            return self.refuse(children[0], format!("a value of type `{kind}` has no attributes"));
        }
        let map = match node.attribute("mappingGroup").filter(|name| !name.is_empty()) {
            None => None,
            Some(name) => match self.maps.get(name) {
                Some(map) => Some(*map),
                None => return self.refuse(node, format!("no <mappingGroup> has the id `{name}`")),
            },
        };
        let forced = match node.attribute("forcedType").filter(|name| !name.is_empty()) {
            None => None,
            Some(name) => self.forced(node, name)?,
        };
        Ok(Operand { what, map, forced })
    }

    /// A type by its name; `None` for that of no value.
    pub(super) fn forced(&mut self, node: Node<'d, 'i>, name: &str) -> Checked<Option<Type>> {
        Ok(Some(match name {
            "int" | "long" => Type::Integer,
            "double" => Type::Real,
            "string" => Type::Text,
            "null" => return Ok(None),
            other => return self.refuse(node, format!("no type is named `{other}`")),
        }))
    }

    /// The path of the `<stateAttribute>` among these; `node` is their parent.
    pub(super) fn path(&mut self, node: Node<'d, 'i>, elements: &[Node<'d, 'i>]) -> Checked<Path> {
        let mut path = Path::default();
        for element in elements.iter().filter(|element| element.has_tag_name("stateAttribute")) {
            self.step(*element, &mut path, 0)?;
        }
        if path.names.is_empty() {
            return self.refuse(node, "a path needs at least one <stateAttribute>");
        }
        Ok(path)
    }

    /// Locations may be nested, `depth` levels.
    fn step(&mut self, node: Node<'d, 'i>, path: &mut Path, depth: usize) -> Checked<()> {
        let children = self.only(node, &["type", "value"], &["stateAttribute"])?;
        let kind = self.needed(node, "type")?;
        let value = self.resolved(node, node.attribute("value").unwrap_or_default())?;
        if value.is_empty() && matches!(kind, "constant" | "eventField" | "location") {
            return self.refuse(node, format!("an attribute of type `{kind}` needs a `value`"));
        }
        let name = match kind {
            "constant" if value == CURRENT => {
                // At any position, as there.
                path.of_scenario = true;
                return Ok(());
            }
            "constant" => Name::Constant(value.as_str().into()),
            "eventField" => Name::Field(value.as_str().into()),
            "eventName" => Name::Event,
            "query" => Name::Query(self.path(node, &children)?),
            "location" => {
                let Some(location) = self.locations.get(&value).copied().filter(|_| depth < 16)
                else {
                    return self.refuse(node, format!("no <location> has the id `{value}`"));
                };
                for element in location.children().filter(Node::is_element) {
                    self.step(element, path, depth + 1)?;
                }
                return Ok(());
            }
            other => {
                let what = format!("attributes of type `{other}` are not understood");
                return self.refuse(node, what);
            }
        };
        if path.names.len() >= 1024 {
            return self.refuse(node, "a path has at most 1024 names");
        }
        path.names.push(name);
        Ok(())
    }
}
