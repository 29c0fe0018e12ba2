// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formats of other tools.
//!
//! One program of all files here: making one of each took longer than running them.

mod chrome;
mod fxt;
mod hostile;
mod marks;
mod perfetto;
mod tables;
