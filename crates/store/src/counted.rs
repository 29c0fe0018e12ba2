// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Utilisation counted by the traced system itself: the trace has sums instead of events.
//!
//! Supported are the events of seL4 (`utilisation:total`, `utilisation:thread`).

use lateralis_model::{Event, Source};

/// Utilisation by one thread, or by all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Use {
    /// Cycles, including those in the kernel.
    pub cycles: u64,
    /// Cycles in the kernel.
    pub kernel_cycles: u64,
    /// Number of kernel entries.
    pub kernel_entries: u64,
    /// Number of switches to a thread.
    pub schedules: u64,
}

impl Use {
    /// Fraction of the given cycles, from 0 to 1; `None` if these are 0.
    #[must_use]
    pub fn share_of(&self, cycles: u64) -> Option<f64> {
        (cycles > 0).then(|| self.cycles as f64 / cycles as f64)
    }

    /// Fraction of its cycles in the kernel; `None` if there are no cycles.
    #[must_use]
    pub fn kernel_share(&self) -> Option<f64> {
        (self.cycles > 0).then(|| self.kernel_cycles as f64 / self.cycles as f64)
    }

    /// Mean number of cycles per switch; `None` if there are no switches.
    #[must_use]
    pub fn cycles_per_schedule(&self) -> Option<f64> {
        (self.schedules > 0).then(|| self.cycles as f64 / self.schedules as f64)
    }
}

/// All reported sums.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counted {
    /// Those of the whole system, if reported.
    pub total: Option<Use>,
    /// Those of threads, in the order of the trace.
    pub threads: Vec<(String, Use)>,
}

impl Counted {
    /// Reads the sums of a trace; `None` if there are none. If the system reports a sum more than once,
    /// the last counts.
    ///
    /// Cost: a look at the classes; for traces with such classes, a pass over the events.
    #[must_use]
    pub fn of(source: &dyn Source) -> Option<Self> {
        let mut classes =
            source.trace().stream_classes.iter().flat_map(|class| &class.event_classes);
        if !classes.any(|class| class.name.starts_with("utilisation:")) {
            return None;
        }
        let mut counted = Self::default();
        source.visit(&mut |event| match event.class.name.as_str() {
            "utilisation:total" => counted.total = used(event).or(counted.total),
            "utilisation:thread" => {
                let name = event.payload().and_then(|payload| payload.get("thread"));
                let name = name.and_then(|name| name.as_text()).unwrap_or_default();
                counted.threads.extend(used(event).map(|used| (name.into_owned(), used)));
            }
            _ => {}
        });
        (counted != Self::default()).then_some(counted)
    }

    /// Cycles of the whole system: as reported, otherwise the sum over its threads.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        let sum = self.threads.iter().map(|(_, used)| used.cycles);
        self.total.map_or_else(|| sum.fold(0, u64::saturating_add), |total| total.cycles)
    }
}

fn used(event: &Event<'_>) -> Option<Use> {
    let payload = event.payload()?;
    let number = |name| payload.get(name)?.as_u64();
    Some(Use {
        cycles: number("cycles")?,
        kernel_cycles: number("kernel_cycles")?,
        kernel_entries: number("kernel_entries")?,
        schedules: number("schedules")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::{EventClass, FieldClass, MemoryTrace, StreamClass};

    fn trace(rows: &[(Option<&str>, [u64; 4])]) -> MemoryTrace {
        let mut builder = MemoryTrace::builder("a test", u64::MAX);
        let class = builder.stream_class(StreamClass::default());
        let stream = builder.stream(class, "s", None);
        let numbers = ["cycles", "kernel_cycles", "kernel_entries", "schedules"];
        let numbers = || numbers.map(|name| (name, FieldClass::u64()));
        let name = [("thread", FieldClass::text())];
        let payloads = [
            ("utilisation:total", FieldClass::structure(numbers())),
            ("utilisation:thread", FieldClass::structure(name.into_iter().chain(numbers()))),
        ];
        for (name, payload) in payloads {
            let payload = Some(payload);
            builder.event_class(
                class,
                EventClass { name: name.into(), payload, ..EventClass::default() },
            );
        }
        for (name, row) in rows {
            let mut pending = builder.event(stream, u32::from(name.is_some()), 0, None);
            if let Some(name) = name {
                pending = pending.text(name);
            }
            row.iter().fold(pending, |pending, number| pending.u64(*number)).end().unwrap();
        }
        builder.finish()
    }

    #[test]
    fn sums_of_the_system_are_shares_of_its_threads() {
        let rows = [
            (None, [1000, 100, 20, 10]),
            (Some("worker"), [600, 90, 15, 4]),
            (Some("idle_thread"), [300, 0, 0, 0]),
        ];
        let counted = Counted::of(&trace(&rows)).unwrap();
        assert_eq!((counted.cycles(), counted.threads.len()), (1000, 2));
        let (name, worker) = &counted.threads[0];
        assert_eq!((name.as_str(), worker.share_of(1000)), ("worker", Some(0.6)));
        assert_eq!(
            (worker.kernel_share(), worker.cycles_per_schedule()),
            (Some(0.15), Some(150.0))
        );
        let idle = counted.threads[1].1;
        assert_eq!((idle.kernel_share(), idle.cycles_per_schedule()), (Some(0.0), None));
        assert_eq!(Use::default().share_of(0), None);
        // Without the total, the sum of its parts is used.
        assert_eq!(Counted::of(&trace(&rows[1..])).unwrap().cycles(), 900);
        assert_eq!(Counted::of(&trace(&[])), None);
    }
}
