// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts over traces made here.

mod activities;
#[path = "../../../analysis/tests/instructions/counted.rs"]
mod counted;
#[path = "../../../analysis/src/filter/columns/tests/drawn.rs"]
mod drawn;
mod filters;
mod hostile;
mod instructions;
mod traces;
