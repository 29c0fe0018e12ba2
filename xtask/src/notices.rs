// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `docs/third-party.md`: whose work is in what is installed, and the texts that its licences ask to
//! be passed on.
//!
//! What is compiled into `lat`, `lat-helper`, `lat-sql` and the Python package, and what is bundled into
//! the page; not what only builds or tests them. A part whose packages are not fetched here is kept as it
//! is, if it was made of the same lock file.

use crate::licences;
use crate::supply::{self, Rules};
use crate::workspace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where it is.
pub const PATH: &str = "docs/third-party.md";

/// The licence of most, whose one text is for all.
const APACHE: &str = "Apache-2.0";

const HEAD: &str = "\
# Third-party software

<!-- made by cargo xtask gen; not typed -->

What others wrote that is in the installed programs and in the page, with the licence under which it is
used here, and below the texts that these licences ask to be passed on. The standard library of Rust is in all
of them (Apache-2.0 OR MIT, [rust-lang.org](https://www.rust-lang.org/policies/licenses)). Our own licences
are in [LICENSE-APACHE](../LICENSE-APACHE) and [LICENSE-MIT](../LICENSE-MIT).
";

/// A program, and the lock file that says what is in it.
struct Part {
    title: &'static str,
    lock: &'static str,
    /// Packages of cargo from which everything is reached; none for the page.
    roots: &'static [&'static str],
    fetch: &'static str,
}

const PARTS: [Part; 4] = [
    Part {
        title: "`lat` and `lat-helper`",
        lock: "Cargo.lock",
        roots: &["lateralis-cli", "lateralis-helper"],
        fetch: "cargo fetch",
    },
    Part {
        title: "The page of `lat view`",
        lock: "aquarium/package-lock.json",
        roots: &[],
        fetch: "sh aquarium/packages",
    },
    Part {
        title: "`lat-sql`",
        lock: "crates/sql/Cargo.lock",
        roots: &["lateralis-sql"],
        fetch: "cargo fetch --manifest-path crates/sql/Cargo.toml",
    },
    Part {
        title: "The Python package",
        lock: "crates/python/Cargo.lock",
        roots: &["lateralis-python"],
        fetch: "cargo fetch --manifest-path crates/python/Cargo.toml",
    },
];

struct Package {
    name: String,
    version: String,
    offered: String,
    taken: Vec<String>,
    texts: Vec<String>,
}

/// The whole file. Errors: a sentence that says what to do.
pub fn text() -> Result<String, String> {
    let rules = Rules::read()?;
    let current = fs::read_to_string(workspace::root().join(PATH)).unwrap_or_default();
    let mut text = HEAD.to_string();
    for part in &PARTS {
        text.push('\n');
        let lock = fs::read_to_string(workspace::root().join(part.lock))
            .map_err(|why| format!("{}: {why}", part.lock))?;
        let mark = format!("<!-- of {} {:016x} -->", part.lock, fnv1a(fetched(&lock).as_bytes()));
        let packages = match part.roots {
            [] => of_npm(part.lock, &rules),
            roots => of_cargo(part.lock, roots, &rules),
        };
        text.push_str(&match (packages, kept(&current, &mark)) {
            (Ok(packages), _) => format!("{mark}\n{}", written(part.title, &packages)),
            (Err(_), Some(kept)) => kept.to_string(),
            (Err(why), None) => {
                return Err(format!("{PATH}: {}: {why}: {}", part.lock, part.fetch));
            }
        });
    }
    let apache = fs::read_to_string(workspace::root().join("LICENSE-APACHE"))
        .map_err(|why| format!("LICENSE-APACHE: {why}"))?;
    text.push_str(&format!("\n## {APACHE}\n\n```text\n{}```\n", clean(&apache)));
    Ok(text)
}

/// The part of a file below a mark, to the next one or to what follows all of them.
fn kept<'a>(current: &'a str, mark: &str) -> Option<&'a str> {
    let begin = current.find(mark)?;
    let behind = begin + mark.len();
    let ends = ["\n<!-- of ", &format!("\n## {APACHE}\n")].map(|end| current[behind..].find(end));
    let length = ends.into_iter().flatten().min()?;
    Some(&current[begin..behind + length])
}

/// What a lock file says of packages that are fetched: our own come and go without their texts.
fn fetched(lock: &str) -> String {
    match lock.split_once("[[package]]") {
        None => lock.to_string(),
        Some((_, packages)) => {
            packages.split("[[package]]").filter(|one| one.contains("\nchecksum = ")).collect()
        }
    }
}

