// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Analyses in the XML language of Trace Compass.

use crate::trace;
use lateralis_ctf::Reader;
use lateralis_model::Source;
use lateralis_tmfxml::{Found, parse};
use std::sync::LazyLock;

/// Events that an analysis is run over.
const EVENTS_MAX: usize = 50;

static READERS: LazyLock<Vec<Reader>> =
    LazyLock::new(|| trace::good().iter().take(2).map(|input| trace::reader(input)).collect());

/// Besides not panicking: a problem is inside of the text, a file without analyses says why,
/// and what is found ends after it began.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let file = parse(text);
    let lines = text.lines().count().max(1) as u32 + 1;
    for problem in &file.problems {
        assert!((1..=lines).contains(&problem.line), "{problem}");
    }
    for analysis in &file.analyses {
        for reader in READERS.iter() {
            let (mut run, mut found) = (analysis.start(), Vec::new());
            let mut events = Source::events(reader);
            for _ in 0..EVENTS_MAX {
                let Some(event) = events.next_event() else { break };
                run.event(&event, Source::names(reader), &mut found);
            }
            run.finish(&mut found);
            for found in &found {
                match found {
                    Found::State(state) => assert!(state.begin <= state.end, "{state:?}"),
                    Found::Segment(segment) => {
                        assert!(segment.begin <= segment.end, "{segment:?}");
                    }
                }
            }
        }
    }
}

/// A state provider and a pattern with most of what there is.
pub fn good() -> Vec<Vec<u8>> {
    let provider = "<tmfxml><stateProvider id=\"p\" version=\"0\">\
        <definedValue name=\"A\" value=\"1\"/>\
        <location id=\"l\"><stateAttribute type=\"eventName\"/></location>\
        <mappingGroup id=\"m\"><entry><stateValue type=\"int\" value=\"1\"/>\
        <stateValue type=\"string\" value=\"x\"/></entry></mappingGroup>\
        <eventHandler eventName=\"*\"><stateChange><if><or><condition operator=\"ge\">\
        <field name=\"bytes\"/><stateValue type=\"long\" value=\"4\"/></condition><not><condition>\
        <stateAttribute type=\"constant\" value=\"a\"/><stateValue type=\"null\"/></condition>\
        </not>\
        </or></if><then><stateAttribute type=\"location\" value=\"l\"/>\
        <stateValue type=\"eventField\" value=\"number\" stack=\"push\" mappingGroup=\"m\"/></then>\
        <else><stateAttribute type=\"constant\" value=\"a\"/>\
        <stateValue type=\"int\" value=\"$A\" increment=\"true\"/></else></stateChange>\
        <stateChange><stateAttribute type=\"constant\" value=\"b\"/>\
        <stateAttribute type=\"query\"><stateAttribute type=\"constant\" value=\"a\"/>\
        </stateAttribute><stateValue type=\"eventName\"/>\
        <futureTime type=\"eventField\" value=\"timestamp\"/></stateChange></eventHandler>\
        </stateProvider></tmfxml>";
    let pattern = "<tmfxml><pattern id=\"q\" version=\"1\"><storedField id=\"number\" alias=\"n\"/>\
        <patternHandler initial=\"f\"><test id=\"t\"><if><condition><elapsedTime unit=\"us\">\
        <less since=\"w\" value=\"3\"/></elapsedTime></condition></if></test>\
        <action id=\"a\"><stateChange>\
        <stateAttribute type=\"constant\" value=\"#CurrentScenario\"/>\
        <stateAttribute type=\"constant\" value=\"x\"/><stateValue type=\"eventName\"/>\
        </stateChange>\
        <segment><segType><segName><stateValue type=\"query\">\
        <stateAttribute type=\"constant\" value=\"#CurrentScenario\"/>\
        <stateAttribute type=\"constant\" value=\"x\"/></stateValue></segName></segType>\
        <segTime><begin type=\"eventField\" value=\"timestamp\"/>\
        <duration type=\"int\" value=\"9\"/>\
        </segTime><segContent><segField name=\"k\" type=\"string\" value=\"v\"/></segContent>\
        </segment></action><fsm id=\"f\" consuming=\"false\"><precondition event=\"*\"/>\
        <state id=\"s\"><transition event=\"a*|*\" target=\"w\" saveStoredFields=\"true\"/></state>\
        <state id=\"w\"><onentry action=\"a\"/><transition cond=\"t\" target=\"x\" action=\"a\"/>\
        </state><final id=\"x\"/></fsm></patternHandler></pattern></tmfxml>";
    [provider, pattern].map(|text| text.as_bytes().to_vec()).to_vec()
}
