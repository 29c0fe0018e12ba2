// SPDX-License-Identifier: Apache-2.0 OR MIT

use lateralis_model::{LossCause, Source};
use lateralis_seedformats::sel4::{Abi, Options, read, read_entries, read_tracepoints, sniff};

use crate::{listing, roles};

const ABIS: [Abi; 6] =
    [Abi::Aarch32, Abi::Aarch64, Abi::Ia32, Abi::X86_64, Abi::Riscv32, Abi::Riscv64];

#[test]
fn a_log_buffer_holds_as_many_entries_as_measured() {
    let megabyte = 1 << 20;
    let points = ABIS.map(|abi| megabyte / (2 * abi.word_bytes()));
    assert_eq!(points, [131_072, 65_536, 131_072, 65_536, 131_072, 65_536]);
    assert_eq!(
        [Abi::Aarch32, Abi::X86_64, Abi::Riscv64].map(|a| megabyte / a.entry_bytes()),
        [43_690; 3]
    );
}

#[test]
fn tracepoints_are_spans_without_a_time() {
    for abi in ABIS {
        let mut log = Vec::new();
        for value in [3u64, 512, 0, 10, 0, 0] {
            log.extend_from_slice(&value.to_le_bytes()[..abi.word_bytes()]);
        }
        let mut options = Options { frequency_hz: Some(2_000_000_000), ..Options::new(abi) };
        let trace = read_tracepoints("log", &log, u64::MAX, &options).unwrap();
        let expected = [
            "- kernel tracepoint 3 id=3 duration_cycles=512 duration_ns=256",
            "- kernel tracepoint 0 id=0 duration_cycles=10 duration_ns=5",
        ];
        assert_eq!(listing(&trace), expected, "{abi:?}");
        assert_eq!(roles(&trace, "tracepoint 3"), ["span \"tracepoint 3\" for duration_ns"]);
        // The kernel counted on when the log was full.
        options.entries = Some(7);
        let trace = read_tracepoints("log", &log, u64::MAX, &options).unwrap();
        assert_eq!(trace.len(), 3);
        assert_eq!(trace.losses()[0].cause, LossCause::Full);
        assert_eq!(trace.losses()[0].count, Some(4));
    }
}

/// An entry as a compiler lays it out.
fn entry(abi: Abi, start: u64, duration: u32, path: u8, bits: u32) -> Vec<u8> {
    let mut bytes = start.to_le_bytes().to_vec();
    bytes.extend_from_slice(&duration.to_le_bytes());
    bytes.push(path);
    bytes.extend_from_slice(&bits.to_le_bytes());
    bytes.resize(abi.entry_bytes(), 0);
    bytes
}

#[test]
fn kernel_entries_tell_their_cause() {
    for abi in ABIS {
        let syscall = 1 | 4 << 4 | 1 << 9 | 77 << 10;
        let log = [
            entry(abi, 1000, 200, 6, syscall),
            entry(abi, 1500, 80, 1, 2 | 33 << 3),
            entry(abi, 1700, 90, 5, 0),
            vec![0; 3 * abi.entry_bytes()],
        ]
        .concat();
        let options = Options::new(abi);
        let trace = read_entries("log", &log, u64::MAX, &options).unwrap();
        let expected = [
            "1000 system calls kernel:syscall duration_cycles=200 duration_ns=200 syscall=1 \
             cap_type=4 is_fastpath=true invocation_tag=77",
            "1500 core 2 kernel:interrupt duration_cycles=80 duration_ns=80 word=33",
            "1700 core 0 kernel:vm_fault duration_cycles=90 duration_ns=90 word=0",
        ];
        assert_eq!(listing(&trace), expected, "{abi:?}");
        assert_eq!(roles(&trace, "kernel:interrupt"), ["span interrupt for duration_ns"]);
        let mut cut = read_entries("log", &log[..2 * abi.entry_bytes() - 5], u64::MAX, &options);
        assert_eq!(cut.as_mut().unwrap().len(), 1);
        assert_eq!(cut.unwrap().damage().len(), 1);
        assert!(read_entries("log", &log[..10], u64::MAX, &options).is_err());
    }
}

#[test]
fn printed_tracepoints_are_read_among_other_output() {
    let text = "booting\ntracepoint id = 3 \tduration = 512\nnoise\ntracepoint id = x\n\
                tracepoint id = 0 \tduration = 10\nDumped entire log, size 4\n\
                tracepoint id = 1 \tdura";
    assert!(sniff(text.as_bytes()));
    let trace = read("t", text.as_bytes(), u64::MAX).unwrap();
    assert_eq!(listing(&trace).len(), 2);
    assert_eq!(trace.losses()[0].count, Some(2), "lines the console lost");
    assert_eq!(trace.damage().len(), 2);
}

const UTILISATION: &str = r#"some output
{
  "BENCHMARK_TOTAL_UTILISATION":1000,
  "BENCHMARK_TOTAL_KERNEL_UTILISATION":200,
  "BENCHMARK_TOTAL_NUMBER_KERNEL_ENTRIES":30,
  "BENCHMARK_TOTAL_NUMBER_SCHEDULES":4,
  "BENCHMARK_TCB_": [
    {
      "NAME":"idle_thread",
      "UTILISATION":700,
      "NUMBER_SCHEDULES":3,
      "KERNEL_UTILISATION":70,
      "NUMBER_KERNEL_ENTRIES":7
    },
    {
      "NAME":"rootserver",
      "UTILISATION":300,
      "NUMBER_SCHEDULES":1,
      "KERNEL_UTILISATION":130,
      "NUMBER_KERNEL_ENTRIES":23
    },
  ]
}
more output
"#;

