// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decoding by the crate `riscv-etrace`, and by ours, to one kind of list.

use lateralis_etrace::encap::{Format, Packets, Writer};
use lateralis_etrace::encoder::{Action, Config, Encoder};
use lateralis_etrace::flow::{Decoder, Event, Gap, Section};
use lateralis_etrace::isa::Xlen;
use lateralis_etrace::packet::Packet;
use lateralis_etrace::parameters::Parameters;
use riscv_etrace::config;
use riscv_etrace::instruction::info::Info;
use riscv_etrace::instruction::{Instruction, Kind as TheirKind, base::Set};
use riscv_etrace::packet as theirs;
use riscv_etrace::packet::payload::InstructionTrace;
use riscv_etrace::packet::sync::{QualStatus, Start, Synchronization};
use riscv_etrace::tracer::{self, item};
use riscv_etrace::types::stack::{ReturnStack, VecStack};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZeroU8;

/// What both decoders must agree on. The address of an exception is compared only with ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    Instruction(u64, u8),
    Trap(u64, Option<u64>),
}

pub fn of_actions(actions: &[Action]) -> Vec<Done> {
    let done = actions.iter().map(|action| match action {
        Action::Retired(retired) => Done::Instruction(retired.address, retired.context.privilege),
        Action::Trap(trap) => Done::Trap(trap.cause, trap.value),
    });
    done.collect()
}

pub fn encode(parameters: Parameters, config: Config, actions: &[Action]) -> Vec<Packet> {
    let mut encoder = Encoder::new(parameters, config).expect("a configuration");
    let mut packets = Vec::new();
    for action in actions {
        encoder.step(*action, &mut packets);
    }
    encoder.end(&mut packets);
    packets
}

pub const FORMAT: Format = Format { source_bits: 8, time_bytes: 0, type_bits: 0 };

pub fn bytes_of(parameters: &Parameters, packets: &[Packet]) -> Vec<u8> {
    let mut writer = Writer::new(parameters, FORMAT).expect("a format");
    for (index, packet) in packets.iter().enumerate() {
        if index % 50 == 0 {
            writer.sync();
        }
        writer.packet(7, None, packet).expect("fits");
    }
    writer.bytes
}

/// Events of a stream, decoded by ours.
pub fn events(
    parameters: &Parameters,
    format: Format,
    bytes: &[u8],
    section: Section<'_>,
    xlen: Xlen,
) -> Vec<Event> {
    let mut decoder = Decoder::new(*parameters, xlen, section).expect("parameters");
    let mut events = Vec::new();
    for found in Packets::new(parameters, format, bytes).expect("parameters") {
        match found.map(|at| at.packet) {
            Ok(Some(packet)) => decoder.packet(&packet, &mut |event| events.push(event)),
            Ok(None) => {}
            Err(_) => decoder.damage(&mut |event| events.push(event)),
        }
    }
    events
}

pub fn of_events(events: &[Event]) -> (Vec<Done>, Vec<Gap>) {
    let (mut done, mut gaps, mut privilege) = (Vec::new(), Vec::new(), 0);
    for event in events {
        match event {
            Event::Instruction { address, .. } => done.push(Done::Instruction(*address, privilege)),
            Event::Trap(trap) => done.push(Done::Trap(trap.cause, trap.value)),
            Event::Context(context) => privilege = context.privilege,
            Event::Gap(gap) => gaps.push(*gap),
            Event::End => {}
        }
    }
    (done, gaps)
}

pub fn their_parameters(p: &Parameters) -> config::Parameters {
    let width = |width: u8| NonZeroU8::new(width.max(1)).expect("not zero");
    config::Parameters {
        cache_size_p: p.cache_size,
        call_counter_size_p: p.call_counter_size,
        context_width_p: width(p.context_width),
        time_width_p: width(p.time_width),
        ecause_width_p: width(p.cause_width),
        f0s_width_p: p.format0_width,
        iaddress_lsb_p: p.address_lsb,
        iaddress_width_p: width(p.address_width),
        nocontext_p: p.context_width == 0,
        notime_p: p.time_width == 0,
        privilege_width_p: width(p.privilege_width),
        return_stack_size_p: p.return_stack_size,
        sijump_p: p.sequential_jumps,
    }
}

thread_local! {
    /// Number of synchronisation packets so far.
    static SYNCS: Cell<u64> = const { Cell::new(0) };
}

/// Their return stack, emptied at synchronisation packets: the specification requires that ("Implicit
/// return mode"), and version 0.10 of their decoder does not do it.
pub struct Stack(VecStack, u64);

