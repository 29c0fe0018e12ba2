// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing a record into the current CPU's ring, AArch64 Linux: one restartable sequence.
//!
//! The same steps as `tracer/c/include/lat/ring_cpu_aarch64.h`, which explains them, on the same
//! structures [ring-abi §4]. The commit is a store-release (pair W1).
//!
//! Registers: x9 ring, x10 start position, x11 end position, x12 place in the data, x13 and x14
//! scratch and time. The writer id is thread-local data of the C core, read by the initial-exec model.

use crate::c_core::{lat_i_state, lat_i_thread};
use core::arch::asm;

/// Writes a record of a header and `N` words, the last of which has `slack` unused bytes.
/// Returns false if it could not; then no reader can see a change.
///
/// Context: anywhere. Cost: 30 instructions, and one for each word, two from the fifth word on.
#[inline(always)]
pub(super) fn write<const N: usize>(id: u16, slack: u64, words: &[u64; N]) -> bool {
    // SAFETY: called only with numbers below N, which is known at compile time.
    let word = |number: usize| unsafe { words.as_ptr().add(number).read() };
    let from = words.as_ptr();

    macro_rules! sequence {
        ($size:literal, [$($store:expr),*], $($operand:tt)*) => {
            // SAFETY: rseq_offset, rings and stride are set before any event is enabled, and a thread
            // without a writer id leaves before it uses them. The address is inside the ring's data
            // because of the mask, and the record inside its packet because of the limit. The
            // operands are inputs, all scratch is declared, and `words` has at least as many words
            // as are stored.
            unsafe {
                asm!(
                    ".pushsection __rseq_cs, \"aw?\"",
                    ".balign 32",
                    "31: .long 0, 0",
                    ".quad 32f, 33f - 32f, 34f",
                    ".popsection",
                    "mrs x13, tpidr_el0",
                    "adrp x14, :gottprel:{thread}",
                    "ldr x14, [x14, :gottprel_lo12:{thread}]",
                    "add x14, x14, x13",
                    "ldr w14, [x14, #8]",
                    "cbz w14, {slow}",
                    "ldr x9, [{state}, #16]",
                    "add x13, x13, x9",
                    "adrp x9, 31b",
                    "add x9, x9, :lo12:31b",
                    "str x9, [x13, #8]",
                    "32:",
                    "ldr w9, [x13]",
                    "ldr x10, [{state}, #8]",
                    "ldr x11, [{state}]",
                    "madd x9, x9, x10, x11",
                    "ldr x10, [x9]",
                    "ldr w11, [x9, #16]",
                    "cmp w11, w14",
                    "b.ne {slow}",
                    "and x10, x10, #0xfffffffffffffff8",
                    concat!("add x11, x10, #", $size),
                    "ldr x12, [x9, #8]",
                    "cmp x11, x12",
                    "b.hi {slow}",
                    "ldr x12, [{state}, #24]",
                    "and x12, x12, x10",
                    "add x12, x12, x9",
                    "add x12, x12, #4096",
                    "mrs x13, cntvct_el0",
                    "orr x13, {id}, x13, lsl #16",
                    "str x13, [x12]",
                    $($store,)*
                    "add x11, x11, {slack}",
                    "stlr x11, [x9]",
                    "33:",
                    ".pushsection __rseq_failure, \"ax?\"",
                    ".inst 0xd428bc00",
                    "34: b {slow}",
                    ".popsection",
                    state = in(reg) &raw const lat_i_state,
                    thread = sym lat_i_thread,
                    id = in(reg) u64::from(id),
                    slack = in(reg) slack,
                    $($operand)*
                    slow = label { return false },
                    out("x9") _,
                    out("x10") _,
                    out("x11") _,
                    out("x12") _,
                    out("x13") _,
                    out("x14") _,
                    options(nostack),
                );
            }
        };
    }
    /// Stores a word that is in a register.
    macro_rules! w {
        ($number:literal) => {
            concat!("str {w", $number, "}, [x12, #8+8*", $number, "]")
        };
    }
    /// Copies a word from memory.
    macro_rules! m {
        ($number:literal) => {
            concat!("ldr x13, [{from}, #8*", $number, "]\n", "str x13, [x12, #8+8*", $number, "]")
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
