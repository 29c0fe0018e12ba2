// SPDX-License-Identifier: Apache-2.0 OR MIT
//! House rules that a program can check, so that reviews need not. Each rule is a function from one
//! file to complaints.

use crate::kinds;
use crate::steps::{Outcome, Step};
use crate::words::Words;
use crate::workspace;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// All rules over all files.
pub const STEP: Step = Step { name: "tidy", run };

struct Rule {
    /// What holds, as printed when it does not.
    holds: &'static str,
    check: fn(&str, &str) -> Vec<usize>,
}

const RULES: [Rule; 9] = [
    Rule { holds: "the licence is named in the first lines", check: licence },
    Rule { holds: "nothing is left for later", check: unfinished },
    Rule { holds: "no blanks at the end of a line", check: trailing_blanks },
    Rule { holds: "no tabs or control characters, one line feed at the end", check: characters },
    Rule { holds: "lines of code have at most 110 characters", check: long_lines },
    Rule { holds: "no paths of one particular machine", check: machine_paths },
    Rule { holds: "a crate says what it is in its first lines", check: crate_docs },
    Rule { holds: "files are named after what they do", check: file_names },
    Rule {
        holds: "`lat` prints by crate::output, which lets nothing hostile through",
        check: prints,
    },
];

fn run() -> Outcome {
    let files = match workspace::files() {
        Ok(files) => files,
        Err(error) => return Outcome::fail(error),
    };
    let mut complaints: Vec<Vec<String>> = RULES.iter().map(|_| Vec::new()).collect();
    // Complaints about several files at once.
    let mut links = Vec::new();
    let mut words = Words::default();
    for path in &files {
        let Ok(bytes) = std::fs::read(workspace::root().join(path)) else {
            continue;
        };
        // Binary fixtures have no lines.
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        let name = path.to_string_lossy();
        words.add(&name, &text);
        for (rule, complaints) in RULES.iter().zip(&mut complaints) {
            for line in (rule.check)(&name, &text) {
                complaints.push(format!("{name}:{line}: {}", rule.holds));
            }
        }
        if name.ends_with(".md") {
            links.extend(broken_links(path, &text));
            let folder = workspace::root().join(path.parent().unwrap_or(Path::new("")));
            let read = |file: &str| std::fs::read_to_string(folder.join(file)).ok();
            links.extend(kinds::complaints(path, &text, &read));
        }
        if path.ends_with("tests/main.rs") {
            links.extend(lost_tests(path, &text, &files));
        }
    }
    let texts = |path: &Path| std::fs::read_to_string(workspace::root().join(path)).ok();
    links.extend(unforbidden(&files, &texts));
    links.extend(unreachable_pages(&files, &texts));
    let mut outcome = Outcome::default();
    for complaints in complaints {
        outcome.add(Outcome::of(complaints));
    }
    outcome.add(Outcome::of(links));
    outcome.add(Outcome::of(words.complaints()));
    outcome.add(Outcome::of(wrong_toolchains()));
    outcome
}

/// `x` cannot read manifests before there is a cargo, so it has the versions of Rust they ask for itself.
fn wrong_toolchains() -> Vec<String> {
    let read =
        |path: &str| std::fs::read_to_string(workspace::root().join(path)).unwrap_or_default();
    let script = read("x");
    [("Cargo.toml", "rust_needed="), ("crates/sql/Cargo.toml", "rust_needed_sql=")]
        .into_iter()
        .filter_map(|(manifest, variable)| {
            let text = read(manifest);
            let asked = text.lines().find_map(|line| line.strip_prefix("rust-version = "));
            let checked = script.lines().find_map(|line| line.strip_prefix(variable));
            (checked != asked.map(|version| version.trim_matches('"'))).then(|| {
                format!(
                    "x: {variable}{}: {manifest} says {}",
                    checked.unwrap_or(""),
                    asked.unwrap_or("")
                )
            })
        })
        .collect()
}

fn ends_with_any(name: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| name.ends_with(ending))
}

fn is_code(name: &str) -> bool {
    ends_with_any(name, &[".rs", ".c", ".h", ".cc", ".S", ".py", ".sh"]) || name == "x"
}

