// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encoded instructions are decoded to the same instructions, with every setting.

use lateralis_intelpt::encoder::{Clock, Encoder, Settings};
use lateralis_intelpt::flow::{Event, Flow, Sink};
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::{Block, Ends, Mode, branch};

/// Reproducible numbers [Steele, Lea, Flood: SplitMix64].
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let one = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let other = (one ^ (one >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (other ^ (other >> 31)) % end
    }
}

const BEGIN: u64 = 0x7fff_f000_1000;
const PARTS: u64 = 64;
const PART_BYTES: u64 = 32;

fn part(index: u64) -> u64 {
    BEGIN + index * PART_BYTES
}

/// Sequences of instructions without effect, each with a branch in it. Direct branches lead forward:
/// there is no loop without packets.
fn code(numbers: &mut Numbers) -> Vec<u8> {
    const NOP: u8 = 0x90;
    let mut code = Vec::new();
    for index in 0..PARTS {
        code.resize((index * PART_BYTES + numbers.below(8)) as usize, NOP);
        let forward = part((index + 1 + numbers.below(5)).min(PARTS - 1));
        let mut direct = |opcode: &[u8], to: u64| {
            let next = BEGIN + code.len() as u64 + opcode.len() as u64 + 4;
            code.extend_from_slice(opcode);
            code.extend((to.wrapping_sub(next) as u32).to_le_bytes());
        };
        match if index == PARTS - 1 { 3 } else { numbers.below(8) } {
            0 => direct(&[0xe9], forward),
            1 => direct(&[0xe8], forward),
            2 => direct(&[0x0f, 0x84], part(numbers.below(PARTS))),
            3 => code.extend([0xff, 0xe0]), // jmp rax
            4 => code.extend([0xff, 0xd0]), // call rax
            5 => code.extend([0x0f, 0x05]), // syscall
            _ => code.push(0xc3),
        }
    }
    code.resize((PARTS * PART_BYTES) as usize, NOP);
    code
}

#[derive(Default)]
struct Addresses {
    all: Vec<u64>,
    interrupts: usize,
    gaps: usize,
}

struct Decoded<'c>(&'c Sections<'c>, Addresses);

impl Sink for Decoded<'_> {
    fn block(&mut self, block: &Block) {
        lateralis_intelpt::instructions(self.0, block, |ip, _| self.1.all.push(ip));
    }

    fn event(&mut self, _: usize, event: Event) {
        self.1.interrupts += usize::from(matches!(event, Event::Interrupted { .. }));
        self.1.gaps += usize::from(matches!(event, Event::Gap(_)));
    }
}

/// Executes for a while. @return the executed addresses, and the packets.
fn execute(code: &[u8], settings: Settings, numbers: &mut Numbers) -> (Addresses, Vec<u8>) {
    let mut encoder = Encoder::new(settings);
    let mut executed = Addresses::default();
    let mut stack = Vec::new();
    let mut ip = part(numbers.below(PARTS));
    encoder.set_tsc(1 << 40);
    encoder.enable(ip);
    for _ in 0..20_000 {
        if numbers.below(300) == 0 {
            let handler = part(numbers.below(PARTS));
            encoder.interrupt(ip, handler);
            executed.interrupts += 1;
            ip = handler;
        }
        if numbers.below(500) == 0 {
            encoder.disable_at(ip);
            encoder.advance(numbers.below(200_000));
            ip = part(numbers.below(PARTS));
            encoder.enable(ip);
        }
        let at = (ip - BEGIN) as usize;
        let here = branch(&code[at..], ip, Mode::Bits64).expect("an instruction");
        executed.all.push(ip);
        encoder.advance(1);
        let anywhere = part(numbers.below(PARTS));
        let to = match here.ends {
            Ends::Through => here.next,
            Ends::Jump => here.target,
            Ends::Conditional if numbers.below(3) > 0 => here.next,
            Ends::Conditional => here.target,
            Ends::Call => {
                stack.push(here.next);
                here.target
            }
            Ends::IndirectCall => {
                stack.push(here.next);
                anywhere
            }
            Ends::Return => match stack.pop() {
                Some(caller) if numbers.below(9) > 0 => caller,
                _ => anywhere,
            },
            Ends::IndirectJump | Ends::NoCode => anywhere,
            // A system call, whose kernel part is not traced.
            Ends::Far => {
                encoder.disable();
                encoder.advance(numbers.below(2_000));
                encoder.enable(here.next);
                ip = here.next;
                continue;
            }
        };
        encoder.branch(&here, to).expect("it leads there");
        if here.ends != Ends::Through {
            encoder.at(to);
        }
        ip = to;
    }
    encoder.disable_at(ip);
    (executed, encoder.take())
}

#[test]
fn every_setting_gives_the_same_instructions() {
    let clock = Clock {
        mtc_frequency: Some(3),
        tsc_per_crystal: (40, 1),
        tsc_per_bus: 10,
        cycle_threshold: None,
    };
    let clocks = [
        None,
        Some(clock),
        Some(Clock { mtc_frequency: None, ..clock }),
        Some(Clock { cycle_threshold: Some(0), tsc_per_crystal: (216, 2), ..clock }),
        Some(Clock { cycle_threshold: Some(64), ..clock }),
    ];
    let mut numbers = Numbers(7);
    let mut sizes = Vec::new();
    for bits in 0..8u8 {
        for clock in clocks {
            for psb_bytes in [64, 2048] {
                let settings = Settings {
                    return_compression: bits & 1 != 0,
                    long_tnt: bits & 2 != 0,
                    deferred_tips: bits & 4 != 0,
                    psb_bytes,
                    clock,
                };
                let code = code(&mut numbers);
                let (executed, packets) = execute(&code, settings, &mut numbers);
                let mut sections = Sections::default();
                sections.add(BEGIN, &code);
                let mut decoded = Decoded(&sections, Addresses::default());
                Flow::new(&sections).decode(&packets, &mut decoded);
                let decoded = decoded.1;
                assert_eq!(decoded.gaps, 0, "{settings:?}");
                let first =
                    executed.all.iter().zip(&decoded.all).position(|(one, other)| one != other);
                assert_eq!(first, None, "{settings:?}");
                assert_eq!(executed.all.len(), decoded.all.len(), "{settings:?}");
                assert_eq!(executed.interrupts, decoded.interrupts, "{settings:?}");
                sizes.push(packets.len());
            }
        }
    }
    assert!(sizes.iter().all(|bytes| *bytes < 200_000), "{sizes:?}");
}

#[test]
fn a_branch_that_leads_elsewhere_is_told() {
    let mut encoder = Encoder::new(Settings::default());
    encoder.enable(BEGIN);
    let jump = branch(&[0xeb, 4], BEGIN, Mode::Bits64).expect("an instruction");
    assert_eq!(encoder.branch(&jump, BEGIN + 6), Ok(()));
    let error = encoder.branch(&jump, BEGIN).expect_err("it does not lead there");
    assert_eq!(error.to_string(), "no branch leads to 0x7ffff0001000");
}
