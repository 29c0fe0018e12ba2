// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Probes on uninstrumented programs: functions by their symbol names, and
//! points marked by the program's author (USDT). Converts a request and the bytes of the program
//! to definitions for the kernel's `uprobe_events`; nothing here makes system calls.
//!
//! ```text
//! elf        offsets of functions in the file, and the marked points
//! arguments  how the kernel fetches the arguments of a point
//! ```
//!
//! Sources: Documentation/trace/uprobetracer.rst of Linux.

mod arguments;
mod elf;

use std::fmt;

use super::choice::distance;
use super::layout::KernelFormat;
pub use elf::{Arch, Function, Point, Program};

/// Maximum number of sites of one probe; a point that was inlined has one for each.
const SITES_MAX: usize = 256;
/// Maximum number of suggestions for an unknown name.
const NEAR_MAX: usize = 3;

/// Which events of a function to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moments {
    /// Entry and return: a span.
    Span,
    /// Entry only.
    Entry,
    /// Return only.
    Return,
}

/// The probed item of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A function.
    Function(String, Moments),
    /// A marked point: provider and name.
    Point(String, String),
}

/// A requested probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// As written.
    pub word: String,
    /// Path or name of a program or library.
    pub program: String,
    /// The probed item.
    pub target: Target,
}

/// A probe that cannot be defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeError {
    /// What is wrong.
    pub what: String,
    /// The request as written, or the file.
    pub place: String,
    /// What to do.
    pub advice: String,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.what, self.place, self.advice)
    }
}

impl std::error::Error for ProbeError {}

/// An event to be defined in the kernel, and its form in a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Addresses with fetch arguments: the part after the name in `uprobe_events`.
    pub places: Vec<String>,
    /// `p`, or `r` for a return.
    pub kind: char,
    /// Name in the schema.
    pub event: String,
    /// ` begin NAME` or ` end NAME`, or empty.
    pub clause: String,
}

impl Wish {
    /// Parses `PROGRAM:FUNCTION`, optionally followed by `%entry` or `%return`, or `PROGRAM:PROVIDER:NAME`.
    ///
    /// Errors: any other form.
    pub fn parse(word: &str) -> Result<Wish, ProbeError> {
        let error = |what: &str| ProbeError {
            what: what.to_owned(),
            place: word.to_owned(),
            advice: "write PROGRAM:FUNCTION, PROGRAM:FUNCTION%entry, PROGRAM:FUNCTION%return or \
                     PROGRAM:PROVIDER:NAME"
                .to_owned(),
        };
        let (rest, moments) = match word.rsplit_once('%') {
            None => (word, Moments::Span),
            Some((rest, "entry")) => (rest, Moments::Entry),
            Some((rest, "return")) => (rest, Moments::Return),
            Some(_) => return Err(error("a probe has no such moment")),
        };
        let parts: Vec<&str> = rest.split(':').collect();
        let is_good = parts.iter().all(|part| !part.is_empty());
        let is_plain = !rest.contains(|c: char| c.is_whitespace() || c.is_control());
        let target = match parts[..] {
            [_, function] if is_good && is_plain => Target::Function(function.to_owned(), moments),
            [_, provider, name] if is_good && is_plain && moments == Moments::Span => {
                Target::Point(provider.to_owned(), name.to_owned())
            }
            _ => return Err(error("this is no probe")),
        };
        Ok(Wish { word: word.to_owned(), program: parts[0].to_owned(), target })
    }

    /// Finds the probed item in a program whose file is `path`.
    ///
    /// Errors: the program has no such function or point; the error lists similar names.
    pub fn find(&self, program: &Program, path: &str) -> Result<Vec<Definition>, ProbeError> {
        match &self.target {
            Target::Function(name, moments) => self.function(program, path, name, *moments),
            Target::Point(provider, name) => self.point(program, path, provider, name),
        }
    }

    fn function(
        &self,
        program: &Program,
        path: &str,
        name: &str,
        moments: Moments,
    ) -> Result<Vec<Definition>, ProbeError> {
        let Some(found) = program.functions.iter().find(|function| function.name == name) else {
            let names = program.functions.iter().map(|function| function.name.as_str());
            return Err(self.missing("the program has no function of that name", name, names));
        };
        let Some(offset) = found.offset else {
            return Err(ProbeError {
                what: "the program chooses this function when it starts".to_owned(),
                place: self.word.clone(),
                advice: format!("probe what it chooses: a function with {name} in its name"),
            });
        };
        let place = format!("{path}:{offset:#x}");
        let span = moments == Moments::Span;
        let mut all = Vec::new();
        if moments != Moments::Return {
            let clause = if span { " begin " } else { "" };
            all.push((place.clone(), 'p', name.to_owned(), clause));
        }
        if moments != Moments::Entry {
            let clause = if span { " end " } else { "" };
            all.push((format!("{place} ret=$retval:x64"), 'r', format!("{name}_return"), clause));
        }
        let define = |(place, kind, event, clause): (String, char, String, &str)| Definition {
            places: vec![place],
            kind,
            event,
            clause: clause.to_owned(),
        };
        Ok(all.into_iter().map(define).collect())
    }

