// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What Embassy and every RTOS with [`rtos_trace`] does, recorded in the memory of the machine.
//!
//! ```ignore
//! rtos_trace::global_trace! {Lateralis}
//!
//! begin(&Setup { area_bytes: 65_536, packet_bytes: 4096, packets: 8, is_overwritten: true })?;
//! rtos_trace::trace::start();
//! ```
//!
//! The area is where the port of the machine says (`LAT_PORT_DIR`, see the README); `lat recover` makes a
//! recording of it.

#![no_std]

use core::ffi::c_char;

use rtos_trace::{RtosTrace, TaskInfo};

unsafe extern "C" {
    safe fn lat_rtos_begin(area_bytes: u32, packet_bytes: u32, packets: u32, mode: u32) -> u32;
    safe fn lat_rtos_enable(on: u32);
    safe fn lat_rtos_new(id: u32, priority: u32);
    fn lat_rtos_name(id: u32, name: *const c_char, bytes: usize);
    safe fn lat_rtos_end(id: u32);
    safe fn lat_rtos_exec_begin(id: u32);
    safe fn lat_rtos_exec_end();
    safe fn lat_rtos_ready(id: u32);
    safe fn lat_rtos_idle();
    safe fn lat_rtos_isr_enter();
    safe fn lat_rtos_isr_exit();
    fn lat_rtos_mark_name(marker: u32, name: *const c_char, bytes: usize);
    safe fn lat_rtos_mark(marker: u32);
    safe fn lat_rtos_mark_begin(marker: u32);
    safe fn lat_rtos_mark_end(marker: u32);
}

/// How the memory of the area is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Bytes of memory at the port's `LAT_PORT_AREA`.
    pub area_bytes: u32,
    /// Bytes of a packet: a power of two, 256 to 32768.
    pub packet_bytes: u32,
    /// Packets of the ring: a power of two, 2 to 65536.
    pub packets: u32,
    /// Whether the newest events are kept; otherwise the oldest.
    pub is_overwritten: bool,
}

/// Number of the reason why there is no area: `enum lat_small_error` in `lat/small.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused(pub u32);

/// Makes the area; events stay off until [`RtosTrace::start`]. Call it once, before there are interrupts
/// that trace.
///
/// # Errors
/// [`Refused`]: the memory is unchanged, and nothing is ever recorded.
pub fn begin(setup: &Setup) -> Result<(), Refused> {
    let mode = u32::from(setup.is_overwritten);
    match lat_rtos_begin(setup.area_bytes, setup.packet_bytes, setup.packets, mode) {
        0 => Ok(()),
        reason => Err(Refused(reason)),
    }
}

/// The tracer, for `rtos_trace::global_trace!`.
#[derive(Debug)]
pub struct Lateralis;

fn name_task(id: u32, name: &str) {
    // SAFETY: pointer and length are of one string, of which the function reads no more and keeps nothing.
    unsafe { lat_rtos_name(id, name.as_ptr().cast(), name.len()) }
}

impl RtosTrace for Lateralis {
    fn start() {
        lat_rtos_enable(1);
    }

    fn stop() {
        lat_rtos_enable(0);
    }

    fn task_new(id: u32) {
        lat_rtos_new(id, 0);
    }

    fn task_send_info(id: u32, info: TaskInfo) {
        name_task(id, info.name);
    }

    fn task_new_stackless(id: u32, name: &'static str, priority: u32) {
        lat_rtos_new(id, priority);
        name_task(id, name);
    }

    fn task_terminate(id: u32) {
        lat_rtos_end(id);
    }

    fn task_exec_begin(id: u32) {
        lat_rtos_exec_begin(id);
    }

    fn task_exec_end() {
        lat_rtos_exec_end();
    }

    fn task_ready_begin(id: u32) {
        lat_rtos_ready(id);
    }

    /// Nothing: a task that leaves the processor waits, unless it was made ready meanwhile.
    fn task_ready_end(_id: u32) {}

    fn system_idle() {
        lat_rtos_idle();
    }

    fn isr_enter() {
        lat_rtos_isr_enter();
    }

    fn isr_exit() {
        lat_rtos_isr_exit();
    }

    fn isr_exit_to_scheduler() {
        lat_rtos_isr_exit();
    }

    fn name_marker(id: u32, name: &'static str) {
        // SAFETY: as in `name_task`.
        unsafe { lat_rtos_mark_name(id, name.as_ptr().cast(), name.len()) }
    }

    fn marker(id: u32) {
        lat_rtos_mark(id);
    }

    fn marker_begin(id: u32) {
        lat_rtos_mark_begin(id);
    }

    fn marker_end(id: u32) {
        lat_rtos_mark_end(id);
    }
}