/// Of the hash nothing is asked but that it changes with the file (FNV-1a, 64 bits).
fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn written(title: &str, packages: &[Package]) -> String {
    let mut text = format!("## {title}\n\n| package | licence | used under |\n|---|---|---|\n");
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let Package { name, version, offered, taken, texts } = package;
        text.push_str(&format!("| {name} {version} | {offered} | {} |\n", taken.join(", ")));
        for one in texts {
            users.entry(one).or_default().push(name);
        }
    }
    let mut texts: Vec<(Vec<&str>, &str)> =
        users.into_iter().map(|(text, names)| (names, text)).collect();
    texts.sort();
    for (mut names, one) in texts {
        names.dedup();
        text.push_str(&format!("\n### {}\n\n```text\n{one}```\n", names.join(", ")));
    }
    text
}

/// Lines without blanks at their ends and without what would end a block; one line feed at the end.
fn clean(text: &str) -> String {
    let lines = text.lines().map(|line| line.replace('\t', "    ").replace("```", "'''"));
    let kept: String =
        lines.map(|line| format!("{}\n", line.trim_end().trim_start_matches('\u{c}'))).collect();
    format!("{}\n", kept.trim_matches('\n'))
}

/// What is compiled into a program: what it uses, and what that uses; no build scripts, no macros, no
/// tests.
fn of_cargo(lock: &str, roots: &[&str], rules: &Rules) -> Result<Vec<Package>, String> {
    let metadata = supply::metadata(&Path::new(lock).with_file_name("Cargo.toml"))?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("").to_string();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (text(&package["id"]), package))
        .collect();
    let nodes: BTreeMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|node| (text(&node["id"]), node))
        .collect();
    let is_macro = |id: &str| {
        let targets = packages.get(id).map(|package| list(&package["targets"]));
        targets.unwrap_or_default().iter().any(|target| target["kind"][0] == "proc-macro")
    };
    let mut waiting: Vec<String> = packages
        .iter()
        .filter(|(_, package)| roots.contains(&package["name"].as_str().unwrap_or("")))
        .map(|(id, _)| id.clone())
        .collect();
    let mut reached = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if is_macro(&id) || !reached.insert(id.clone()) {
            continue;
        }
        let uses = nodes.get(&id).map(|node| list(&node["deps"])).unwrap_or_default();
        let linked =
            |used: &&Value| list(&used["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        waiting.extend(uses.iter().filter(linked).map(|used| text(&used["pkg"])));
    }
    let mut found = Vec::new();
    for package in reached.iter().filter_map(|id| packages.get(id)) {
        if package["source"].is_null() {
            continue;
        }
        let (name, offered) = (text(&package["name"]), text(&package["license"]));
        let taken = licences::chosen(&offered, &rules.licences)
            .ok_or_else(|| format!("{name}: licence {offered:?} is not in deny.toml"))?;
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let owners = list(&package["authors"]).iter().map(&text).collect::<Vec<_>>().join(", ");
        let texts = texts_of(manifest.parent().unwrap_or(Path::new("")), &taken, &owners)?;
        found.push(Package { name, version: text(&package["version"]), offered, taken, texts });
    }
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(found)
}

/// What is bundled into the page.
fn of_npm(lock: &str, rules: &Rules) -> Result<Vec<Package>, String> {
    let folder = workspace::root().join(lock).with_file_name("");
    let text = fs::read_to_string(workspace::root().join(lock)).map_err(|why| why.to_string())?;
    let lock: Value = serde_json::from_str(&text).map_err(|why| why.to_string())?;
    let mut found = Vec::new();
    for (path, package) in lock["packages"].as_object().into_iter().flatten() {
        if path.is_empty() || package["dev"] == true {
            continue;
        }
        let text = |key: &str| package[key].as_str().unwrap_or("").to_string();
        let (version, offered) = (text("version"), text("license"));
        let name = path.rsplit("node_modules/").next().unwrap_or(path).to_string();
        let taken = licences::chosen(&offered, &rules.licences)
            .ok_or_else(|| format!("{name}: licence {offered:?} is not in deny.toml"))?;
        let manifest = fs::read_to_string(folder.join(path).join("package.json"))
            .map_err(|_| "its packages are not fetched".to_string())?;
        let manifest: Value = serde_json::from_str(&manifest).map_err(|why| why.to_string())?;
        if manifest["version"] != version.as_str() {
            return Err(format!("{name}: another version is fetched"));
        }
        let author = &manifest["author"];
        let owner = author["name"].as_str().or(author.as_str()).unwrap_or("");
        let texts = texts_of(&folder.join(path), &taken, owner)?;
        found.push(Package { name, version, offered, taken, texts });
    }
    Ok(found)
}

