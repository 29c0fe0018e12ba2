// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Intel Processor Trace: decoder and encoder of packets, and reconstruction of the executed
//! instructions.
//!
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod code;
pub mod encoder;
pub mod errata;
pub mod flow;
pub mod image;
mod long_paths;
pub mod packet;
mod paths;
pub mod segments;
mod text;
pub mod time;

pub use code::{Block, Branch, Ends, Mode, assembly, branch, instructions, is_mnemonic, mnemonic};
pub use iced_x86::Instruction;
