// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An event with an exact value, which starts or stops a recording [ring-abi §7]:
//! `app:PHASE:number==3`. The writer compares the first payload word under a mask.

use lateralis_pleco::Schema;
use lateralis_pleco::schema::Event;

use super::{Comparison, Expression, Filter, FilterError, compile};
use crate::options::{EventMatch, MatchValue};

/// Number of payload bytes that are compared.
const WORD_BYTES: usize = 8;

impl EventMatch {
    /// Parses `SUBSYSTEM:EVENT` or `SUBSYSTEM:EVENT:FIELD==VALUE`; bits as in `FIELD & 0xff == 1`.
    ///
    /// Errors: a text of neither form.
    pub fn parse(text: &str) -> Result<EventMatch, FilterError> {
        let error = |what: &str| FilterError { filter: text.to_owned(), what: what.to_owned() };
        if text.matches(':').count() < 2 {
            // The rest is checked like the event of a filter.
            let event = Filter::parse(&format!("{text}: any == 0"))
                .map_err(|_| error("write SUBSYSTEM:EVENT or SUBSYSTEM:EVENT:FIELD==VALUE"))?
                .event;
            return Ok(EventMatch { event, value: MatchValue::Any });
        }
        let filter = Filter::parse(text)
            .map_err(|cause| FilterError { filter: text.to_owned(), what: cause.what })?;
        match &filter.condition {
            Expression::Compare { comparison: Comparison::Equal, .. } => {}
            _ => return Err(error("it is one exact value: FIELD==VALUE")),
        }
        Ok(EventMatch { event: filter.event.clone(), value: MatchValue::Field(filter) })
    }

    /// Value and mask of the first payload word; `None`: any.
    ///
    /// Errors: the event has no such field or value, or the field is not in that word.
    pub fn word(&self, schema: &Schema, event: &Event) -> Result<Option<(u64, u64)>, FilterError> {
        let filter = match &self.value {
            MatchValue::Any => return Ok(None),
            MatchValue::Word(value, mask) => return Ok(Some((*value, *mask))),
            MatchValue::Field(filter) => filter,
        };
        let steps = compile(filter, schema, event)?;
        let error = |what: &str| FilterError { filter: filter.to_string(), what: what.to_owned() };
        let [step] = steps[..] else { return Err(error("it is one exact value: FIELD==VALUE")) };
        let (offset, bytes) = (usize::from(step.offset), usize::from(step.bytes));
        if offset + bytes > WORD_BYTES {
            return Err(error("the field does not lie in the first 8 bytes of the event"));
        }
        // The bytes in memory order, for either byte order.
        let place = |word: u64| {
            let own = word.to_ne_bytes();
            let own =
                if cfg!(target_endian = "little") { &own[..bytes] } else { &own[8 - bytes..] };
            let mut all = [0; WORD_BYTES];
            all[offset..offset + bytes].copy_from_slice(own);
            u64::from_ne_bytes(all)
        };
        let mask = place(step.mask);
        Ok(Some((place(step.value) & mask, mask)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &[u8] = b"subsystem app {
        event PHASE (kind: u16, number: i32, far: u64),
        event STATE (state: enum : u8 { IDLE = 0, BUSY = 3 }, rest: u32),
    };";

    fn word(text: &str) -> Result<Option<(u64, u64)>, String> {
        let schema = lateralis_pleco::compile("s.pleco", SCHEMA).schema.unwrap();
        let wanted = EventMatch::parse(text).map_err(|error| error.what)?;
        let mut events = schema.events.iter();
        let event = events.find(|event| schema.full_name(event) == wanted.event).unwrap();
        wanted.word(&schema, event).map_err(|error| error.what)
    }

    #[test]
    fn a_field_is_a_part_of_the_first_word() {
        assert_eq!(word("app:PHASE"), Ok(None));
        if cfg!(target_endian = "big") {
            return;
        }
        assert_eq!(word("app:PHASE:kind==0x102"), Ok(Some((0x102, 0xffff))));
        let expected = (0xffff_fffe_u64 << 32, 0xffff_ffff_u64 << 32);
        assert_eq!(word("app:PHASE: number == -2"), Ok(Some(expected)));
        assert_eq!(word("app:PHASE:kind & 0xf0 == 0x10"), Ok(Some((0x10, 0xf0))));
        assert_eq!(word("app:STATE:state==BUSY"), Ok(Some((3, 0xff))));
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (text, told) in [
            ("PHASE", "write SUBSYSTEM:EVENT"),
            ("app:*", "write SUBSYSTEM:EVENT"),
            ("app:PHASE:kind", "is expected"),
            ("app:PHASE:kind > 3", "one exact value"),
            ("app:PHASE:kind == 1 or kind == 2", "one exact value"),
            ("app:PHASE:kin==1", "kind"),
            ("app:PHASE:far==1", "first 8 bytes"),
            ("app:STATE:state==BUZY", "BUSY"),
        ] {
            let error = word(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
