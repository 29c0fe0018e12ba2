// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `spans('name')`: the spans of one name.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::common::plan_err;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::prelude::{ident, lit};

use crate::tables::Tables;

/// Makes the table of a call.
pub fn make(tables: &Tables, arguments: &[String]) -> Result<Arc<dyn TableProvider>> {
    let [name] = arguments else {
        return plan_err!("spans takes one name: FROM spans('request'); FROM spans has them all");
    };
    let Some((_, table)) = tables.find("spans") else {
        return plan_err!("table 'spans' not found");
    };
    let plan = LogicalPlanBuilder::scan("spans", provider_as_source(table), None)?
        .filter(ident("span").eq(lit(name.as_str())))?
        .build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}
