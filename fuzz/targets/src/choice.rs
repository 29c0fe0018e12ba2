// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An expression chooses the same events by columns as event by event.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use lateralis_analysis::filter::Context;
use lateralis_analysis::filter::columns::{Answer, Asking, Leaf, Mask, Parts, Plan};
use lateralis_ctf::Reader;
use lateralis_model::{
    ColumnBatch, ColumnRequest, Event, EventClass, Place, Source, StreamClass, Want, Wanted,
};

/// Events of a trace that are compared, at most: of larger ones none.
const EVENTS_MAX: usize = 500;

/// What is said of the events of a stream and class, in their order.
type Said = BTreeMap<(u32, u32), Vec<Answer>>;

/// Compares what plans say with what single events say. What a plan does not decide is
/// asked in the end.
pub fn compare<L: Leaf>(
    reader: &Reader,
    context: &Context<'_>,
    text: &str,
    plan: &dyn Fn(&StreamClass, &EventClass) -> Plan<L>,
    answer: &dyn Fn(&Event<'_>) -> Answer,
) {
    let mut expected = Said::new();
    let mut events = reader.events();
    let mut count = 0;
    while let Some(event) = events.next_event() {
        expected.entry((event.stream.0, event.class_index)).or_default().push(answer(&event));
        count += 1;
        if count > EVENTS_MAX {
            return;
        }
    }
    let trace = Source::trace(reader);
    let mut wanted = Wanted::counts(trace);
    for (stream_index, stream) in (0..).zip(&trace.stream_classes) {
        for (index, class) in (0..).zip(&stream.event_classes) {
            wanted = wanted.with(stream_index, index, plan(stream, class).want());
        }
    }
    let parts: Vec<usize> = (0..Source::parts(reader).len()).collect();
    let request = ColumnRequest { parts: &parts, interval: Default::default(), wanted: &wanted };
    let (mut found, mut asking) = (Said::new(), Asking::new(context));
    Source::columns(reader, &request, &mut |batch| {
        batch_says(batch, reader, &wanted, plan, answer, &mut asking, &mut found);
        ControlFlow::Continue(())
    });
    found.retain(|_, said| !said.is_empty());
    assert_eq!(found, expected, "{text}");
}

fn batch_says<L: Leaf>(
    batch: &dyn ColumnBatch,
    reader: &Reader,
    wanted: &Wanted,
    plan: &dyn Fn(&StreamClass, &EventClass) -> Plan<L>,
    answer: &dyn Fn(&Event<'_>) -> Answer,
    asking: &mut Asking<'_>,
    found: &mut Said,
) {
    let (stream, stream_class) = (batch.stream().0, batch.stream_class());
    let class_of = &Source::trace(reader).stream_classes[stream_class as usize];
    let wants = wanted.classes(stream_class);
    batch.counts(&mut |class, count| {
        if wants[class as usize] == Want::Count {
            let said = found.entry((stream, class)).or_default();
            said.extend((0..count).map(|_| Answer::No));
        }
    });
    let parts = Parts::new(batch, class_of, true);
    let mut by_class = BTreeMap::new();
    for index in 0..parts.len() {
        let part = parts.part(index);
        let class = part.class().class;
        let mut mask = Mask::default();
        plan(class_of, &class_of.event_classes[class as usize]).select(&part, asking, &mut mask);
        by_class.insert(class, (mask, 0));
    }
    let mut rows = 0;
    for place in batch.order().iter() {
        let (class, said) = match place {
            Place::Row(class) => {
                rows += 1;
                (class, answer(&batch.row(rows - 1)))
            }
            Place::Columns(class) => {
                let (mask, next) = by_class.get_mut(&class).expect("columns for every place");
                *next += 1;
                let is_asked = mask.asked().contains(&(*next as u32 - 1));
                let said = Answer::of((!is_asked).then(|| mask.contains(*next - 1)));
                (class, said)
            }
        };
        found.entry((stream, class)).or_default().push(said);
    }
}
