// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A part of a schema file that the formatter keeps together.

/// Lines are at most so long, where the tokens allow it.
const LINE_CHARS_MAX: usize = 100;

/// A token or a comment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub text: &'a str,
    pub is_comment: bool,
    pub line_ends_before: usize,
}

impl Piece<'_> {
    /// A comment without blanks at the ends of its lines; block comments whose
    /// lines begin with `*` are indented like their first line.
    pub fn comment_lines(&self, indent: usize) -> String {
        let mut lines = self.text.lines();
        let mut out = lines.next().unwrap_or("").trim_end().to_owned();
        let is_starred = self.text.lines().skip(1).all(|line| line.trim_start().starts_with('*'));
        for line in lines {
            out.push('\n');
            if is_starred {
                out.push_str(&" ".repeat(indent + 1));
                out.push_str(line.trim());
            } else {
                out.push_str(line.trim_end());
            }
        }
        out
    }

    fn needs_line_end(&self) -> bool {
        self.is_comment && (self.text.starts_with("//") || self.text.contains('\n'))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitKind {
    /// `subsystem NAME … {`
    Head,
    /// `event …` without its comma
    Event,
    /// `};`
    Close,
    /// Everything else at the top level, with its `;`
    Definition,
    /// Comments at the end of the file
    Remarks,
}

#[derive(Debug)]
pub(super) struct Unit<'a> {
    pub kind: UnitKind,
    /// Comments before it, each on lines of its own.
    pub leading: Vec<Piece<'a>>,
    /// Its tokens, and comments between them.
    pub pieces: Vec<Piece<'a>>,
    /// Comments after it on the same line.
    pub trailing: Vec<Piece<'a>>,
}

fn is_word(piece: &Piece<'_>, word: &str) -> bool {
    !piece.is_comment && piece.text.eq_ignore_ascii_case(word)
}

impl<'a> Unit<'a> {
    /// The next unit and the number of its pieces. `carried` holds comments from inside the last
    /// unit that must follow it.
    pub fn take(
        pieces: &[Piece<'a>],
        is_in_body: bool,
        carried: &mut Vec<Piece<'a>>,
    ) -> (Unit<'a>, usize) {
        let mut leading = std::mem::take(carried);
        let comments = pieces.iter().take_while(|piece| piece.is_comment).count();
        leading.extend_from_slice(&pieces[..comments]);
        let rest = &pieces[comments..];
        let Some(first) = rest.first() else {
            let unit =
                Unit { kind: UnitKind::Remarks, leading, pieces: Vec::new(), trailing: Vec::new() };
            return (unit, comments);
        };
        let kind = match first.text {
            "}" if is_in_body => UnitKind::Close,
            _ if is_in_body => UnitKind::Event,
            _ if is_word(first, "subsystem") => UnitKind::Head,
            _ => UnitKind::Definition,
        };
        let (length, has_comma) = match kind {
            UnitKind::Event => event_length(rest),
            UnitKind::Head => (length_to(rest, "{"), false),
            _ => (length_to(rest, ";"), false),
        };
        let mut own = rest[..length].to_vec();
        // The two words that may be written in any case.
        match (kind, own.first_mut()) {
            (UnitKind::Head, Some(word)) => word.text = "subsystem",
            (UnitKind::Event, Some(word)) => word.text = "event",
            _ => {}
        }
        let mut trailing = Vec::new();
        // Comments between the last token and the comma.
        let tokens = own.iter().rposition(|piece| !piece.is_comment).map_or(0, |last| last + 1);
        for comment in own.split_off(tokens) {
            let is_on_line = comment.line_ends_before == 0 && carried.is_empty();
            if is_on_line && is_free(&trailing) {
                trailing.push(comment);
            } else {
                carried.push(comment);
            }
        }
        let mut used = comments + length + usize::from(has_comma);
        while let Some(piece) = pieces.get(used) {
            let is_behind = piece.is_comment && piece.line_ends_before == 0 && carried.is_empty();
            if !is_behind || !is_free(&trailing) {
                break;
            }
            trailing.push(*piece);
            used += 1;
        }
        (Unit { kind, leading, pieces: own, trailing }, used)
    }

    /// The unit without indentation of its first line and without comments around it.
    pub fn print(&self, indent: usize) -> String {
        let end = if self.kind == UnitKind::Event { "," } else { "" };
        if self.pieces.iter().any(|piece| piece.is_comment) {
            return self.flow(indent) + end;
        }
        let line = join(&without_last_commas(&self.pieces)) + end;
        let is_long = indent + line.chars().count() > LINE_CHARS_MAX;
        let bracket = match self.kind {
            UnitKind::Event => "(",
            UnitKind::Definition => "{",
            _ => return line,
        };
        match self.broken(indent, bracket) {
            Some(broken) if is_long => broken + end,
            _ => line,
        }
    }

    /// With comments inside: tokens in a row, and a new line where a comment needs one.
    fn flow(&self, indent: usize) -> String {
        let mut out = String::new();
        let mut start = 0;
        for (i, piece) in self.pieces.iter().enumerate() {
            if !piece.is_comment {
                continue;
            }
            out.push_str(&join_behind(&self.pieces[..start], &self.pieces[start..i], &out));
            if !out.ends_with([' ', '\n']) && !out.is_empty() {
                out.push(' ');
            }
            out.push_str(&piece.comment_lines(indent + 8));
            if piece.needs_line_end() {
                out.push('\n');
                out.push_str(&" ".repeat(indent + 8));
            } else {
                out.push(' ');
            }
            start = i + 1;
        }
        out.push_str(&join_behind(&self.pieces[..start], &self.pieces[start..], &out));
        out
    }

    /// One line for each item between the first `bracket` and its end.
    fn broken(&self, indent: usize, bracket: &str) -> Option<String> {
        let open = self.pieces.iter().position(|piece| piece.text == bracket)?;
        let mut depth = 0_usize;
        let mut items: Vec<Vec<Piece<'a>>> = vec![Vec::new()];
        let mut close = None;
        for (i, piece) in self.pieces.iter().enumerate().skip(open + 1) {
            match piece.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" if depth > 0 => depth -= 1,
                ")" | "]" | "}" => {
                    close = Some(i);
                    break;
                }
                "," if depth == 0 => {
                    items.push(Vec::new());
                    continue;
                }
                _ => {}
            }
            items.last_mut()?.push(*piece);
        }
        let close = close?;
        items.retain(|item| !item.is_empty());
        if items.is_empty() {
            return None;
        }
        let mut out = join(&self.pieces[..=open]);
        for item in items {
            out.push('\n');
            out.push_str(&" ".repeat(indent + 4));
            out.push_str(&join(&without_last_commas(&item)));
            out.push(',');
        }
        out.push('\n');
        out.push_str(&" ".repeat(indent));
        out.push_str(&join(&self.pieces[close..]));
        Some(out)
    }
}

