// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat path` as a page for people, and as JSON.

use lateralis_analysis::ThreadState;
use lateralis_analysis::path::{Occupant, Segment, WokenBy};
use lateralis_model::Quality;
use serde_json::{Value, json};

use lateralis_store::explained::{Explained, Spans, Stretch};

use super::Around;
use crate::date;
use crate::page::{self, Role};
use crate::stats::mark::mark;
use crate::table::{Align, Table};
use crate::values;

/// Rows of a list before it is cut short; `--json` has all.
const ROWS: usize = 30;

/// The whole page.
pub fn render(
    span: &str,
    spans: &Spans,
    explained: &[Explained],
    around: Option<&Around>,
) -> page::Page {
    let mut page = page::Page::new();
    if let Some(around) = around {
        page.page(&stretches(span, around));
        page.gap();
    }
    for (index, one) in explained.iter().enumerate() {
        if index > 0 {
            page.gap();
        }
        page.page(&Page(one).text(span));
    }
    if spans.quality != Quality::Exact {
        page.gap();
        let sentence = "events are missing: there may be slower ones, and others open then";
        page.line_as(Role::Problem, format_args!("{sentence}"));
    }
    page
}

/// The same as JSON; times in nanoseconds.
pub fn json(span: &str, spans: &Spans, explained: &[Explained], around: Option<&Around>) -> Value {
    let mut whole = json!({
        "span": span,
        "quality": spans.quality.name(),
        "spans": explained.iter().map(|one| Page(one).json()).collect::<Vec<_>>(),
    });
    if let Some(Around { at, stretches }) = around {
        let of = |stretch: &Stretch| {
            json!({
                "begin_ns": stretch.begin.0,
                "end_ns": stretch.end.0,
                "state": stretch.state.map_or("unknown", ThreadState::name),
                "cpu": stretch.cpu,
                "quality": stretch.quality.name(),
            })
        };
        whole["at_ns"] = json!(at.0);
        whole["stretches"] = stretches.iter().map(of).collect();
    }
    whole
}

/// What a thread did around a time; the row of the time itself is marked.
fn stretches(thread: &str, around: &Around) -> page::Page {
    use Align::{Left, Right};
    let mut page = page::Page::new();
    line!(page, "{thread} around {}", date::text(around.at));
    let mut table =
        Table::new(&[("from", Left), ("time", Right), ("state", Left), ("cpu", Right), ("", Left)]);
    for stretch in &around.stretches {
        let is_then = stretch.begin <= around.at && around.at < stretch.end;
        table.row([
            date::text(stretch.begin),
            mark(values::time(stretch.end.since(stretch.begin).max(0) as u64), stretch.quality),
            stretch.state.map_or("unknown", ThreadState::name).to_owned(),
            stretch.cpu.map_or(String::new(), |cpu| cpu.to_string()),
            if is_then { "then".to_owned() } else { String::new() },
        ]);
    }
    page.page(&table.render());
    page
}

struct Page<'a>(&'a Explained);

