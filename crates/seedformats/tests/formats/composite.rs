// SPDX-License-Identifier: Apache-2.0 OR MIT

use lateralis_model::Source;
use lateralis_seedformats::composite::{Options, read, read_with, sniff};

use crate::listing;

#[test]
fn the_columns_of_the_seed_are_read() {
    let csv = "1000,0,3, 2,7,18446744073709551615\n1500,1,4, 0\n";
    assert!(sniff(csv.as_bytes()));
    let options = Options { frequency_hz: Some(500_000_000) };
    let trace = read_with("c", csv.as_bytes(), u64::MAX, &options).unwrap();
    let expected = [
        "2000 cpu 0 event cpu_id=0 tid=3 args=[7,18446744073709551615]",
        "3000 cpu 1 event cpu_id=1 tid=4 args=[]",
    ];
    assert_eq!(listing(&trace), expected);
    assert!(trace.remarks().is_empty());
    let trace = read("c", csv.as_bytes(), u64::MAX).unwrap();
    assert_eq!(trace.remarks().len(), 1, "the frequency is not known");
}

#[test]
fn format_strings_become_classes_and_messages() {
    let csv = "timestamp,cpuid,thd_id, nargs,args...,text\n\
               5,0,1, 2,42,255,\"sum %d, say \"\"%x\"\"\nand so on\"\n\
               6,0,1, 1,\"a, b\",done\r\n\
               7,0,1, 2,-1,2.5\n";
    assert!(sniff(csv.as_bytes()));
    let trace = read("c", csv.as_bytes(), u64::MAX).unwrap();
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let expected = [
        "5 cpu 0 sum %d, say \"%x\"\nand so on cpu_id=0 tid=1 args=[42,255] \
         message='sum 42, say \"ff\"\nand so on'",
        "6 cpu 0 done cpu_id=0 tid=1 args=['a, b'] message='done'",
        "7 cpu 0 event cpu_id=0 tid=1 args=['-1','2.5']",
    ];
    assert_eq!(listing(&trace), expected);
}

#[test]
fn bad_lines_cost_themselves() {
    let csv = "1,0,1, 0\nnonsense\n2,0,1, 3,1\n3,0,1, 1,\"open\n4,0,1, 0\n5,0,1, 1,12";
    let trace = read("c", csv.as_bytes(), u64::MAX).unwrap();
    let times: Vec<_> = listing(&trace).iter().map(|line| line.as_bytes()[0]).collect();
    assert_eq!(times, b"14", "the last line may have lost digits");
    let damaged: u64 = trace.damage().iter().map(|d| d.end_bytes - d.begin_bytes).sum();
    assert_eq!(damaged as usize, csv.len() - 2 * "1,0,1, 0\n".len());
    assert!(read("c", b"a,b\n", u64::MAX).is_err());
    // Cut at its beginning, or in a line, a file is still known; any table is not.
    assert!(sniff(b"5,0,7, 2,5\n1010,0,7, 1,9\n1020,1,7, 0\n") && sniff(csv.as_bytes()));
    assert!(!sniff(b"time,cpu,user,count\n1,0,1,0\n2,0,1,0\n"));
    assert!(!sniff(b"0 1 7337000100000000\n") && !sniff(b"1,2,3\n") && !sniff(b""));
}

#[test]
fn a_line_of_countless_columns_is_damage_and_costs_one_pass() {
    // Columns that span lines: beginning anew at each of those would take hours.
    let bytes = ["\"\n\",".repeat(1 << 18), "\n1,0,1, 0\n".to_owned()].concat();
    let trace = read("c", bytes.as_bytes(), u64::MAX).unwrap();
    assert_eq!(listing(&trace), ["1 cpu 0 event cpu_id=0 tid=1 args=[]"]);
    let damaged: u64 = trace.damage().iter().map(|d| d.end_bytes - d.begin_bytes).sum();
    assert_eq!(damaged as usize, (4 << 18) + 1);
}
