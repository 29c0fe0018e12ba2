// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Diagnostics: what is wrong with a schema file, where, and what to do.
//!
//! Every kind of diagnostic has a stable code (`P0001` …), a section in
//! `docs/reference/pleco-diagnostics.md`, and a test in the suite.

use crate::json::Json;
use crate::source::{Place, Source, Span};
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is generated.
    Error,
    /// The schema is usable; something in it is probably not meant so.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

macro_rules! codes {
    ($($name:ident = $number:literal $severity:ident $title:literal,)*) => {
        /// The kind of a diagnostic. Codes are stable: a code is never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $title] $name = $number,)*
        }

        impl Code {
            /// All codes, in order of their numbers.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// What is wrong, in a few words and without the particular case.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// Every code has one severity.
            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    NotUtf8 = 1 Error "the file is not UTF-8 text",
    FileTooLarge = 2 Error "the file is too large",
    UnexpectedCharacter = 3 Error "a character that has no meaning here",
    StringNotClosed = 4 Error "a string is not closed",
    CommentNotClosed = 5 Error "a comment is not closed",
    BadEscape = 6 Error "an unknown escape in a string",
    BadNumber = 7 Error "a malformed number",
    Syntax = 8 Error "something else was expected",
    MissingSemicolon = 9 Error "a missing semicolon",
    TrailingText = 10 Error "text behind the last definition",
    MissingComma = 11 Error "a missing comma",
    ReservedWord = 12 Error "a reserved word used as a name",
    NameTooLong = 13 Error "a name that is too long",
    BracketNotClosed = 14 Error "a bracket is not closed",
    NoSubsystem = 15 Error "a schema without a subsystem",
    NoEvent = 16 Error "a subsystem without an event",
    TooManyErrors = 17 Error "too many errors",
    TooManyWarnings = 18 Warning "too many warnings",
    UnknownType = 20 Error "an unknown type",
    UnknownAnnotation = 21 Error "an unknown annotation",
    AnnotationMisfit = 22 Error "an annotation that does not fit the type",
    AnnotationConflict = 23 Error "annotations that contradict each other",
    UnknownClause = 24 Error "an unknown clause",
    RepeatedClause = 25 Error "a clause that is said twice",
    ElementType = 26 Error "a type that cannot be an element",
    ArrayLength = 27 Error "an array length out of range",
    LargeRecord = 28 Warning "a record larger than the smallest packet",
    DuplicateSubsystem = 30 Error "two subsystems of one name",
    DuplicateEvent = 31 Error "two events of one name",
    DuplicateField = 32 Error "two fields of one name",
    DuplicateEnum = 33 Error "two enums of one name",
    DuplicateLabel = 34 Error "two labels of one name in an enum",
    DuplicateValue = 35 Error "two labels with one value in an enum",
    DuplicateSubsystemId = 36 Error "two subsystems with one id",
    DuplicateEventId = 37 Error "two events with one id",
    IdOutOfRange = 38 Error "an id above 65535",
    TooManyFields = 39 Error "more than 16 fields",
    TooManyEvents = 40 Error "more events than an area can number",
    NameCollision = 41 Error "names that become the same in generated code",
    SchemaTwice = 42 Error "a second or misplaced schema name",
    EmptyEnum = 43 Error "an enum without labels",
    EnumContainer = 44 Error "an enum container that is no integer type",
    EnumValue = 45 Error "an enum value that does not fit",
    UnknownField = 50 Error "a clause names an unknown field",
    ClauseField = 51 Error "a field whose type does not suit the clause",
    SpanKeys = 52 Error "begin and end with different keys",
    BeginWithoutEnd = 53 Warning "a span that never ends",
    EndWithoutBegin = 54 Warning "a span that never begins",
    SendWithoutReceive = 55 Warning "messages that are never received",
    ReceiveWithoutSend = 56 Warning "messages that are never sent",
    ChannelKeys = 57 Error "send and recv with different keys",
    UnknownSpan = 58 Error "a budget for an unknown span",
    DuplicateBudget = 59 Error "a budget that is given twice",
    BudgetNumber = 60 Error "a budget that cannot be represented",
    FormatType = 61 Error "a conversion that does not suit its field",
    FormatMissingField = 62 Error "more conversions than fields",
    FormatUnusedField = 63 Warning "a field that the format does not print",
    FormatConversion = 64 Error "an unusable conversion in a format",
    FormatWithoutText = 65 Error "a format without a description",
    UnusedEnum = 66 Warning "an enum that is not used",
}

impl Code {
    /// The number of the code: 12 for `P0012`.
    pub fn number(self) -> u16 {
        self as u16
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{:04}", self.number())
    }
}

/// One finding, complete: it can be shown without the source at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of finding.
    pub code: Code,
    /// The particular case, one sentence without a full stop.
    pub message: String,
    /// What was expected at the marked place; may be empty.
    pub label: String,
    /// Advice, or the position of the other half of the problem.
    pub notes: Vec<Note>,
    /// File as it was named to [`compile`](crate::compile).
    pub file: String,
    /// Marked range in the source text.
    pub span: Span,
    /// Line and column of the mark.
    pub place: Place,
    /// The first marked line, cut to [`LINE_CHARS_MAX`] characters, and the mark in it.
    snippet: Snippet,
}

