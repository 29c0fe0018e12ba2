// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many instructions each function executed, on which path of calls.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use lateralis_intelpt::flow::Event;
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::{Block, Ends};

use super::{Follow, Recorded, Traced, cause_name, place_of};
use crate::places::{Function, In, Places};
use crate::stacks::{Stacks, Tree};

/// Deepest path; what is called beyond counts as of the last one.
const DEPTH_MAX: usize = 1024;
/// The name of what is weighed.
pub const INSTRUCTIONS: &str = "instructions";

/// What was executed.
#[derive(Debug, Clone, Default)]
pub struct Executed {
    /// Paths of calls by instructions; `samples` are calls of each.
    pub stacks: Stacks,
    /// Instructions.
    pub instructions: u64,
    /// Calls, and what came from outside: interrupts and faults.
    pub calls: u64,
    /// Interrupts and faults.
    pub interrupts: u64,
    /// Stretches of which nothing is known, by cause.
    pub gaps: BTreeMap<&'static str, u64>,
}

struct Calls {
    tree: Tree,
    executed: Executed,
    pid: u32,
    program: Option<u32>,
    /// Nodes from the program to the function that runs.
    path: Vec<u32>,
    /// Calls that are not on the path, because it was too deep.
    beyond: usize,
    /// The next block is of a function that was called, with whether that was from outside.
    is_called: bool,
    /// Whether the last block was of the kernel, and how long the path was when it was entered.
    in_kernel: Option<usize>,
    /// Of each block that was executed, its function.
    functions: HashMap<u64, u32, RandomState>,
}

/// Decodes everything that was recorded.
///
/// Cost: a look-up for each block. Memory: by blocks and paths.
pub fn executed(recorded: &mut Recorded<'_>) -> Executed {
    let mut calls = Calls {
        tree: Tree::new(INSTRUCTIONS.to_owned()),
        executed: Executed::default(),
        pid: 0,
        program: None,
        path: Vec::new(),
        beyond: 0,
        is_called: false,
        in_kernel: None,
        functions: HashMap::default(),
    };
    recorded.follow(&mut calls);
    let Calls { tree, executed, .. } = calls;
    Executed { stacks: tree.finish(), ..executed }
}

impl Calls {
    /// Nothing is known of who called what runs next.
    fn forget(&mut self) {
        self.path.truncate(1);
        self.beyond = 0;
        self.is_called = true;
        self.in_kernel = None;
    }

    fn call(&mut self) {
        self.is_called = true;
    }

    /// The function that runs turns out to be this one.
    fn enter(&mut self, function: u32) {
        let running = self.path.last().and_then(|node| self.tree.node(*node));
        let is_same = running.is_some_and(|node| node.function == function) && self.path.len() > 1;
        if self.is_called {
            self.is_called = false;
            self.executed.calls += 1;
            if self.path.len() >= DEPTH_MAX {
                self.beyond += 1;
                return;
            }
        } else if is_same || self.beyond > 0 {
            return;
        } else {
            // It went back further than one call, as exceptions and longjmp do; or it jumped on, and the
            // function that was called last never comes back.
            let is_it =
                |node: &u32| self.tree.node(*node).is_some_and(|of| of.function == function);
            let known = self.path.iter().skip(1).rposition(is_it);
            match known {
                Some(place) => {
                    self.path.truncate(place + 2);
                    return;
                }
                None if self.path.len() > 1 => {
                    self.path.pop();
                }
                None => {}
            }
        }
        let caller = self.path.last().copied();
        if let Some(node) = self.tree.below(caller, function) {
            self.path.push(node);
            self.tree.weigh(Some(node), 1, 0);
        }
    }

    fn leave(&mut self) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if self.path.len() > 2 {
            self.path.pop();
        } else {
            // It returns to where nothing is known of.
            self.path.truncate(1);
        }
    }
}

impl Follow for Calls {
    fn begins(&mut self, places: &mut Places<'_>, traced: &Traced) {
        let name = traced.program.clone();
        let program = places.function(Function { name, image: String::new() });
        if self.pid != traced.pid {
            self.functions.clear();
        }
        self.pid = traced.pid;
        self.program = Some(program);
        self.path.clear();
        self.path.extend(self.tree.below(None, program));
        self.forget();
    }

    fn block(&mut self, places: &mut Places<'_>, _: &Sections<'_>, block: &Block) {
        let pid = self.pid;
        let function = *self
            .functions
            .entry(block.ip)
            .or_insert_with(|| places.function_at(pid, block.ip, place_of(block.ip)));
        match (place_of(block.ip), self.in_kernel) {
            (In::Kernel, None) => {
                self.in_kernel = Some(self.path.len());
                self.call();
            }
            (In::Program, Some(depth)) => {
                self.in_kernel = None;
                self.beyond = 0;
                self.path.truncate(depth.max(1));
            }
            _ => {}
        }
        self.enter(function);
        let count = u64::from(block.count);
        self.executed.instructions += count;
        self.tree.weigh(self.path.last().copied(), 0, count);
        match block.ends {
            Ends::Call | Ends::IndirectCall => self.call(),
            Ends::Return => self.leave(),
            Ends::Far | Ends::Through | Ends::Jump | Ends::Conditional => {}
            Ends::IndirectJump | Ends::NoCode => {}
        }
    }

    fn event(&mut self, _: &mut Places<'_>, _: u64, event: Event) {
        match event {
            Event::Interrupted { .. } => {
                self.executed.interrupts += 1;
                self.call();
            }
            Event::Gap(gap) => {
                *self.executed.gaps.entry(cause_name(&gap.cause)).or_default() += 1;
            }
            // A program that asks the kernel, which is not traced, goes on where it was.
            Event::Synced(_) => self.forget(),
            Event::Enabled(_) | Event::Disabled(_) | Event::Here(_) | Event::Packet(_) => {}
        }
    }
}
