// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The instructions of libipt's test streams, compared with the lists of its `ptxed`.

use lateralis_intelpt::Block;
use lateralis_intelpt::errata::Errata;
use lateralis_intelpt::flow::{Event, Flow, Sink};
use lateralis_intelpt::image::Sections;
use std::fs;
use std::path::Path;

/// Addresses of the code of these streams in libipt's sources.
const BASES: [u64; 2] = [0x1000, 0x10_0000];

/// Streams in which our instructions differ, and the reason.
const OTHER: [(&str, &str); 7] = [
    (
        "ptxed-resync-bad_query-tip",
        "a TIP behind a contradiction: outcomes of branches before it may be missing (deferred TIPs)",
    ),
    (
        "ptxed-resync-nomap-tip",
        "a TIP behind missing code: outcomes of branches before it may be missing (deferred TIPs)",
    ),
    (
        "ptxed-resync-nomap-ptw-tip",
        "a TIP behind missing code: outcomes of branches before it may be missing (deferred TIPs)",
    ),
    ("ptxed-resync-psb-bad_status-psb", "two PSB+ contradict each other"),
    ("ptxed-resync-bad_query-ovf", "a branch without its outcome"),
    ("ptxed-resync-bad_query-fup-tip", "a branch without its outcome"),
    ("pip-pip_mov_cr3-fail", "a second PIP, for which there is no instruction"),
];

#[derive(Default)]
struct Executed<'c> {
    addresses: Vec<u64>,
    gaps: usize,
    code: Option<&'c Sections<'c>>,
}

impl Sink for Executed<'_> {
    fn block(&mut self, block: &Block) {
        let code = self.code.expect("code");
        lateralis_intelpt::instructions(code, block, |ip, _| self.addresses.push(ip));
    }

    fn event(&mut self, _: usize, event: Event) {
        self.gaps += usize::from(matches!(event, Event::Gap(_)));
    }
}

/// The erratum of a stream, by its name.
fn errata(stem: &str) -> Errata {
    let mut errata = Errata::default();
    match stem.split('-').next() {
        Some("bdm64") => errata.bdm64 = true,
        Some("bdm70") => errata.bdm70 = true,
        Some("skd007") => errata.skd007 = true,
        Some("skd010") => errata.skd010 = true,
        Some("skd022") => errata.skd022 = true,
        Some("skl014") => errata.skl014 = true,
        Some("apl12") => errata.apl12 = true,
        Some("skz84") => errata.skz84 = true,
        _ => {}
    }
    errata
}

/// The addresses in a list of `ptxed`; those in a transaction are preceded by a question mark.
fn listed(text: &str) -> Vec<u64> {
    let of_line = |line: &str| {
        let word = line.trim_start_matches("? ").split_whitespace().next()?;
        (word.len() == 16).then(|| u64::from_str_radix(word, 16).ok())?
    };
    text.lines().filter_map(of_line).collect()
}

#[test]
fn instructions_are_those_that_ptxed_lists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pt/pttc");
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("SKIPPED: no {}", folder.display());
        return;
    };
    let (mut streams, mut executing, mut wrong, mut others) = (0, 0, Vec::new(), Vec::new());
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(stem) = name.strip_suffix("-ptxed.exp") else { continue };
        let expected = listed(&fs::read_to_string(&path).unwrap());
        let code = fs::read(folder.join(format!("{stem}.bin"))).unwrap();
        let packets = fs::read(folder.join(format!("{stem}.pt"))).unwrap();
        streams += 1;
        executing += usize::from(!expected.is_empty());
        let found = BASES.map(|base| {
            let mut image = Sections::default();
            image.add(base, &code);
            let mut executed = Executed { code: Some(&image), ..Executed::default() };
            let mut flow = Flow::new(&image).with_errata(errata(stem));
            if stem.starts_with("skl014") && stem != "skl014-no_filter" {
                flow = flow.with_filter(Vec::from([0x1000..0x1080, 0x1080..0x1100]));
            }
            flow.decode(&packets, &mut executed);
            (executed.addresses, executed.gaps)
        });
        if found.iter().any(|(addresses, _)| *addresses == expected) {
            continue;
        }
        match OTHER.iter().find(|(other, _)| *other == stem) {
            Some(_) => others.push(stem.to_owned()),
            None => wrong.push(format!("{stem}: {found:x?}, not {expected:x?}")),
        }
    }
    wrong.sort();
    let count = others.len();
    println!("{streams} streams, {executing} with instructions, of {count} others: {others:?}");
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(others.len(), OTHER.len(), "one of those with a reason is equal now");
    assert_eq!((streams, executing), (191, 163));
}