/// A remark under a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// What the author could do.
    Help(String),
    /// A further fact, for instance the place of the first of two definitions.
    Note(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Snippet {
    text: String,
    mark_start: usize,
    mark_chars: usize,
}

/// Longest piece of a source line that is shown.
pub const LINE_CHARS_MAX: usize = 120;

impl Diagnostic {
    /// Error or warning.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    pub(crate) fn new(
        file: &str,
        source: &Source<'_>,
        code: Code,
        span: Span,
        message: String,
    ) -> Diagnostic {
        let place = source.place(span.start);
        Diagnostic {
            code,
            message: shorten(message),
            label: String::new(),
            notes: Vec::new(),
            file: file.to_owned(),
            span,
            place,
            snippet: Snippet::new(source, span, place),
        }
    }

    /// The diagnostic as text of several lines, ending in a line end. No colour.
    pub fn render(&self) -> String {
        let line = self.place.line.to_string();
        let gutter = " ".repeat(line.len());
        let mark = "^".repeat(self.snippet.mark_chars.max(1));
        let start = " ".repeat(self.snippet.mark_start);
        let mut out = format!(
            "{}[{}]: {}\n{gutter}--> {}:{}:{}\n{gutter} |\n{line} |{}{}\n{gutter} | {start}{mark}",
            self.severity(),
            self.code,
            printable(&self.message),
            printable(&self.file),
            self.place.line,
            self.place.column,
            if self.snippet.text.is_empty() { "" } else { " " },
            self.snippet.text,
        );
        if !self.label.is_empty() {
            out.push(' ');
            out.push_str(&printable(&self.label));
        }
        out.push('\n');
        for note in &self.notes {
            let (word, text) = match note {
                Note::Help(text) => ("help", text),
                Note::Note(text) => ("note", text),
            };
            out.push_str(&format!("{gutter} = {word}: {}\n", printable(text)));
        }
        out
    }

    pub(crate) fn to_json(&self) -> Json {
        let notes = |wanted_help: bool| {
            let texts = self.notes.iter().filter_map(|note| match note {
                Note::Help(text) if wanted_help => Some(Json::string(text)),
                Note::Note(text) if !wanted_help => Some(Json::string(text)),
                _ => None,
            });
            Json::Array(texts.collect())
        };
        Json::object([
            ("severity", Json::string(self.severity().to_string())),
            ("code", Json::string(self.code.to_string())),
            ("message", Json::string(&self.message)),
            ("label", Json::string(&self.label)),
            ("file", Json::string(&self.file)),
            ("line", Json::Integer(self.place.line.into())),
            ("column", Json::Integer(self.place.column.into())),
            ("start_bytes", Json::Integer(self.span.start.into())),
            ("end_bytes", Json::Integer(self.span.end.into())),
            ("help", notes(true)),
            ("notes", notes(false)),
        ])
    }
}