#[test]
fn utilisation_becomes_counters_and_a_cut_text_keeps_what_is_whole() {
    assert!(sniff(UTILISATION.as_bytes()));
    let trace = read("u", UTILISATION.as_bytes(), u64::MAX).unwrap();
    let expected = [
        "- seL4 utilisation utilisation:total cycles=1000 kernel_cycles=200 kernel_entries=30 \
         schedules=4",
        "- seL4 utilisation utilisation:thread thread='idle_thread' cycles=700 kernel_cycles=70 \
         kernel_entries=7 schedules=3",
        "- seL4 utilisation utilisation:thread thread='rootserver' cycles=300 kernel_cycles=130 \
         kernel_entries=23 schedules=1",
    ];
    assert_eq!(listing(&trace), expected);
    assert_eq!(trace.names().threads[&2], "rootserver");
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    assert_eq!(roles(&trace, "utilisation:thread")[1], "counter kernel_cycles");
    let cut = UTILISATION.find("130").unwrap();
    let trace = read("u", &UTILISATION.as_bytes()[..cut], u64::MAX).unwrap();
    assert_eq!(listing(&trace), expected[..2]);
    assert_eq!(trace.damage().len(), 1);
}

#[test]
fn benchmark_results_come_with_their_samples() {
    let json = r#"[{"Benchmark": "ipc", "Results": [{"Function": "call", "Direction": "a->b",
        "Min": 1, "Max": 3, "Mean": 2.5, "Stddev": 0.5, "Variance": 0.25, "Mode": 3, "Median": 2,
        "1st quantile": 1, "3rd quantile": 3, "Samples": 2, "Raw results": [1, 3]}]},
        {"Benchmark": "irq", "Results": []}, {"Bench"#;
    assert!(sniff(json.as_bytes()));
    let trace = read("j", json.as_bytes(), u64::MAX).unwrap();
    let columns = "benchmark='ipc' columns='Direction: a->b, Function: call'";
    let expected = [
        format!(
            "- sel4bench JSON sel4bench:result {columns} min=1 max=3 mean=2.5 stddev=0.5 \
             variance=0.25 mode=3 median=2 quantile_1=1 quantile_3=3 samples=2"
        ),
        format!("- sel4bench JSON sel4bench:sample {columns} index=0 value=1"),
        format!("- sel4bench JSON sel4bench:sample {columns} index=1 value=3"),
    ];
    assert_eq!(listing(&trace), expected);
    assert_eq!(trace.damage().len(), 1);
    assert!(read("j", b"{\"traceEvents\": []}", u64::MAX).is_err());
}

/// Values of another shape are reported with their position, and no number is invented for them.
#[test]
fn benchmarks_of_another_shape_are_told() {
    let good = r#"{"Benchmark": "irq", "Results": [{"Min": 7}]}"#;
    for bad in [
        r#"{"Benchmark": "x", "Result": [{"Min": 1}]}"#,
        r#"{"Benchmark": "x", "Results": {"Min": 1}}"#,
        r#"{"Benchmark": "x", "Results": [{"lo": 1, "hi": 2}]}"#,
        r#"{"Benchmark": 5, "Results": []}"#,
        r#""Benchmark""#,
    ] {
        let json = format!("[\n{bad},\n{good}\n]");
        let trace = read("j", json.as_bytes(), u64::MAX).unwrap();
        assert_eq!(listing(&trace).len(), 1, "{bad}");
        let [damage] = trace.damage() else { panic!("{bad}: {:?}", trace.damage()) };
        assert_eq!(damage.begin_bytes..damage.end_bytes, 2..2 + bad.len() as u64, "{bad}");
    }
    let json = r#"[{"Benchmark": "x", "Results": []}]"#;
    let trace = read("j", json.as_bytes(), u64::MAX).unwrap();
    assert_eq!((listing(&trace).len(), trace.damage().len()), (0, 0));
    assert!(trace.remarks().iter().any(|remark| remark.contains("no results")));

    let json =
        r#"[{"Benchmark": "x", "Results": [{"Raw results": [-5, 1e30, "a", null, 1.5, 9]}]}]"#;
    let trace = read("j", json.as_bytes(), u64::MAX).unwrap();
    let lines = listing(&trace);
    assert!(lines[1].ends_with("index=0 value=-5") && lines[2].ends_with("index=5 value=9"));
    assert_eq!(lines.len(), 3);
    let told = "4 samples are no whole numbers and left out";
    assert!(trace.remarks().iter().any(|remark| remark.contains(told)), "{:?}", trace.remarks());
}

#[test]
fn utilisation_that_is_no_number_is_told() {
    // A total that is too large, one that was cut, one that is missing.
    for (whole, bad) in [
        ("\":1000", "\":99999999999999999999999"),
        ("\":1000", "\":-1"),
        ("\":1000", "\":1e3"),
        ("BENCHMARK_TOTAL_NUMBER_SCHEDULES", "BENCHMARK_TOTAL_SCHEDULES"),
        ("\"idle_thread\"", "5"),
        ("\"UTILISATION\":300", "\"UTILISATION\":-300"),
        ("\"KERNEL_UTILISATION\":70,", ""),
    ] {
        let text = UTILISATION.replace(whole, bad);
        assert_ne!(text, UTILISATION);
        let trace = read("u", text.as_bytes(), u64::MAX).unwrap();
        assert_eq!((listing(&trace).len(), trace.damage().len()), (2, 1), "{bad}");
    }
    let cut = UTILISATION.find("00,").unwrap();
    let trace = read("u", &UTILISATION.as_bytes()[..cut], u64::MAX).unwrap();
    assert_eq!((listing(&trace).len(), trace.damage().len()), (0, 1));
}
