// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions against the decoder of `riscv-etrace`.

use lateralis_etrace::isa::{Instruction, Kind, Xlen, decode};
use proptest::prelude::*;
use riscv_etrace::instruction::info::Info;
use riscv_etrace::instruction::{Instruction as Theirs, Kind as TheirKind, base::Set};

/// What both say about an instruction.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    length: u16,
    branch: Option<i64>,
    jump: Option<i64>,
    indirect: Option<(u8, i64)>,
    upper: Option<(u8, u64)>,
    trap_return: bool,
    call: bool,
    environment: bool,
    is_return: bool,
}

fn ours(bytes: &[u8], xlen: Xlen) -> Option<Facts> {
    let found: Instruction = decode(bytes, xlen)?;
    let mut facts = Facts {
        length: u16::from(found.length),
        branch: None,
        jump: None,
        indirect: None,
        upper: None,
        trap_return: found.kind == Kind::TrapReturn,
        call: found.is_call(),
        environment: matches!(found.kind, Kind::Ecall | Kind::Ebreak),
        is_return: found.is_return(),
    };
    match found.kind {
        Kind::Branch { offset } => facts.branch = Some(i64::from(offset)),
        Kind::Jump { offset, .. } => facts.jump = Some(i64::from(offset)),
        Kind::Indirect { base: 0, offset, .. } => facts.jump = Some(i64::from(offset)),
        Kind::Indirect { base, offset, .. } => facts.indirect = Some((base, i64::from(offset))),
        Kind::Upper { register, value, relative } => {
            let start: u64 = if relative { 0x1000 } else { 0 };
            facts.upper = Some((register, start.wrapping_add_signed(i64::from(value))));
        }
        _ => {}
    }
    Some(facts)
}

fn theirs(bytes: &[u8], xlen: Xlen) -> Option<Facts> {
    let set = if xlen == Xlen::Rv32 { Set::Rv32I } else { Set::Rv64I };
    let (found, rest) = Theirs::<Option<TheirKind>>::extract(bytes, &set)?;
    Some(Facts {
        length: (bytes.len() - rest.len()) as u16,
        branch: found.branch_target().map(i64::from),
        jump: found.inferable_jump_target().map(i64::from),
        indirect: found.uninferable_jump_target().map(|(base, offset)| (base, i64::from(offset))),
        upper: found.upper_immediate(0x1000),
        trap_return: found.is_return_from_trap(),
        call: found.is_call(),
        environment: found.is_ecall_or_ebreak(),
        is_return: found.is_return(),
    })
}

#[test]
fn all_compressed_instructions_are_as_theirs() {
    let mut wrong = Vec::new();
    for half in 0..=u16::MAX {
        // The others begin longer instructions; c.lui without a value is reserved, and theirs has it.
        if half & 3 == 3 || half & 0xf07f == 0x6001 {
            continue;
        }
        let bytes = half.to_le_bytes();
        for xlen in [Xlen::Rv32, Xlen::Rv64] {
            let (ours, theirs) = (ours(&bytes, xlen), theirs(&bytes, xlen));
            if ours != theirs {
                wrong.push(format!("{half:04x} {xlen:?}: {ours:x?} {theirs:x?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong[..wrong.len().min(8)].join("\n"));
}

/// Opcodes that change the flow, more often than others.
fn word() -> impl Strategy<Value = u32> {
    let opcodes = prop::sample::select(vec![0x37, 0x17, 0x63, 0x67, 0x6f, 0x73, 0x13, 0x33]);
    let exact = vec![0x73, 0x10_0073, 0x1020_0073, 0x3020_0073, 0x1050_0073, 0x8067, 0x28067];
    prop_oneof![
        8 => (any::<u32>(), opcodes).prop_map(|(word, opcode)| word & !0x7f | opcode),
        1 => prop::sample::select(exact),
        1 => any::<u32>().prop_map(|word| word | 3),
    ]
}

/// `uret`, `mnret` and `dret`, which theirs does not decode.
const TRAP_RETURNS: [u32; 3] = [0x0020_0073, 0x7020_0073, 0x7b20_0073];

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]
    #[test]
    fn full_instructions_are_as_theirs(word in word(), wide: bool) {
        prop_assume!(!TRAP_RETURNS.contains(&word));
        let xlen = if wide { Xlen::Rv64 } else { Xlen::Rv32 };
        let mut bytes = word.to_le_bytes().to_vec();
        bytes.extend([1, 0, 1, 0]);
        prop_assert_eq!(ours(&bytes, xlen), theirs(&bytes, xlen));
    }
}

#[test]
fn returns_from_traps_are_known() {
    for word in TRAP_RETURNS {
        let found = decode(&word.to_le_bytes(), Xlen::Rv64).expect("four bytes");
        assert_eq!((found.length, found.kind), (4, Kind::TrapReturn), "{word:08x}");
    }
    assert_eq!(decode(&[0x13], Xlen::Rv32), None);
    assert_eq!(decode(&[0x13, 0, 0], Xlen::Rv32), None);
    assert_eq!(decode(&[0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0], Xlen::Rv32), None);
}
