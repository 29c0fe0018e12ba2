// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the trace encoder of `riscv-etrace` sends, decoded by ours.

use crate::oracle::{Done, FORMAT, events, of_actions, of_events, their_parameters};
use crate::program::{Features, Numbers, Program};
use lateralis_etrace::encoder::{Action, Retired};
use lateralis_etrace::isa::{Kind, Xlen};
use lateralis_etrace::parameters::Parameters;
use proptest::prelude::*;
use riscv_etrace::generator::{self, Event, hart2enc::CType, hart2enc::JumpType, step};
use riscv_etrace::instruction::Size;
use riscv_etrace::packet::encap::{Normal, Packet};
use riscv_etrace::packet::payload::{InstructionTrace, Payload};
use riscv_etrace::packet::{self, unit::ReferenceDOptions, unit::ReferenceIOptions};
use riscv_etrace::types::{Context, Privilege, trap::Info};

/// An action as their generator wants it.
#[derive(Debug, Clone, Copy)]
struct Step {
    address: u64,
    kind: step::Kind,
    privilege: u8,
}

impl step::Step for Step {
    fn address(&self) -> u64 {
        self.address
    }

    fn kind(&self) -> step::Kind {
        self.kind
    }

    fn ctype(&self) -> CType {
        CType::Unreported
    }

    fn context(&self) -> Context {
        let privilege = Privilege::try_from(self.privilege).expect("a level");
        Context { privilege, context: 0 }
    }
}

fn kind(retired: &Retired) -> step::Kind {
    let found = retired.instruction;
    let insn_size = if found.length == 2 { Size::Compressed } else { Size::Normal };
    match found.kind {
        Kind::Branch { .. } => step::Kind::Branch { insn_size, taken: retired.taken },
        Kind::TrapReturn => step::Kind::TrapReturn { insn_size },
        Kind::Jump { .. } | Kind::Indirect { .. } => step::Kind::Jump {
            insn_size,
            kind: match (found.is_uninferable(), found.is_call()) {
                (true, true) => JumpType::UnferCall,
                (true, false) if found.is_return() => JumpType::Return,
                (true, false) => JumpType::UnferOther,
                (false, true) => JumpType::InferCall,
                (false, false) => JumpType::InferOther,
            },
            sequentially_inferable: false,
        },
        _ => step::Kind::Retirement { insn_size },
    }
}

fn steps(actions: &[Action]) -> Vec<Step> {
    let mut privilege = 0;
    let steps = actions.iter().map(|action| match action {
        Action::Retired(retired) => {
            privilege = retired.context.privilege;
            Step { address: retired.address, kind: kind(retired), privilege }
        }
        Action::Trap(trap) => {
            let info = Info { ecause: trap.cause as u16, tval: trap.value };
            let kind = step::Kind::Trap { insn_size: None, info };
            Step { address: trap.address, kind, privilege }
        }
    });
    steps.collect()
}

fn generate(parameters: &Parameters, steps: &[Step], numbers: &mut Numbers) -> Vec<u8> {
    let config = their_parameters(parameters);
    let builder = generator::builder().with_params(&config);
    let mut generator: generator::Generator<Step> = builder.build().expect("a generator");
    let options = (ReferenceIOptions::default(), ReferenceDOptions::default());
    let mut payloads: Vec<InstructionTrace> =
        vec![generator.begin_qualification(options.0, options.1).expect("supported").into()];
    for step in steps {
        let retires = !matches!(step.kind, step::Kind::Trap { .. });
        let event = (retires && numbers.one_in(30)).then_some(Event::Notify);
        payloads.extend(generator.process_step(*step, event).map(|found| found.expect("encoded")));
    }
    payloads.extend(generator.end_qualification(false).map(|found| found.expect("encoded")));
    let mut bytes = Vec::new();
    for payload in payloads {
        let mut buffer = [0; 64];
        let builder = packet::builder().with_params(&config).with_hart_index_width(8);
        let mut encoder = builder.encoder(&mut buffer);
        let packet: Packet = Normal::new(0, 7, Payload::from(payload)).into();
        encoder.encode(&packet).expect("fits");
        let left = encoder.uncommitted();
        bytes.extend_from_slice(&buffer[..64 - left]);
    }
    bytes
}

/// Number of actions before a loop without branches: the trace that they send has no end of it.
fn before_endless(actions: &[Action]) -> usize {
    let mut passed = Vec::new();
    let is_endless = |action: &Action| {
        let Action::Retired(retired) = action else {
            passed.clear();
            return false;
        };
        let again = passed.contains(&retired.address);
        if retired.instruction.is_branch() || retired.instruction.is_uninferable() {
            passed.clear();
        } else {
            passed.push(retired.address);
        }
        again
    };
    actions.iter().position(is_endless).unwrap_or(actions.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]
    #[test]
    fn what_they_send_is_decoded(seed: u64, wide: bool, traps: bool) {
        let xlen = if wide { Xlen::Rv64 } else { Xlen::Rv32 };
        let mut numbers = Numbers::new(seed);
        let program = Program::random(&mut numbers, xlen, false);
        // With a return from a trap to the same privilege and then one to another, their trace has two
        // meanings: no packet of format 1 or 2 follows the first target's report (specification,
        // "Format 2 *notify* and *updiscon* fields", case 1).
        let features =
            Features { traps, flat: true, wrong_returns: 2, ..Features::default() };
        let mut actions = program.execute(&mut numbers, 400, features);
        actions.truncate(before_endless(&actions));
        // They report a trap at the end as if an instruction had retired.
        while let Some(Action::Trap(_)) = actions.last() {
            actions.pop();
        }
        if !matches!(actions.first(), Some(Action::Retired(_))) {
            return Ok(());
        }
        let parameters = Parameters {
            address_width: if wide { 64 } else { 32 },
            cause_width: 6,
            ..Parameters::default()
        };
        let bytes = generate(&parameters, &steps(&actions), &mut numbers);
        let found = of_events(&events(&parameters, FORMAT, &bytes, program.section(), xlen));
        let expected = of_actions(&actions);
        let is_instruction = |done: &&Done| matches!(done, Done::Instruction(..));
        let found: (Vec<_>, _) = (found.0.iter().filter(is_instruction).collect(), found.1);
        let expected: Vec<_> = expected.iter().filter(is_instruction).collect();
        prop_assert_eq!(found, (expected, vec![]));
    }
}
