// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the field that a length or a selector is taken from.

use std::collections::HashMap;

use crate::metadata::{FieldClass, Location, Meaning, PathItem, Scope, brief};

/// A place in the classes of an event: scope, then the index of a member or an
/// option at each step down (0 for the element of an array or what is optional).
pub(super) type Address = (Scope, Vec<u32>);

/// The scopes that a field can refer to, by [`Scope`].
pub(super) type Scopes<'a> = [Option<&'a FieldClass>; 6];

const SCOPE_ORDER: [Scope; 6] = [
    Scope::PacketHeader,
    Scope::PacketContext,
    Scope::EventHeader,
    Scope::CommonContext,
    Scope::EventContext,
    Scope::Payload,
];

/// Paths through variants may reach many fields; more are refused.
const TARGET_LIMIT: usize = 256;

/// A structure around the place of use.
#[derive(Clone)]
pub(super) struct Around<'a> {
    pub class: &'a FieldClass,
    pub path: Vec<u32>,
    /// Index of the member that holds the place of use.
    pub member: usize,
}

/// Where a field is used.
pub(super) struct Here<'a, 's> {
    pub scope: Scope,
    pub scopes: &'s Scopes<'a>,
    /// Innermost last.
    pub around: Vec<Around<'a>>,
}

/// A field that a path leads to.
pub(super) type Target<'a> = (Address, &'a FieldClass);

impl<'a> Here<'a, '_> {
    /// The numbers that a location leads to: one, or one per option of the
    /// variants on the way. All of them lie before `path`, the place of use.
    pub fn resolve(&self, location: &Location, path: &[u32]) -> Result<Vec<Target<'a>>, String> {
        let mut way = Way { scope: self.scope, path, targets: Vec::new(), fault: None };
        if let Some(scope) = location.scope {
            let class = self.scopes[scope as usize];
            let class = class.ok_or_else(|| format!("{} leads nowhere", text(location)))?;
            way.descend(class, (scope, Vec::new()), &location.path);
        } else if location.searched {
            self.search(&location.path, &mut way);
        } else {
            self.relative(&location.path, &mut way);
        }
        if let Some(fault) = way.fault {
            return Err(format!("{} {fault}", text(location)));
        }
        // A later field has no value yet. Addresses compare as positions do.
        let mut targets = way.targets;
        targets.retain(|((scope, place), _)| (*scope, place.as_slice()) < (self.scope, path));
        match targets.len() {
            0 => Err(format!("no integer field before it at {}", text(location))),
            1..=TARGET_LIMIT => Ok(targets),
            _ => Err(format!("too many fields at {}", text(location))),
        }
    }

    /// [CTF 1.8.3 §7.3.2]: fields before this one in the structures around, from
    /// the inside out, then the outer scopes.
    fn search(&self, path: &[PathItem], way: &mut Way<'a, '_>) {
        let Some(PathItem::Name(first)) = path.first() else {
            return;
        };
        for around in self.around.iter().rev() {
            let before = &around.class.members()[..around.member];
            let found = before.iter().rposition(|member| member.name == *first);
            if let Some(index) = found {
                let mut place = around.path.clone();
                place.push(index as u32);
                way.descend(&before[index].class, (self.scope, place), &path[1..]);
                if way.is_over() {
                    return;
                }
            }
        }
        let outer = SCOPE_ORDER.iter().rev().filter(|&&scope| scope < self.scope);
        for &scope in outer {
            if let Some(class) = self.scopes[scope as usize] {
                way.descend(class, (scope, Vec::new()), path);
                if way.is_over() {
                    return;
                }
            }
        }
    }

    /// [CTF2 field-location]: from the structure around, `null` one further out.
    fn relative(&self, path: &[PathItem], way: &mut Way<'a, '_>) {
        let ups = path.iter().take_while(|item| **item == PathItem::Up).count();
        let Some(level) = self.around.len().checked_sub(ups + 1) else {
            return;
        };
        let around = &self.around[level];
        let place = (self.scope, around.path.clone());
        way.descend(around.class, place, &path[ups..]);
    }
}

/// The way to a field from where it is used.
struct Way<'a, 'p> {
    /// Place of use.
    scope: Scope,
    path: &'p [u32],
    targets: Vec<Target<'a>>,
    /// Why the field may have no value, or several.
    fault: Option<&'static str>,
}

