// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bounded lists of damage and remarks.

use std::collections::BTreeMap;

use lateralis_model::{Damage, DamageReason, Interval};
use lateralis_units::Nanos;

/// Damage beyond this number is counted, not listed: a hostile file could have damage in every eight
/// bytes.
const DAMAGE_MAX: u64 = 1000;
/// Largest number of distinct remarks.
const REMARKS_MAX: usize = 200;

/// Collects damage and remarks about a file.
#[derive(Debug)]
pub struct Notes {
    file: String,
    damage: Vec<Damage>,
    damage_count: u64,
    remarks: BTreeMap<String, u64>,
}

impl Notes {
    /// For the file of this name.
    pub fn new(file: &str) -> Self {
        let (damage, remarks) = (Vec::new(), BTreeMap::new());
        Self { file: file.to_owned(), damage, damage_count: 0, remarks }
    }

    /// Later damage is in the file of this name.
    pub fn in_file(&mut self, file: &str) {
        if self.file != file {
            file.clone_into(&mut self.file);
        }
    }

    /// Bytes `begin..end` of the file are damaged; `time` is that of the last event before them.
    pub fn damage(&mut self, begin: u64, end: u64, reason: DamageReason, time: Option<Nanos>) {
        self.damage_count += 1;
        // Adjacent ranges with the same fault are merged.
        if let Some(last) = self.damage.last_mut()
            && last.end_bytes == begin
            && last.reason == reason
            && last.file == self.file
        {
            last.end_bytes = end;
            return;
        }
        if self.damage_count > DAMAGE_MAX {
            return;
        }
        self.damage.push(Damage {
            file: self.file.clone(),
            begin_bytes: begin,
            end_bytes: end,
            reason,
            interval: Interval { begin: time, end: None },
        });
    }

    /// Adds a remark; listed once, with the number of times that it was added.
    pub fn remark(&mut self, remark: impl Into<String>) {
        let remark = remark.into();
        if self.remarks.len() < REMARKS_MAX || self.remarks.contains_key(&remark) {
            *self.remarks.entry(remark).or_insert(0) += 1;
        }
    }

    /// Converts times that were noted as ticks to times of the clock.
    pub fn ticks_to_nanos(&mut self, nanos: impl Fn(u64) -> Nanos) {
        for damage in &mut self.damage {
            damage.interval.begin = damage.interval.begin.map(|ticks| nanos(ticks.0 as u64));
        }
    }

    /// The damage noted so far; the first entries if there are many.
    pub fn damage_list(&self) -> &[Damage] {
        &self.damage
    }

    /// All damage and remarks.
    pub fn take(self) -> (Vec<Damage>, Vec<String>) {
        let mut remarks = Vec::new();
        if self.damage_count > DAMAGE_MAX {
            remarks.push(format!(
                "{} places are damaged; the first {DAMAGE_MAX} are listed",
                self.damage_count
            ));
        }
        for (remark, count) in self.remarks {
            remarks.push(match count {
                1 => remark,
                _ => format!("{remark} ({count} times)"),
            });
        }
        (self.damage, remarks)
    }
}
