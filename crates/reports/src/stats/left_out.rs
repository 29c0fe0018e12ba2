// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each section leaves out, because a trace has more of it than is kept.

use serde_json::{Map, Value, json};

use super::gather::Statistics;
use super::page::{Page, Section};
use crate::values;

/// Things that a section leaves out.
pub struct LeftOut {
    /// The member of the JSON that they would be in.
    pub member: &'static str,
    /// The section of the page.
    pub section: Section,
    /// The things.
    pub what: &'static str,
    /// What is kept, up to a number of it.
    pub of: &'static str,
    /// That number.
    pub most: u64,
    /// Number of things that are left out.
    pub count: u64,
}

impl LeftOut {
    fn text(&self) -> String {
        let Self { member, what, of, most, count, .. } = self;
        let (count, most) = (values::count(*count), values::count(*most));
        format!("{member}: {count} {what}, of {of} beyond the first {most}")
    }
}

/// Everything that is left out.
fn all(statistics: &Statistics) -> Vec<LeftOut> {
    let mut all = statistics.kernel.left_out(&statistics.kernel_events);
    all.extend(statistics.running.left_out());
    all.push(statistics.messages.left_out());
    all.extend(statistics.levels.left_out(statistics.facts.kinds()));
    all.push(statistics.rates.left_out());
    all.push(statistics.spans.left_out());
    all.retain(|one| one.count > 0);
    all
}

/// The member `left_out` of the whole: by member, what is left out of it; empty if nothing is.
pub fn to_json(statistics: &Statistics) -> Value {
    let mut members: Map<String, Value> = Map::new();
    for one in all(statistics) {
        let LeftOut { what, of, most, count, .. } = one;
        let of = json!({ "what": what, "of": of, "most": most, "count": count });
        let list = members.entry(one.member).or_insert_with(|| json!([]));
        list.as_array_mut().into_iter().for_each(|list| list.push(of.clone()));
    }
    Value::Object(members)
}

/// A line for each on the page.
pub fn page(statistics: &Statistics, page: &mut Page<'_>) {
    let all: Vec<LeftOut> =
        all(statistics).into_iter().filter(|one| page.wants(one.section)).collect();
    if all.is_empty() {
        return;
    }
    page.text.gap();
    line!(page.text, "left out");
    for one in all {
        line!(page.text, "  {}", one.text());
    }
}
