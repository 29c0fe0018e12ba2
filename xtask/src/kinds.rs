// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of kinds of faults, whose last column names tests: each row links to a file, and the
//! names in code marks after the link are in that file.

use std::path::Path;

/// What is wrong in a page. `read` has the text of a file beside the page.
pub fn complaints(path: &Path, text: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut is_table = false;
    for (index, line) in text.lines().enumerate() {
        let Some(last) = last_cell(line) else {
            is_table = false;
            continue;
        };
        match (is_table, last) {
            (false, "test") if line.starts_with("| kind |") => is_table = true,
            (true, last) if !last.starts_with("---") => {
                let place = format!("{}:{}", path.display(), index + 1);
                wrong.extend(row(last, read).into_iter().map(|what| format!("{place}: {what}")));
            }
            _ => {}
        }
    }
    wrong
}

fn last_cell(line: &str) -> Option<&str> {
    let row = line.strip_prefix('|')?.strip_suffix('|')?;
    row.rsplit('|').next().map(str::trim)
}

fn row(cell: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    // A file follows each `](`, and names in that file follow the link.
    let links: Vec<&str> = cell.split("](").skip(1).collect();
    if links.is_empty() {
        return vec!["a kind of faults without a link to its test".to_owned()];
    }
    for link in links {
        let (file, rest) = link.split_once(')').unwrap_or((link, ""));
        let Some(text) = read(file) else { continue };
        for name in rest.split('`').skip(1).step_by(2) {
            let is_there =
                [format!("fn {name}("), format!("{name}(void)")].iter().any(|it| text.contains(it));
            if !is_there {
                wrong.push(format!("there is no test {name} in {file}"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_are_not_there_and_rows_without_one_are_told() {
        let read =
            |file: &str| (file == "a.rs").then(|| "fn one() {}\nfn other_two() {}".to_owned());
        let page = "| kind | test |\n|---|---|\n| x | [a](a.rs) `one`, [b](b.rs) `lost` |\n\
                    | y | [a](a.rs) `two` |\n| z | by hand |\n\n| w | no |\n";
        let wrong = complaints(Path::new("p.md"), page, &read);
        assert_eq!(
            wrong,
            [
                "p.md:4: there is no test two in a.rs",
                "p.md:5: a kind of faults without a link to its test"
            ]
        );
    }
}
