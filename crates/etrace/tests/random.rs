// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs and paths: what our encoder sends, their decoder and ours read as it was.

use crate::oracle::{Done, FORMAT, bytes_of, decode, encode, events, of_actions, of_events};
use crate::program::{Features, Numbers, Program};
use lateralis_etrace::encoder::{Action, Config, Retired};
use lateralis_etrace::flow::{Event, Section};
use lateralis_etrace::isa::{Xlen, decode as decode_one};
use lateralis_etrace::packet::Context;
use lateralis_etrace::parameters::{Options, Parameters};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
struct Case {
    seed: u64,
    xlen: Xlen,
    features: Features,
    implicit_return: bool,
    full_address: bool,
    resync: u32,
    stack: u8,
}

fn case() -> impl Strategy<Value = Case> {
    let resync = prop_oneof![Just(0), Just(1), Just(2), 3..20u32];
    let flags = any::<[bool; 7]>();
    (any::<u64>(), flags, 0..8usize, resync, 1..5u8).prop_map(
        |(seed, [wide, traps, notify, nested, implicit, full, beyond], wrong, resync, stack)| {
            Case {
                seed,
                xlen: if wide { Xlen::Rv64 } else { Xlen::Rv32 },
                features: Features {
                    traps,
                    flat: false,
                    wrong_returns: wrong,
                    notify,
                    nested_at_once: nested,
                    beyond_theirs: beyond,
                },
                implicit_return: implicit,
                full_address: full,
                resync,
                stack,
            }
        },
    )
}

fn check(case: Case) -> Result<(), String> {
    let mut numbers = Numbers::new(case.seed);
    let program = Program::random(&mut numbers, case.xlen, case.features.beyond_theirs);
    let actions = program.execute(&mut numbers, 400, case.features);
    let Some(Action::Retired(_)) = actions.first() else { return Ok(()) };
    let parameters = Parameters {
        address_width: if case.xlen == Xlen::Rv64 { 64 } else { 32 },
        return_stack_size: if case.implicit_return { case.stack } else { 0 },
        sequential_jumps: case.seed.is_multiple_of(2),
        ..Parameters::default()
    };
    let options = Options {
        implicit_return: case.implicit_return,
        full_address: case.full_address,
        ..Options::default()
    };
    let config = Config { options, resync: case.resync, imprecise_context: false };
    let packets = encode(parameters, config, &actions);
    let bytes = bytes_of(&parameters, &packets);
    let mut expected = of_actions(&actions);
    // A trap without a traced handler is not reported.
    while let Some(Done::Trap(..)) = expected.last() {
        expected.pop();
    }
    let ours = events(&parameters, FORMAT, &bytes, program.section(), case.xlen);
    let (mut done, gaps) = of_events(&ours);
    while let Some(Done::Trap(..)) = done.last() {
        done.pop();
    }
    if done != expected || !gaps.is_empty() {
        let at = done.iter().zip(&expected).position(|(a, b)| a != b);
        return Err(format!("ours: at {at:?} of {} {}, {gaps:x?}", done.len(), expected.len()));
    }
    // Besides what the field's comment says, their version 0.10 does not cut absolute addresses to their
    // width.
    let high = case.xlen == Xlen::Rv32 && program.base >= 0x8000_0000;
    if case.features.beyond_theirs || case.full_address && high {
        return addresses_of_traps(&actions, &ours);
    }
    let mut theirs = decode(&parameters, &bytes, program.section(), case.xlen)?;
    while let Some(Done::Trap(..)) = theirs.last() {
        theirs.pop();
    }
    if theirs != expected {
        let at = theirs.iter().zip(&expected).position(|(a, b)| a != b);
        return Err(format!("theirs: at {at:?} of {} {}", theirs.len(), expected.len()));
    }
    addresses_of_traps(&actions, &ours)
}

/// Where our decoder gives the address of an exception, it is right.
fn addresses_of_traps(actions: &[Action], events: &[Event]) -> Result<(), String> {
    let was = actions.iter().filter_map(|action| match action {
        Action::Trap(trap) => Some(trap),
        Action::Retired(_) => None,
    });
    let is = events.iter().filter_map(|event| match event {
        Event::Trap(trap) => Some(trap),
        _ => None,
    });
    for (was, is) in was.zip(is) {
        if is.address.is_some_and(|address| address != was.address) {
            return Err(format!("{was:x?} is {is:x?}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..Default::default() })]
    #[test]
    fn random_paths_are_decoded_as_they_were(case in case()) {
        prop_assert_eq!(check(case), Ok(()));
    }
}

/// Found by fuzzing: a register jump leads back to an address that was passed since the last packet, and the
/// context changes there. The synchronisation packet was taken for the first time at that address.
#[test]
fn a_change_of_context_behind_a_register_jump_is_where_it_was() {
    // c.nop; c.jr a0
    let jump: &[u8] = &[0x01, 0x00, 0x02, 0x85];
    // jal ra, +8; nop; c.jr ra, which does not return to the instruction after the call
    let call: &[u8] = &[0xef, 0x00, 0x80, 0x00, 0x13, 0x00, 0x00, 0x00, 0x82, 0x80];
    let retired = |code: Section<'_>, address: u64, context: u64| {
        let instruction = decode_one(&code.bytes[(address - 0x4000) as usize..], Xlen::Rv32);
        let instruction = instruction.expect("an instruction");
        let context = Context { privilege: 3, time: 0, context };
        Action::Retired(Retired { address, instruction, taken: false, context, notify: false })
    };
    for (bytes, path) in [
        (jump, &[(0x4000, 0), (0x4002, 0), (0x4002, 1), (0x4002, 1)][..]),
        (jump, &[(0x4000, 0), (0x4002, 0), (0x4000, 1), (0x4002, 1)]),
        (call, &[(0x4000, 0), (0x4008, 0), (0x4000, 1)]),
        (call, &[(0x4000, 0), (0x4008, 0), (0x4004, 1), (0x4008, 1)]),
    ] {
        let code = Section { address: 0x4000, bytes };
        let actions: Vec<Action> = path.iter().map(|of| retired(code, of.0, of.1)).collect();
        let implicit_return = code.bytes[0] == 0xef;
        let options = Options { implicit_return, ..Options::default() };
        let config = Config { options, ..Config::default() };
        let parameters =
            Parameters { context_width: 4, return_stack_size: 2, ..Parameters::default() };
        let bytes = bytes_of(&parameters, &encode(parameters, config, &actions));
        let (mut at, mut found) = (0, Vec::new());
        for event in events(&parameters, FORMAT, &bytes, code, Xlen::Rv32) {
            match event {
                Event::Context(context) => at = context.context,
                Event::Instruction { address, .. } => found.push((address, at)),
                Event::Trap(_) | Event::Gap(_) => panic!("{event:?}"),
                Event::End => {}
            }
        }
        assert_eq!(found, path);
    }
}
