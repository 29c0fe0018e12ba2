// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bounds the size of statements before they are planned: planning takes stack, memory and time for each
//! word, each link of a chain and each table, and a short text can require many.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visit, Visitor};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Largest number of words of a text.
const MOST_WORDS: usize = 20_000;
/// Largest number of operators in a chain: `1 + 1 + 1` is nested as deeply as it is long.
const LONGEST_CHAIN: usize = 1000;
/// Largest number of tables that a statement reads; those in views and WITH count once for each use.
const MOST_TABLES: u64 = 500;

/// Rejects a text that is too long, or contains a chain that is too long.
pub fn check_words(words: &[TokenWithSpan]) -> Result<()> {
    let words = || words.iter().map(|word| &word.token);
    let count = words().filter(|word| !matches!(word, Token::Whitespace(_))).count();
    if count > MOST_WORDS {
        return plan_err!("too long: {count} words: at most {MOST_WORDS} can be planned");
    }
    // Operators since the last comma, for each open parenthesis.
    let mut chains = vec![0_usize];
    for word in words() {
        match word {
            Token::LParen | Token::LBracket | Token::LBrace => {
                // A chain of calls or subscripts counts as well.
                lengthen(&mut chains);
                chains.push(0);
            }
            Token::RParen | Token::RBracket | Token::RBrace if chains.len() > 1 => {
                chains.pop();
            }
            Token::Comma => chains.last_mut().into_iter().for_each(|chain| *chain = 0),
            Token::SemiColon => chains = vec![0],
            word if is_operator(word) => lengthen(&mut chains),
            _ => {}
        }
        if chains.last().is_some_and(|chain| *chain > LONGEST_CHAIN) {
            return plan_err!(
                "too long: a chain of more than {LONGEST_CHAIN} operators: \
                 use IN (…), or several statements"
            );
        }
    }
    Ok(())
}

fn lengthen(chains: &mut [usize]) {
    chains.last_mut().into_iter().for_each(|chain| *chain += 1);
}

fn is_operator(word: &Token) -> bool {
    use Keyword::{
        AND, BETWEEN, COLLATE, DIV, EXCEPT, ILIKE, IN, INTERSECT, IS, JOIN, LIKE, MINUS, NOT, OR,
        UNION, XOR,
    };
    const WORDS: [Keyword; 16] = [
        AND, BETWEEN, COLLATE, DIV, EXCEPT, ILIKE, IN, INTERSECT, IS, JOIN, LIKE, MINUS, NOT, OR,
        UNION, XOR,
    ];
    match word {
        Token::Word(word) => WORDS.contains(&word.keyword),
        Token::EOF
        | Token::Whitespace(_)
        | Token::Number(..)
        | Token::Char(_)
        | Token::Period
        | Token::RParen
        | Token::RBracket
        | Token::RBrace => false,
        // All spellings of texts contain letters; the others are symbols.
        other => !is_text(other),
    }
}

fn is_text(word: &Token) -> bool {
    matches!(
        word,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::Placeholder(_)
    )
}

/// Number of tables that views read, by their names in lower case.
pub type Views = HashMap<String, u64>;

/// Number of tables that a statement reads.
///
/// Errors: more than can be planned.
pub fn tables(statement: &Statement, views: &Views) -> Result<u64> {
    let statement = match statement {
        Statement::Statement(statement) => statement,
        Statement::Explain(explain) => return tables(&explain.statement, views),
        _ => return Ok(0),
    };
    let mut counting =
        Counting { views, named: HashMap::new(), with: HashMap::new(), open: vec![0] };
    if statement.visit(&mut counting).is_break() {
        return plan_err!(
            "too many tables: WITH and views count for each use: at most {MOST_TABLES} can be read"
        );
    }
    Ok(counting.open.first().copied().unwrap_or(0))
}