/// Files whose bytes are what a program printed: they are as they are.
fn is_golden(name: &str) -> bool {
    // crates/pleco/suite shows what the compiler says of characters that do not belong there.
    // aquarium/dist is what a bundler wrote.
    [
        "golden/",
        "goldens/",
        "fixtures/",
        "expected/",
        "seeds/",
        "crates/pleco/suite/",
        "aquarium/dist/",
    ]
    .iter()
    .any(|folder| name.contains(folder))
        || ends_with_any(name, &[".expected", ".out", ".snap", ".s", ".case", ".bin"])
        || name.starts_with("LICENSE")
        || name == "Cargo.lock"
}

fn is_generated(text: &str) -> bool {
    text.lines().take(5).any(|line| line.to_ascii_lowercase().contains("generated by"))
}

fn lines_where(text: &str, wrong: impl Fn(&str) -> bool) -> Vec<usize> {
    let numbered = text.lines().enumerate();
    numbered.filter(|(_, line)| wrong(line)).map(|(index, _)| index + 1).collect()
}

fn licence(name: &str, text: &str) -> Vec<usize> {
    let has = text.lines().take(3).any(|line| line.contains("SPDX-License-Identifier: "));
    if is_code(name) && !is_golden(name) && !is_generated(text) && !has {
        vec![1]
    } else {
        Vec::new()
    }
}

fn unfinished(name: &str, text: &str) -> Vec<usize> {
    // Written in two parts, or this file would complain about itself.
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X "),
        concat!("XX", "X:"),
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("#[ig", "nore"),
    ];
    if is_golden(name) {
        return Vec::new();
    }
    lines_where(text, |line| words.iter().any(|word| line.contains(word)))
}

fn trailing_blanks(name: &str, text: &str) -> Vec<usize> {
    if is_golden(name) {
        return Vec::new();
    }
    lines_where(text, |line| line.ends_with([' ', '\t', '\r']))
}

fn characters(name: &str, text: &str) -> Vec<usize> {
    if is_golden(name) {
        return Vec::new();
    }
    // Scripts for tables with tabs and texts of the kernel contain tabs on purpose.
    let tabs_mean_something = ends_with_any(name, &["Makefile", ".mk", ".tsv", ".format", "/run"]);
    let mut wrong = lines_where(text, |line| {
        line.chars().any(|c| c.is_control() && !(c == '\t' && tabs_mean_something))
    });
    if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        wrong.push(text.lines().count());
    }
    wrong
}

fn long_lines(name: &str, text: &str) -> Vec<usize> {
    if !is_code(name) || is_golden(name) || is_generated(text) {
        return Vec::new();
    }
    // The aim is 100, and rustfmt keeps it; ten more are for what it does not break:
    // texts, tables in C, macros with their backslash. A link cannot be broken at all.
    lines_where(text, |line| line.chars().count() > 110 && !line.contains("https://"))
}

fn machine_paths(_: &str, text: &str) -> Vec<usize> {
    let paths = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    lines_where(text, |line| {
        paths.iter().any(|path| {
            line.match_indices(path).any(|(at, _)| {
                // A folder that merely ends so (`some/work/x`) is not a path of a machine.
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'))
            })
        })
    })
}

fn crate_docs(name: &str, text: &str) -> Vec<usize> {
    let is_root = ends_with_any(name, &["/src/lib.rs", "/src/main.rs"]);
    let has = text.lines().take(12).any(|line| line.starts_with("//! "));
    if is_root && !has { vec![1] } else { Vec::new() }
}

fn file_names(name: &str, _: &str) -> Vec<usize> {
    let stem = Path::new(name).file_stem().map(|s| s.to_string_lossy()).unwrap_or_default();
    let says_nothing = ["util", "utils", "common", "helper", "helpers", "misc", "manager"];
    if is_code(name) && says_nothing.contains(&&*stem) { vec![1] } else { Vec::new() }
}

/// Text of traces must not reach a terminal past the one filter.
fn prints(name: &str, text: &str) -> Vec<usize> {
    let is_ours = name.starts_with("crates/cli/src/") && name != "crates/cli/src/output.rs";
    let ways = ["println!", "print!(", "eprint!(", "dbg!(", "stdout()", "stderr()"];
    // A descriptor of rustix is asked about, never written to.
    let is_way = |line: &str| ways.iter().any(|way| line.contains(way));
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let is_asked = |line: &str| line.contains("rustix::stdio::");
    match is_ours {
        true => lines_where(text, |line| is_way(line) && !is_comment(line) && !is_asked(line)),
        false => Vec::new(),
    }
}

