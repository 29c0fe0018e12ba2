// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Payloads: written and read again, and as the decoder of `riscv-etrace` reads them.

use crate::oracle::their_parameters;
use lateralis_etrace::encap::{Format, Packets, Writer};
use lateralis_etrace::packet::{
    Branches, Cause, CountEnd, Packet, Report, Status, Support, decode, encode,
};
use lateralis_etrace::parameters::{Options, Parameters};
use proptest::prelude::*;
use riscv_etrace::packet as theirs;
use riscv_etrace::packet::ext::{BranchKind, Extension};
use riscv_etrace::packet::payload::{AddressInfo, InstructionTrace};
use riscv_etrace::packet::sync::{QualStatus, Synchronization};

fn parameters() -> impl Strategy<Value = Parameters> {
    let widths = (prop_oneof![Just(32u8), Just(64), 20..=64u8], 0..=2u8, 1..=4u8, 0..=64u8);
    let more = (0..=32u8, 1..=16u8, 0..=5u8, 0..=5u8, 0..=8u8, 0..=2u8);
    (widths, more).prop_map(|(widths, more)| Parameters {
        address_width: widths.0,
        address_lsb: widths.1,
        privilege_width: widths.2,
        time_width: widths.3,
        context_width: more.0,
        cause_width: more.1,
        return_stack_size: more.2,
        call_counter_size: more.3,
        cache_size: more.4,
        format0_width: more.5,
        predictor_size: 1,
        ..Parameters::default()
    })
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    let plain = prop::collection::vec(any::<u8>(), 1..28);
    let sign = prop::sample::select(vec![0u8, 0xff]);
    let short = (prop::collection::vec(any::<u8>(), 1..6), sign, 0..20usize);
    prop_oneof![
        plain,
        short.prop_map(|(mut bytes, fill, count)| {
            bytes.extend(std::iter::repeat_n(fill, count));
            bytes
        }),
    ]
}

fn report(theirs: &AddressInfo) -> Report {
    Report {
        address: theirs.address as u64,
        notify: theirs.notify,
        updiscon: theirs.updiscon,
        depth: theirs.irdepth.map(|depth| depth as u64),
    }
}

/// Version 0.10 keeps the bits of the map that are not valid.
fn branches(theirs: &riscv_etrace::types::branch::Map) -> Branches {
    let valid = (1 << theirs.count()) - 1;
    Branches { count: theirs.count(), map: theirs.raw_map() & valid }
}

/// Their packet in our words. Privileges that theirs does not know never come here.
fn ours_of(theirs: &InstructionTrace) -> Packet {
    use lateralis_etrace::packet::{Context, Start, Trap};
    let context = |context: &theirs::sync::Context| Context {
        privilege: context.privilege.into(),
        time: context.time.unwrap_or(0),
        context: context.context,
    };
    match theirs {
        InstructionTrace::Extension(Extension::BranchCount(found)) => Packet::PredictedBranches {
            count: found.branch_count,
            end: match &found.kind {
                BranchKind::NoAddr => CountEnd::Mispredicted,
                BranchKind::Addr(address) => CountEnd::Address(report(address)),
                BranchKind::AddrFail(address) => CountEnd::MispredictedAddress(report(address)),
            },
        },
        InstructionTrace::Extension(Extension::JumpTargetIndex(found)) => Packet::CachedTarget {
            index: found.index as u64,
            branches: branches(&found.branch_map),
            depth: found.irdepth.map(|depth| depth as u64),
        },
        InstructionTrace::Branch(found) => match &found.address {
            Some(address) => Packet::BranchReport(branches(&found.branch_map), report(address)),
            None => Packet::FullMap(found.branch_map.raw_map()),
        },
        InstructionTrace::Address(address) => Packet::Report(report(address)),
        InstructionTrace::Synchronization(Synchronization::Start(found)) => Packet::Start(Start {
            not_taken: found.branch,
            context: context(&found.ctx),
            address: found.address,
        }),
        InstructionTrace::Synchronization(Synchronization::Trap(found)) => Packet::Trap(Trap {
            not_taken: found.branch,
            context: context(&found.ctx),
            cause: u64::from(found.info.ecause),
            handler: found.thaddr,
            address: found.address,
            value: found.info.tval,
        }),
        InstructionTrace::Synchronization(Synchronization::Context(found)) => {
            Packet::Context(context(found))
        }
        InstructionTrace::Synchronization(Synchronization::Support(found)) => {
            let options = Options {
                implicit_return: found.ioptions.implicit_return,
                implicit_exception: found.ioptions.implicit_exception,
                full_address: found.ioptions.full_address,
                jump_target_cache: found.ioptions.jump_target_cache,
                branch_prediction: found.ioptions.branch_prediction,
            };
            Packet::Support(Support {
                enabled: found.ienable,
                mode: 0,
                status: match found.qual_status {
                    QualStatus::NoChange => Status::NoChange,
                    QualStatus::EndedRep => Status::EndedReported,
                    QualStatus::TraceLost => Status::Lost,
                    QualStatus::EndedNtr => Status::EndedAnyway,
                },
                options: options.to_bits(),
                data_enabled: found.denable,
                data_lost: found.dloss,
                data_options: 0,
            })
        }
    }
}

