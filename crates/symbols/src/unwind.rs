// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who called whom, out of the registers and the top of a stack, by the tables for exceptions that are in
//! programs of x86-64 [Linux Standard Base, Core, Exception Frames; DWARF 5, 6.4; System V ABI for x86-64,
//! figure 3.36: numbers of registers].
//!
//! All registers are tracked: the resolver of glibc's dynamic linker finds its caller by `rbx`,
//! code that aligns its stack by `r10`. If a table's rule for the caller fails, the stack ends:
//! only code without any table is assumed to keep a frame pointer.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, Encoding, EndianSlice,
    Evaluation, EvaluationResult, FrameDescriptionEntry, LittleEndian, Location, Register,
    RegisterRule, UnwindContext, UnwindExpression, UnwindSection, Value, X86_64,
};

use crate::{Image, Mapping};

/// Frames of a stack at most.
const FRAMES_MAX: usize = 1024;

/// Bytes of a section, and the address that the linker gave them.
type Section = Option<(u64, Arc<[u8]>)>;

/// What of a file says how to go from a function to its caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    pub eh_frame: Section,
    pub eh_frame_hdr: Section,
    pub debug_frame: Section,
    pub text: Option<Range<u64>>,
    pub got: Option<Range<u64>>,
}

/// Registers of x86-64 where a stack begins, by the numbers that Linux gives them
/// [arch/x86/include/uapi/asm/perf_regs.h].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    values: [Option<u64>; 24],
}

/// Numbers of these registers.
const IP: usize = 8;
const SP: usize = 7;
/// Linux's number of each register, in the order of DWARF's numbers: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp,
/// r8 to r15, and where to return to, which at first is the instruction that comes next.
const IN_DWARF_ORDER: [usize; REGISTERS] =
    [0, 3, 2, 1, 4, 5, 6, SP, 16, 17, 18, 19, 20, 21, 22, 23, IP];
const REGISTERS: usize = 17;

impl Registers {
    /// Those of which bits of a mask are set, in the order of their numbers.
    #[must_use]
    pub fn of_mask(mask: u64, values: impl IntoIterator<Item = u64>) -> Self {
        let mut all = Self::default();
        let set = (0..64).filter(|bit| mask >> bit & 1 == 1);
        for (number, value) in set.zip(values) {
            if let Some(place) = all.values.get_mut(number) {
                *place = Some(value);
            }
        }
        all
    }

    fn get(&self, number: usize) -> Option<u64> {
        self.values.get(number).copied().flatten()
    }

    /// Where the stack begins.
    #[must_use]
    pub fn stack_pointer(&self) -> Option<u64> {
        self.get(SP)
    }
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Values of a function's registers by DWARF's numbers, of those that are known.
type Values = [Option<u64>; REGISTERS];

fn value(values: &Values, register: Register) -> Option<u64> {
    values.get(usize::from(register.0)).copied().flatten()
}

/// Where entries of a section begin, in the order of the addresses that they are about.
type Index = Vec<(Range<u64>, usize)>;

/// A file that is mapped.
struct Module {
    /// Addresses in the process.
    range: Range<u64>,
    /// Added to addresses that the linker gave.
    base: u64,
    tables: Tables,
    /// Of `.eh_frame` where the linker made no index, and of `.debug_frame`.
    made: [OnceCell<Index>; 2],
}

/// How to get from a function to its caller, at one address.
struct Step {
    module: usize,
    is_debug_frame: bool,
    /// The kernel called it, where the program was interrupted.
    is_signal_frame: bool,
    encoding: Encoding,
    cfa: CfaRule<usize>,
    rules: Box<[(Register, RegisterRule<usize>)]>,
}

enum Way {
    Table(Step),
    /// A mapped file that says nothing of this address.
    NoEntry,
    NoModule,
}

/// Unwinds stacks of one process, with the files that are mapped in it now.
#[derive(Default)]
pub struct Stacks {
    /// In the order of their addresses, none over another.
    modules: Vec<Module>,
    ways: HashMap<u64, Arc<Way>>,
    context: UnwindContext<usize>,
}

/// Addresses for which the way on is kept, at most: about 100 bytes each.
const WAYS_MAX: usize = 1 << 16;
/// Bytes of an entry at most: a lookup goes through its entry. Compilers make some hundred.
const ENTRY_BYTES_MAX: usize = 1 << 16;
/// Steps of an expression at most. Those of compilers have about ten.
const EXPRESSION_STEPS_MAX: u32 = 1000;
/// Below it Linux lets no program map memory (`vm.mmap_min_addr`, 65,536 by default).
const ADDRESS_MIN: u64 = 0x1_0000;

impl std::fmt::Debug for Stacks {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Stacks").finish_non_exhaustive()
    }
}