    fn point(
        &self,
        program: &Program,
        path: &str,
        provider: &str,
        name: &str,
    ) -> Result<Vec<Definition>, ProbeError> {
        let is_it = |point: &&Point| point.provider == provider && point.name == name;
        let places: Vec<String> = program
            .points
            .iter()
            .filter(is_it)
            .take(SITES_MAX)
            .map(|point| {
                let semaphore = point.semaphore.map(|at| format!("({at:#x})")).unwrap_or_default();
                let fetch = arguments::fetch(&point.arguments, program.arch);
                format!("{path}:{:#x}{semaphore}{fetch}", point.offset)
            })
            .collect();
        if places.is_empty() {
            let full = |point: &Point| format!("{}:{}", point.provider, point.name);
            let names: Vec<String> = program.points.iter().map(full).collect();
            let word = format!("{provider}:{name}");
            let names = names.iter().map(String::as_str);
            return Err(self.missing("the program has no point of that name", &word, names));
        }
        let event = name.to_owned();
        Ok(vec![Definition { places, kind: 'p', event, clause: String::new() }])
    }

    /// Error for an unknown name, with similar ones.
    fn missing<'a>(
        &self,
        what: &str,
        name: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> ProbeError {
        let mut near: Vec<(usize, &str)> = names
            .map(|known| {
                let apart = if known.contains(name) { 1 } else { distance(name, known) };
                (apart, known)
            })
            .filter(|(apart, known)| *apart <= (known.len() / 3).max(2))
            .collect();
        near.sort_unstable();
        near.dedup();
        let near: Vec<&str> = near.into_iter().take(NEAR_MAX).map(|(_, known)| known).collect();
        let advice = match (&near[..], &self.target) {
            ([], Target::Function(..)) => format!(
                "`nm -D {0}` and `nm {0}` list them; a program without symbols has only those that \
                 others use",
                self.program
            ),
            ([], Target::Point(..)) => format!("`readelf -n {}` lists them", self.program),
            (near, _) => format!("did you mean {}?", near.join(", ")),
        };
        ProbeError { what: what.to_owned(), place: self.word.clone(), advice }
    }
}

impl Definition {
    /// The kernel's description of the event with the names of the schema; `system` is
    /// the program's name.
    pub fn format(&self, system: &str, text: &str) -> KernelFormat {
        let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
        KernelFormat {
            system: system.to_owned(),
            text: format!("name: {}\n{rest}", self.event),
            clause: if self.clause.is_empty() {
                String::new()
            } else {
                let span = self.event.strip_suffix("_return").filter(|_| self.kind == 'r');
                let span = span.unwrap_or(&self.event);
                format!("{}{}", self.clause, super::layout::identifier(span))
            },
        }
    }
}

/// Name of the subsystem for a program's events: `libc` for `/lib/libc.so.6`.
pub fn system_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split_once(".so").map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        let function = |name: &str, offset| Function { name: name.to_owned(), offset };
        Program {
            arch: Arch::X86_64,
            functions: vec![function("processCommand", Some(0x1234)), function("memcpy", None)],
            points: vec![Point {
                provider: "app".to_owned(),
                name: "done".to_owned(),
                offset: 0x99,
                semaphore: Some(0x2000),
                arguments: "-4@%edi 8@$5".to_owned(),
            }],
        }
    }

    #[test]
    fn words_are_read_and_nonsense_is_refused() {
        let wish = Wish::parse("/usr/bin/x:f").unwrap();
        assert_eq!(wish.target, Target::Function("f".to_owned(), Moments::Span));
        assert_eq!(Wish::parse("x:f%entry").unwrap().program, "x");
        let point = Target::Point("a".to_owned(), "b".to_owned());
        assert_eq!(Wish::parse("x:a:b").unwrap().target, point);
        for bad in ["x", "", ":f", "x:", "x:f%begin", "x:a:b%return", "x y:f", "x:f\ng", "a:b:c:d"]
        {
            assert!(Wish::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn functions_become_spans_and_points_have_their_arguments() {
        let find = |word: &str| Wish::parse(word).unwrap().find(&program(), "/p");
        let all = find("p:processCommand").unwrap();
        assert_eq!(all[0].places, ["/p:0x1234"]);
        assert_eq!(all[1].places, ["/p:0x1234 ret=$retval:x64"]);
        assert_eq!((all[0].kind, all[1].kind), ('p', 'r'));
        let format = all[1].format("p", "name: r1\nID: 7\n");
        assert_eq!(format.text, "name: processCommand_return\nID: 7\n");
        assert_eq!(format.clause, " end processCommand");
        assert_eq!(find("p:processCommand%return").unwrap()[0].clause, "");
        let point = find("p:app:done").unwrap();
        assert_eq!(point[0].places, ["/p:0x99(0x2000) arg1=%di:s32 arg2=\\5:u64"]);
    }

    #[test]
    fn mistakes_are_told_with_near_names() {
        let find = |word: &str| Wish::parse(word).unwrap().find(&program(), "/p").unwrap_err();
        assert!(find("p:procesCommand").advice.contains("processCommand"));
        assert!(find("p:app:dome").advice.contains("app:done"));
        assert!(find("p:elephants").advice.contains("nm -D p"));
        assert!(find("p:memcpy").what.contains("when it starts"));
    }
}
