// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Generated files, read in both byte orders: every field of samples, the page format, times, losses,
//! names.

mod common;
#[path = "common/maker.rs"]
mod maker;

use common::{shared, show_all};
use lateralis_model::{ByteOrder, LossCause, Source, role};
use lateralis_units::Nanos;

fn lines(trace: &dyn Source) -> Vec<String> {
    let mut events = trace.events();
    let mut lines = Vec::new();
    while let Some(event) = events.next_event() {
        let parts = [event.common_context(), event.context(), event.payload()];
        let parts: Vec<_> = parts.into_iter().flatten().map(show_all).collect();
        lines.push(format!("{} {}: {}", event.time.0, event.class.name, parts.join(" | ")));
    }
    lines
}

fn read(bytes: &[u8]) -> Box<dyn Source> {
    assert!(lateralis_perfdata::sniff(&bytes[..16]));
    common::open("made", bytes, 1 << 20).unwrap()
}

#[test]
fn a_perf_data_gives_the_same_events_in_both_orders() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let trace = read(&maker::perf_data(order));
        assert_eq!(common::damage(&*trace), []);
        // The clock of the file was 900 when it was 1 s after 1970.
        assert_eq!(
            lines(&*trace),
            [
                "1000000100 comm: cpu_id=0 pid=40 tid=41 comm=beater | \
                 pid=40 tid=41 comm=beater exec=1",
                "1000000200 fork: cpu_id=0 pid=40 tid=41 comm=beater | \
                 pid=42 ppid=40 tid=43 ptid=41 time=1100",
                "1000000600 heat: cpu_id=0 pid=42 tid=43 comm=beater | cpu_mode=2 \
                 ip=18446744071562067968 addr=2781 period=250 time_enabled=11 time_running=12 \
                 counters=[{value=101 id=6} {value=102 id=7}] callchain=[193 194] raw=72617764 \
                 branch_hw_index=9 branches=[{from=240 to=112 flags=1}] \
                 user_regs={abi=2 regs=[161 162]} user_stack=737461636b weight=3 data_src=4 \
                 transaction=5 intr_regs={abi=0 regs=[]} phys_addr=48813 cgroup=21 \
                 data_page_size=4096 code_page_size=8192 aux=617578",
                "1000001100 heart:beat: cpu_id=1 pid=40 tid=41 comm=beater | perf_cpu_mode=1 \
                 common_flags=1 common_preempt_count=2 | level=-7 who=left",
                "1000001300 exit: cpu_id=0 pid=40 tid=43 comm=beater | \
                 pid=42 ppid=40 tid=43 ptid=41 time=2200",
            ],
            "{order:?}"
        );
        let loss = &trace.losses()[0];
        assert_eq!((loss.count, loss.cause), (Some(13), LossCause::Full));
        assert_eq!(loss.interval.begin, Some(Nanos(1_000_001_100)));
        assert_eq!(trace.names().threads.get(&43).map(String::as_str), Some("beater"));
        let clock = &trace.trace().clocks[0];
        assert!(clock.unix_epoch && clock.name == "monotonic");
        assert_eq!(trace.trace().env("hostname").and_then(|v| v.as_text()), Some("ward"));
    }
}

#[test]
fn a_trace_dat_gives_the_same_events_in_both_orders() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let trace = read(&maker::trace_dat(order));
        assert_eq!(common::damage(&*trace), []);
        let event = |time, tid, comm: &str, level, who: &str| {
            format!(
                "{time} heart:beat: cpu_id=1 tid={tid} comm={comm} | common_flags=1 \
                 common_preempt_count=2 | level={level} who={who}"
            )
        };
        // The option DATE adds a microsecond.
        let page = |time| {
            [
                event(time, 41, "pacemaker", 1, "a"),
                event(time + 2, 0, "<idle>", 2, "bb"),
                event(time + 9, 99, "<...>", -3, "ccc"),
            ]
        };
        assert_eq!(lines(&*trace), [page(6000), page(7000)].concat(), "{order:?}");
        let losses = trace.losses();
        assert_eq!((losses.len(), losses[0].count), (1, None));
        assert_eq!(losses[0].interval.begin, Some(Nanos(6009)));
        assert_eq!(losses[0].interval.end, Some(Nanos(7000)));
        assert_eq!(trace.trace().clocks[0].name, "mono");
    }
}

/// A recording of a real processor's Intel PT: numbers from `perf script -D`.
#[test]
fn a_real_recording_of_intel_pt() {
    let path = "data/pt/quipper/perf.data.intel_pt-4.14";
    let Some(bytes) = shared(path) else { return };
    let trace = common::open(path, &bytes, 1 << 30).unwrap();
    assert_eq!(common::damage(&*trace), []);
    let count = |name: &str| {
        let prefix = format!(" {name}: ");
        lines(&*trace).iter().filter(|line| line.contains(&prefix)).count()
    };
    assert_eq!(count("switch_cpu_wide"), 152);
    assert_eq!(count("mmap") + count("mmap2"), 66);
    assert_eq!((count("cycles"), count("aux"), count("auxtrace")), (15, 10, 2));
    let environment = trace.trace();
    assert!(environment.env("tsc_mult").is_some());
    assert_eq!(environment.env("kernel_release").and_then(|v| v.as_text()), Some("4.14.18"));
    let areas = lateralis_perfdata::perf::aux_areas(&bytes);
    assert_eq!(areas.len(), 2);
    // Intel PT begins with a PSB packet: 02 82, eight times.
    for area in areas {
        let begin = area.begin_bytes as usize;
        let data = &bytes[begin..begin + area.size_bytes as usize];
        assert!(data.windows(16).any(|window| window == [2, 0x82].repeat(8)));
    }
}

#[test]
fn made_recordings_of_intel_pt() {
    for name in ["fibs", "fibscyc", "fibsnoretcomp", "rp"] {
        let path = format!("data/pt/made/{name}/perf.data");
        let Some(bytes) = shared(&path) else { return };
        let trace = common::open(&path, &bytes, 1 << 30).unwrap();
        assert_eq!(common::damage(&*trace), [], "{name}");
        assert_eq!(common::count(&*trace), 7, "{name}");
        let areas = lateralis_perfdata::perf::aux_areas(&bytes);
        let begin = areas[0].begin_bytes as usize;
        assert_eq!(bytes[begin..begin + 16], [2, 0x82].repeat(8)[..], "{name}");
    }
}

#[test]
fn switches_and_calls_have_roles() {
    let text = "name: sys_enter\nID: 3\nformat:\n\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n";
    let format = lateralis_perfdata::tracepoint::Format::parse("raw_syscalls", text, 8).unwrap();
    let roles: Vec<_> = role::Role::of(&format.event_class()).map(|r| r.to_string()).collect();
    assert_eq!(roles, ["begin syscall"]);
}
