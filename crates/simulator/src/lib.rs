// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a program in a simulated machine and keeps what its processors executed, as packets of Intel PT.
//!
//! ```text
//! program, libraries, files ─► archive ─► QEMU: kernel, init ─► program
//!                                            │ plugin
//!                                            ▼
//!      perf.data ◄── recording ◄── flow ◄── frames
//! ```
//!
//! [`archive`], [`elf`], [`frame`], [`block`], [`flow`], [`packets`], [`sideband`] and [`recording`] get
//! bytes and give bytes. What the machine sends is hostile: the program in it can do what it likes.
//! [`linux`] starts QEMU, reads files and asks the distribution for a kernel.

#![forbid(unsafe_code)]

pub mod archive;
pub mod block;
pub mod elf;
pub mod flow;
pub mod frame;
pub mod linux;
pub mod packets;
pub mod recording;
pub mod sideband;
