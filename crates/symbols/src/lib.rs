// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions by address: what is mapped in a process, ELF files, the kernel's list, generated code.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod functions;
mod image;
mod jitdump;
mod lines;
mod spaces;
mod unwind;

pub use functions::{Functions, demangled};
pub use image::{Image, NotAnImage, build_id_of_notes};
pub use jitdump::{JitDump, JitFunction, NotAJitDump};
pub use lines::{LineFrame, Lines};
pub use spaces::{AddressSpaces, Mapping};
pub use unwind::{Registers, Stacks};
