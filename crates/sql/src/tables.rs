// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables that statements can name.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::exec_err;
use datafusion::error::Result;
use lateralis_store::Session as Traces;

use crate::damages::Damages;
use crate::provider::TraceTable;
use crate::reads::Reads;

/// Columns with the begin of a row; the first existing one is used.
pub const BEGIN: &[&str] = &["begin_ts", "ts"];
/// Columns with the end of a row.
pub const END: &[&str] = &["end_ts"];
/// Columns with the duration of a row, if there is no end.
pub const DURATION: &[&str] = &["duration"];

/// Description of a table.
#[derive(Debug, Clone)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// What its rows are; empty for views.
    pub description: String,
}

/// The tables of the traces, which are permanent, and views, which can be created and dropped. Names are
/// matched case-insensitively if that is not ambiguous, because SQL folds case.
#[derive(Debug)]
pub struct Tables {
    /// In the order of the store.
    described: Vec<Described>,
    fixed: BTreeMap<String, Arc<dyn TableProvider>>,
    views: RwLock<BTreeMap<String, Arc<dyn TableProvider>>>,
}

impl Tables {
    /// The tables of opened traces.
    pub fn new(traces: &Arc<Traces>, damages: &Arc<Damages>, reads: &Arc<Reads>) -> Self {
        let provider = |index: usize| -> Arc<dyn TableProvider> {
            let (damages, reads) = (Arc::clone(damages), Arc::clone(reads));
            Arc::new(TraceTable::new(Arc::clone(traces), index, damages, reads))
        };
        let tables = traces.tables().iter().enumerate();
        let fixed = tables.map(|(index, table)| (table.name.clone(), provider(index))).collect();
        let described = traces.tables().iter().map(|table| Described {
            name: table.name.clone(),
            description: table.description.clone(),
        });
        Self { described: described.collect(), fixed, views: RwLock::default() }
    }

    /// All tables in the order of the store, then views.
    pub fn described(&self) -> Vec<Described> {
        let views = self.views.read().unwrap_or_else(PoisonError::into_inner);
        let view = |name: &String| Described { name: name.clone(), description: String::new() };
        self.described.iter().cloned().chain(views.keys().map(view)).collect()
    }

    /// A table by name, with its exact name.
    pub fn find(&self, name: &str) -> Option<(String, Arc<dyn TableProvider>)> {
        let views = self.views.read().unwrap_or_else(PoisonError::into_inner);
        let exact = views.get_key_value(name).or_else(|| self.fixed.get_key_value(name));
        let found = exact.or_else(|| {
            let all = views.iter().chain(&self.fixed);
            let mut alike = all.filter(|(known, _)| known.eq_ignore_ascii_case(name));
            alike.next().filter(|_| alike.next().is_none())
        });
        found.map(|(name, table)| (name.clone(), Arc::clone(table)))
    }
}

#[async_trait::async_trait]
impl SchemaProvider for Tables {
    fn table_names(&self) -> Vec<String> {
        let views = self.views.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = self.fixed.keys().chain(views.keys()).cloned().collect();
        names.sort();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.find(name).map(|(_, table)| table))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.fixed.contains_key(&name) {
            return exec_err!("'{name}' is a table of the traces: choose another name");
        }
        let mut views = self.views.write().unwrap_or_else(PoisonError::into_inner);
        Ok(views.insert(name, table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.fixed.contains_key(name) {
            return exec_err!("'{name}' is a table of the traces and stays");
        }
        Ok(self.views.write().unwrap_or_else(PoisonError::into_inner).remove(name))
    }
}
