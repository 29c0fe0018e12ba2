// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that QEMU executes: the instructions in its log are what both decoders must give.
//!
//! Needs `riscv64-unknown-elf-gcc` and `qemu-system-riscv64`; without them the tests are skipped.

use crate::oracle::{Done, FORMAT, bytes_of, decode, encode, events, of_actions, of_events};
use lateralis_etrace::encoder::{Action, Config, Retired, Trap};
use lateralis_etrace::flow::{Blocks, Event, Exit, Section};
use lateralis_etrace::isa::{self, Kind, Xlen};
use lateralis_etrace::packet::{Context, Packet};
use lateralis_etrace::parameters::{Options, Parameters};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const GCC: &str = "riscv64-unknown-elf-gcc";
const QEMU: &str = "qemu-system-riscv64";

/// Where the linker script puts the program.
const BASE: u64 = 0x8000_0000;

fn is_missing(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output();
    !found.is_ok_and(|output| output.status.success())
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}

/// The code of a program, and QEMU's log of its execution. `None` if the tools are missing.
fn execute(name: &str, timer: Option<u32>) -> Option<(Vec<u8>, String)> {
    for tool in [GCC, QEMU] {
        if is_missing(tool) {
            println!("SKIPPED: no {tool} here");
            return None;
        }
    }
    // Later versions name the option otherwise, and what their log looks like was not tried.
    let version = Command::new(QEMU).arg("--version").output().expect("it was there").stdout;
    if !String::from_utf8_lossy(&version).contains("version 7.") {
        println!("SKIPPED: the log of this version of QEMU is not known");
        return None;
    }
    let folder = std::env::temp_dir().join(format!("etrace-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let folder = Folder(folder);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let (elf, code, log) = (folder.0.join("elf"), folder.0.join("code"), folder.0.join("log"));
    let mut gcc = Command::new(GCC);
    gcc.args(["-march=rv64imac_zicsr", "-mabi=lp64", "-mcmodel=medany", "-O2"]);
    gcc.args(["-nostdlib", "-static", "-ffreestanding", "-T"]).arg(sources.join("link.ld"));
    gcc.args(timer.map(|timer| format!("-DTIMER={timer}")));
    gcc.args(["start.S", "machine.c", &format!("{name}.c")].map(|file| sources.join(file)));
    run(gcc.arg("-o").arg(&elf));
    let objcopy = GCC.replace("gcc", "objcopy");
    run(Command::new(objcopy).args(["-O", "binary"]).arg(&elf).arg(&code));
    let mut qemu = Command::new(QEMU);
    qemu.args(["-M", "virt", "-m", "16", "-bios", "none", "-display", "none"]);
    qemu.args(["-serial", "none", "-monitor", "none", "-icount", "shift=0", "-singlestep"]);
    qemu.args(["-d", "exec,nochain,int", "-D"]).arg(&log).arg("-kernel").arg(&elf);
    run(&mut qemu);
    Some((fs::read(code).expect("code"), fs::read_to_string(log).expect("a log")))
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a number")
}

/// The value of a field of the line about a trap.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let start = line.find(name).expect("a field") + name.len();
    line[start..].split(',').next().expect("a value")
}

/// Reads QEMU's log, one block of one instruction a line.
fn actions(code: &[u8], log: &str) -> Vec<Action> {
    let mut found: Vec<Action> = Vec::new();
    let drop_last = |found: &mut Vec<Action>, address: u64| match found.last() {
        Some(Action::Retired(last)) if last.address == address => drop(found.pop()),
        _ => {}
    };
    for line in log.lines() {
        if line.starts_with("Trace ") {
            let place = line.split(['[', ']']).nth(1).expect("a place");
            let parts: Vec<_> = place.split('/').collect();
            let (address, flags) = (hex(parts[1]), hex(parts[2]));
            // Before it is the code of the machine that loads the program.
            let Some(offset) = address.checked_sub(BASE) else { continue };
            let bytes = &code[offset as usize..];
            let instruction = isa::decode(bytes, Xlen::Rv64).expect("an instruction");
            let context = Context { privilege: (flags & 3) as u8, time: 0, context: 0 };
            let taken = false;
            found.push(Action::Retired(Retired {
                address,
                instruction,
                taken,
                context,
                notify: false,
            }));
        } else if line.starts_with("Stopped execution of TB chain before") {
            let address = line.split(['[', ']']).nth(1).expect("an address");
            drop_last(&mut found, hex(address));
        } else if let Some(address) =
            line.strip_prefix("cpu_io_recompile: rewound execution of TB to ")
        {
            // The instruction is executed again.
            drop_last(&mut found, hex(address));
        } else if line.starts_with("riscv_cpu_do_interrupt") {
            let (cause, address) = (hex(field(line, "cause:")), hex(field(line, "epc:")));
            let is_interrupt = field(line, "async:") == "1";
            let is_call = matches!(found.last(), Some(Action::Retired(last))
                if matches!(last.instruction.kind, Kind::Ecall | Kind::Ebreak));
            if !is_interrupt && !is_call {
                drop_last(&mut found, address);
            }
            let value = (!is_interrupt).then(|| hex(field(line, "tval:")));
            found.push(Action::Trap(Trap { cause: cause & 0xff, value, address }));
        }
    }
    // The outcome of a branch is what came after it.
    let next: Vec<_> = found
        .iter()
        .skip(1)
        .map(|action| match action {
            Action::Retired(retired) => retired.address,
            Action::Trap(trap) => trap.address,
        })
        .collect();
    for (action, next) in found.iter_mut().zip(next) {
        if let Action::Retired(retired) = action {
            let after = retired.address + u64::from(retired.instruction.length);
            retired.taken = retired.instruction.is_branch() && next != after;
        }
    }
    found
}

#[derive(Debug, Default)]
struct Sum {
    actions: usize,
    traps: usize,
    interrupts: usize,
    bytes: Vec<usize>,
}

/// Encodes an execution in all modes, and decodes it by both decoders.
fn check(name: &str, timer: Option<u32>) -> Option<Sum> {
    let (code, log) = execute(name, timer)?;
    let actions = actions(&code, &log);
    let expected = of_actions(&actions);
    let section = Section { address: BASE, bytes: &code };
    let is_trap = |done: &&Done| matches!(done, Done::Trap(..));
    let mut sum = Sum {
        actions: actions.len(),
        traps: expected.iter().filter(is_trap).count(),
        interrupts: expected.iter().filter(|done| matches!(done, Done::Trap(_, None))).count(),
        bytes: Vec::new(),
    };
    for (stack, full_address, resync) in
        [(0, false, 0), (0, true, 50), (2, false, 0), (4, false, 200), (4, false, 7)]
    {
        let parameters =
            Parameters { address_width: 64, return_stack_size: stack, ..Parameters::default() };
        let implicit_return = stack > 0;
        let options = Options { implicit_return, full_address, ..Options::default() };
        let config = Config { options, resync, imprecise_context: false };
        let packets = encode(parameters, config, &actions);
        // The encoder found no place that a decoder could not follow.
        let supports = packets.iter().filter(|packet| matches!(packet, Packet::Support(_)));
        assert_eq!(supports.count(), 2, "{name} {config:?}");
        let bytes = bytes_of(&parameters, &packets);
        let ours = events(&parameters, FORMAT, &bytes, section, Xlen::Rv64);
        let (done, gaps) = of_events(&ours);
        assert_eq!(gaps, [], "{name} {config:?}");
        assert!(done == expected, "{name} {config:?}: {} of {}", done.len(), expected.len());
        let theirs = decode(&parameters, &bytes, section, Xlen::Rv64).expect(name);
        assert!(theirs == expected, "{name} {config:?}: {} of {}", theirs.len(), expected.len());
        addresses_of_traps(&actions, &ours);
        sum.bytes.push(bytes.len());
    }
    println!("{name}: {sum:?}");
    Some(sum)
}

/// The address of each exception is the one that the program found in `mepc`.
fn addresses_of_traps(actions: &[Action], events: &[Event]) {
    let was = actions.iter().filter_map(|action| match action {
        Action::Trap(trap) => Some(trap.value.map(|_| trap.address)),
        Action::Retired(_) => None,
    });
    let is = events.iter().filter_map(|event| match event {
        Event::Trap(trap) => Some(trap.address),
        _ => None,
    });
    assert!(was.eq(is));
}

#[test]
fn recursion_is_decoded_as_it_was_executed() {
    let Some(sum) = check("recursion", None) else { return };
    assert!(sum.actions > 5_000 && sum.traps == 1, "{sum:?}");
    // Implicit returns make the trace smaller.
    assert!(sum.bytes[2] < sum.bytes[0], "{sum:?}");
}

#[test]
fn indirect_calls_are_decoded_as_they_were_executed() {
    let Some(sum) = check("indirect", None) else { return };
    assert!(sum.actions > 10_000 && sum.traps == 1, "{sum:?}");
}

#[test]
fn traps_are_decoded_as_they_were_taken() {
    let Some(sum) = check("traps", Some(9)) else { return };
    assert!(sum.actions > 30_000 && sum.traps > 380 && sum.interrupts > 10, "{sum:?}");
}

#[test]
fn calls_and_returns_are_blocks() {
    let Some((code, log)) = execute("recursion", None) else { return };
    let actions = actions(&code, &log);
    let parameters = Parameters { address_width: 64, ..Parameters::default() };
    let bytes = bytes_of(&parameters, &encode(parameters, Config::default(), &actions));
    let section = Section { address: BASE, bytes: &code };
    let (mut blocks, mut found) = (Blocks::new(), Vec::new());
    for event in events(&parameters, FORMAT, &bytes, section, Xlen::Rv64) {
        blocks.event(&event, &mut |block| found.push(block));
    }
    let executed: u64 = found.iter().map(|block| block.instructions).sum();
    let retired = |action: &&Action| matches!(action, Action::Retired(_));
    assert_eq!(executed, actions.iter().filter(retired).count() as u64);
    let count = |wanted: Exit| found.iter().filter(|block| block.exit == wanted).count();
    // The calls of machine_trap and what it calls do not return: the program ends there.
    let (calls, returns) = (count(Exit::Call), count(Exit::Return));
    assert!(calls > 300 && (returns..=returns + 3).contains(&calls), "{calls} {returns}");
}
