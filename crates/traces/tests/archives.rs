// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Archives open like the directory that was packed; hostile and damaged ones give their intact contents,
//! and nothing outside of their own directory.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use lateralis_model::Source;
use lateralis_traces::{Joined, OpenOptions, Options, Target, convert, open};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let directory = format!("lateralis-archives-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(directory);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn opened(path: &Path, memory_bytes: u64) -> Result<Joined, String> {
    let options = OpenOptions { memory_bytes, ..OpenOptions::default() };
    open(&[path.to_owned()], &options).map_err(|error| error.to_string())
}

/// Time, name, thread and all fields of each event.
fn lines(trace: &Joined) -> Vec<String> {
    let mut lines = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        let fields = event.payload().into_iter().flatten();
        let values: Vec<_> =
            fields.map(|(member, field)| format!("{}={:?}", member.name, field.as_u64())).collect();
        lines.push(format!("{} {} {values:?}", event.time.0, event.class.name));
    }
    lines
}

/// Counters of Chrome JSON, starting with one of this name.
fn chrome(name: &str, count: u32) -> Vec<u8> {
    let event = |n: u32| {
        format!(r#"{{"name":"{name}","ph":"C","ts":{n},"pid":1,"tid":1,"args":{{"v":{}}}}}"#, n * 7)
    };
    let events: Vec<String> = (0..count).map(event).collect();
    format!("[{}]", events.join(",\n")).into_bytes()
}

/// Files of a directory with a CTF trace of two streams and a Chrome trace; names begin with `run/`.
fn files(scratch: &Scratch) -> Vec<(String, Vec<u8>)> {
    let json = scratch.write("source.json", &chrome("queue", 12_000));
    let ctf = scratch.0.join("trace");
    let source = opened(&json, 1 << 30).unwrap();
    convert(&source, Target::Ctf, &ctf, &Options::default()).unwrap();
    let mut files = vec![("run/later.json".to_owned(), chrome("later", 500))];
    let mut found: Vec<_> = fs::read_dir(&ctf).unwrap().flatten().collect();
    found.sort_by_key(fs::DirEntry::file_name);
    for entry in found {
        if entry.path().is_file() {
            let name = format!("run/trace/{}", entry.file_name().to_string_lossy());
            files.push((name, fs::read(entry.path()).unwrap()));
        }
    }
    assert!(files.len() >= 3, "{files:?}");
    files
}

fn tar(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

fn zip(files: &[(String, Vec<u8>)], method: zip::CompressionMethod) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        writer.start_file(name.as_str(), options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut out = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// An archive in each format.
fn packed(files: &[(String, Vec<u8>)]) -> [(&'static str, Vec<u8>); 6] {
    let tar = tar(files);
    [
        ("tar.gz", gzip(&tar)),
        ("tar.zst", zstd::bulk::compress(&tar, 1).unwrap()),
        ("tar.xz", xz(&tar)),
        ("tar", tar),
        ("stored.zip", zip(files, zip::CompressionMethod::Stored)),
        ("zip", zip(files, zip::CompressionMethod::Deflated)),
    ]
}

#[test]
fn archives_open_like_what_was_packed() {
    let scratch = Scratch::new("whole");
    let files = files(&scratch);
    for (name, bytes) in &files {
        let path = scratch.0.join("plain").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let plain = opened(&scratch.0.join("plain/run"), 1 << 30).unwrap();
    let expected = lines(&plain);
    assert_eq!(expected.len(), 12_500);
    for (name, bytes) in packed(&files) {
        // The content decides, not the name.
        let trace = opened(&scratch.write("archive", &bytes), 1 << 30).unwrap();
        assert_eq!(trace.format(), plain.format(), "{name}");
        assert!(lines(&trace) == expected, "{name}");
        assert!(trace.damage().is_empty() && trace.remarks() == plain.remarks(), "{name}");
    }
}

#[test]
fn archives_of_the_usual_tools_open() {
    let scratch = Scratch::new("tools");
    for (name, bytes) in files(&scratch) {
        let path = scratch.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let expected = lines(&opened(&scratch.0.join("run"), 1 << 30).unwrap());
    for (out, tool) in [
        ("a.tar", &["tar", "-cf", "a.tar", "run"][..]),
        ("p.tar", &["tar", "--format=pax", "-cf", "p.tar", "run"]),
        ("v.tar", &["tar", "--format=v7", "-cf", "v.tar", "run"]),
        ("a.tgz", &["tar", "-czf", "a.tgz", "run"]),
        ("a.txz", &["tar", "-cJf", "a.txz", "run"]),
        ("a.tzst", &["tar", "--zstd", "-cf", "a.tzst", "run"]),
        ("a.zip", &["zip", "-qr", "a.zip", "run"]),
        // Sizes follow the data.
        ("s.zip", &["sh", "-c", "zip -qr - run | cat > s.zip"]),
    ] {
        let done = Command::new(tool[0]).args(&tool[1..]).current_dir(&scratch.0).status();
        let size = fs::metadata(scratch.0.join(out)).map_or(0, |about| about.len());
        if !done.is_ok_and(|status| status.success()) || size == 0 {
            println!("SKIPPED: {tool:?} is not here");
            continue;
        }
        let trace = opened(&scratch.0.join(out), 1 << 30).unwrap();
        assert!(lines(&trace) == expected, "{out}");
        assert!(trace.damage().is_empty(), "{out}: {:?}", trace.damage());
    }
}

#[test]
fn nothing_stays_in_the_directory_for_temporary_files() {
    if std::env::var_os("LATERALIS_TEST_TMPDIR").is_some() {
        return;
    }
    let scratch = Scratch::new("temporary");
    let test = ["--exact", "archives_open_like_what_was_packed", "--nocapture"];
    let run = Command::new(std::env::current_exe().unwrap())
        .args(test)
        .env("TMPDIR", &scratch.0)
        .env("LATERALIS_TEST_TMPDIR", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
    // If nothing can be written, the error contains advice.
    let archive = scratch.write("a.tar", &tar(&[("a.json".to_owned(), chrome("a", 5))]));
    let test = ["--exact", "an_archive_that_cannot_be_unpacked", "--nocapture"];
    let run = Command::new(std::env::current_exe().unwrap())
        .args(test)
        .env("TMPDIR", scratch.0.join("gone"))
        .env("LATERALIS_TEST_ARCHIVE", archive)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(text.contains("TMPDIR names another place"), "{text}");
}

/// Prints the error, with a directory for temporary files that does not exist.
#[test]
fn an_archive_that_cannot_be_unpacked() {
    if let Some(path) = std::env::var_os("LATERALIS_TEST_ARCHIVE") {
        println!("{}", opened(Path::new(&path), 1 << 30).err().unwrap());
    }
}

/// The report in an archive belongs to its recording; a report beside the archive is never used.
#[test]
fn the_report_of_a_recording_comes_with_it() {
    if let Some(path) = std::env::var_os("LATERALIS_TEST_REPORT") {
        let trace = opened(Path::new(&path), 1 << 30).unwrap();
        println!("{} events, report {:?}", lines(&trace).len(), trace.report);
        return;
    }
    let scratch = Scratch::new("report");
    let ctf = |name: &str| name.strip_prefix("run/trace/").map(|file| format!("rec/ctf/{file}"));
    let all = files(&scratch);
    let mut files: Vec<_> =
        all.iter().filter_map(|(name, bytes)| Some((ctf(name)?, bytes.clone()))).collect();
    let without = files.clone();
    let text = br#"{"report_version": 1, "complete": true}"#;
    // Beside the trace, as in recordings, and in its directory.
    for place in ["rec/report.json", "rec/ctf/report.json"] {
        files.truncate(without.len());
        files.push((place.to_owned(), text.to_vec()));
        for (name, bytes) in packed(&files) {
            let path = scratch.write(name, &bytes);
            let trace = opened(&path, 1 << 30).unwrap();
            assert_eq!(lines(&trace).len(), 12_000, "{place} in {name}");
            assert_eq!(trace.report.as_deref(), Some(&text[..]), "{place} in {name}");
            // With several traces it is not used.
            let json = scratch.write("beside.json", &chrome("beside", 3));
            let both = open(&[path, json], &OpenOptions::default()).unwrap();
            assert_eq!((lines(&both).len(), both.report), (12_003, None), "{place} in {name}");
        }
    }
    let trace = opened(&scratch.write("without", &tar(&without)), 1 << 30).unwrap();
    assert_eq!((lines(&trace).len(), trace.report), (12_000, None));
    // A file of that name in the directory into which archives are unpacked does not belong to it.
    scratch.write("report.json", text);
    let alone = tar(&[("a.json".to_owned(), chrome("a", 5))]);
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_report_of_a_recording_comes_with_it", "--nocapture"])
        .env("TMPDIR", &scratch.0)
        .env("LATERALIS_TEST_REPORT", scratch.write("alone.tar", &alone))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(told.contains("5 events, report None"), "{told}");
}

#[test]
fn names_that_lead_elsewhere_are_left_out() {
    let scratch = Scratch::new("names");
    let target = scratch.0.join("victim.json");
    let mut builder = tar::Builder::new(Vec::new());
    let mut add = |name: &[u8], kind: tar::EntryType, link: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        if !link.is_empty() {
            header.set_link_name(link).unwrap();
        }
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
    };
    let json = chrome("evil", 9);
    let up = format!("{}victim.json", "../".repeat(12));
    let plain = tar::EntryType::Regular;
    add(up.as_bytes(), plain, "", &json);
    add(b"good/../../victim.json", plain, "", &json);
    add(b"link", tar::EntryType::Symlink, scratch.0.to_str().unwrap(), b"");
    add(b"link/victim.json", plain, "", &json);
    add(b"hard.json", tar::EntryType::Link, "/etc/passwd", b"");
    add(b"device", tar::EntryType::Char, "", b"");
    add(b"/absolute.json", plain, "", &chrome("good", 4));
    let tar = builder.into_inner().unwrap();
    let trace = opened(&scratch.write("evil.tar", &tar), 1 << 30).unwrap();
    // The path through the link is a plain directory of that name; the absolute name is below the
    // archive's directory, as with tar itself.
    assert_eq!(lines(&trace).len(), 9 + 4);
    assert!(!target.exists() && !Path::new("/absolute.json").exists());
    let remarks = trace.remarks().join("\n");
    for part in ["its name leads elsewhere", "no file: link", "no file: hard", "no file: device"] {
        assert!(remarks.contains(part), "{part}: {remarks}");
    }
    let files =
        [("../victim.json".to_owned(), json.clone()), ("a.json".to_owned(), chrome("a", 2))];
    let evil = zip(&files, zip::CompressionMethod::Stored);
    let trace = opened(&scratch.write("evil.zip", &evil), 1 << 30).unwrap();
    assert_eq!(lines(&trace).len(), 2);
    assert!(!target.exists());
}

#[test]
fn bombs_end_at_the_limit() {
    let scratch = Scratch::new("bombs");
    let zeros = vec![0; 64 << 20];
    let files = [("a.json".to_owned(), chrome("a", 100)), ("zeros".to_owned(), zeros)];
    for (name, bytes) in packed(&files) {
        if bytes.len() > 32 << 20 {
            continue;
        }
        let trace = opened(&scratch.write(name, &bytes), 4 << 20).unwrap();
        assert_eq!(lines(&trace).len(), 100, "{name}");
        let told = trace.remarks().iter().any(|remark| remark.contains("--memory"));
        assert!(told, "{name}: {:?}", trace.remarks());
    }
    // Skipped data counts as well: a link with content.
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(64 << 20);
    builder.append_data(&mut header, "link", &vec![0; 64 << 20][..]).unwrap();
    let path = scratch.write("skipped", &gzip(&builder.into_inner().unwrap()));
    let error = opened(&path, 4 << 20).err().unwrap();
    assert!(error.contains("--memory"), "{error}");
}

#[test]
fn an_archive_in_an_archive_is_not_opened() {
    let scratch = Scratch::new("nested");
    let json = ("a.json".to_owned(), chrome("a", 10));
    let inner = gzip(&tar(std::slice::from_ref(&json)));
    let nested = ("inner.tar.gz".to_owned(), inner);
    let alone = tar(std::slice::from_ref(&nested));
    let error = opened(&scratch.write("alone", &alone), 1 << 30).err().unwrap();
    assert!(error.contains("an archive in the archive is left out"), "{error}");
    let both = xz(&tar(&[nested, json.clone()]));
    let trace = opened(&scratch.write("both", &both), 1 << 30).unwrap();
    assert_eq!(lines(&trace).len(), 10);
    assert!(trace.remarks().join("").contains("an archive in the archive is left out"));
    // A compressed file in an archive is not an archive.
    let single = tar(&[("a.json.gz".to_owned(), gzip(&json.1))]);
    assert_eq!(lines(&opened(&scratch.write("single", &single), 1 << 30).unwrap()).len(), 10);
    // There is no trace in an archive of other files.
    let other = tar(&[("readme".to_owned(), b"hello".to_vec())]);
    let error = opened(&scratch.write("other", &gzip(&other)), 1 << 30).err().unwrap();
    assert!(error.contains("tar packed by gzip") && error.contains("none of its 1 files"));
    // Archives in a directory must be named individually.
    let error = opened(&scratch.0, 1 << 30).map(|trace| lines(&trace).len());
    assert!(error.is_err_and(|error| error.contains("archives")));
}

#[test]
fn a_cut_archive_gives_what_is_whole() {
    let scratch = Scratch::new("cut");
    let files = files(&scratch);
    let whole: Vec<String> =
        lines(&opened(&scratch.write("whole", &tar(&files)), 1 << 30).unwrap());
    for (name, bytes) in packed(&files) {
        let mut most = 0;
        for cut in (1..40).map(|part| bytes.len() * part / 40) {
            let path = scratch.write("cut", &bytes[..cut]);
            let trace = match opened(&path, 1 << 30) {
                Ok(trace) => trace,
                Err(error) => {
                    println!("{name} cut at {cut} of {}: {error}", bytes.len());
                    continue;
                }
            };
            let left = lines(&trace);
            // Each remaining event is one of the whole.
            let mut all = whole.iter();
            let subset = left.iter().all(|line| all.any(|known| known == line));
            assert!(subset, "{name} cut at {cut}");
            assert!(left == whole || !trace.damage().is_empty(), "{name} cut at {cut}");
            most = most.max(left.len());
        }
        assert!(most >= 500, "{name}: {most}");
    }
}

#[test]
fn a_damaged_place_costs_its_file_only() {
    let scratch = Scratch::new("damaged");
    let files: Vec<_> = (0..4).map(|n| (format!("{n}.json"), chrome("a", 100))).collect();
    // The header of the second file; its checksum no longer matches.
    let mut bytes = tar(&files);
    let size = 512 + files[0].1.len().next_multiple_of(512);
    bytes[size + 3] ^= 0xff;
    let trace = opened(&scratch.write("a.tar", &bytes), 1 << 30).unwrap();
    assert_eq!(lines(&trace).len(), 300);
    let [damage] = trace.damage() else { panic!("{:?}", trace.damage()) };
    assert_eq!((damage.begin_bytes, damage.end_bytes), (size as u64, 2 * size as u64));
    // The content of the second file, which has a checksum in zip; the file is kept.
    let mut bytes = zip(&files, zip::CompressionMethod::Stored);
    let size = 30 + 6 + files[0].1.len();
    let value = bytes[size..].windows(5).position(|w| w == b"\"v\":7").unwrap();
    bytes[size + value + 4] = b'9';
    let trace = opened(&scratch.write("a.zip", &bytes), 1 << 30).unwrap();
    assert_eq!(lines(&trace).len(), 400);
    let [damage] = trace.damage() else { panic!("{:?}", trace.damage()) };
    assert_eq!((damage.begin_bytes, damage.end_bytes), (size as u64, 2 * size as u64));
    // Bits flipped anywhere never have more effect than that.
    for seed in 0..60u64 {
        let mut bytes = zip(&files[..2], zip::CompressionMethod::Deflated);
        let at = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % bytes.len();
        bytes[at] ^= 1 << (seed % 8);
        if let Ok(trace) = opened(&scratch.write("flip.zip", &bytes), 1 << 20) {
            assert!(lines(&trace).len() <= 200, "{at}");
        }
    }
}