struct Counting<'v> {
    views: &'v Views,
    /// Name of a query in a WITH, by its address.
    named: HashMap<*const Query, String>,
    /// Number of tables that each reads.
    with: HashMap<String, u64>,
    /// Number so far, for each enclosing query.
    open: Vec<u64>,
}

impl Counting<'_> {
    fn add(&mut self, count: u64) -> ControlFlow<()> {
        let Some(sum) = self.open.last_mut() else {
            return ControlFlow::Break(());
        };
        *sum = sum.saturating_add(count);
        if *sum > MOST_TABLES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Visitor for Counting<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.named.insert(&raw const *table.query, table.alias.name.value.to_lowercase());
        }
        self.open.push(0);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let count = self.open.pop().unwrap_or(0);
        match self.named.get(&(&raw const *query)) {
            Some(name) => {
                // Of two with one name, the larger counts: then it does not matter which one is meant.
                let known = self.with.entry(name.clone()).or_default();
                *known = (*known).max(count);
                ControlFlow::Continue(())
            }
            None => self.add(count),
        }
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = relation.0.last().and_then(|part| part.as_ident());
        let name = name.map(|name| name.value.to_lowercase()).unwrap_or_default();
        let known = self.with.get(&name).or_else(|| self.views.get(&name));
        self.add(known.copied().unwrap_or(1).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    fn words(text: &str) -> Result<()> {
        let words = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location();
        check_words(&words.unwrap())
    }

    fn count(text: &str, views: &Views) -> Result<u64> {
        tables(&DFParser::parse_sql(text).unwrap()[0], views)
    }

    #[test]
    fn long_chains_are_refused_and_long_lists_are_not() {
        for link in ["+ 1", "OR x", "AND NOT y", "UNION SELECT 1", "|| 'a'", "::int", "[1]"] {
            let chain = format!("SELECT 1 {}", format!("{link} ").repeat(2000));
            let error = words(&chain).unwrap_err().to_string();
            assert!(error.contains("chain"), "{link}: {error}");
        }
        let nested = format!("SELECT ({})", "1 - ".repeat(2000));
        assert!(words(&nested).is_err());
        let list = "1, ".repeat(5000);
        words(&format!("SELECT x IN ({list} 2)")).unwrap();
        words(&format!("SELECT {}", "a.b + 1, ".repeat(2000))).unwrap();
        words(&"SELECT a + b - c; ".repeat(1000)).unwrap();
        assert!(words(&"a ".repeat(20_001)).is_err());
        words(&")".repeat(100)).unwrap();
    }

    #[test]
    fn tables_of_views_and_with_count_for_each_use() {
        let views = Views::from([("v".to_owned(), 7)]);
        assert_eq!(count("SELECT 1", &views).unwrap(), 0);
        assert_eq!(count("SELECT * FROM a, b JOIN c USING (x)", &views).unwrap(), 3);
        assert_eq!(count("SELECT * FROM V, v", &views).unwrap(), 14);
        let with = "WITH a AS (SELECT * FROM t, t), b AS (SELECT * FROM a, a) SELECT * FROM b, b";
        assert_eq!(count(with, &views).unwrap(), 8);
        let inside = "SELECT * FROM t WHERE x IN (WITH q AS (SELECT 1 FROM t) SELECT * FROM q, q)";
        assert_eq!(count(inside, &views).unwrap(), 3);
        assert_eq!(count(&format!("EXPLAIN {with}"), &views).unwrap(), 8);
    }

    #[test]
    fn a_short_text_that_asks_for_very_many_tables_is_refused() {
        let mut bomb = "WITH a0 AS (SELECT 1 AS x)".to_owned();
        for step in 1..60 {
            let before = step - 1;
            bomb += &format!(", a{step} AS (SELECT p.x FROM a{before} p, a{before} q)");
        }
        let error = count(&format!("{bomb} SELECT * FROM a59"), &Views::new()).unwrap_err();
        assert!(error.to_string().contains("too many tables"), "{error}");
    }
}
