// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets and flow against the crate `riscv-etrace`, which was written by others from the same
//! specification, and against programs run by QEMU.

mod generated;
mod instructions;
mod oracle;
mod packets;
mod program;
mod qemu;
mod random;
