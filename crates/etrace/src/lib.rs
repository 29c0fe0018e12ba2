// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Efficient Trace for RISC-V: packets and instruction flow, decoded and encoded.
//!
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bits;
pub mod encap;
pub mod encoder;
pub mod flow;
pub mod isa;
pub mod packet;
pub mod parameters;
