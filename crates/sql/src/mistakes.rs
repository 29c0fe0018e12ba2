// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages for common mistakes in statements, with the correct form.
//!
//! The engine reports them in its own terms, with in-memory types of columns. Errors that are not known
//! here are reported as by the engine.

use arrow::datatypes::DataType;

use crate::engine::Engine;
use crate::functions::parse_nanos;

/// Largest number of columns that are named.
const NAMED: usize = 8;
/// Characters of a call that are shown.
const SHOWN: usize = 60;

/// `what: where: what to do` for an error message of the engine.
pub fn told(words: &str, sql: &str, engine: &Engine) -> Option<String> {
    if let Some(call) =
        between(words, "No function matches the given name and argument types '", "'. ")
    {
        return Some(of_call(words, call, sql, engine));
    }
    if let Some(column) = between(words, "column \"", "\" must appear in the GROUP BY clause") {
        return Some(format!(
            "not grouped: {column}: put it into GROUP BY, or into an aggregate: min({column})"
        ));
    }
    if let Some(text) = between(words, "Cannot cast string '", "' to value of ") {
        return Some(of_text(text));
    }
    if let Some(text) = between(words, "Cannot cast value '", "' to value of Boolean type") {
        return Some(format!("no condition: '{text}' is a text: compare it: class = '{text}'"));
    }
    if let Some(terms) = between(words, "Cannot coerce arithmetic expression ", " to valid types") {
        let advice = numbers(sql, engine).unwrap_or_else(|| "compute with numbers".to_owned());
        return Some(format!("cannot compute: {}: {advice}", kinds_in(terms)));
    }
    let compared = "Cannot infer common argument type for comparison operation ";
    if let Some((_, terms)) = words.split_once(compared) {
        let advice = if terms.contains("Timestamp") || terms.contains("Date") {
            "times are integers of nanoseconds: to_timestamp_nanos(ts) is a date, \
             CAST(date AS BIGINT) an integer"
        } else {
            "CAST one of them to the type of the other"
        };
        return Some(format!("cannot compare: {}: {advice}", kinds_in(terms.trim())));
    }
    if let Some(terms) = between(words, "There isn't a common type to coerce ", " in LIKE") {
        let terms = kinds_in(terms).replace(" and ", " LIKE ");
        return Some(format!("cannot compare: {terms}: both are texts: class LIKE 'sched%'"));
    }
    if let Some((what, kind)) = words
        .split_once("non-boolean predicate '")
        .and_then(|(_, rest)| rest.split_once("' returning "))
    {
        return Some(format!(
            "no condition: {what} is {}: compare it with something: {what} = …",
            a_kind(kind.trim())
        ));
    }
    if words.contains("not supported for Null") {
        let advice = numbers(sql, engine).unwrap_or_else(|| "name a column".to_owned());
        return Some(format!(
            "nothing to compute with: an aggregate other than count(*): {advice}"
        ));
    }
    let places = words.split_once("Order by column out of bounds, specified: ");
    if let Some((place, most)) = places.and_then(|(_, rest)| rest.split_once(", max: ")) {
        return Some(format!(
            "no such column: ORDER BY {place}: columns of the result are 1 to {}",
            most.trim()
        ));
    }
    if let Some(place) = between(words, "Cannot find column with position ", " in SELECT") {
        let columns = words.rsplit(": ").next().unwrap_or_default();
        return Some(format!(
            "no such column: GROUP BY {place}: columns of the result are {columns}"
        ));
    }
    let known = [
        (
            "Aggregate functions are not allowed in the WHERE clause",
            "an aggregate in WHERE: it chooses rows: what chooses groups stands in HAVING, behind \
             GROUP BY",
        ),
        ("Divide by zero", "division by zero: a divisor is 0: write x / nullif(y, 0)"),
        (
            "UNION queries have different number of columns",
            "cannot unite: the sides of UNION have different numbers of columns: select as many on \
             each",
        ),
        (
            "Scalar subquery returned more than one row",
            "more than one value: a subquery that stands for a value: add LIMIT 1 or an aggregate",
        ),
        ("Expected LIMIT to be an integer", "no number of rows: LIMIT: write LIMIT 10"),
        ("LIMIT must be >= 0", "no number of rows: LIMIT: write LIMIT 10"),
        (
            "exceeds the representable i64 range",
            "out of range: a date of this number: times are nanoseconds: to_timestamp_nanos(ts)",
        ),
    ];
    let found = known.iter().find(|(part, _)| words.contains(part));
    found.map(|(_, told)| (*told).to_owned())
}