/// Data options are not looked at, and a depth that no parameter gives a width is none for theirs.
fn comparable(mut packet: Packet, parameters: &Parameters) -> Packet {
    let no_depth = parameters.depth_width() == 0;
    let without = |report: &mut Report| report.depth = report.depth.filter(|_| !no_depth);
    match &mut packet {
        Packet::Support(support) => support.data_options = 0,
        Packet::BranchReport(_, report) | Packet::Report(report) => without(report),
        Packet::PredictedBranches {
            end: CountEnd::Address(report) | CountEnd::MispredictedAddress(report),
            ..
        } => without(report),
        Packet::CachedTarget { depth, .. } => *depth = depth.filter(|_| !no_depth),
        _ => {}
    }
    packet
}

fn is_unknown(error: &theirs::Error) -> bool {
    use theirs::Error as E;
    matches!(error, E::UnknownPrivilege(_) | E::UnknownEncoderMode(_))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30_000, failure_persistence: None, ..Default::default() })]
    #[test]
    fn payloads_are_read_as_theirs_and_written_again(parameters in parameters(), bytes in payload()) {
        let ours = decode(&parameters, &bytes, 0);
        let builder = theirs::builder().with_params(&their_parameters(&parameters));
        let found = builder.decoder(&bytes).decode_payload();
        match (&ours, &found) {
            // Theirs ignores what follows the fields.
            (Err(Cause::TooLong), _) => {}
            (Ok(packet), Ok(theirs)) => {
                prop_assert_eq!(comparable(*packet, &parameters), ours_of(theirs));
            }
            (Err(Cause::Reserved), Err(_)) => {}
            (Ok(_), Err(error)) => prop_assert!(is_unknown(error), "{ours:?} {found:?}"),
            _ => prop_assert!(false, "{ours:?} {found:?}"),
        }
        if let Ok(packet) = ours {
            let again = encode(&parameters, &packet).expect("was read");
            prop_assert_eq!(decode(&parameters, &again, 0), Ok(packet));
        }
    }

    #[test]
    fn streams_of_any_bytes_are_read_to_their_end(
        parameters in parameters(),
        source_bits in 0..=16u8,
        time_bytes in 0..=8u8,
        type_bits in 0..=8u8,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let format = Format { source_bits, time_bytes, type_bits };
        let mut writer = Writer::new(&parameters, format).expect("a format");
        let (mut end, mut written) = (0, Vec::new());
        for found in Packets::new(&parameters, format, &bytes).expect("a format") {
            let (start, next) = match &found {
                Ok(at) => (at.start, at.end),
                Err(error) => (error.start, error.resume),
            };
            prop_assert!(start >= end && next > start && next <= bytes.len());
            prop_assert!(bytes[end..start].iter().all(|null| null & 0x1f == 0));
            end = next;
            if let Ok(at) = found && let Some(packet) = at.packet {
                let time = at.time.filter(|_| time_bytes > 0);
                if writer.packet(at.source, time, &packet).is_ok() {
                    written.push((at.source, time, packet));
                }
            }
        }
        prop_assert!(bytes[end..].iter().all(|null| null & 0x1f == 0));
        let again = Packets::new(&parameters, format, &writer.bytes).expect("a format");
        let again: Vec<_> = again.map(|found| found.expect("was written")).collect();
        let again: Vec<_> = again.iter().map(|at| (at.source, at.time, at.packet.unwrap())).collect();
        prop_assert_eq!(again, written);
    }
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let parameters = Parameters::default();
    let report = |address| Report { address, notify: false, updiscon: false, depth: None };
    for packet in [
        Packet::Report(report(1)),
        Packet::Report(report(1 << 32)),
        Packet::FullMap(1 << 31),
        Packet::BranchReport(Branches { count: 0, map: 0 }, report(2)),
        Packet::BranchReport(Branches { count: 2, map: 4 }, report(2)),
        Packet::Report(Report { depth: Some(1), ..report(2) }),
    ] {
        assert!(encode(&parameters, &packet).is_err(), "{packet:?}");
    }
    assert_eq!(decode(&parameters, &[], 0), Err(Cause::Empty));
    assert!(Parameters { address_width: 65, ..parameters }.check().is_err());
}

#[test]
fn reading_begins_after_a_synchronisation_sequence() {
    let parameters = Parameters::default();
    let format = Format { source_bits: 6, time_bytes: 2, type_bits: 1 };
    let mut writer = Writer::new(&parameters, format).expect("a format");
    let report =
        |address| Packet::Report(Report { address, notify: false, updiscon: false, depth: None });
    writer.packet(5, Some(77), &report(0x1000)).expect("fits");
    let cut = writer.bytes.len() - 1;
    writer.sync();
    writer.packet(63, None, &report(0x2000)).expect("fits");
    let rest = &writer.bytes[cut..];
    let found: Vec<_> = Packets::synced(&parameters, format, rest).expect("a format").collect();
    let [Ok(at)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((at.source, at.time, at.packet), (63, None, Some(report(0x2000))));
    assert!(writer.packet(64, None, &report(0)).is_err());
    assert!(writer.packet(0, Some(1 << 16), &report(0)).is_err());
}
