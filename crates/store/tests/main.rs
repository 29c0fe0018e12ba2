// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recordings, their facts and tables.
//!
//! One program for all files here: separate ones took longer to build than to run.

mod alike;
mod compared;
mod export;
mod facts_by_columns;
mod given;
mod kernel_facts;
mod open_ends;
mod sessions;
mod tables;
mod tables_document;
mod tail;
