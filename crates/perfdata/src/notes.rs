// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Damage and remarks, in bounded numbers.

use std::collections::BTreeMap;

use lateralis_model::{Damage, DamageReason, Interval};
use lateralis_units::Nanos;

/// More places of damage are counted, not listed: a hostile file could make one
/// of every eight bytes.
const DAMAGE_MAX: u64 = 1000;
/// The same for kinds of remarks.
const REMARKS_MAX: usize = 200;

/// Collects what is to be said about a file.
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

    /// What is damaged from here on is in the file of this name.
    pub fn in_file(&mut self, file: &str) {
        if self.file != file {
            file.clone_into(&mut self.file);
        }
    }

    /// Bytes `begin..end` of the file are damaged; `time` is that of the last
    /// event before them.
    pub fn damage(&mut self, begin: u64, end: u64, reason: DamageReason, time: Option<Nanos>) {
        self.damage_count += 1;
        // Neighbours with the same fault are one place.
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

    /// A sentence; said once, with how often it was noted.
    pub fn remark(&mut self, remark: impl Into<String>) {
        let remark = remark.into();
        if self.remarks.len() < REMARKS_MAX || self.remarks.contains_key(&remark) {
            *self.remarks.entry(remark).or_insert(0) += 1;
        }
    }

    /// Turns times that were noted as ticks into times of the clock.
    pub fn ticks_to_nanos(&mut self, nanos: impl Fn(u64) -> Nanos) {
        for damage in &mut self.damage {
            damage.interval.begin = damage.interval.begin.map(|ticks| nanos(ticks.0 as u64));
        }
    }

    /// The damage noted so far; of many places, the first.
    pub fn damage_list(&self) -> &[Damage] {
        &self.damage
    }

    /// All there is to say.
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
