// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Executed instructions, compared with those of a simulator and with real recordings.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use lateralis_intelpt::Block;
use lateralis_intelpt::flow::{Event, Flow, Gap, GapCause, Sink};
use lateralis_intelpt::image::{Image, Sections};

/// Memory by address.
type Pieces = Vec<(u64, Vec<u8>)>;

/// Decoded items, in order.
#[derive(Default)]
struct Told {
    blocks: Vec<Block>,
    gaps: Vec<Gap>,
    events: usize,
}

impl Sink for Told {
    fn block(&mut self, block: &Block) {
        self.blocks.push(*block);
    }

    fn event(&mut self, _: usize, event: Event) {
        self.events += 1;
        if let Event::Gap(gap) = event {
            self.gaps.push(gap);
        }
    }
}

fn data(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pt").join(name);
    if !path.exists() {
        println!("SKIPPED: {} is not there", path.display());
        return None;
    }
    Some(path)
}

/// Pieces of memory from files whose names end with the address.
fn pieces(folder: &Path) -> Pieces {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((_, address)) = name.split_once(".img.") else { continue };
        let address = u64::from_str_radix(address, 16).expect("an address");
        all.push((address, fs::read(entry.path()).expect("its bytes")));
    }
    all
}

fn sections(pieces: &[(u64, Vec<u8>)]) -> Sections<'_> {
    let mut all = Sections::default();
    for (address, bytes) in pieces {
        all.add(*address, bytes);
    }
    all
}

fn decoded<I: Image>(flow: &mut Flow<'_, I>, bytes: &[u8]) -> (Told, Vec<u64>) {
    let mut told = Told::default();
    flow.decode(bytes, &mut told);
    let mut ips = Vec::new();
    for block in &told.blocks {
        flow.instructions(block, |ip| ips.push(ip));
    }
    (told, ips)
}

/// Every stream of a simulated processor gives exactly the instructions that it executed.
#[test]
fn simulated_streams_give_what_was_executed() {
    let Some(folder) = data("made") else { return };
    let mut compared = 0;
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (folder, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let Ok(truth) = fs::read(folder.join("truth.ips.zst")) else { continue };
        let truth = zstd::decode_all(&truth[..]).expect("zstd");
        let truth = String::from_utf8(truth).expect("text");
        let truth: Vec<u64> =
            truth.lines().map(|line| u64::from_str_radix(line.trim(), 16).expect("hex")).collect();
        let pieces = pieces(&folder);
        let image = sections(&pieces);
        let bytes = fs::read(folder.join("trace.pt")).expect("a stream");
        let (told, ips) = decoded(&mut Flow::new(&image), &bytes);
        let equal = ips.iter().zip(&truth).take_while(|(one, other)| one == other).count();
        println!("{name}: {equal} of {} instructions", truth.len());
        assert_eq!(told.gaps, [], "{name}: behind {equal} instructions");
        assert!(equal == truth.len() && equal == ips.len(), "{name}: {equal} are equal");
        compared += 1;
    }
    assert!(compared >= 9, "{compared} streams");
}

/// A recording by GRIFFIN: pieces of memory, and the stream of each thread.
fn griffin(path: &Path) -> (Pieces, BTreeMap<u64, Vec<u8>>) {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).expect("a recording");
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).expect("gzip");
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    assert_eq!(u32_at(0), 0x51c0_ffee, "{}", path.display());
    let (mut pieces, mut streams): (Vec<_>, BTreeMap<u64, Vec<u8>>) = Default::default();
    let mut at = 8;
    while at + 8 <= bytes.len() {
        let (kind, size) = (u32_at(at), u32_at(at + 4) as usize);
        if size == 0 || at + size > bytes.len() {
            break;
        }
        match kind {
            // Group, process, number, bytes.
            0 => {
                let count = u64_at(at + 32) as usize;
                let stream = streams.entry(u64_at(at + 16)).or_default();
                stream.extend(&bytes[at + 40..at + 40 + count]);
            }
            // Group, address, bytes.
            4 => {
                let count = u64_at(at + 24) as usize;
                pieces.push((u64_at(at + 16), bytes[at + 32..at + 32 + count].to_vec()));
            }
            _ => {}
        }
        at += size;
    }
    (pieces, streams)
}

/// Hash of the sequence of addresses, which depends on the order.
fn hash(ips: &[u64]) -> u64 {
    ips.iter().fold(0xcbf2_9ce4_8422_2325, |hash, ip| (hash ^ ip).wrapping_mul(0x0100_0000_01b3))
}

