// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Marks in Perfetto's events of the kernel: see [`crate::marks`].

use super::*;
use crate::marks::{self, Mark};

/// Marks: the letter is the lowest byte.
pub const MARK: u32 = FTRACE | 1 << 28;

impl Walk {
    /// A mark as an event of its own name.
    pub(super) fn mark(
        &mut self,
        mark: &Mark<'_>,
        (lane, time, tid): (Lane, i64, u32),
        payload: Named<'_>,
        sink: &mut dyn Sink,
    ) {
        if let Some(pid) = mark.pid {
            self.groups.entry(tid).or_insert(pid);
        }
        let writer = self.writer_of(tid);
        let mut payload: Named<'_> =
            payload.into_iter().filter(|(name, _)| name != "buf").collect();
        let text = |text: &str| Dyn::Text(Cow::Owned(text.to_owned()));
        payload.extend(mark.value.map(|value| ("value".into(), Dyn::Signed(value))));
        payload.extend(mark.cookie.map(|cookie| ("cookie".into(), text(cookie))));
        if !mark.track.is_empty() {
            payload.push(("track".into(), text(mark.track)));
        }
        if let Some(pid) = mark.pid.filter(|_| !matches!(mark.letter, b'B' | b'E')) {
            payload.push(("process".into(), Dyn::Unsigned(pid.into())));
        }
        crate::dynamic::make_unique(&mut payload);
        let mut event = Dynamic {
            lane,
            tag: MARK | u32::from(mark.letter),
            category: marks::CATEGORY_OF_MARKS.into(),
            name: mark.name.to_owned().into(),
            time,
            writer: Some(writer),
            context: Vec::new(),
            payload,
        };
        let number = self.next;
        self.next += 1;
        if let Some(begins) = mark.begins()
            && let Some(gathering) = &mut self.gathering
        {
            gathering.ends.add(number, mark.track(writer.pid, writer.tid), &event, begins);
        }
        if let Some((name, _)) = self.names.get(number) {
            event.name = Cow::Owned(name.to_owned());
        }
        sink.event(&event);
    }
}

/// What a mark means, and the word for it.
pub fn roles(class: &ClassText<'_>) -> (Vec<Role>, Option<&'static str>) {
    let members = class.payload.members();
    let has = |name: &&str| members.iter().any(|member| member.name == **name);
    let keys = ["cookie", "track", "process"].into_iter().filter(has).map(str::to_owned);
    marks::roles(class.tag as u8, class.name, keys.collect(), "value")
}
