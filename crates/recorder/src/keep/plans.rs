// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Record layouts by stream class, recomputed when the classes have grown.

use crate::classes::ClassTable;
use crate::walk::RecordPlan;

/// Cache of the layouts.
#[derive(Debug, Default)]
pub struct Plans {
    version: Option<u64>,
    plans: Vec<RecordPlan>,
}

impl Plans {
    /// The layouts of a class. Cost: one comparison while the classes are unchanged.
    pub fn of(&mut self, classes: &ClassTable, class: u32) -> Option<&RecordPlan> {
        if self.version != Some(classes.version()) {
            self.version = Some(classes.version());
            self.plans = classes
                .classes()
                .iter()
                .map(|class| {
                    let mut plan = RecordPlan::new(false);
                    for (base_id, entry) in &class.schemas {
                        plan.add(*base_id, &entry.schema);
                    }
                    plan
                })
                .collect();
        }
        self.plans.get(class as usize)
    }
}
