// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A fault of ours ends what was asked for, and not the interpreter.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::PyResult;

/// Runs it; a panic is an exception.
pub fn caught<T>(run: impl FnOnce() -> Result<T, String>) -> PyResult<T> {
    // What it leaves half done, it made for this call only.
    let ran = catch_unwind(AssertUnwindSafe(run));
    ran.unwrap_or_else(|panic| Err(sentence(panic.as_ref()))).map_err(crate::error)
}

/// What a panic says.
pub fn sentence(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("the reader failed: {text}: please report this, with the trace if you can")
}
