// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Completion of words, and detection of complete statements.

use crate::fault::quoted;

/// Commands of the shell.
pub const DOT_COMMANDS: [&str; 7] =
    [".describe", ".format", ".functions", ".help", ".quit", ".schema", ".tables"];

/// Largest number of candidates shown.
const MOST: usize = 200;

const KEYWORDS: [&str; 52] = [
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COUNT",
    "CREATE VIEW",
    "CROSS",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP VIEW",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FROM",
    "FULL",
    "GROUP BY",
    "HAVING",
    "IN",
    "INNER",
    "INTERSECT",
    "IS",
    "JOIN",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER BY",
    "OVER",
    "PARTITION BY",
    "RIGHT",
    "SELECT",
    "SHOW TABLES",
    "THEN",
    "TRUE",
    "UNION",
    "USING",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Names for completion.
pub trait Words {
    /// Tables and views.
    fn tables(&self) -> Vec<String>;
    /// Columns of a table or view.
    fn columns(&self, table: &str) -> Vec<String>;
    /// Functions.
    fn functions(&self) -> Vec<String>;
}

/// Completions of the word before the cursor: its start, and the texts to replace it.
pub fn complete(words: &dyn Words, line: &str, position: usize) -> (usize, Vec<String>) {
    let Some(before) = line.get(..position) else {
        return (position, Vec::new());
    };
    let start = word_start(before);
    let word = &before[start..];
    let bare = word.trim_start_matches('"');
    let mut found = Vec::new();
    if let Some(command) = before.strip_prefix(['.', '\\']) {
        if !command.contains(char::is_whitespace) {
            let commands = DOT_COMMANDS.iter().filter(|name| name.starts_with(before));
            return (0, commands.map(|name| (*name).to_owned()).collect());
        }
        found.extend(words.tables().into_iter().filter(|name| matches(name, bare)));
    } else {
        let tables = words.tables();
        let behind_from = ["from", "join", "describe", "table"].contains(
            &before[..start].split_whitespace().last().unwrap_or("").to_lowercase().as_str(),
        );
        if !behind_from {
            // Columns of the tables that occur anywhere in the statement.
            let mentioned = tables.iter().filter(|table| mentions(line, table));
            found.extend(mentioned.flat_map(|table| words.columns(table)));
            found.retain(|name| matches(name, bare));
        }
        found.extend(tables.into_iter().filter(|name| matches(name, bare)));
    }
    found.sort();
    found.dedup();
    let mut found: Vec<String> = found.iter().map(|name| quoted(name)).collect();
    if !word.starts_with('"') && !word.is_empty() && !before.starts_with(['.', '\\']) {
        let functions = words.functions().into_iter().filter(|name| starts(name, word));
        found.extend(functions.map(|name| format!("{name}(")));
        let keywords = KEYWORDS.iter().filter(|keyword| starts(keyword, word));
        found.extend(keywords.map(|keyword| (*keyword).to_owned()));
    }
    found.truncate(MOST);
    (start, found)
}

/// Start of the word that ends here: after an open quote, or a blank.
fn word_start(before: &str) -> usize {
    if before.matches('"').count() % 2 == 1 {
        return before.rfind('"').unwrap_or(0);
    }
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    before
        .char_indices()
        .rev()
        .take_while(|(_, c)| part(*c))
        .last()
        .map_or(before.len(), |(at, _)| at)
}

fn starts(name: &str, word: &str) -> bool {
    name.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
}

/// A name matches by its prefix, or by that of the part after a colon.
fn matches(name: &str, word: &str) -> bool {
    starts(name, word) || name.rsplit(':').next().is_some_and(|event| starts(event, word))
}

/// Whether a name occurs in a line as a separate word.
fn mentions(line: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name)
        .any(|(at, _)| !line[..at].ends_with(part) && !line[at + name.len()..].starts_with(part))
}

/// Whether a text is a complete statement: it ends with a semicolon outside of texts and comments;
/// commands with a dot are one line.
pub fn is_complete(text: &str) -> bool {
    if text.trim_start().starts_with(['.', '\\']) || text.trim().is_empty() {
        return true;
    }
    let mut ended = false;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match (character, rest.peek()) {
            (';', _) => ended = true,
            ('-', Some('-')) => while rest.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                rest.next();
                let mut last = ' ';
                let mut closed = false;
                for character in rest.by_ref() {
                    if last == '*' && character == '/' {
                        closed = true;
                        break;
                    }
                    last = character;
                }
                if !closed {
                    return false;
                }
            }
            (quote @ ('\'' | '"'), _) => {
                ended = false;
                if !rest.by_ref().any(|character| character == quote) {
                    return false;
                }
            }
            (character, _) if character.is_whitespace() => {}
            _ => ended = false,
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Words for Fixed {
        fn tables(&self) -> Vec<String> {
            ["events", "spans", "app:LOCK", "app:LOGIN"].map(String::from).to_vec()
        }

        fn columns(&self, table: &str) -> Vec<String> {
            let columns: &[&str] = match table {
                "events" => &["ts", "cpu", "class"],
                "spans" => &["begin_ns", "name"],
                _ => &["ts", "mutexId"],
            };
            columns.iter().map(|name| (*name).to_owned()).collect()
        }

        fn functions(&self) -> Vec<String> {
            ["count", "percentile"].map(String::from).to_vec()
        }
    }

    fn at_end(line: &str) -> (usize, Vec<String>) {
        complete(&Fixed, line, line.len())
    }

    #[test]
    fn tables_columns_functions_and_keywords_are_completed() {
        assert_eq!(at_end("select * from ev"), (14, vec!["events".into()]));
        assert_eq!(at_end("SEL"), (0, vec!["SELECT".into()]));
        assert_eq!(at_end("select perc").1, ["percentile("]);
        // Columns of a table that is named after the cursor.
        let line = "select cl from events";
        assert_eq!(complete(&Fixed, line, 9), (7, vec!["class".into()]));
        // Columns that need quotes get them, and so do tables with a colon.
        assert_eq!(at_end("select * from \"app:LOCK\" where mut").1, ["\"mutexId\""]);
        assert_eq!(at_end("select * from LO").1, ["\"app:LOCK\"", "\"app:LOGIN\""]);
        assert_eq!(at_end("select * from \"app:LOC"), (14, vec!["\"app:LOCK\"".into()]));
        assert_eq!(at_end("select * from app:LOC"), (14, vec!["\"app:LOCK\"".into()]));
    }

    #[test]
    fn commands_with_a_dot_are_completed() {
        assert_eq!(at_end(".sch"), (0, vec![".schema".into()]));
        assert_eq!(at_end(".schema sp"), (8, vec!["spans".into()]));
        assert_eq!(at_end("\\d sp"), (3, vec!["spans".into()]));
    }

    #[test]
    fn a_cursor_inside_a_character_completes_nothing() {
        assert_eq!(complete(&Fixed, "µ", 1), (1, vec![]));
    }

    #[test]
    fn a_statement_ends_with_a_semicolon_of_its_own() {
        for whole in
            ["select 1;", "select ';';", ".tables", "\\d", "", "select 1; -- done", "a;/*b*/ "]
        {
            assert!(is_complete(whole), "{whole}");
        }
        for part in ["select 1", "select ';", "select 1 -- ;", "a /* ;", "select \";", "a; b"] {
            assert!(!is_complete(part), "{part}");
        }
    }
}