/// Results of Intel's library (libipt 2.3.0, by tests/libipt.c) for these recordings: number of
/// instructions, hash of their addresses, and number of overflows.
const BY_LIBIPT: [(&str, usize, u64, usize); 14] = [
    ("cve-2004-0597-poc", 472_852, 0x6e9f_fdb3_8ce0_45ba, 0),
    ("cve-2018-12327-ben", 917_903, 0xe06b_278d_8e78_3f73, 0),
    ("df-01-poc", 175_875, 0x5080_c7e5_6747_569b, 0),
    ("int-01-poc", 180_252, 0x88dc_7793_e981_ef7c, 0),
    ("ovf-01-poc", 106_077, 0x25db_1123_4d76_127f, 0),
    ("ovf-02-ben", 176_892, 0x8bd6_f7f1_16fe_9be1, 0),
    ("ovf-03-poc", 108_338, 0x200a_09e7_8d26_2b3e, 0),
    ("ovf-04-ben", 176_143, 0x050d_1ebf_7a38_1e8a, 0),
    ("ovf-05-poc", 178_493, 0xe224_2c23_19c7_26a3, 0),
    ("ovf-06-ben", 177_380, 0x7a42_479b_c652_e55e, 0),
    ("uaf-02-poc", 177_137, 0x7e34_2416_3cdf_09a5, 0),
    ("uaf-04-ben", 183_115, 0xd450_9ed9_20cc_adff, 0),
    ("foo", 117_967, 0xa8ce_d44c_5779_bae5, 0),
    ("mruby", 6_334_131, 0xa229_ca63_7e67_ceda, 1),
];

/// A recording by kAFL: addresses of pages, the pages, and the stream.
fn kafl(folder: &Path) -> (Pieces, Vec<u8>) {
    let read = |name: &str| fs::read(folder.join(name)).expect("a recording");
    let (addresses, pages) = (read("data.addr"), read("data.dump"));
    let addresses =
        addresses.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight")));
    // The low bits contain the way in which the page was found.
    let pieces = addresses.zip(pages.chunks(4096)).map(|(at, page)| (at & !0xfff, page.to_vec()));
    (pieces.collect(), read("trace"))
}

/// Intel's own decoder, if it is installed.
fn libipt(place: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/libipt.c");
    let program = place.join("libipt");
    let mut cc = Command::new("cc");
    let built = cc.args(["-O2", "-w"]).arg(source).arg("-o").arg(&program).arg("-lipt").output();
    if !built.is_ok_and(|built| built.status.success()) {
        println!("SKIPPED: libipt is not there: apt install libipt-dev");
        return None;
    }
    Some(program)
}

/// Real recordings give the instructions that Intel's library decodes: as many, at the same addresses. An
/// installed older version may stop early: up to there it gives the same.
#[test]
fn real_recordings_give_what_libipt_decodes() {
    let (Some(of_griffin), Some(of_kafl)) = (data("griffin"), data("kafl")) else { return };
    let place = std::env::temp_dir().join(format!("intelpt-{}", std::process::id()));
    fs::create_dir_all(&place).expect("a folder");
    let program = libipt(&place);
    for (name, count, expected, overflows) in BY_LIBIPT {
        let file = of_griffin.join(name).join("trace.griffin.gz");
        let (pieces, stream) = match file.exists() {
            true => {
                let (pieces, streams) = griffin(&file);
                (pieces, streams.into_values().next().expect("a thread"))
            }
            false => kafl(&of_kafl.join(name)),
        };
        let image = sections(&pieces);
        let (told, ips) = decoded(&mut Flow::new(&image), &stream);
        assert_eq!((ips.len(), hash(&ips)), (count, expected), "{name}");
        assert!(
            told.gaps.iter().all(|gap| gap.cause == GapCause::Overflow),
            "{name}: {:?}",
            told.gaps
        );
        assert_eq!(told.gaps.len(), overflows, "{name}");
        let Some(program) = &program else { continue };
        let mut libipt = Command::new(program);
        let file = place.join("stream");
        fs::write(&file, &stream).expect("written");
        libipt.arg(&file);
        for (address, bytes) in &pieces {
            let file = place.join(format!("{address:x}"));
            fs::write(&file, bytes).expect("written");
            libipt.arg(format!("{}:{address:x}", file.display()));
        }
        let output = libipt.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        let [many, of_all, errors] = words[..] else { panic!("{name}: {text}") };
        let many: usize = many.parse().expect("a number");
        println!("{name}: libipt {many} of {count}, {errors} errors");
        let ours = format!("{:016x}", hash(ips.get(..many).unwrap_or_default()));
        assert_eq!(of_all, ours, "{name}: {many} instructions");
        assert!(many > count / 2, "{name}: {many}");
    }
    fs::remove_dir_all(&place).expect("removed");
}

/// For any truncation or change: decoding ends, with no more output than the stream can contain.
#[test]
fn damaged_streams_end_in_gaps() {
    let Some(folder) = data("made/fibs") else { return };
    let pieces = pieces(&folder);
    let image = sections(&pieces);
    let bytes = fs::read(folder.join("trace.pt")).expect("a stream");
    let mut flow = Flow::new(&image);
    let (_, whole) = decoded(&mut flow, &bytes);
    for cut in (0..bytes.len()).step_by(7) {
        let (_, ips) = decoded(&mut flow, &bytes[..cut]);
        // The rest is the same, except for instructions whose branch is missing.
        assert!(whole.starts_with(&ips), "cut at {cut}");
    }
    let mut gaps = 0;
    for at in (16..bytes.len()).step_by(5) {
        let mut broken = bytes.clone();
        broken[at] ^= 1 << (at % 8);
        let (told, ips) = decoded(&mut flow, &broken);
        gaps += told.gaps.len();
        let equal = ips.iter().zip(&whole).take_while(|(one, other)| one == other).count();
        assert!(equal > 0 || at < 64, "{at}: nothing is left");
    }
    assert!(gaps > 50, "{gaps}");
}