/// The engine fails on incompatible sides of a UNION.
pub fn of_union(words: &str, sql: &str) -> Option<&'static str> {
    let is_union = sql.to_ascii_lowercase().contains("union");
    (is_union && words.contains("Physical input schema should be the same")).then_some(
        "cannot unite: columns of the sides of UNION are of different kinds: CAST them to one type",
    )
}

/// A function that does not accept these arguments.
fn of_call(words: &str, call: &str, sql: &str, engine: &Engine) -> String {
    let (name, given) = call.split_once('(').unwrap_or((call, ""));
    let given = parts(given.strip_suffix(')').unwrap_or(given));
    let shown = written(name, sql).unwrap_or_else(|| {
        format!("{name}({})", given.iter().map(|kind| a_kind(kind)).collect::<Vec<_>>().join(", "))
    });
    // Our functions report themselves which arguments they accept.
    let own = between(words, "coercion failed with: Error during planning: ", ". No function");
    if let Some(own) = own {
        return format!("wrong arguments: {shown}: {}", kinds_in(own));
    }
    let forms: Vec<&str> = words
        .split("Candidate functions:")
        .nth(1)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')'))
        .collect();
    let takes =
        |kinds: &[&str]| forms.iter().any(|form| kinds.iter().any(|kind| form.contains(kind)));
    let gives = |kind: &str| given.iter().any(|given| a_kind(given) == kind);
    let is_open = forms.is_empty() || takes(&["UserDefined", "Variadic", "Any", "Numeric("]);
    if given.is_empty() {
        return format!("wrong number of arguments: {shown}: {name} takes some: {name}(x)");
    }
    let mut counts: Vec<usize> = forms.iter().map(|form| parts(form).len()).collect();
    counts.sort_unstable();
    counts.dedup();
    if !is_open && !counts.contains(&given.len()) {
        let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
        return format!(
            "wrong number of arguments: {shown}: {name} takes {}, not {}",
            counts.join(" or "),
            given.len()
        );
    }
    if gives("an integer") && takes(&["Timestamp", "Date"]) {
        return format!(
            "an integer is no date: {shown}: times are integers of nanoseconds: \
             to_timestamp_nanos(ts) is a date"
        );
    }
    if gives("a text") && takes(&["Decimal", "Float", "Int", "Numeric", "Duration"]) {
        let advice = numbers(sql, engine).unwrap_or_else(|| "give it numbers".to_owned());
        return format!("a text is no number: {shown}: {name} takes numbers: {advice}");
    }
    if takes(&["String", "Utf8"]) && (gives("an integer") || gives("a number")) {
        return format!("a number is no text: {shown}: CAST(x AS TEXT) makes one of it");
    }
    let forms: Vec<String> =
        forms.iter().map(|form| format!("{name}({})", kinds_in(form))).collect();
    format!("wrong arguments: {shown}: it is {}", forms.join(" or "))
}

/// A text in place of a number.
fn of_text(text: &str) -> String {
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    if has_unit && parse_nanos(text).is_ok() {
        return format!("a text is no number: '{text}': times are nanoseconds: write ns('{text}')");
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 4 && text.as_bytes().get(4) == Some(&b'-') {
        return format!(
            "a text is no number: '{text}': times are nanoseconds since 1970: \
             write CAST(to_timestamp_nanos('{text}') AS BIGINT)"
        );
    }
    format!(
        "a text is no number: '{text}': compare texts with texts, class = 'name', and numbers with \
         numbers, cpu = 0"
    )
}

/// The numeric columns of the tables in a statement.
fn numbers(sql: &str, engine: &Engine) -> Option<String> {
    let words = sql.split(|c: char| !(c.is_alphanumeric() || "_:.#".contains(c)));
    let table = words.filter(|word| !word.is_empty()).find_map(|word| {
        let schema = engine.columns(word)?;
        let is_number = |kind: &DataType| kind.is_numeric();
        let fields = schema.fields().iter().filter(|field| is_number(field.data_type()));
        let names: Vec<String> = fields.map(|field| crate::fault::quoted(field.name())).collect();
        (!names.is_empty()).then_some((word, names))
    });
    let (table, mut names) = table?;
    let more = if names.len() > NAMED { " and more" } else { "" };
    names.truncate(NAMED);
    Some(format!("numbers of {} are {}{more}", crate::fault::quoted(table), names.join(", ")))
}

/// The call of a function in a statement, if it is short.
fn written(name: &str, sql: &str) -> Option<String> {
    let lower = sql.to_ascii_lowercase();
    let start = lower.find(&format!("{}(", name.to_ascii_lowercase()))?;
    let mut depth = 0;
    let length = sql[start..].char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (c == ')' && depth == 0).then_some(at + 1)
    })?;
    let call = &sql[start..start + length];
    (call.chars().count() <= SHOWN && !call.contains('\n')).then(|| call.to_owned())
}

