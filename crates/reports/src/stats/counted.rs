// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Utilisation that the traced system has counted itself, in cycles: seL4 does.

use lateralis_store::{Counted, Use};
use serde_json::{Value, json};

use super::mark::mark;
use super::page::{Page, Section};
use crate::table::{Align, Table};
use crate::values;

fn percent(share: Option<f64>) -> String {
    share.map_or(String::new(), |share| format!("{:.1} %", share * 100.0))
}

/// The table: the system, then its threads, those with most cycles first.
pub fn page(counted: Option<&Counted>, page: &mut Page<'_>) {
    use Align::{Left, Right};
    let Some(counted) = counted else { return };
    let mut table = Table::new(&[
        ("thread", Left),
        ("cycles", Right),
        ("of all", Right),
        ("in kernel", Right),
        ("entries", Right),
        ("schedules", Right),
        ("cycles each", Right),
    ]);
    let all = counted.cycles();
    let sum = page.trust.sum;
    let mut row = |name: &str, used: &Use| {
        let each = used.cycles_per_schedule();
        table.row([
            name.to_owned(),
            mark(values::count(used.cycles), sum),
            mark(percent(used.share_of(all)), sum),
            mark(percent(used.kernel_share()), sum),
            mark(values::count(used.kernel_entries), sum),
            mark(values::count(used.schedules), sum),
            each.map_or(String::new(), |each| mark(format!("{each:.0}"), sum)),
        ]);
    };
    if let Some(total) = &counted.total {
        row("(all)", total);
    }
    let mut threads: Vec<&(String, Use)> = counted.threads.iter().collect();
    threads.sort_by_key(|(_, used)| std::cmp::Reverse(used.cycles));
    threads.iter().take(page.rows).for_each(|(name, used)| row(name, used));
    page.table(Section::Counted, "utilisation, as the system counted it", &table, threads.len());
}

/// The same for programs.
pub fn to_json(counted: Option<&Counted>) -> Value {
    let Some(counted) = counted else { return Value::Null };
    let all = counted.cycles();
    let of = |name: Option<&str>, used: &Use| {
        json!({
            "thread": name,
            "cycles": used.cycles,
            "utilisation": used.share_of(all),
            "kernel_cycles": used.kernel_cycles,
            "kernel_share": used.kernel_share(),
            "kernel_entries": used.kernel_entries,
            "schedules": used.schedules,
            "cycles_per_schedule": used.cycles_per_schedule(),
        })
    };
    let threads = counted.threads.iter().map(|(name, used)| of(Some(name), used));
    json!({
        "total": counted.total.as_ref().map(|used| of(None, used)),
        "threads": threads.collect::<Vec<Value>>(),
    })
}
