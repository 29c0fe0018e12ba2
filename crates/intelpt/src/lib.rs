// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Intel Processor Trace: its packets, from bytes and to bytes. What they mean together (events,
//! time, flow) is not here yet.
//!
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod packet;