impl Stacks {
    /// A file is mapped, in place of what was mapped there.
    pub fn add(&mut self, mapping: &Mapping, image: &Image) {
        let Some(base) = image.moved_by(mapping) else { return };
        let range = mapping.begin..mapping.end;
        self.ways.clear();
        self.modules.retain(|old| old.range.end <= range.start || old.range.start >= range.end);
        let at = self.modules.partition_point(|old| old.range.start < range.start);
        let tables = image.tables.clone();
        self.modules.insert(at, Module { range, base, tables, made: Default::default() });
    }

    /// Addresses from the innermost function out: that of the instruction that comes next, then those that
    /// calls return to; after a handler of a signal, one more than where the program was interrupted, so that
    /// one less is always an instruction of the function. Ends where nothing says more. `stack`: bytes from
    /// the stack pointer on.
    #[must_use]
    pub fn unwind(&mut self, registers: &Registers, stack: &[u8]) -> Vec<u64> {
        let mut values: Values = IN_DWARF_ORDER.map(|number| registers.get(number));
        // While the kernel puts another program in place, registers are zero.
        let start = registers.get(IP).zip(registers.get(SP)).filter(|(ip, _)| *ip >= ADDRESS_MIN);
        let Some((ip, begin)) = start else { return Vec::new() };
        let read = |address: u64| {
            let at = usize::try_from(address.checked_sub(begin)?).ok()?;
            Some(u64::from_le_bytes(*stack.get(at..)?.first_chunk()?))
        };
        let mut found = vec![ip];
        // An instruction of the function: a call at its end returns to the next function.
        let mut inside = ip;
        while found.len() < FRAMES_MAX {
            let way = self.way_at(inside);
            let is_interrupted = matches!(&*way, Way::Table(step) if step.is_signal_frame);
            // A handler returns to the first instruction of what has the name.
            if let [_, .., last] = &mut found[..]
                && is_interrupted
            {
                *last = inside + 2;
            }
            let Some(caller) = self.caller(&way, &values, found.len() == 1, read) else { break };
            let (Some(ip), Some(sp)) = (value(&caller, X86_64::RA), value(&caller, X86_64::RSP))
            else {
                break;
            };
            // A stack grows down; a handler may have one of its own.
            let goes_on = is_interrupted || value(&values, X86_64::RSP).is_some_and(|old| old < sp);
            if !goes_on || ip < ADDRESS_MIN {
                break;
            }
            values = caller;
            inside = if is_interrupted { ip } else { ip - 1 };
            found.push(inside + 1);
        }
        found
    }

    fn way_at(&mut self, address: u64) -> Arc<Way> {
        if let Some(way) = self.ways.get(&address) {
            return Arc::clone(way);
        }
        let at = self.modules.partition_point(|module| module.range.end <= address);
        let module = self.modules.get(at).filter(|module| module.range.contains(&address));
        let way = module.map_or(Way::NoModule, |module| {
            let step = module.step_at(address, &mut self.context);
            step.map_or(Way::NoEntry, |step| Way::Table(Step { module: at, ..step }))
        });
        if self.ways.len() >= WAYS_MAX {
            self.ways.clear();
        }
        let way = Arc::new(way);
        self.ways.insert(address, Arc::clone(&way));
        way
    }

    /// Registers at the return to a function's caller.
    fn caller(
        &self,
        way: &Way,
        values: &Values,
        is_innermost: bool,
        read: impl Fn(u64) -> Option<u64> + Copy,
    ) -> Option<Values> {
        let sp = value(values, X86_64::RSP)?;
        match way {
            Way::Table(step) => step.caller(self.modules.get(step.module)?, values, read),
            // A leaf without a frame, as they are written in assembly; else a frame that `rbp` points to.
            Way::NoEntry if is_innermost && self.is_code(read(sp)?) => {
                let mut caller = kept_by_calls(values);
                set(&mut caller, X86_64::RA, read(sp));
                set(&mut caller, X86_64::RSP, sp.checked_add(8));
                Some(caller)
            }
            Way::NoEntry | Way::NoModule => {
                let bp = value(values, X86_64::RBP).filter(|bp| *bp >= sp)?;
                let mut caller = kept_by_calls(values);
                set(&mut caller, X86_64::RBP, read(bp));
                set(&mut caller, X86_64::RA, read(bp.checked_add(8)?));
                set(&mut caller, X86_64::RSP, bp.checked_add(16));
                Some(caller)
            }
        }
    }

