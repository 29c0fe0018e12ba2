// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts over traces made here.

mod activities;
mod filters;
mod hostile;
mod traces;
