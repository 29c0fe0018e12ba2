// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Table functions: `FROM span_join('a', 'b', 'tid')`.
//!
//! They compute what SQL can only do at many times the cost: match begins with ends, find overlaps, and
//! return results of commands of `lat`.

mod activities;
mod asked;
mod computed;
mod inputs;
mod span_join;
mod spans;

use std::fmt;
use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;

use crate::answers::Answers;
use crate::answers::specs::specs;
use crate::damages::Damages;
use crate::tables::Tables;
use asked::Asking;

/// Registers all table functions with the engine.
pub fn register(
    context: &SessionContext,
    tables: &Arc<Tables>,
    answers: &Arc<Answers>,
    damages: &Arc<Damages>,
) {
    let functions: [(&str, Make); 3] =
        [("activities", activities::make), ("span_join", span_join::make), ("spans", spans::make)];
    for (name, make) in functions {
        let tables = Arc::clone(tables);
        context.register_udtf(name, Arc::new(Function { name, tables, make }));
    }
    for spec in specs() {
        let (answers, damages) = (Arc::clone(answers), Arc::clone(damages));
        context.register_udtf(spec.name, Arc::new(Asking { spec, answers, damages }));
    }
}

/// Makes the table of a call from its arguments.
type Make = fn(&Tables, &[String]) -> Result<Arc<dyn TableProvider>>;

/// A function with text arguments.
struct Function {
    name: &'static str,
    tables: Arc<Tables>,
    make: Make,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl TableFunctionImpl for Function {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let text = |expr: &Expr| match expr {
            Expr::Literal(ScalarValue::Utf8(Some(text)), _)
            | Expr::Literal(ScalarValue::LargeUtf8(Some(text)), _)
            | Expr::Literal(ScalarValue::Utf8View(Some(text)), _) => Ok(text.clone()),
            // Names in double quotes are parsed as columns; the meaning is clear.
            Expr::Column(column) => Ok(column.name.clone()),
            other => plan_err!("{}: names are given as texts: '{other}'", self.name),
        };
        let texts: Vec<String> = args.exprs().iter().map(text).collect::<Result<_>>()?;
        (self.make)(&self.tables, &texts)
    }
}
