// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Damage of one file: neighbours are joined, and the number is bounded.

use lateralis_model::{Builder, Damage, DamageReason, Interval};

/// Number of damages that are listed individually.
const KEPT: usize = 1000;

pub(crate) struct Damages {
    file: String,
    list: Vec<Damage>,
    beyond: u64,
}

impl Damages {
    pub(crate) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), list: Vec::new(), beyond: 0 }
    }

    pub(crate) fn add(&mut self, begin: usize, end: usize, reason: DamageReason) {
        let (begin_bytes, end_bytes) = (begin as u64, end as u64);
        if let Some(last) = self.list.last_mut()
            && last.end_bytes == begin_bytes
            && last.reason == reason
        {
            last.end_bytes = end_bytes;
        } else if self.list.len() < KEPT {
            let (file, interval) = (self.file.clone(), Interval::default());
            self.list.push(Damage { file, begin_bytes, end_bytes, reason, interval });
        } else {
            self.beyond += 1;
        }
    }

    pub(crate) fn finish(self, builder: &mut Builder) {
        if self.beyond > 0 {
            builder.remark(format!("{}: {} more damages are not listed", self.file, self.beyond));
        }
        self.list.into_iter().for_each(|damage| builder.damage(damage));
    }
}

/// The remark of a reader that ended because its memory was full.
pub(crate) fn full(name: &str, at: usize) -> String {
    format!("{name}: the limit of memory is reached at byte {at}; the rest is not read")
}