    fn is_code(&self, address: u64) -> bool {
        let at = self.modules.partition_point(|module| module.range.end <= address);
        self.modules.get(at).is_some_and(|module| module.range.contains(&address))
    }
}

fn set(values: &mut Values, register: Register, to: Option<u64>) {
    if let Some(place) = values.get_mut(usize::from(register.0)) {
        *place = to;
    }
}

/// What a function leaves as its caller had it, unless a table says otherwise; of the others nothing is known
/// [System V ABI for x86-64, 3.2.1].
fn kept_by_calls(values: &Values) -> Values {
    let mut kept = [None; REGISTERS];
    let registers = [X86_64::RBX, X86_64::RBP, X86_64::R12, X86_64::R13, X86_64::R14, X86_64::R15];
    for register in registers {
        set(&mut kept, register, value(values, register));
    }
    kept
}

impl Step {
    fn caller(
        &self,
        module: &Module,
        values: &Values,
        read: impl Fn(u64) -> Option<u64> + Copy,
    ) -> Option<Values> {
        let compute = |expression: &UnwindExpression<usize>, initial: Option<u64>| {
            let slice = module.section(self.is_debug_frame)?;
            let expression = if self.is_debug_frame {
                expression.get(&DebugFrame::from(slice))
            } else {
                expression.get(&EhFrame::from(slice))
            };
            evaluate(expression.ok()?.evaluation(self.encoding), initial, values, read)
        };
        let cfa = match &self.cfa {
            CfaRule::RegisterAndOffset { register, offset } => {
                value(values, *register)?.checked_add_signed(*offset)?
            }
            CfaRule::Expression(expression) => compute(expression, None)?,
        };
        let mut caller = if self.is_signal_frame { *values } else { kept_by_calls(values) };
        set(&mut caller, X86_64::RA, None);
        set(&mut caller, X86_64::RSP, Some(cfa));
        for (register, rule) in &self.rules {
            let new = match rule {
                RegisterRule::SameValue => value(values, *register),
                RegisterRule::Offset(offset) => cfa.checked_add_signed(*offset).and_then(read),
                RegisterRule::ValOffset(offset) => cfa.checked_add_signed(*offset),
                RegisterRule::Register(other) => value(values, *other),
                RegisterRule::Expression(expression) => {
                    compute(expression, Some(cfa)).and_then(read)
                }
                RegisterRule::ValExpression(expression) => compute(expression, Some(cfa)),
                RegisterRule::Constant(constant) => Some(*constant),
                // Where `_start` returns to, among others.
                _ => None,
            };
            set(&mut caller, *register, new);
        }
        Some(caller)
    }
}