fn between<'w>(words: &'w str, before: &str, after: &str) -> Option<&'w str> {
    Some(words.split_once(before)?.1.split_once(after)?.0)
}

/// Splits a list at commas outside of parentheses; an empty list has no parts.
fn parts(list: &str) -> Vec<&str> {
    let (mut found, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 {
            found.push(list[begin..at].trim());
            begin = at + 1;
        }
    }
    let last = list[begin..].trim();
    if !last.is_empty() {
        found.push(last);
    }
    found
}

/// Common name of a type of the engine.
fn a_kind(kind: &str) -> &str {
    match kind {
        _ if kind.starts_with("List") || kind.starts_with("LargeList") => "a list",
        _ if kind.contains("Utf8") || kind == "String" => "a text",
        _ if kind.starts_with("Int") && !kind.starts_with("Interval") => "an integer",
        _ if kind.starts_with("UInt") => "an integer",
        _ if kind.starts_with("Float") || kind.starts_with("Decimal") => "a number",
        _ if kind.starts_with("Timestamp") || kind.starts_with("Date") => "a date",
        _ if kind.starts_with("Binary") => "bytes",
        "Boolean" => "yes or no",
        "Null" => "nothing",
        _ => kind,
    }
}

/// Replaces types of the engine in a message by their common names.
fn kinds_in(words: &str) -> String {
    let mut told = words.replace("Dictionary(Int32, Utf8)", "a text");
    for kind in ["Utf8View", "LargeUtf8", "Utf8", "Int64", "UInt64", "Float64", "Int32", "Boolean"]
    {
        let mut kept = String::new();
        let mut rest = told.as_str();
        while let Some(at) = rest.find(kind) {
            let (before, behind) = (&rest[..at], &rest[at + kind.len()..]);
            let is_part = |c: char| c.is_alphanumeric();
            let is_word = !before.ends_with(is_part) && !behind.starts_with(is_part);
            kept.push_str(before);
            kept.push_str(if is_word { a_kind(kind) } else { kind });
            rest = behind;
        }
        kept.push_str(rest);
        told = kept;
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_outside_of_parentheses() {
        assert_eq!(parts("Dictionary(Int32, Utf8), Int64"), ["Dictionary(Int32, Utf8)", "Int64"]);
        assert_eq!(parts(""), [""; 0]);
    }

    #[test]
    fn types_are_called_as_people_call_them() {
        assert_eq!(kinds_in("Dictionary(Int32, Utf8) + Int64"), "a text + an integer");
        assert_eq!(kinds_in("UInt64 and MyInt64s"), "an integer and MyInt64s");
        assert_eq!(a_kind("Interval(MonthDayNano)"), "Interval(MonthDayNano)");
    }

    #[test]
    fn calls_are_shown_as_they_are_written() {
        let sql = "SELECT Sum(abs(x)) FROM events";
        assert_eq!(written("sum", sql).as_deref(), Some("Sum(abs(x))"));
        assert_eq!(written("min", sql), None);
        assert_eq!(written("sum", "SELECT sum(x"), None);
        assert_eq!(written("sum", &format!("sum({})", "x".repeat(90))), None);
    }

    #[test]
    fn texts_as_times_are_told_how_to_be_written() {
        assert!(of_text("10ms").ends_with("write ns('10ms')"));
        assert!(
            of_text("2023-11-14 22:13").contains("CAST(to_timestamp_nanos('2023-11-14 22:13')")
        );
        assert!(of_text("x").contains("cpu = 0"));
    }
}
