// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names and simple field classes that metadata say again and again, kept once.

use std::collections::HashSet;
use std::sync::Arc;

use super::field::{FieldClass, Length, Meaning};

/// Longer names are seldom said twice.
const NAME_BYTES: usize = 64;

/// Field classes that are remembered; a trace has few that differ.
const CLASSES: usize = 32;

/// What was said before.
#[derive(Default)]
pub(super) struct Once {
    names: HashSet<Arc<str>>,
    classes: Vec<FieldClass>,
    /// Where the next class goes once all places are taken.
    turn: usize,
}

impl Once {
    /// The name, shared with all others that are equal.
    pub(super) fn name(&mut self, name: &str) -> Arc<str> {
        if name.len() > NAME_BYTES {
            return Arc::from(name);
        }
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = Arc::from(name);
        self.names.insert(Arc::clone(&name));
        name
    }

    /// The class, shared with one of the last few that is equal to it. Classes with
    /// others inside, or with names of values, are left as they are.
    ///
    /// Cost: at most some thirty short comparisons.
    pub(super) fn class(&mut self, class: FieldClass) -> FieldClass {
        if !is_simple(&class) {
            return class;
        }
        if let Some(known) = self.classes.iter().find(|known| **known == class) {
            return known.clone();
        }
        if self.classes.len() < CLASSES {
            self.classes.push(class.clone());
        } else {
            self.classes[self.turn % CLASSES] = class.clone();
            self.turn += 1;
        }
        class
    }
}

fn is_simple(class: &FieldClass) -> bool {
    match class {
        FieldClass::Scalar(class) => match &class.meaning {
            Meaning::Integer { labels, .. } | Meaning::Bits { flags: labels } => labels.is_empty(),
            Meaning::Bool | Meaning::Real => true,
        },
        FieldClass::VarInt(class) => class.labels.is_empty(),
        FieldClass::Text(class) => {
            !matches!(class.length, Length::Field(_)) && class.media_type.len() <= NAME_BYTES
        }
        FieldClass::Struct(_)
        | FieldClass::Array(_)
        | FieldClass::Variant(_)
        | FieldClass::Optional(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{TextClass, VarIntClass};
    use lateralis_model::Base;

    fn number(base: Base, signed: bool) -> FieldClass {
        let (labels, roles) = (Arc::default(), crate::metadata::Roles::default());
        FieldClass::VarInt(Arc::new(VarIntClass { signed, base, labels, roles }))
    }

    fn text(bytes: u64) -> FieldClass {
        FieldClass::Text(Arc::new(TextClass {
            length: Length::Fixed(bytes),
            encoding: None,
            media_type: Arc::default(),
            roles: crate::metadata::Roles::default(),
        }))
    }

    #[test]
    fn what_is_equal_is_shared_and_nothing_else() {
        let mut once = Once::default();
        assert!(Arc::ptr_eq(&once.name("a"), &once.name("a")));
        assert_eq!((&*once.name("b"), &*once.name(&"c".repeat(100))), ("b", &*"c".repeat(100)));
        let mut kept = |class: &FieldClass| match once.class(class.clone()) {
            FieldClass::VarInt(class) => Arc::as_ptr(&class).cast::<u8>(),
            FieldClass::Text(class) => Arc::as_ptr(&class).cast(),
            other => panic!("{other:?}"),
        };
        let (first, again) = (number(Base::Octal, true), number(Base::Octal, true));
        let other = number(Base::Octal, false);
        let place = kept(&first);
        assert_eq!(kept(&again), place);
        assert_ne!(kept(&other), place);
        // More than are remembered: what comes again after them is new, and right.
        for bytes in 0..3 * CLASSES as u64 {
            assert_eq!(once.class(text(bytes)), text(bytes));
        }
        assert_eq!(once.class(first.clone()), first);
        assert!(once.classes.len() <= CLASSES);
    }
}
