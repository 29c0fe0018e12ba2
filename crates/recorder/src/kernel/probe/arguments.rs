// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts arguments of USDT points, which are assembler operands, to the kernel's
//! fetch arguments.
//!
//! Sources: sys/sdt.h of SystemTap ("SIZE@OPERAND"); Documentation/trace/uprobetracer.rst.

use std::fmt::Write;

use super::elf::Arch;

/// Maximum number of fields of an event, without the kernel's common fields.
const ARGUMENTS_MAX: usize = 12;

/// The fetch arguments that the kernel supports, each preceded by a blank. An unsupported one
/// is left out; the others keep their numbers.
pub(super) fn fetch(arguments: &str, arch: Arch) -> String {
    let mut text = String::new();
    for (index, word) in arguments.split_ascii_whitespace().take(ARGUMENTS_MAX).enumerate() {
        if let Some(one) = argument(word, arch) {
            // Writing to a string cannot fail.
            let _ = write!(text, " arg{}={one}", index + 1);
        }
    }
    text
}

fn argument(word: &str, arch: Arch) -> Option<String> {
    let (size, operand) = word.split_once('@')?;
    let kind = match size {
        "1" => "u8",
        "2" => "u16",
        "4" => "u32",
        "8" => "u64",
        "-1" => "s8",
        "-2" => "s16",
        "-4" => "s32",
        "-8" => "s64",
        _ => return None,
    };
    let place = match arch {
        Arch::X86_64 => x86_64(operand)?,
        Arch::Other => return None,
    };
    Some(format!("{place}:{kind}"))
}

fn x86_64(operand: &str) -> Option<String> {
    if let Some(number) = operand.strip_prefix('$') {
        return Some(format!("\\{}", number.parse::<i64>().ok()?));
    }
    if let Some(name) = operand.strip_prefix('%') {
        return Some(format!("%{}", register(name)?));
    }
    // OFFSET(%REGISTER); the kernel has no syntax for an index or a symbol before %rip.
    let (offset, rest) = operand.strip_suffix(')')?.split_once('(')?;
    let name = register(rest.strip_prefix('%')?)?;
    let offset: i64 = if offset.is_empty() { 0 } else { offset.parse().ok()? };
    (name != "ip").then(|| format!("{offset:+}(%{name})"))
}

/// The kernel's name of a register, of which the program may use a part
/// [regs_query_register_offset in arch/x86/kernel/ptrace.c].
fn register(name: &str) -> Option<&'static str> {
    const OLD: [&str; 8] = ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"];
    const NEW: [&str; 8] = ["r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
    if let Some(new) = NEW
        .into_iter()
        .find(|new| name.strip_prefix(new).is_some_and(|part| matches!(part, "" | "d" | "w" | "b")))
    {
        return Some(new);
    }
    if matches!(name, "rip" | "eip") {
        return Some("ip");
    }
    let short = name.strip_prefix(['r', 'e']).unwrap_or(name);
    // `al` and `sil` are the low bytes; the kernel has no name for `ah`.
    let whole = OLD.into_iter().find(|old| {
        let first = &old[..1];
        short == *old || name.strip_suffix('l').is_some_and(|n| n == first || n == *old)
    });
    whole.filter(|_| name.len() <= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_become_fetch_arguments() {
        let all = "-4@%edi 8@%r12 2@%r9w 1@%al -1@%sil 8@-24(%rbp) 8@(%rsp) -8@$-7";
        assert_eq!(
            fetch(all, Arch::X86_64),
            " arg1=%di:s32 arg2=%r12:u64 arg3=%r9:u16 arg4=%ax:u8 arg5=%si:s8 arg6=-24(%bp):u64 \
             arg7=+0(%sp):u64 arg8=\\-7:s64"
        );
    }

    #[test]
    fn what_the_kernel_cannot_fetch_is_left_out() {
        let odd = "8@8(%rax,%rbx,4) 4@counter(%rip) 3@%rax 8@%xmm0 8@%ah nonsense @ 8@ 4@%eax";
        assert_eq!(fetch(odd, Arch::X86_64), " arg9=%ax:u32");
        assert_eq!(fetch("8@x0", Arch::Other), "");
    }
}
