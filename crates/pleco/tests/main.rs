// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The compiler of schemas.
//!
//! One program of all files here: making one of each took longer than running them.

mod babeltrace;
mod command;
mod ctf2;
mod every_type;
mod generated_code;
mod goldens;
mod hostile;
mod legacy;
mod properties;
mod suite;