impl Page<'_> {
    fn thread(&self, thread: u32) -> String {
        match self.0.threads.get(thread as usize) {
            Some((tid, Some(name))) => format!("{name} {tid}"),
            Some((tid, None)) => tid.to_string(),
            None => String::new(),
        }
    }

    fn mark(&self, text: String) -> String {
        mark(text, self.0.quality)
    }

    fn name(&self, name: Option<u32>) -> &str {
        name.and_then(|name| self.0.names.get(name as usize)).map_or("", String::as_str)
    }

    /// What a stretch is besides: who ran instead, what ended the wait.
    fn besides(
        &self,
        instead: Option<Occupant>,
        woken_by: Option<WokenBy>,
        woken_for: Option<u32>,
    ) -> String {
        match (instead, woken_by) {
            (Some(Occupant::Thread(thread)), _) => format!("{} ran", self.thread(thread)),
            (Some(Occupant::Idle), _) => "the processor was idle".to_owned(),
            (Some(Occupant::Unknown), _) => "who ran is unknown".to_owned(),
            (None, Some(WokenBy::Interrupt)) => match self.name(woken_for) {
                "" => "until an interrupt".to_owned(),
                name => format!("until {name}"),
            },
            (None, Some(WokenBy::Unknown)) => "what ended it is unknown".to_owned(),
            (None, Some(WokenBy::Thread(_) | WokenBy::Likely(_)) | None) => String::new(),
        }
    }

    fn nanos(&self) -> u64 {
        self.0.path.segments.iter().map(Segment::nanos).sum()
    }

    fn text(&self, span: &str) -> page::Page {
        use Align::{Left, Right};
        let begin = self.0.found.span.begin.time;
        let all = self.nanos();
        let mut page = page::Page::new();
        // One that has not ended lasts at least to the end of the trace.
        let quality = self.0.quality;
        page.part(format_args!("{span}  "));
        page.number(&mark(values::time(all), quality));
        line!(
            page,
            "{}  of {}  from {}",
            if self.0.found.is_open { ", not ended" } else { "" },
            self.thread(0),
            date::text(begin)
        );
        let mut table = Table::new(&[
            ("time", Right),
            ("share", Right),
            ("thread", Left),
            ("does", Left),
            ("in", Left),
            ("waited for by", Left),
            ("", Left),
        ]);
        for share in self.0.shares.iter().take(ROWS) {
            table.row([
                self.mark(values::time(share.nanos)),
                self.mark(format!("{:.1} %", share.nanos as f64 * 100.0 / all.max(1) as f64)),
                self.thread(share.thread),
                share.doing.name().replace('_', " "),
                self.name(share.what).to_owned(),
                self.name(share.waited).to_owned(),
                self.besides(share.instead, share.woken_by, share.woken_for),
            ]);
        }
        section(&mut page, "where the time went", &table, self.0.shares.len());
        let mut table = Table::new(&[
            ("from", Right),
            ("time", Right),
            ("thread", Left),
            ("cpu", Right),
            ("does", Left),
            ("in", Left),
            ("waited for by", Left),
            ("", Left),
        ]);
        for segment in self.0.path.segments.iter().take(ROWS) {
            table.row([
                format!("+{}", values::time(segment.begin.since(begin).max(0) as u64)),
                self.mark(values::time(segment.nanos())),
                self.thread(segment.thread),
                segment.cpu.map_or(String::new(), |cpu| cpu.to_string()),
                segment.doing.name().replace('_', " "),
                self.name(segment.what).to_owned(),
                self.name(segment.waited).to_owned(),
                self.besides(segment.instead, segment.woken_by, segment.woken_for),
            ]);
        }
        section(&mut page, "step by step", &table, self.0.path.segments.len());
        let faults: u64 = self.0.page_faults.iter().sum();
        if faults > 0 {
            page.gap();
            line!(page, "{} on the way", values::counted(faults, "page fault"));
        }
        for hint in &self.0.hints {
            page.gap();
            line!(page, "{} is not known: `lat record {}` tells", hint.what, hint.record);
        }
        if self.0.path.is_cut {
            page.gap();
            line!(page, "the path is too long: its beginning is told as one step");
        }
        if self.0.is_waker_unknown {
            page.gap();
            page.lines(
                "what ended a wait is not known for sure: the trace does not distinguish threads \
                 from the interrupts they are in (`lat record --kernel` does)",
            );
        }
        if let Some(error) = self.0.found.unsure_by_clocks {
            page.gap();
            let error = error.map_or("by any time".to_owned(), |nanos| {
                format!("by ± {}, and it is no longer than that", values::time(nanos))
            });
            line!(
                page,
                "this span begins by one clock and ends by another, which may be off {error}"
            );
        }
        if self.0.is_missing {
            page.gap();
            page.lines(match self.0.is_missing_inside {
                true => "events are missing inside of this span: parts of the path may be wrong",
                false => {
                    "events are missing before this span: what was open, held or on its way \
                     when it began may be wrong (--from a time after the losses tells only what is \
                     known since)"
                }
            });
        }
        page
    }

    fn json(&self) -> Value {
        let text = |name: Option<u32>| match self.name(name) {
            "" => Value::Null,
            name => json!(name),
        };
        let instead = |by: Option<Occupant>| match by {
            Some(Occupant::Thread(thread)) => {
                let of = self.0.threads.get(thread as usize).cloned().unwrap_or_default();
                json!({ "tid": of.0, "thread": of.1 })
            }
            Some(Occupant::Idle) => json!("idle"),
            Some(Occupant::Unknown) => json!("unknown"),
            None => Value::Null,
        };
        let woken_by = |by: Option<WokenBy>| match by {
            Some(WokenBy::Interrupt) => json!("interrupt"),
            Some(WokenBy::Unknown) => json!("unknown"),
            Some(WokenBy::Thread(_) | WokenBy::Likely(_)) | None => Value::Null,
        };
        let who = |thread: u32| self.0.threads.get(thread as usize).cloned().unwrap_or_default();
        let shares: Vec<Value> = self
            .0
            .shares
            .iter()
            .map(|share| {
                let (tid, thread) = who(share.thread);
                json!({
                    "tid": tid,
                    "thread": thread,
                    "does": share.doing.name(),
                    "in": text(share.what),
                    "waited_for_by": text(share.waited),
                    "ran_instead": instead(share.instead),
                    "woken_by": woken_by(share.woken_by),
                    "woken_for": text(share.woken_for),
                    "time_ns": share.nanos,
                    "segments": share.count,
                })
            })
            .collect();
        let segments: Vec<Value> = self
            .0
            .path
            .segments
            .iter()
            .enumerate()
            .map(|(index, segment)| {
                let (tid, thread) = who(segment.thread);
                json!({
                    "begin_ns": segment.begin.0,
                    "end_ns": segment.end.0,
                    "tid": tid,
                    "thread": thread,
                    "cpu": segment.cpu,
                    "does": segment.doing.name(),
                    "in": text(segment.what),
                    "waited_for_by": text(segment.waited),
                    "ran_instead": instead(segment.instead),
                    "woken_by": woken_by(segment.woken_by),
                    "woken_for": text(segment.woken_for),
                    "page_faults": self.0.page_faults.get(index),
                })
            })
            .collect();
        let (tid, thread) = who(0);
        json!({
            "tid": tid,
            "thread": thread,
            "begin_ns": self.0.found.span.begin.time.0,
            "end_ns": self.0.found.span.end.time.0,
            "duration_ns": self.nanos(),
            "has_ended": !self.0.found.is_open,
            "quality": self.0.quality.name(),
            "is_missing_inside": self.0.is_missing_inside,
            "is_waker_unknown": self.0.is_waker_unknown,
            "is_cut": self.0.path.is_cut,
            "not_known": self.0.hints.iter().map(|hint| json!({
                "what": hint.what,
                "record": hint.record,
            })).collect::<Vec<_>>(),
            "shares": shares,
            "segments": segments,
        })
    }
}

fn section(page: &mut page::Page, title: &str, table: &Table, count: usize) {
    page.gap();
    page.line_as(Role::Heading, format_args!("{title}"));
    page.page(&table.render());
    let hidden = count.saturating_sub(ROWS);
    if hidden > 0 {
        line!(page, "  … {} more, all with --json", values::count(hidden as u64));
    }
}