/// Roots of crates without `unsafe` that do not forbid it: the next one would come unseen.
fn unforbidden(files: &[PathBuf], texts: &dyn Fn(&Path) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    let manifests = files.iter().filter(|path| path.ends_with("Cargo.toml"));
    let folders: BTreeSet<&Path> = manifests.filter_map(|path| path.parent()).collect();
    for folder in folders.iter().copied() {
        // Each file belongs to the package that is nearest above it.
        let is_own = |path: &&PathBuf| {
            path.extension().is_some_and(|ending| ending == "rs")
                && path.ancestors().skip(1).find(|above| folders.contains(above)) == Some(folder)
        };
        let own: Vec<(&PathBuf, String)> =
            files.iter().filter(is_own).filter_map(|path| Some((path, texts(path)?))).collect();
        // Tests and programs that are built as others are not what is installed.
        let is_source =
            |path: &Path| path.starts_with(folder.join("src")) || path.parent() == Some(folder);
        if own.iter().any(|(path, text)| is_source(path) && has_unsafe(text)) {
            continue;
        }
        for (path, text) in own {
            let name = path.file_name().unwrap_or_default();
            let is_root = (name == "lib.rs" || name == "main.rs")
                && (path.parent() == Some(&folder.join("src")) || path.parent() == Some(folder))
                || path.parent() == Some(&folder.join("src/bin"));
            if is_root && !text.contains("#![forbid(unsafe_code)]") {
                complaints.push(format!("{}: no #![forbid(unsafe_code)]", path.display()));
            }
        }
    }
    complaints
}

/// Whether Rust code says `unsafe`.
fn has_unsafe(text: &str) -> bool {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    // What these macros make has an unsafe attribute; in texts that a program writes they do not count.
    let makes = ["fuzz_target!", "register_at_start!"];
    let uses = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe(", "unsafe trait"];
    code.into_iter().any(|line| {
        let called = line.trim_start().split('(').next().unwrap_or("");
        let is_path =
            called.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":_!".contains(&byte));
        is_path && makes.iter().any(|name| called.ends_with(name))
            || uses.iter().any(|word| line.contains(word))
    })
}

/// Pages below docs/ to which no chain of links leads from the README: readers would not find them.
fn unreachable_pages(files: &[PathBuf], text: &dyn Fn(&Path) -> Option<String>) -> Vec<String> {
    let mut reached = BTreeSet::from([PathBuf::from("README.md")]);
    let mut waiting: Vec<PathBuf> = reached.iter().cloned().collect();
    while let Some(page) = waiting.pop() {
        let Some(content) = text(&page) else { continue };
        let folder = page.parent().unwrap_or(Path::new(""));
        for target in content.lines().flat_map(link_targets) {
            let file = target.split('#').next().unwrap_or("");
            let Some(linked) = normalise(&folder.join(file)) else { continue };
            if linked.extension().is_some_and(|ending| ending == "md")
                && reached.insert(linked.clone())
            {
                waiting.push(linked);
            }
        }
    }
    let is_lost = |path: &&PathBuf| {
        path.starts_with("docs")
            && path.extension().is_some_and(|ending| ending == "md")
            && !reached.contains(*path)
    };
    let complaint =
        |path: &PathBuf| format!("{}: no page links to it: see docs/README.md", path.display());
    files.iter().filter(is_lost).map(complaint).collect()
}

/// Links of a Markdown file to files that are not there.
fn broken_links(path: &Path, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block || line.starts_with("    ") {
            continue;
        }
        for target in link_targets(line) {
            let file = target.split('#').next().unwrap_or("");
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            let inside = normalise(&folder.join(file));
            if !inside.is_some_and(|inside| workspace::root().join(inside).exists()) {
                broken.push(format!("{}:{}: link to {target}", path.display(), index + 1));
            }
        }
    }
    broken
}

fn link_targets(line: &str) -> Vec<&str> {
    line.match_indices("](")
        .filter_map(|(at, _)| line[at + 2..].split(')').next())
        .filter(|target| !target.contains(' '))
        .collect()
}

/// The path without `..`; none if it leaves the sources.
fn normalise(path: &Path) -> Option<PathBuf> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.iter().collect())
}

