// SPDX-License-Identifier: Apache-2.0 OR MIT
//! RISC-V E-Trace: any code, executed in any way, through the encoder and back; and any bytes as packets.

use crate::pieces;
use lateralis_etrace::encap::{Format, Packets, Writer};
use lateralis_etrace::encoder::{Action, Config, Encoder, Retired, Trap};
use lateralis_etrace::flow::{Decoder, Event, Image, Section};
use lateralis_etrace::isa::{Kind, Xlen, decode};
use lateralis_etrace::packet::{Context, Packet};
use lateralis_etrace::parameters::{Options, Parameters};

/// Where the code is: it fits into the narrowest address that is tried.
const ADDRESS: u64 = 0x4000;
/// Bytes of code, so that an execution meets the same instructions again.
const CODE_MAX: usize = 512;
/// Instructions and traps of an execution.
const ACTIONS_MAX: usize = 4096;
/// Instructions that a decoder may follow for one packet (its own bound, with room for a second path).
const STEPS_MAX: u64 = 2 * ((1 << 22) + 2);
/// Packets of any bytes that are followed: each may take [`STEPS_MAX`].
const PACKETS_MAX: usize = 4;

/// Numbers out of an input; 0 after its end.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn is_over(&self) -> bool {
        self.0.len() == 0
    }
}

/// How it is traced.
struct Setup {
    parameters: Parameters,
    config: Config,
    xlen: Xlen,
    format: Format,
}

fn setup(choices: &mut Choices<'_>) -> Setup {
    let (flags, sizes, more) = (choices.next(), choices.next(), choices.next());
    let xlen = if flags & 1 == 0 { Xlen::Rv32 } else { Xlen::Rv64 };
    let implicit_return = flags & 2 != 0;
    let full_address = flags & 4 != 0;
    let parameters = Parameters {
        address_width: [16, 32, 33, 64][usize::from(sizes & 3)],
        address_lsb: sizes >> 2 & 1,
        privilege_width: 2 + (sizes >> 3 & 1),
        time_width: if sizes & 16 == 0 { 0 } else { 7 },
        context_width: if sizes & 32 == 0 { 0 } else { 4 },
        cause_width: 5,
        return_stack_size: if implicit_return { 1 + (more & 3) } else { more & 1 },
        sequential_jumps: flags & 8 != 0,
        options_width: 5 + (sizes >> 6),
        ..Parameters::default()
    };
    let options = Options { implicit_return, full_address, ..Options::default() };
    let resync = u32::from(more >> 4);
    let config = Config { options, resync, imprecise_context: flags & 16 != 0 };
    let time_bytes = if flags & 32 == 0 { 0 } else { 4 };
    let format = Format { source_bits: flags >> 6 << 2, time_bytes, type_bits: more >> 2 & 2 };
    Setup { parameters, config, xlen, format }
}

/// What a processor with this code did, as far as it is not its own choice.
fn execute(setup: &Setup, code: &[u8], choices: &mut Choices<'_>) -> Vec<Action> {
    let section = Section { address: ADDRESS, bytes: code };
    let mut context = Context { privilege: 3, time: 0, context: 0 };
    let (mut pc, mut before) = (ADDRESS, None);
    let mut actions = Vec::new();
    while actions.len() < ACTIONS_MAX && !choices.is_over() {
        let Some(instruction) = decode(section.code(pc), setup.xlen) else { break };
        let choice = choices.next();
        if choice >= 0xe0 {
            let value = (choice & 1 == 0).then_some(u64::from(choice));
            let trap = Trap { cause: u64::from(choice >> 1 & 15), value, address: pc };
            actions.push(Action::Trap(trap));
            context.privilege = 3;
            pc = ADDRESS + u64::from(choices.next()) * 2;
            continue;
        }
        let taken = instruction.is_branch() && choice & 1 != 0;
        if choice & 0x7e == 0x7e {
            context.context =
                (context.context + 1) & ((1 << (setup.parameters.context_width / 4 * 4)) - 1);
        }
        let notify = choice & 0x7e == 0x7c;
        actions.push(Action::Retired(Retired { address: pc, instruction, taken, context, notify }));
        let after = pc + u64::from(instruction.length);
        let relative = |offset: i32| pc.wrapping_add_signed(i64::from(offset));
        let loaded = match (before, instruction.kind) {
            (
                Some((at, Kind::Upper { register, value, relative })),
                Kind::Indirect { base, offset, .. },
            ) if register == base && base != 0 => {
                let start: u64 = if relative { at } else { 0 };
                Some(start.wrapping_add_signed(i64::from(value) + i64::from(offset)) & !1)
            }
            _ => None,
        };
        before = Some((pc, instruction.kind));
        pc = match instruction.kind {
            Kind::Jump { offset, .. } => relative(offset),
            Kind::Branch { offset } if taken => relative(offset),
            Kind::Indirect { base: 0, offset, .. } => i64::from(offset) as u64 & !1,
            Kind::Indirect { .. } if loaded.is_some() => loaded.unwrap_or_default(),
            Kind::Indirect { .. } => ADDRESS + u64::from(choices.next()) * 2,
            Kind::TrapReturn => {
                let target = choices.next();
                context.privilege = target & 3;
                ADDRESS + u64::from(target >> 2) * 2
            }
            _ => after,
        };
        if pc < ADDRESS || pc >= ADDRESS + CODE_MAX as u64 {
            break;
        }
    }
    // A trap whose handler is not traced is not reported.
    while matches!(actions.last(), Some(Action::Trap(_))) {
        actions.pop();
    }
    actions
}