impl Stack {
    fn depth_now(&self) -> usize {
        if self.1 == SYNCS.get() { self.0.depth() } else { 0 }
    }
}

impl ReturnStack for Stack {
    fn new(depth: usize) -> Option<Self> {
        Some(Self(VecStack::new(depth)?, 0))
    }

    fn push(&mut self, address: u64) {
        if self.1 != SYNCS.get() {
            while self.0.pop().is_some() {}
            self.1 = SYNCS.get();
        }
        self.0.push(address);
    }

    fn pop(&mut self) -> Option<u64> {
        if self.depth_now() == 0 { None } else { self.0.pop() }
    }

    fn depth(&self) -> usize {
        self.depth_now()
    }

    fn max_depth(&self) -> usize {
        self.0.max_depth()
    }
}

/// More than any list here has.
const ITEMS_MAX: usize = 2_000_000;

/// The list of a stream, decoded by theirs from the bytes on.
pub fn decode(
    parameters: &Parameters,
    bytes: &[u8],
    section: Section<'_>,
    xlen: Xlen,
) -> Result<Vec<Done>, String> {
    let set = if xlen == Xlen::Rv32 { Set::Rv32I } else { Set::Rv64I };
    let known: std::cell::RefCell<BTreeMap<u64, Instruction>> = Default::default();
    let code = riscv_etrace::binary::from_fn(|address: u64| {
        let mut known = known.borrow_mut();
        if let Some(instruction) = known.get(&address) {
            return Ok(*instruction);
        }
        let offset = address.checked_sub(section.address).ok_or(address)? as usize;
        let rest = section.bytes.get(offset..).ok_or(address)?;
        let found = Instruction::<Option<TheirKind>>::extract(rest, &set).ok_or(address)?.0;
        known.insert(address, found);
        Ok::<_, u64>(found)
    });
    let config = their_parameters(parameters);
    let tracer = tracer::builder().with_binary(code).with_params(&config);
    let mut tracer: tracer::Tracer<_, Stack> = tracer.build().map_err(|e| format!("{e:?}"))?;
    let builder = theirs::builder().with_params(&config).with_hart_index_width(8);
    let mut packets = builder.decoder(bytes);
    let (mut done, mut privilege) = (Vec::new(), 0u8);
    let (mut after_branch, mut support) = (false, None);
    while packets.bytes_left() > 0 {
        let packet = packets.decode_encap_packet().map_err(|e| format!("{e:?}"))?;
        let Some(normal) = packet.into_normal() else { continue };
        let payload = normal.decode_payload().map_err(|e| format!("{e:?}"))?;
        let mut parts = vec![payload];
        match payload.as_instruction_trace() {
            Some(InstructionTrace::Synchronization(Synchronization::Support(found))) => {
                support = Some(*found);
            }
            // Version 0.10 keeps the outcome of a branch when an interrupt follows it, which the
            // specification's `process_te_inst` drops. An end of tracing drops it.
            Some(InstructionTrace::Synchronization(Synchronization::Trap(trap)))
                if trap.info.is_interrupt() && after_branch =>
            {
                done.push(Done::Trap(trap.info.ecause.into(), None));
                let mut end = support.ok_or("no support packet")?;
                end.qual_status = QualStatus::EndedRep;
                let (branch, ctx, address) = (trap.branch, trap.ctx, trap.address);
                let start = Start { branch, ctx, address };
                parts = vec![InstructionTrace::from(end).into()];
                if trap.thaddr {
                    parts.push(InstructionTrace::from(start).into());
                }
            }
            _ => {}
        }
        for payload in &parts {
            tracer.process_payload(payload).map_err(|e| format!("{payload:x?}: {e:?}"))?;
            for item in tracer.by_ref() {
                // It has no bound of its own for paths that never end.
                if done.len() > ITEMS_MAX {
                    return Err(format!("{payload:x?}: endless"));
                }
                let item = item.map_err(|e| format!("{payload:x?}: {e:x?}"))?;
                match item.kind() {
                    item::Kind::Regular(found) => {
                        after_branch = found.is_branch();
                        done.push(Done::Instruction(item.pc(), privilege));
                    }
                    item::Kind::Trap(trap) => {
                        after_branch &= trap.is_interrupt();
                        done.push(Done::Trap(trap.ecause.into(), trap.tval));
                    }
                    item::Kind::Context(context) => privilege = context.privilege.into(),
                }
            }
        }
        if let Some(InstructionTrace::Synchronization(sync)) = payload.as_instruction_trace()
            && sync.branch_not_taken().is_some()
        {
            SYNCS.set(SYNCS.get() + 1);
        }
    }
    Ok(done)
}
