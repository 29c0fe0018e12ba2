// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Number of instructions executed by the kernel for each system call, if it was traced, too.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use lateralis_intelpt::flow::Event;
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::{Block, Ends};

use super::{Follow, Moment, Recorded, Traced, intelpt, place_of};
use crate::places::{In, Places};

/// Prefixes of the names of system calls in Linux [arch/x86/include/asm/syscall_wrapper.h].
const PREFIXES: [&str; 3] = ["__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_"];
/// Largest number of calls whose lengths are kept.
const CALLS_MAX: usize = 1 << 24;

/// All system calls.
#[derive(Debug, Clone, Default)]
pub struct SystemCalls {
    /// By name: instructions of each call in the order of their returns, from after the instruction that
    /// enters the kernel, up to and including the one that returns.
    pub calls: BTreeMap<String, Vec<u64>>,
    /// Number of calls cut off by a gap.
    pub void: u64,
    /// Number of calls that have not returned.
    pub open: u64,
    /// Number of calls beyond those that are kept.
    pub not_kept: u64,
}

struct Open {
    /// Instructions before it.
    begin: u64,
    name: Option<String>,
}

struct Watching {
    pid: u32,
    executed: u64,
    open: Option<Open>,
    /// Whether a far branch enters the kernel, by address.
    far: HashMap<u64, bool, RandomState>,
    /// System call that a kernel block begins, by address.
    names: HashMap<u64, Option<String>, RandomState>,
    kept: usize,
    found: SystemCalls,
}

/// Finds all system calls, separately for each thread.
///
/// Cost: a lookup for each kernel block. Memory: proportional to blocks and calls.
pub fn system_calls(recorded: &mut Recorded<'_>) -> SystemCalls {
    let mut watching = Watching {
        pid: 0,
        executed: 0,
        open: None,
        far: HashMap::default(),
        names: HashMap::default(),
        kept: 0,
        found: SystemCalls::default(),
    };
    recorded.follow(&mut watching);
    watching.found.open += u64::from(watching.open.is_some());
    watching.found
}

impl Watching {
    fn returns(&mut self) {
        let Some(Open { begin, name }) = self.open.take() else { return };
        if self.kept >= CALLS_MAX {
            self.found.not_kept += 1;
            return;
        }
        self.kept += 1;
        let name = name.unwrap_or_else(|| "[unknown]".to_owned());
        self.found.calls.entry(name).or_default().push(self.executed - begin);
    }
}

impl Follow for Watching {
    fn begins(&mut self, _: &mut Places<'_>, traced: &Traced) {
        self.found.open += u64::from(self.open.take().is_some());
        if self.pid != traced.pid {
            self.far.clear();
            self.names.clear();
        }
        (self.pid, self.executed) = (traced.pid, 0);
    }

    fn block(&mut self, places: &mut Places<'_>, code: &Sections<'_>, block: &Block, _: Moment) {
        match place_of(block.ip) {
            // Back from the kernel: its instructions follow the call.
            In::Program => self.returns(),
            In::Kernel | In::Elsewhere => {
                if let Some(open) = self.open.as_mut().filter(|open| open.name.is_none()) {
                    let pid = self.pid;
                    let name = self.names.entry(block.ip).or_insert_with(|| {
                        let function = places.function_at(pid, block.ip, place_of(block.ip));
                        let name = places.name_of(function)?;
                        let of = |prefix: &&str| name.strip_prefix(*prefix).map(str::to_owned);
                        PREFIXES.iter().find_map(of)
                    });
                    open.name.clone_from(name);
                }
            }
        }
        self.executed += u64::from(block.count);
        if block.ends == Ends::Far && place_of(block.ip) == In::Program {
            let calls = self.far.entry(block.last).or_insert_with(|| {
                let last = Block { ip: block.last, count: 1, ..*block };
                let mut calls = false;
                intelpt::instructions(code, &last, |_, instruction| {
                    let mnemonic = intelpt::mnemonic(instruction);
                    calls = matches!(mnemonic.as_str(), "syscall" | "sysenter" | "int");
                });
                calls
            });
            if *calls {
                self.open = Some(Open { begin: self.executed, name: None });
            }
        }
    }

    fn event(&mut self, _: &mut Places<'_>, _: u64, event: Event, _: Moment) {
        match event {
            Event::Gap(_) => self.found.void += u64::from(self.open.take().is_some()),
            // The kernel is not traced.
            Event::Disabled(_) => self.open = None,
            _ => {}
        }
    }
}