fn evaluate(
    mut evaluation: Evaluation<Slice<'_>>,
    initial: Option<u64>,
    values: &Values,
    read: impl Fn(u64) -> Option<u64>,
) -> Option<u64> {
    evaluation.set_max_iterations(EXPRESSION_STEPS_MAX);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = Value::Generic(value(values, register)?);
                evaluation.resume_with_register(value).ok()?
            }
            EvaluationResult::RequiresMemory { address, size: 8, space: None, .. } => {
                evaluation.resume_with_memory(Value::Generic(read(address)?)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.result().last()?.location {
        Location::Address { address } => Some(address),
        _ => None,
    }
}

impl Module {
    fn section(&self, is_debug_frame: bool) -> Option<Slice<'_>> {
        let tables = &self.tables;
        let section = if is_debug_frame { &tables.debug_frame } else { &tables.eh_frame };
        section.as_ref().map(|(_, bytes)| EndianSlice::new(bytes, LittleEndian))
    }

    fn bases(&self) -> BaseAddresses {
        let tables = &self.tables;
        let begin = |section: &Section| section.as_ref().map_or(0, |(begin, _)| *begin);
        BaseAddresses::default()
            .set_eh_frame(begin(&tables.eh_frame))
            .set_eh_frame_hdr(begin(&tables.eh_frame_hdr))
            .set_text(tables.text.as_ref().map_or(0, |range| range.start))
            .set_got(tables.got.as_ref().map_or(0, |range| range.start))
    }

    /// The step from an address of the process, of no module yet.
    fn step_at(&self, address: u64, context: &mut UnwindContext<usize>) -> Option<Step> {
        let at = address.wrapping_sub(self.base);
        if let Some(slice) = self.section(false) {
            let mut section = EhFrame::from(slice);
            section.set_address_size(8);
            let offset = self.indexed(at);
            let offset = offset.or_else(|| self.found(&section, &self.made[0], at));
            let fde = offset.and_then(|offset| self.entry(&section, offset));
            if let Some(step) = fde.and_then(|fde| self.step(&section, &fde, at, context)) {
                return Some(step);
            }
        }
        let mut section = DebugFrame::from(self.section(true)?);
        section.set_address_size(8);
        let fde = self.entry(&section, self.found(&section, &self.made[1], at)?)?;
        self.step(&section, &fde, at, context).map(|step| Step { is_debug_frame: true, ..step })
    }

    /// Where the entry for an address begins in `.eh_frame`, by the index that the linker made.
    fn indexed(&self, at: u64) -> Option<usize> {
        let bases = self.bases();
        let (_, bytes) = self.tables.eh_frame_hdr.as_ref()?;
        let index = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok()?;
        let entry = index.table()?.lookup(at, &bases).ok()?.direct().ok()?;
        usize::try_from(entry.checked_sub(self.tables.eh_frame.as_ref()?.0)?).ok()
    }

    /// The same by an index that is made when it is asked for.
    fn found<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        section: &S,
        made: &OnceCell<Index>,
        at: u64,
    ) -> Option<usize> {
        let index = made.get_or_init(|| {
            let bases = self.bases();
            let mut index = Vec::new();
            let mut entries = section.entries(&bases);
            while let Ok(Some(entry)) = entries.next() {
                let CieOrFde::Fde(entry) = entry else { continue };
                let Ok(fde) = entry.parse(S::cie_from_offset) else { continue };
                index.push((fde.initial_address()..fde.end_address(), fde.offset()));
            }
            index.sort_unstable_by_key(|(range, _)| range.start);
            index
        });
        let before = index.partition_point(|(range, _)| range.start <= at).checked_sub(1)?;
        index.get(before).filter(|(range, _)| range.contains(&at)).map(|(_, offset)| *offset)
    }

    fn entry<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        section: &S,
        offset: usize,
    ) -> Option<FrameDescriptionEntry<Slice<'a>>> {
        let entry = section.fde_from_offset(&self.bases(), offset.into(), S::cie_from_offset);
        entry.ok().filter(|fde| fde.entry_len() <= ENTRY_BYTES_MAX)
    }

    fn step<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        section: &S,
        fde: &FrameDescriptionEntry<Slice<'a>>,
        at: u64,
        context: &mut UnwindContext<usize>,
    ) -> Option<Step> {
        let row = fde.unwind_info_for_address(section, &self.bases(), context, at).ok()?;
        Some(Step {
            module: 0,
            is_debug_frame: false,
            is_signal_frame: fde.is_signal_trampoline(),
            encoding: fde.cie().encoding(),
            cfa: row.cfa().clone(),
            rules: row.registers().cloned().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_in_the_order_of_their_bits() {
        // What perf asks for on x86-64 [tools/perf/arch/x86/include/perf_regs.h, PERF_REGS_MASK].
        let registers = Registers::of_mask(0xff_0fff, 100..);
        assert_eq!(registers.get(IP), Some(108));
        assert_eq!(registers.stack_pointer(), Some(107));
        assert_eq!((registers.get(12), registers.get(16)), (None, Some(112)));
        assert_eq!(Registers::of_mask(1 << 8, []).get(IP), None);
    }

    #[test]
    fn without_tables_a_stack_ends_where_it_begins() {
        let registers = Registers::of_mask(1 << IP | 1 << SP, [0x7000, 0x41234]);
        let mut stacks = Stacks::default();
        let found = stacks.unwind(&registers, &[0; 64]);
        assert_eq!(found.first(), Some(&0x41234));
        assert_eq!(stacks.unwind(&Registers::default(), &[]), []);
    }
}
