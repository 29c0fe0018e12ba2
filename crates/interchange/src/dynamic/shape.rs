// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the values of one field have in common.

use lateralis_model::{Base, FieldClass};

use super::{Dyn, Named};

/// Deeper values become text.
const MAX_DEPTH: u32 = 12;
/// Dictionaries with more names become text.
const MAX_MEMBERS: usize = 128;
/// Integers up to this size are exact as floating point.
const EXACT: u64 = 1 << 53;

/// What has been seen in one place.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Null,
    Bool,
    Integer(Integer),
    Real,
    Text,
    Bytes,
    /// `None` while only empty lists were seen.
    List(Option<Box<Shape>>),
    Dict(Dict),
    /// Values of different kinds: kept as JSON text.
    Mixed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer {
    /// Signed by type, or below zero.
    signed: bool,
    /// Some value is beyond 63 bits.
    large: bool,
    /// Some value is beyond 53 bits.
    inexact: bool,
    hex: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dict {
    pub members: Vec<MemberShape>,
    /// How many dictionaries were seen.
    seen: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MemberShape {
    pub name: String,
    shape: Shape,
    seen: u64,
}

/// How to add a value of a class.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    Bool,
    Unsigned,
    Signed,
    Real,
    Text,
    Bytes,
    List(Box<Plan>),
    Dict(Vec<MemberPlan>),
    /// As JSON text.
    Json,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MemberPlan {
    pub name: String,
    pub optional: bool,
    pub plan: Plan,
}

fn integer(value: &Dyn<'_>) -> Option<Integer> {
    Some(match *value {
        Dyn::Unsigned(number) => Integer {
            signed: false,
            large: number > i64::MAX as u64,
            inexact: number > EXACT,
            hex: false,
        },
        Dyn::Hex(number) => Integer {
            signed: false,
            large: number > i64::MAX as u64,
            inexact: number > EXACT,
            hex: true,
        },
        Dyn::Signed(number) => Integer {
            signed: true,
            large: false,
            inexact: number.unsigned_abs() > EXACT,
            hex: false,
        },
        _ => return None,
    })
}

impl Shape {
    /// The shape of one value. `budget` is the number of names that may still be kept.
    fn of(value: &Dyn<'_>, depth: u32, budget: &mut usize) -> Self {
        match value {
            Dyn::Null => Self::Null,
            Dyn::Bool(_) => Self::Bool,
            Dyn::Unsigned(_) | Dyn::Signed(_) | Dyn::Hex(_) => {
                integer(value).map_or(Self::Mixed, Self::Integer)
            }
            Dyn::Real(_) => Self::Real,
            Dyn::Text(_) => Self::Text,
            Dyn::Bytes(_) => Self::Bytes,
            Dyn::List(_) => {
                let mut shape = Self::List(None);
                shape.add(value, depth, budget);
                shape
            }
            Dyn::Dict(_) => {
                let mut shape = Self::Dict(Dict::default());
                shape.add(value, depth, budget);
                shape
            }
        }
    }

    /// Widens the shape so that it holds `value` too.
    pub fn add(&mut self, value: &Dyn<'_>, depth: u32, budget: &mut usize) {
        let fits = match (&mut *self, value) {
            (Self::Mixed, _) => return,
            _ if depth >= MAX_DEPTH => false,
            (Self::Null, Dyn::Null)
            | (Self::Bool, Dyn::Bool(_))
            | (Self::Real, Dyn::Real(_))
            | (Self::Text, Dyn::Text(_))
            | (Self::Bytes, Dyn::Bytes(_)) => true,
            (Self::List(element), Dyn::List(values)) => {
                for value in values {
                    match element {
                        Some(element) => element.add(value, depth + 1, budget),
                        None => *element = Some(Box::new(Self::of(value, depth + 1, budget))),
                    }
                }
                true
            }
            (Self::Dict(dict), Dyn::Dict(values)) => dict.add(values, depth + 1, budget),
            (Self::Integer(seen), Dyn::Real(_)) if !seen.inexact => {
                *self = Self::Real;
                true
            }
            (Self::Real, _) => integer(value).is_some_and(|number| !number.inexact),
            (Self::Integer(seen), _) => match integer(value) {
                Some(number) => {
                    seen.signed |= number.signed;
                    seen.large |= number.large;
                    seen.inexact |= number.inexact;
                    seen.hex |= number.hex;
                    !(seen.signed && seen.large)
                }
                None => false,
            },
            _ => false,
        };
        if !fits {
            *self = Self::Mixed;
        }
    }

    /// The class of the field and how to add its values. The dotted names of
    /// fields that hold JSON text are added to `json`; `path` is that of this
    /// field.
    pub fn finish(&self, path: &str, json: &mut Vec<String>) -> (FieldClass, Plan) {
        match self {
            Self::Bool => (FieldClass::boolean(), Plan::Bool),
            Self::Integer(Integer { signed: true, .. }) => (FieldClass::i64(), Plan::Signed),
            Self::Integer(Integer { hex: true, .. }) => {
                (FieldClass::unsigned(64, Base::Hexadecimal), Plan::Unsigned)
            }
            Self::Integer(_) => (FieldClass::u64(), Plan::Unsigned),
            Self::Real => (FieldClass::real(), Plan::Real),
            Self::Text => (FieldClass::text(), Plan::Text),
            Self::Bytes => (FieldClass::blob(), Plan::Bytes),
            Self::List(None) => {
                (FieldClass::array(FieldClass::text(), None), Plan::List(Box::new(Plan::Text)))
            }
            Self::List(Some(element)) => {
                let (class, plan) = element.finish(path, json);
                (FieldClass::array(class, None), Plan::List(Box::new(plan)))
            }
            Self::Dict(dict) => dict.finish(path, json),
            Self::Null | Self::Mixed => {
                json.push(path.to_owned());
                (FieldClass::text(), Plan::Json)
            }
        }
    }
}

impl Dict {
    /// `false` if the names are too many to keep.
    pub fn add(&mut self, values: &Named<'_>, depth: u32, budget: &mut usize) -> bool {
        self.seen += 1;
        for (at, (name, value)) in values.iter().enumerate() {
            let same = |member: &MemberShape| member.name == *name;
            let place = match self.members.get(at) {
                Some(member) if same(member) => Some(at),
                _ => self.members.iter().position(same),
            };
            if let Some(place) = place {
                let member = &mut self.members[place];
                member.seen += 1;
                member.shape.add(value, depth, budget);
                continue;
            }
            if self.members.len() >= MAX_MEMBERS || *budget == 0 {
                return false;
            }
            *budget -= 1;
            let shape = Shape::of(value, depth, budget);
            self.members.push(MemberShape { name: name.to_string(), shape, seen: 1 });
        }
        true
    }

    pub fn finish(&self, path: &str, json: &mut Vec<String>) -> (FieldClass, Plan) {
        let mut classes = Vec::new();
        let mut plans = Vec::new();
        for member in &self.members {
            let path = if path.is_empty() {
                member.name.clone()
            } else {
                format!("{path}.{}", member.name)
            };
            let (class, plan) = member.shape.finish(&path, json);
            let optional = member.seen < self.seen;
            let class = if optional { FieldClass::optional(class) } else { class };
            classes.push((member.name.clone(), class));
            plans.push(MemberPlan { name: member.name.clone(), optional, plan });
        }
        (FieldClass::structure(classes), Plan::Dict(plans))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::FieldKind;

    fn shape(values: &[Dyn<'_>]) -> Plan {
        let mut budget = 100;
        let mut shape = Shape::of(&values[0], 0, &mut budget);
        values.iter().for_each(|value| shape.add(value, 0, &mut budget));
        shape.finish("x", &mut Vec::new()).1
    }

    #[test]
    fn numbers_widen_only_where_nothing_is_lost() {
        assert_eq!(shape(&[Dyn::Unsigned(1), Dyn::Unsigned(u64::MAX)]), Plan::Unsigned);
        assert_eq!(shape(&[Dyn::Unsigned(1), Dyn::Signed(-1)]), Plan::Signed);
        assert_eq!(shape(&[Dyn::Unsigned(u64::MAX), Dyn::Signed(-1)]), Plan::Json);
        assert_eq!(shape(&[Dyn::Unsigned(1), Dyn::Real(0.5)]), Plan::Real);
        assert_eq!(shape(&[Dyn::Unsigned(u64::MAX), Dyn::Real(0.5)]), Plan::Json);
        assert_eq!(shape(&[Dyn::Real(0.5), Dyn::Signed(-(1 << 60))]), Plan::Json);
    }

    #[test]
    fn what_does_not_fit_together_is_json() {
        assert_eq!(shape(&[Dyn::Text("a".into()), Dyn::Unsigned(1)]), Plan::Json);
        assert_eq!(shape(&[Dyn::Null, Dyn::Null]), Plan::Json);
        let list = Dyn::List(vec![Dyn::Bool(true), Dyn::Null]);
        assert_eq!(shape(&[list]), Plan::List(Box::new(Plan::Json)));
    }

    #[test]
    fn a_member_that_is_not_always_there_is_optional() {
        let dict = |names: &[&'static str]| {
            Dyn::Dict(names.iter().map(|&name| (name.into(), Dyn::Unsigned(1))).collect())
        };
        let mut budget = 100;
        let mut shape = Shape::of(&dict(&["a", "b"]), 0, &mut budget);
        shape.add(&dict(&["b", "c"]), 0, &mut budget);
        let (class, _) = shape.finish("", &mut Vec::new());
        let optional: Vec<_> = class
            .members()
            .iter()
            .map(|member| {
                (member.name.as_str(), matches!(member.class.kind, FieldKind::Optional(_)))
            })
            .collect();
        assert_eq!(optional, [("a", true), ("b", false), ("c", true)]);
        assert_eq!(budget, 97);
    }

    #[test]
    fn depth_and_number_of_names_are_bounded() {
        let mut deep = Dyn::Unsigned(1);
        for _ in 0..100 {
            deep = Dyn::List(vec![deep]);
        }
        let mut budget = 100;
        let mut json = Vec::new();
        Shape::of(&deep, 0, &mut budget).finish("deep", &mut json);
        assert_eq!(json, ["deep"]);
        let wide = Dyn::Dict((0..200).map(|n| (n.to_string().into(), Dyn::Null)).collect());
        assert_eq!(shape(&[wide]), Plan::Json);
    }
}