impl<'a> Way<'a, '_> {
    fn is_over(&self) -> bool {
        !self.targets.is_empty() || self.fault.is_some()
    }

    /// The next step towards the place of use, if `place` is around it.
    fn inside(&self, place: &Address) -> Option<u32> {
        let rest = self.path.strip_prefix(place.1.as_slice()).filter(|_| place.0 == self.scope);
        rest?.first().copied()
    }

    fn descend(&mut self, class: &'a FieldClass, place: Address, path: &[PathItem]) {
        if self.targets.len() > TARGET_LIMIT {
            return;
        }
        let below = |index: u32| {
            let (scope, mut steps) = place.clone();
            steps.push(index);
            (scope, steps)
        };
        let inside = self.inside(&place);
        let before = self.targets.len();
        match class {
            FieldClass::Struct(inner) => {
                let Some((PathItem::Name(name), rest)) = path.split_first() else {
                    return;
                };
                let found = inner.members.iter().position(|member| member.name == *name);
                if let Some(index) = found {
                    self.descend(&inner.members[index].class, below(index as u32), rest);
                }
            }
            FieldClass::Array(inner) => {
                self.descend(&inner.element, below(0), path);
                if self.targets.len() > before && inside.is_none() {
                    self.fault = Some("leads to the elements of an array, not to one of them");
                }
            }
            FieldClass::Optional(inner) => {
                self.descend(&inner.class, below(0), path);
                if self.targets.len() > before && inside.is_none() {
                    self.fault = Some("leads to what may be absent");
                }
            }
            FieldClass::Variant(inner) => {
                // From inside an option, it is that one.
                if let Some(index) = inside
                    && let Some(option) = inner.options.get(index as usize)
                {
                    self.descend(&option.class, below(index), path);
                    let named = matches!(path.first(),
                        Some(PathItem::Name(name)) if *name == option.name);
                    if self.targets.len() == before && named {
                        self.descend(&option.class, below(index), &path[1..]);
                    }
                    return;
                }
                // CTF 2 goes through all options; CTF 1.8 may name one.
                let mut lacking = false;
                for (index, option) in inner.options.iter().enumerate() {
                    let known = self.targets.len();
                    self.descend(&option.class, below(index as u32), path);
                    lacking |= self.targets.len() == known;
                }
                if self.targets.len() > before {
                    if lacking {
                        self.fault = Some("is no integer in every option of a variant");
                    }
                    return;
                }
                let Some((PathItem::Name(name), rest)) = path.split_first() else { return };
                let named = inner.options.iter().position(|option| option.name == *name);
                if let Some(index) = named {
                    self.descend(&inner.options[index].class, below(index as u32), rest);
                }
            }
            FieldClass::Scalar(inner) if path.is_empty() && inner.meaning != Meaning::Real => {
                self.targets.push((place, class));
            }
            FieldClass::VarInt(_) if path.is_empty() => self.targets.push((place, class)),
            _ => {}
        }
    }
}

fn text(location: &Location) -> String {
    let mut out = String::from("`");
    if let Some(scope) = location.scope {
        out.push_str(&format!("{scope:?}"));
    }
    for item in &location.path {
        if out.len() > 1 {
            out.push('.');
        }
        match item {
            PathItem::Name(name) => out.push_str(&brief(name)),
            PathItem::Up => out.push_str("(up)"),
        }
    }
    out.push('`');
    out
}

/// Which fields save their value, and where.
#[derive(Default)]
pub(super) struct Registers {
    by_targets: HashMap<Vec<Address>, u32>,
    saves: HashMap<Address, Vec<u32>>,
}

impl Registers {
    /// The register that holds the value of these fields.
    pub fn of(&mut self, targets: &[Target<'_>]) -> u32 {
        let key: Vec<Address> = targets.iter().map(|(address, _)| address.clone()).collect();
        if let Some(&register) = self.by_targets.get(&key) {
            return register;
        }
        let register = self.count();
        for address in &key {
            self.saves.entry(address.clone()).or_default().push(register);
        }
        self.by_targets.insert(key, register);
        register
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.by_targets.len() as u32
    }

    /// The registers that the field at `address` writes.
    pub fn written_at(&self, address: &Address) -> &[u32] {
        self.saves.get(address).map_or(&[], Vec::as_slice)
    }
}
