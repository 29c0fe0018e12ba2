// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a program in a simulated machine and records the execution of its CPUs as Intel PT packets.
//!
//! ```text
//! program, libraries, files ─► archive ─► QEMU: kernel, init ─► program
//!                                            │ plugin
//!                                            ▼
//!      perf.data ◄── recording ◄── flow ◄── frames
//! ```
//!
//! [`archive`], [`elf`], [`frame`], [`block`], [`flow`], [`packets`], [`sideband`] and [`recording`] only
//! transform bytes. Input from the machine is hostile: the program in it can do anything. [`linux`]
//! starts QEMU, reads files and obtains a kernel from the distribution.

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