/// True if something can follow these comments on their line.
fn is_free(trailing: &[Piece<'_>]) -> bool {
    trailing.iter().all(|comment| !comment.needs_line_end())
}

/// Pieces up to and with the first `mark` outside of brackets.
fn length_to(pieces: &[Piece<'_>], mark: &str) -> usize {
    let mut depth = 0_usize;
    for (i, piece) in pieces.iter().enumerate() {
        if piece.is_comment {
            continue;
        }
        if depth == 0 && piece.text == mark {
            return i + 1;
        }
        match piece.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    pieces.len()
}

/// Pieces of an event, and whether a comma follows them. A comma ends an event if
/// the next token begins another one or ends the body.
fn event_length(pieces: &[Piece<'_>]) -> (usize, bool) {
    let mut depth = 0_usize;
    for (i, piece) in pieces.iter().enumerate() {
        if piece.is_comment {
            continue;
        }
        match piece.text {
            "(" | "[" | "{" => depth += 1,
            "}" if depth == 0 => return (i, false),
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                let next = pieces[i + 1..].iter().find(|piece| !piece.is_comment);
                if next.is_none_or(|next| next.text == "}" || is_word(next, "event")) {
                    return (i, true);
                }
            }
            _ => {}
        }
    }
    (pieces.len(), false)
}

/// A comma before a closing bracket is only written at the end of a line.
fn without_last_commas<'a>(pieces: &[Piece<'a>]) -> Vec<Piece<'a>> {
    let is_last = |i: usize| {
        pieces[i].text == ","
            && pieces.get(i + 1).is_some_and(|next| matches!(next.text, ")" | "}"))
    };
    (0..pieces.len()).filter(|i| !is_last(*i)).map(|i| pieces[i]).collect()
}

fn join(pieces: &[Piece<'_>]) -> String {
    join_behind(&[], pieces, "")
}

/// `pieces` with blanks between them where they belong; `before` are the pieces in
/// front, `out` what was written of them.
fn join_behind(before: &[Piece<'_>], pieces: &[Piece<'_>], out: &str) -> String {
    let tokens: Vec<&str> =
        before.iter().chain(pieces).filter(|piece| !piece.is_comment).map(|p| p.text).collect();
    let first = tokens.len() - pieces.iter().filter(|piece| !piece.is_comment).count();
    let mut text = String::new();
    for i in first..tokens.len() {
        let is_fresh = text.is_empty() && (out.is_empty() || out.ends_with([' ', '\n']));
        if !is_fresh && needs_blank(&tokens, i) {
            text.push(' ');
        }
        text.push_str(tokens[i]);
    }
    text
}

fn needs_blank(tokens: &[&str], i: usize) -> bool {
    let Some(previous) = i.checked_sub(1).map(|at| tokens[at]) else { return false };
    if matches!(previous, "(" | "[" | "@" | "." | "-") {
        return false;
    }
    match tokens[i] {
        "," | ";" | ")" | "]" | "." => false,
        // The container of an enum is separated by blanks, the type of a field is not.
        ":" => {
            let is_definition = tokens[0] == "enum" && i == 2;
            let is_inline = previous == "enum"
                && i.checked_sub(2).is_some_and(|at| matches!(tokens[at], ":" | "["));
            is_definition || is_inline
        }
        _ => true,
    }
}
