// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing a record into the current CPU's ring, x86-64 Linux: one restartable sequence.
//!
//! The same steps as `tracer/c/include/lat/ring_cpu_x86_64.h`, which explains them, on the same
//! structures [ring-abi §4]. Between labels 32 and 33 no other thread runs on this CPU, or the
//! kernel continues at 34. The store before 33 publishes the record: a release on this machine (pair W1).
//!
//! Registers: rcx ring, rdi start position, then place in the data, rsi end position, rax and rdx
//! scratch and time. Up to four words are passed in registers; more are read from memory, through rax,
//! because each operand here is a register and there are not enough.
//!
//! The writer id is thread-local data of the C core, read by the initial-exec model: in an executable
//! the linker turns the load of its offset into a constant.

use crate::c_core::{lat_i_state, lat_i_thread};
use core::arch::asm;

/// Writes a record of a header and `N` words, the last of which has `slack` unused bytes.
/// Returns false if it could not; then no reader can see a change.
///
/// Context: anywhere. Cost: 19 instructions, and one for each word, two from the fifth word on.
#[inline(always)]
pub(super) fn write<const N: usize>(id: u16, slack: u64, words: &[u64; N]) -> bool {
    // SAFETY: called only with numbers below N, which is known at compile time.
    let word = |number: usize| unsafe { words.as_ptr().add(number).read() };
    let from = words.as_ptr();

    macro_rules! sequence {
        ($size:literal, [$($store:expr),*], $($operand:tt)*) => {
            if slack == 0 {
                sequence!(@ $size, [$($store),*], [], $($operand)*)
            } else {
                sequence!(
                    @ $size, [$($store),*], ["addq {slack}, %rsi"],
                    $($operand)* slack = in(reg) slack,
                )
            }
        };
        (@ $size:literal, [$($store:expr),*], [$($add_slack:literal)?], $($operand:tt)*) => {
            // SAFETY: rseq_offset, rings and stride are set before any event is enabled: to the rseq
            // area that libc registered for every thread, or to the dummy ring, whose last writer is no
            // thread. The address is inside the ring's data because of the mask, and the record
            // inside its packet because of the limit. The operands are inputs, all scratch is
            // declared, and `words` has at least as many words as are stored.
            unsafe {
                asm!(
                    ".pushsection __rseq_cs, \"aw?\"",
                    ".balign 32",
                    "31: .long 0, 0",
                    ".quad 32f, 33f - 32f, 34f",
                    ".popsection",
                    "movq 16({state}), %rax",
                    "leaq 31b(%rip), %rcx",
                    "movq %rcx, %fs:8(%rax)",
                    "32:",
                    "movl %fs:(%rax), %ecx",
                    "imulq 8({state}), %rcx",
                    "addq ({state}), %rcx",
                    "rdtsc",
                    "movq {thread}@gottpoff(%rip), %rdi",
                    "movl %fs:8(%rdi), %edi",
                    "cmpl %edi, 16(%rcx)",
                    "jne {slow}",
                    "movq (%rcx), %rdi",
                    "andq $-8, %rdi",
                    concat!("leaq ", $size, "(%rdi), %rsi"),
                    "cmpq %rsi, 8(%rcx)",
                    "jb {slow}",
                    "andq 24({state}), %rdi",
                    "movw {id:x}, 4096(%rcx, %rdi)",
                    "movl %eax, 4098(%rcx, %rdi)",
                    "movw %dx, 4102(%rcx, %rdi)",
                    $($store,)*
                    $($add_slack,)?
                    "movq %rsi, (%rcx)",
                    "33:",
                    // The signature that the kernel checks before it jumps to an abort handler,
                    // inside an instruction that traps.
                    ".pushsection __rseq_failure, \"ax?\"",
                    ".byte 0x0f, 0xb9, 0x3d",
                    ".long 0x53053053",
                    "34: jmp {slow}",
                    ".popsection",
                    state = in(reg) &raw const lat_i_state,
                    thread = sym lat_i_thread,
                    id = in(reg) id,
                    $($operand)*
                    slow = label { return false },
                    out("rax") _,
                    out("rcx") _,
                    out("rdx") _,
                    out("rdi") _,
                    out("rsi") _,
                    options(att_syntax, nostack),
                );
            }
        };
    }
    /// Stores a word that is in a register.
    macro_rules! w {
        ($number:literal) => {
            concat!("movq {w", $number, "}, 4104+8*", $number, "(%rcx, %rdi)")
        };
    }
    /// Copies a word from memory.
    macro_rules! m {
        ($number:literal) => {
            concat!(
                "movq 8*",
                $number,
                "({from}), %rax\n",
                "movq %rax, 4104+8*",
                $number,
                "(%rcx, %rdi)"
            )
        };
    }

    match N {
        0 => sequence!("8", [],),
        1 => sequence!("16", [w!(0)], w0 = in(reg) word(0),),
        2 => sequence!("24", [w!(0), w!(1)], w0 = in(reg) word(0), w1 = in(reg) word(1),),
        3 => sequence!(
            "32",
            [w!(0), w!(1), w!(2)],
            w0 = in(reg) word(0), w1 = in(reg) word(1), w2 = in(reg) word(2),
        ),
        4 => sequence!(
            "40",
            [w!(0), w!(1), w!(2), w!(3)],
            w0 = in(reg) word(0), w1 = in(reg) word(1), w2 = in(reg) word(2), w3 = in(reg) word(3),
        ),
        5 => sequence!(
            "48",
            [m!(0), m!(1), m!(2), m!(3), m!(4)],
            from = in(reg) from,
        ),
        6 => sequence!(
            "56",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5)],
            from = in(reg) from,
        ),
        7 => sequence!(
            "64",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5), m!(6)],
            from = in(reg) from,
        ),
        8 => sequence!(
            "72",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5), m!(6), m!(7)],
            from = in(reg) from,
        ),
        9 => sequence!(
            "80",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5), m!(6), m!(7), m!(8)],
            from = in(reg) from,
        ),
        10 => sequence!(
            "88",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5), m!(6), m!(7), m!(8), m!(9)],
            from = in(reg) from,
        ),
        11 => sequence!(
            "96",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5), m!(6), m!(7), m!(8), m!(9), m!(10)],
            from = in(reg) from,
        ),
        12 => sequence!(
            "104",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5), m!(6), m!(7), m!(8), m!(9), m!(10),
             m!(11)],
            from = in(reg) from,
        ),
        13 => sequence!(
            "112",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5), m!(6), m!(7), m!(8), m!(9), m!(10),
             m!(11), m!(12)],
            from = in(reg) from,
        ),
        14 => sequence!(
            "120",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5), m!(6), m!(7), m!(8), m!(9), m!(10),
             m!(11), m!(12), m!(13)],
            from = in(reg) from,
        ),
        15 => sequence!(
            "128",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5), m!(6), m!(7), m!(8), m!(9), m!(10),
             m!(11), m!(12), m!(13), m!(14)],
            from = in(reg) from,
        ),
        16 => sequence!(
            "136",
            [m!(0), m!(1), m!(2), m!(3), m!(4), m!(5), m!(6), m!(7), m!(8), m!(9), m!(10),
             m!(11), m!(12), m!(13), m!(14), m!(15)],
            from = in(reg) from,
        ),
        // More words than a schema of scalar fields has.
        _ => return false,
    }
    true
}