impl Snippet {
    fn new(source: &Source<'_>, span: Span, place: Place) -> Snippet {
        let column = (place.column as usize).saturating_sub(1);
        // A long line is shown from a little before the mark.
        let back_max = if column + 20 > LINE_CHARS_MAX { 20 } else { LINE_CHARS_MAX };
        let (text, mark_start) = source.excerpt(span.start, back_max, LINE_CHARS_MAX);
        let shown_chars = text.chars().count();
        let marked = source.slice(span).lines().next().unwrap_or("");
        let marked_chars = marked.chars().take(LINE_CHARS_MAX).count();
        let text: String = text.chars().map(visible).collect();
        Snippet {
            text: text.trim_end().to_owned(),
            mark_start,
            mark_chars: marked_chars.min(shown_chars.saturating_sub(mark_start)).max(1),
        }
    }
}

/// Names from the file appear in messages; this bounds the cost of a hostile one.
fn shorten(text: String) -> String {
    const CHARS_MAX: usize = 300;
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// What a terminal would act on, or show in another order: control characters, controls of the
/// writing direction, separators of lines.
pub(crate) fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{200b}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// One character for one, so that the mark stays under its text; nothing that a
/// terminal would act on.
fn visible(c: char) -> char {
    if c == '\t' {
        ' '
    } else if is_hostile(c) {
        char::REPLACEMENT_CHARACTER
    } else {
        c
    }
}

/// For a terminal, as one line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// Collects diagnostics; stops taking them at a limit, so that a hostile file
/// costs bounded memory.
pub(crate) struct Reporter<'a> {
    pub source: Source<'a>,
    file: String,
    found: Vec<Diagnostic>,
    error_count: usize,
    warning_count: usize,
}

/// Not more errors, and not more warnings, than this are collected; one more
/// says that there were more.
const COUNT_MAX: usize = 100;

impl<'a> Reporter<'a> {
    pub fn new(file: &str, text: &'a str) -> Reporter<'a> {
        Reporter {
            source: Source::new(text),
            file: file.to_owned(),
            found: Vec::new(),
            error_count: 0,
            warning_count: 0,
        }
    }

    /// Adds a finding; the returned draft takes label and notes.
    pub fn report(&mut self, code: Code, span: Span, message: impl Into<String>) -> Draft<'_> {
        let (count, last) = match code.severity() {
            Severity::Error => (&mut self.error_count, Code::TooManyErrors),
            Severity::Warning => (&mut self.warning_count, Code::TooManyWarnings),
        };
        *count += 1;
        if *count > COUNT_MAX + 1 {
            return Draft(None);
        }
        let (code, message) = if *count > COUNT_MAX {
            (last, format!("more than {COUNT_MAX} {}s; the rest is not shown", last.severity()))
        } else {
            (code, message.into())
        };
        let found = Diagnostic::new(&self.file, &self.source, code, span, message);
        self.found.push(found);
        Draft(self.found.last_mut().filter(|found| found.code != last))
    }

    /// `file:3:11`, for notes.
    pub fn at(&self, span: Span) -> String {
        let place = self.source.place(span.start);
        format!("{}:{}:{}", self.file, place.line, place.column)
    }

    /// True when looking for more errors is of no use.
    pub fn is_full(&self) -> bool {
        self.error_count > COUNT_MAX
    }

    pub fn has_errors(&self) -> bool {
        self.error_count > 0
    }

    /// All findings in the order of their places; those that say that there were
    /// more come last.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        let is_tail = |code: Code| matches!(code, Code::TooManyErrors | Code::TooManyWarnings);
        self.found.sort_by_key(|found| (is_tail(found.code), found.span.start, found.code));
        self.found
    }
}

/// A diagnostic that is being put together; empty when the limit was reached.
pub(crate) struct Draft<'a>(Option<&'a mut Diagnostic>);

impl Draft<'_> {
    pub fn label(self, text: impl Into<String>) -> Self {
        if let Draft(Some(found)) = self {
            found.label = shorten(text.into());
            return Draft(Some(found));
        }
        self
    }

    pub fn help(self, text: impl Into<String>) -> Self {
        if let Draft(Some(found)) = self {
            found.notes.push(Note::Help(shorten(text.into())));
            return Draft(Some(found));
        }
        self
    }

    pub fn note(self, text: impl Into<String>) -> Self {
        if let Draft(Some(found)) = self {
            found.notes.push(Note::Note(shorten(text.into())));
            return Draft(Some(found));
        }
        self
    }

    /// "did you mean …?", if there is something near.
    pub fn did_you_mean(self, suggestion: Option<&str>) -> Self {
        match suggestion {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }
}
