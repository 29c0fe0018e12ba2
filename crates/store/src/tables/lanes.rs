// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads, CPUs and processes, with event counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use lateralis_model::{Damage, Writer};
use lateralis_units::Nanos;

use super::clocks::Group;
use super::opened::Opened;
use super::shape::{COMMON, Common};
use super::small::{Cell, Rows, Small, Tally, quality};
use super::{Kind, Scan, StoreError, Table, scan};

/// Counts.
#[derive(Debug, Default)]
struct Lanes {
    threads: BTreeMap<(Option<i64>, Option<i64>), Tally>,
    cpus: BTreeMap<i64, Tally>,
    applications: BTreeMap<(Option<String>, Option<i64>), Application>,
}

/// Threads that wrote events, and their number.
#[derive(Debug, Default)]
struct Application {
    threads: BTreeSet<Option<i64>>,
    count: u64,
}

/// Adds the rows of one recording.
///
/// Cost: a pass over the headers and writers of all events.
pub fn rows(
    small: Small,
    events: &Table,
    (index, opened): (usize, &Opened),
    rows: &mut Rows<'_>,
    damage: &mut Vec<Damage>,
) -> Result<ControlFlow<()>, StoreError> {
    let shown: &[Common] = match small {
        Small::Threads => &[Common::Time, Common::Pid, Common::Tid],
        Small::Cpus => &[Common::Time, Common::Cpu],
        _ => &[Common::Application, Common::Pid, Common::Tid],
    };
    let place = |common: &Common| COMMON.iter().position(|known| known == common).unwrap_or(0);
    let columns = Some(shown.iter().map(place).collect());
    let scan = Scan { columns, ..Scan::default() };
    let Kind::Events { variants, .. } = &events.kind else {
        return Ok(ControlFlow::Continue(()));
    };
    for group in &opened.groups {
        let mut lanes = Lanes::default();
        let mut see = |batch: RecordBatch| {
            match small {
                Small::Threads => lanes.thread(&batch),
                Small::Cpus => lanes.cpu(&batch),
                _ => lanes.application(&batch),
            }
            ControlFlow::Continue(())
        };
        let scanner = scan::Scanner::new(
            &events.name,
            opened,
            (&events.schema, &events.holds),
            variants.iter().filter(|variant| variant.recording == index),
            true,
            &scan,
            &mut see,
        );
        let parts: Vec<usize> = opened.parts_of(group).collect();
        damage.extend(scanner.run(&parts)?);
        let flow = match small {
            Small::Threads => lanes.thread_rows((opened, group), rows),
            Small::Cpus => lanes.cpu_rows((opened, group), rows),
            _ => lanes.application_rows((opened, group), rows),
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The integers of a column.
fn ints(batch: &RecordBatch, column: usize) -> impl Iterator<Item = Option<i64>> + '_ {
    batch.column(column).as_primitive::<Int64Type>().iter()
}

impl Lanes {
    fn thread(&mut self, batch: &RecordBatch) {
        let who = ints(batch, 1).zip(ints(batch, 2));
        for (time, (pid, tid)) in ints(batch, 0).zip(who) {
            if tid.is_some() || pid.is_some() {
                self.threads.entry((pid, tid)).or_default().add(Nanos(time.unwrap_or(0)));
            }
        }
    }

    fn cpu(&mut self, batch: &RecordBatch) {
        for (time, cpu) in ints(batch, 0).zip(ints(batch, 1)) {
            if let Some(cpu) = cpu {
                self.cpus.entry(cpu).or_default().add(Nanos(time.unwrap_or(0)));
            }
        }
    }

    fn application(&mut self, batch: &RecordBatch) {
        let words = batch.column(0).as_dictionary::<Int32Type>();
        let texts = words.values().as_string::<i32>();
        let keys = words.keys().iter();
        for (key, (pid, tid)) in keys.zip(ints(batch, 1).zip(ints(batch, 2))) {
            let name = key.map(|key| texts.value(key as usize).to_owned());
            if name.is_some() || pid.is_some() {
                let application = self.applications.entry((name, pid)).or_default();
                application.threads.insert(tid);
                application.count += 1;
            }
        }
    }

    fn thread_rows(
        mut self,
        (opened, group): (&Opened, &Group),
        rows: &mut Rows<'_>,
    ) -> ControlFlow<()> {
        let owners = opened.owners();
        // With several recordings, it is unknown to which one the threads without events belong.
        let is_only = opened.groups.len() == 1;
        // A thread that wrote events belongs to the process in which it wrote.
        let wrote: BTreeSet<i64> = self.threads.keys().filter_map(|(_, tid)| *tid).collect();
        let silent = |writer: &Writer| is_only && !wrote.contains(&i64::from(writer.tid));
        for Writer { pid, tid } in owners.known().filter(silent) {
            self.threads.entry((Some(pid.into()), Some(tid.into()))).or_default();
        }
        let quality = quality(opened);
        for ((pid, tid), tally) in self.threads {
            let name = tid.and_then(|tid| owners.thread(tid as u32));
            let process = pid.and_then(|pid| owners.process(pid as u32));
            rows.row(&[
                Cell::Text(&group.label),
                tid.map_or(Cell::Null, Cell::Int),
                pid.map_or(Cell::Null, Cell::Int),
                name.into(),
                process.into(),
                Cell::Int(tally.count as i64),
                tally.first.into(),
                tally.last.into(),
                quality,
            ])?;
        }
        ControlFlow::Continue(())
    }

    fn cpu_rows(self, (opened, group): (&Opened, &Group), rows: &mut Rows<'_>) -> ControlFlow<()> {
        let quality = quality(opened);
        let mut cpus = self.cpus;
        for (_, stream) in group.summaries(&opened.recording.streams) {
            if let Some(cpu) = stream.cpu {
                cpus.entry(i64::from(cpu.0)).or_default();
            }
        }
        for (cpu, tally) in cpus {
            rows.row(&[
                Cell::Text(&group.label),
                Cell::Int(cpu),
                Cell::Int(tally.count as i64),
                tally.first.into(),
                tally.last.into(),
                quality,
            ])?;
        }
        ControlFlow::Continue(())
    }

    fn application_rows(
        self,
        (opened, group): (&Opened, &Group),
        rows: &mut Rows<'_>,
    ) -> ControlFlow<()> {
        let quality = quality(opened);
        for ((name, pid), Application { threads, count }) in self.applications {
            rows.row(&[
                Cell::Text(&group.label),
                name.as_deref().into(),
                pid.map_or(Cell::Null, Cell::Int),
                Cell::Int(threads.iter().flatten().count() as i64),
                Cell::Int(count as i64),
                quality,
            ])?;
        }
        ControlFlow::Continue(())
    }
}
