// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples of stacks: `samples` and `stackFrames` beside the events ["Trace Event Format", Stack Traces,
//! Global Samples].

use serde_json::value::RawValue;

use super::*;

/// Frames of a stack that are kept, the innermost.
const DEPTH_MAX: usize = 1024;
/// The phase of samples among events, used for these.
const SAMPLE: u8 = b'P';

/// Members of an object as they are written.
type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

fn word(members: &Members<'_>, name: &str) -> Option<String> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

fn number<T: std::str::FromStr>(members: &Members<'_>, name: &str) -> Option<T> {
    members.get(name)?.get().parse().ok()
}

/// The name of a frame: a text, or a number.
fn frame_of(members: &Members<'_>, name: &str) -> Option<String> {
    word(members, name).or_else(|| number::<u64>(members, name).map(|number| number.to_string()))
}

fn stack(frames: &HashMap<String, Members<'_>>, innermost: Option<String>) -> Named<'static> {
    let (mut functions, mut images) = (Vec::new(), Vec::new());
    let mut at = innermost;
    // Frames that are their own callers end at the depth.
    while let Some(frame) = at.take().and_then(|key| frames.get(&key)) {
        functions.push(Dyn::Text(word(frame, "name").unwrap_or_default().into()));
        images.push(Dyn::Text(word(frame, "category").unwrap_or_default().into()));
        if functions.len() < DEPTH_MAX {
            at = frame_of(frame, "parent");
        }
    }
    vec![(STACK_FUNCTIONS.into(), Dyn::List(functions)), (STACK_IMAGES.into(), Dyn::List(images))]
}

impl<'a> Walk<'a> {
    /// The samples of an object whose members are those from `first` on.
    pub(super) fn samples(&mut self, first: usize, sink: &mut dyn Sink) {
        let text = |name: &str| {
            let members = self.members.get(first..).unwrap_or_default();
            members.iter().find(|(key, _)| key == name).map(|(_, text)| *text)
        };
        let Some(samples) = text("samples") else { return };
        let frames = text("stackFrames").unwrap_or(b"{}");
        let samples = serde_json::from_slice::<Vec<Members<'a>>>(samples);
        let frames = serde_json::from_slice::<HashMap<String, Members<'a>>>(frames);
        let (Ok(samples), Ok(frames)) = (samples, frames) else {
            self.counts.unread_samples += 1;
            return;
        };
        for sample in &samples {
            let Some((time, cut)) = sample.get("ts").and_then(|ts| nanos(ts.get())) else {
                self.counts.unread_samples += 1;
                continue;
            };
            self.counts.finer += u64::from(cut);
            let mut payload = stack(&frames, frame_of(sample, "sf"));
            if let Some(weight) = number(sample, "weight") {
                payload.push(("period".into(), Dyn::Unsigned(weight)));
            }
            let cpu = number(sample, "cpu").map(|cpu| ("cpu".into(), Dyn::Unsigned(cpu)));
            // They do not say of which process the thread is.
            let writer = |tid| Writer { pid: self.groups.get(&tid).copied().unwrap_or(0), tid };
            let writer = number(sample, "tid").map(writer);
            sink.event(&Dynamic {
                lane: if writer.is_some() { Lane::Thread } else { Lane::Global },
                tag: Meaning::new(SAMPLE, false).tag(),
                category: "sample".into(),
                name: word(sample, "name").unwrap_or_default().into(),
                time: time.saturating_add(self.shift()),
                writer,
                context: cpu.into_iter().collect(),
                payload,
            });
        }
    }
}