/// The texts of a package that go with it under the licences that were taken.
fn texts_of(folder: &Path, taken: &[String], owners: &str) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    licence_files(folder, 0, &mut files).map_err(|why| format!("{}: {why}", folder.display()))?;
    files.sort();
    let only_apache = taken == [APACHE];
    let mut texts = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_own = path.parent() == Some(folder);
        let is_notice = name.starts_with("NOTICE") || name.starts_with("COPYRIGHT");
        // Of what a package offers as an alternative, only what was taken; what lies in its folders
        // is of others whom it carries, and always goes along.
        if is_own && !is_notice && (only_apache || is_of_another(&name, taken)) {
            continue;
        }
        let text = clean(&String::from_utf8_lossy(&fs::read(path).map_err(|why| why.to_string())?));
        // Where one of those whom it carries offers the GPL instead, its other text is there, too.
        let is_gpl = text.contains("GNU GENERAL PUBLIC LICENSE");
        let is_apache = text.contains("Apache License") && text.contains("TERMS AND CONDITIONS");
        if !is_gpl && !is_apache && !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.is_empty() && !only_apache {
        let owners = if owners.is_empty() { copyright_line(folder)? } else { owners.to_owned() };
        texts.push(format!("The package has no text of its licence. Its authors: {owners}\n"));
    }
    Ok(texts)
}

/// Who has the rights to a package that names no authors, as the head of its first source says.
fn copyright_line(folder: &Path) -> Result<String, String> {
    let source = fs::read_to_string(folder.join("src/lib.rs")).map_err(|why| why.to_string())?;
    let line = source.lines().find(|line| line.contains("Copyright"));
    let line = line.ok_or_else(|| format!("{}: nobody is named in it", folder.display()))?;
    Ok(line.trim_start_matches(['/', ' ']).trim().to_owned())
}

/// Whether the name of a file is that of a licence that was not taken.
fn is_of_another(name: &str, taken: &[String]) -> bool {
    let marks = [("APACHE", APACHE), ("MIT", "MIT"), ("UNLICENSE", "Unlicense"), ("ZLIB", "Zlib")];
    marks
        .iter()
        .any(|(mark, licence)| name.contains(mark) && !taken.iter().any(|one| one == licence))
}

/// Folders of a package are few and not deep; those that only its tests need do not go along.
fn licence_files(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    const DEPTH_MAX: u32 = 4;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let is_aside = ["TESTS", "EXAMPLES", "BENCHES", "NODE_MODULES", "WASI-LIBC"];
            if depth < DEPTH_MAX && !is_aside.contains(&name.as_str()) {
                licence_files(&entry.path(), depth + 1, found)?;
            }
            continue;
        }
        let marks = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
        let is_code = [".RS", ".C", ".H", ".JS", ".TS"].iter().any(|ending| name.ends_with(ending));
        if kind.is_file() && !is_code && marks.iter().any(|mark| name.starts_with(mark)) {
            found.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_kept_up_to_the_next() {
        let text =
            "# head\n\n<!-- of a 1 -->\n## A\nx\n\n<!-- of b 2 -->\n## B\n\n## Apache-2.0\ny\n";
        assert_eq!(kept(text, "<!-- of a 1 -->"), Some("<!-- of a 1 -->\n## A\nx\n"));
        assert_eq!(kept(text, "<!-- of b 2 -->"), Some("<!-- of b 2 -->\n## B\n"));
        assert_eq!(kept(text, "<!-- of b 3 -->"), None);
    }

    #[test]
    fn of_a_lock_file_only_what_is_fetched_counts() {
        let package = |name: &str, more: &str| format!("[[package]]\nname = \"{name}\"\n{more}\n");
        let a = package("a", "checksum = \"1\"");
        assert_eq!(
            fetched(&format!("version = 4\n{a}")),
            fetched(&format!("{}{a}", package("ours", "")))
        );
        assert_ne!(fetched(&a), fetched(&package("a", "checksum = \"2\"")));
        assert_eq!(fetched("{}"), "{}");
    }

    #[test]
    fn texts_are_shown_once_with_all_who_have_them() {
        let package = |name: &str, text: &str| Package {
            name: name.into(),
            version: "1.0.0".into(),
            offered: "MIT".into(),
            taken: vec!["MIT".into()],
            texts: vec![clean(text)],
        };
        let text =
            written("T", &[package("a", "same \n"), package("b", "\tother"), package("c", "same")]);
        assert!(text.contains("| a 1.0.0 | MIT | MIT |\n"), "{text}");
        assert!(text.contains("\n### a, c\n\n```text\nsame\n```\n"), "{text}");
        assert!(text.contains("\n### b\n\n```text\n    other\n```\n"), "{text}");
    }

    #[test]
    fn of_alternatives_only_the_text_of_the_taken_one_goes_along() {
        let taken = ["MIT".to_string()];
        assert!(is_of_another("LICENSE-APACHE", &taken));
        assert!(is_of_another("UNLICENSE", &taken));
        assert!(!is_of_another("LICENSE-MIT", &taken));
        assert!(!is_of_another("LICENSE", &taken));
    }
}