/// Files beside a test program of several files that are not modules of it: they would never run.
fn lost_tests(main: &Path, text: &str, files: &[PathBuf]) -> Vec<String> {
    let is_beside = |path: &&PathBuf| {
        path.parent() == main.parent() && path.extension().is_some_and(|is| is == "rs")
    };
    let is_lost = |path: &&PathBuf| {
        let module = path.file_stem().unwrap_or_default().to_string_lossy();
        path.as_path() != main && !text.lines().any(|line| line == format!("mod {module};"))
    };
    let complain =
        |path: &PathBuf| format!("{}: not a module of {}", path.display(), main.display());
    files.iter().filter(is_beside).filter(is_lost).map(complain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_finds_its_fault_and_nothing_in_a_clean_file() {
        let clean = "// SPDX-License-Identifier: Apache-2.0 OR MIT\n//! A crate.\n";
        for rule in &RULES {
            assert_eq!((rule.check)("crates/a/src/lib.rs", clean), [0; 0], "{}", rule.holds);
        }
        let name = "crates/a/src/lib.rs";
        assert_eq!(licence(name, "fn main() {}\n"), [1]);
        assert_eq!(unfinished(name, concat!("a\n// TO", "DO\n")), [2]);
        assert_eq!(trailing_blanks(name, "a \nb\n"), [1]);
        assert_eq!(characters(name, "a\tb\nc"), [1, 2]);
        assert_eq!(long_lines(name, &format!("{}\n", "x".repeat(111))), [1]);
        assert_eq!(machine_paths(name, concat!("in /wo", "rk/main\n")), [1]);
        assert_eq!(machine_paths(name, concat!("some/wo", "rk/main\n")), [0; 0]);
        assert_eq!(crate_docs(name, "fn f() {}\n"), [1]);
        assert_eq!(file_names("crates/a/src/utils.rs", ""), [1]);
        let printed = "// println!(x)\nprintln!(x);\nrustix::stdio::stderr();\nio::stderr()\n";
        assert_eq!(prints("crates/cli/src/date.rs", printed), [2, 4]);
        assert_eq!(prints("crates/cli/src/output.rs", printed), [0; 0]);
    }

    #[test]
    fn a_crate_without_unsafe_code_forbids_it() {
        let names = ["Cargo.toml", "a/Cargo.toml", "a/src/lib.rs", "a/src/x.rs", "a/src/bin/p.rs"];
        let files: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
        let forbids = "#![forbid(unsafe_code)]\n";
        let complaints = |lib: &str, x: &str| {
            unforbidden(&files, &|path: &Path| match path.to_str()? {
                "a/src/lib.rs" => Some(lib.to_owned()),
                "a/src/x.rs" => Some(x.to_owned()),
                _ => Some(forbids.to_owned()),
            })
        };
        assert_eq!(complaints("", ""), ["a/src/lib.rs: no #![forbid(unsafe_code)]"]);
        assert_eq!(complaints(forbids, "// unsafe { }"), [""; 0]);
        assert_eq!(complaints("", "unsafe { f() }"), [""; 0]);
    }

    #[test]
    fn pages_without_a_link_are_found() {
        let files =
            ["README.md", "docs/a.md", "docs/guides/b.md", "docs/guides/c.md", "crates/x.md"];
        let files = files.map(PathBuf::from);
        let text = |path: &Path| match path.to_str()? {
            "README.md" => Some("[a](docs/a.md#part) [web](https://a.b/c.md)".to_owned()),
            "docs/a.md" => Some("[b](guides/b.md) [back](../README.md)".to_owned()),
            _ => None,
        };
        let lost = unreachable_pages(&files, &text);
        assert_eq!(lost, ["docs/guides/c.md: no page links to it: see docs/README.md"]);
    }

    #[test]
    fn links_are_followed_from_the_folder_of_the_page() {
        let page = Path::new("docs/start.md");
        assert!(broken_links(page, "see [it](../Cargo.toml#x) and [web](https://a.b)").is_empty());
        assert_eq!(broken_links(page, "see [it](no-such-page.md)").len(), 1);
        assert_eq!(broken_links(page, "see [it](../../outside)").len(), 1);
        assert!(broken_links(page, "```\n[it](no-such-page.md)\n```").is_empty());
    }

    #[test]
    fn a_test_that_no_program_has_is_found() {
        let files =
            ["a/tests/main.rs", "a/tests/one.rs", "a/tests/two.rs", "a/tests/x.c", "b/two.rs"];
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        let lost = |text| lost_tests(&files[0], text, &files);
        assert_eq!(lost("mod one;\nmod two;\n"), [""; 0]);
        assert_eq!(lost("mod one;\n"), ["a/tests/two.rs: not a module of a/tests/main.rs"]);
    }
}