/// An instruction with its privilege and context, or a trap.
#[derive(Debug, PartialEq, Eq)]
enum Done {
    Instruction(u64, u8, u64),
    Trap(u64, Option<u64>),
}

fn check_round(setup: &Setup, code: &[u8], actions: &[Action]) {
    let Setup { parameters, config, xlen, format } = setup;
    let Ok(mut encoder) = Encoder::new(*parameters, *config) else { return };
    let mut packets = Vec::new();
    actions.iter().for_each(|action| encoder.step(*action, &mut packets));
    encoder.end(&mut packets);
    let mut writer = Writer::new(parameters, *format).expect("widths in their ranges");
    for packet in &packets {
        let time = (format.time_bytes > 0).then_some(7);
        writer.packet(0, time, packet).expect("fields that fit");
    }
    let found = Packets::new(parameters, *format, &writer.bytes).expect("widths in their ranges");
    let again: Vec<Packet> =
        found.map(|at| at.expect("what was written").packet.expect("instructions")).collect();
    assert_eq!(again, packets);

    let section = Section { address: ADDRESS, bytes: code };
    let mut decoder = Decoder::new(*parameters, *xlen, section).expect("widths in their ranges");
    let (mut done, mut context) = (Vec::new(), Context::default());
    for packet in &again {
        decoder.packet(packet, &mut |event| match event {
            Event::Instruction { address, .. } => {
                done.push(Done::Instruction(address, context.privilege, context.context));
            }
            Event::Trap(trap) => done.push(Done::Trap(trap.cause, trap.value)),
            Event::Context(new) => context = new,
            Event::End => {}
            Event::Gap(gap) => panic!("{gap} after {} of {}", done.len(), actions.len()),
        });
    }
    let expected = actions.iter().map(|action| match action {
        // Where the context changes is not reported in the imprecise mode.
        Action::Retired(of) if config.imprecise_context => {
            Done::Instruction(of.address, of.context.privilege, 0)
        }
        Action::Retired(of) => {
            Done::Instruction(of.address, of.context.privilege, of.context.context)
        }
        Action::Trap(trap) => Done::Trap(trap.cause, trap.value),
    });
    if config.imprecise_context {
        for one in &mut done {
            if let Done::Instruction(.., context) = one {
                *context = 0;
            }
        }
    }
    for (index, (done, expected)) in done.iter().zip(expected).enumerate() {
        assert_eq!(*done, expected, "{index}");
    }
    assert_eq!(done.len(), actions.len());
}

/// The first piece chooses parameters and what is executed, the second is code, the third any packets.
/// Besides not panicking: what was executed comes back from its packets, and no packet takes more steps than
/// the decoder's bound.
pub fn check(input: &[u8]) {
    let mut parts = pieces::split(input);
    let mut part = || parts.next().unwrap_or_default();
    let (choices, code, stream) = (part(), part(), part());
    let code = &code[..code.len().min(CODE_MAX)];
    let mut choices = Choices(choices.iter());
    let setup = setup(&mut choices);
    let actions = execute(&setup, code, &mut choices);
    check_round(&setup, code, &actions);

    let Setup { parameters, xlen, format, .. } = &setup;
    let section = Section { address: ADDRESS, bytes: code };
    let mut decoder = Decoder::new(*parameters, *xlen, section).expect("widths in their ranges");
    let packets = Packets::new(parameters, *format, stream).expect("widths in their ranges");
    let mut steps = 0_u64;
    for found in packets.take(PACKETS_MAX) {
        let mut count = |event| steps += u64::from(matches!(event, Event::Instruction { .. }));
        match found.map(|at| at.packet) {
            Ok(Some(packet)) => decoder.packet(&packet, &mut count),
            Ok(None) => {}
            Err(_) => decoder.damage(&mut count),
        }
    }
    assert!(steps <= PACKETS_MAX as u64 * STEPS_MAX, "{steps} instructions");
}

/// A loop with a call, a jump to itself and an indirect jump, executed in several ways.
pub fn good() -> Vec<Vec<u8>> {
    let words: [&[u8]; 8] = [
        &[0x01, 0x00],             // c.nop
        &[0xef, 0x00, 0x00, 0x01], // jal ra, +16
        &[0x7d, 0xdd],             // c.beqz a0, -2
        &[0x01, 0xa0],             // c.j +0
        &[0x17, 0x05, 0x00, 0x00], // auipc a0, 0
        &[0x67, 0x00, 0x05, 0x00], // jr a0
        &[0x02, 0x85],             // c.jr a0
        &[0x82, 0x80],             // c.jr ra
    ];
    let code = words.concat();
    let mut all = Vec::new();
    for flags in [0, 2, 9, 0x17, 0x2e, 0xff] {
        let mut choices = vec![flags, flags, flags & 7];
        choices.extend((0..60_u8).map(|at| at.wrapping_mul(flags | 5)));
        all.push(pieces::join(&[&choices[..], &code, &[0x44, 0x0f, 0x40, 0x00, 0x10, 0x01]]));
    }
    all
}
