// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From classes to programs.
//!
//! Outer scopes are read before inner ones but must save what inner ones need,
//! so there are two passes over every class: the first finds all references,
//! the second writes the operations.

use lateralis_model::ScalarKind;

use super::resolve::{Address, Around, Here, Registers, Scopes, Target};
use super::same::Same;
use super::{Choice, Count, EventPlan, Fast, Op, Plan, Program, StreamPlan};
use crate::metadata::{
    Diagnostic, FieldClass, Length, Location, OptionClass, Role, Roles, Scope, Selection,
    StreamClass, TraceClass, brief, is_odd_real,
};

/// Compiles a trace class. What cannot be compiled is reported and left out:
/// an event class alone, or a stream class if it is about all its events.
///
/// Cost: linear in the number of field classes.
#[must_use]
pub fn compile(trace: &TraceClass, diagnostics: &mut Vec<Diagnostic>) -> Plan {
    let mut plan = Plan::default();
    let scopes: Scopes<'_> = [trace.packet_header.as_ref(), None, None, None, None, None];
    let mut alone = Compiler::default();
    let header = [Scope::PacketHeader];
    match alone.find(&scopes, &header).and_then(|()| alone.emit(&scopes, &header)) {
        Ok(program) => plan.packet_header = program,
        Err(reason) => {
            report(diagnostics, format!("packet header: {reason}; no packet can be read"));
            plan.streams = trace.streams.iter().map(|_| StreamPlan::default()).collect();
            return plan;
        }
    }
    plan.registers = alone.register_count();
    for stream in &trace.streams {
        let mut compiler = Compiler::default();
        plan.streams.push(stream_plan(trace, stream, &mut compiler, diagnostics));
        plan.registers = plan.registers.max(compiler.register_count());
    }
    plan
}

fn report(diagnostics: &mut Vec<Diagnostic>, message: String) {
    if diagnostics.len() < 1000 {
        diagnostics.push(Diagnostic::new(0, 0, message));
    }
}

fn stream_plan(
    trace: &TraceClass,
    stream: &StreamClass,
    compiler: &mut Compiler,
    diagnostics: &mut Vec<Diagnostic>,
) -> StreamPlan {
    let shared: Scopes<'_> = [
        trace.packet_header.as_ref(),
        stream.packet_context.as_ref(),
        stream.event_header.as_ref(),
        stream.common_context.as_ref(),
        None,
        None,
    ];
    let mut plan = StreamPlan {
        ids: stream.events.iter().enumerate().map(|(i, event)| (event.id, i as u32)).collect(),
        readable: true,
        ..StreamPlan::default()
    };
    plan.ids.sort_unstable();

    const BODY: [Scope; 3] = [Scope::CommonContext, Scope::EventContext, Scope::Payload];
    let outer = [Scope::PacketHeader, Scope::PacketContext, Scope::EventHeader];
    if let Err(reason) = compiler.find(&shared, &outer) {
        report(diagnostics, format!("stream class {}: {reason}; it cannot be read", stream.id));
        return StreamPlan {
            events: stream.events.iter().map(|_| None).collect(),
            ..plan.unreadable()
        };
    }
    // References of every event class first: outer scopes save for all of them.
    let mut usable = Vec::with_capacity(stream.events.len());
    for event in &stream.events {
        let mut scopes = shared;
        scopes[Scope::EventContext as usize] = event.context.as_ref();
        scopes[Scope::Payload as usize] = event.payload.as_ref();
        match compiler.find(&scopes, &BODY) {
            Ok(()) => usable.push(true),
            Err(reason) => {
                let name = brief(&event.name);
                report(diagnostics, format!("event class `{name}`: {reason}; it cannot be read"));
                usable.push(false);
            }
        }
    }
    let lateralis = trace.is_lateralis();
    let mut same = Same::default();
    plan.events.reserve_exact(stream.events.len());
    for (event, usable) in stream.events.iter().zip(usable) {
        let mut scopes = shared;
        scopes[Scope::EventContext as usize] = event.context.as_ref();
        scopes[Scope::Payload as usize] = event.payload.as_ref();
        let again = |compiler: &mut Compiler| {
            compiler.find(&scopes, &BODY)?;
            compiler.emit(&scopes, &BODY)
        };
        let program = if usable { again(compiler).ok() } else { None };
        plan.events.push(program.map(|program| EventPlan {
            program: same.one_of(program),
            straight: None,
            names_writer: lateralis && event.name == "lateralis:WRITER",
        }));
    }
    let header = compiler.emit(&shared, &[Scope::EventHeader]);
    let packet = compiler.emit(&shared, &[Scope::PacketHeader, Scope::PacketContext]);
    match (header, packet) {
        (Ok(header), Ok(packet)) => {
            plan.event_header = header;
            plan.packet = packet;
            plan.fuse();
            plan
        }
        (Err(reason), _) | (_, Err(reason)) => {
            report(diagnostics, format!("stream class {}: {reason}; it cannot be read", stream.id));
            plan.unreadable()
        }
    }
}

impl StreamPlan {
    fn unreadable(mut self) -> Self {
        self.readable = false;
        self
    }
}

#[derive(Default)]
struct Compiler {
    /// Saved by the scopes that all events of a stream share.
    shared: Registers,
    /// Saved by the current event class for itself; numbered after the shared ones, which are all
    /// known by the time this matters.
    own: Registers,
    own_most: u32,
    program: Program,
    /// First pass: only find references.
    finding: bool,
}

impl Compiler {
    fn register_count(&self) -> usize {
        (self.shared.count() + self.own_most) as usize
    }

    /// First pass.
    fn find(&mut self, scopes: &Scopes<'_>, which: &[Scope]) -> Result<(), String> {
        self.finding = true;
        self.own = Registers::default();
        let done = self.walk(scopes, which);
        self.own_most = self.own_most.max(self.own.count());
        done
    }

    /// Second pass, after the first over the same scopes.
    fn emit(&mut self, scopes: &Scopes<'_>, which: &[Scope]) -> Result<Program, String> {
        self.finding = false;
        self.walk(scopes, which)?;
        Ok(std::mem::take(&mut self.program))
    }

    /// The register that holds the value of these fields, which are all of one
    /// scope.
    fn register_of(&mut self, targets: &[Target<'_>]) -> u32 {
        if targets[0].0.0 >= Scope::EventContext {
            self.shared.count() + self.own.of(targets)
        } else {
            self.shared.of(targets)
        }
    }

    fn written_at(&self, address: &Address) -> Vec<u32> {
        if address.0 >= Scope::EventContext {
            let own = self.own.written_at(address).iter();
            own.map(|register| self.shared.count() + register).collect()
        } else {
            self.shared.written_at(address).to_vec()
        }
    }

    fn walk(&mut self, scopes: &Scopes<'_>, which: &[Scope]) -> Result<(), String> {
        self.program = Program::default();
        for &scope in which {
            if let Some(class) = scopes[scope as usize] {
                let mut here = Here { scope, scopes, around: Vec::new() };
                self.class(class, &mut here, &mut Vec::new())?;
            }
        }
        Ok(())
    }

    fn push(&mut self, op: Op) {
        if !self.finding {
            self.program.ops.push(op);
        }
    }

    fn align(&mut self, bits: u32) {
        if bits > 1 {
            self.push(Op::Align(bits));
        }
    }

    fn here(&self) -> u32 {
        self.program.ops.len() as u32
    }

    /// Writes the operations for one field. `path` is its address in the scope.
    fn class<'a>(
        &mut self,
        class: &'a FieldClass,
        here: &mut Here<'a, '_>,
        path: &mut Vec<u32>,
    ) -> Result<(), String> {
        match class {
            FieldClass::Scalar(inner) => {
                self.align(inner.scalar.align_bits);
                self.push(match is_odd_real(&inner.scalar) {
                    true => Op::OddReal(inner.scalar),
                    false => Op::Scalar { scalar: inner.scalar, fast: Fast::of(&inner.scalar) },
                });
                self.number(inner.roles, here.scope, path);
            }
            FieldClass::VarInt(inner) => {
                self.align(8);
                self.push(Op::VarInt { signed: inner.signed });
                self.number(inner.roles, here.scope, path);
            }
            FieldClass::Text(inner) => {
                self.align(8);
                let unit = inner.encoding.map_or(0, |encoding| encoding.unit_bytes() as u8);
                match &inner.length {
                    Length::Terminated => self.push(Op::TextToNull(unit.max(1))),
                    length => {
                        let length = self.count(length, here, path)?;
                        let uuid = inner.roles.contains(Role::Uuid);
                        self.push(Op::Span { length, unit, uuid });
                    }
                }
            }
            FieldClass::Struct(inner) => {
                self.align(class.align_bits());
                for (index, member) in inner.members.iter().enumerate() {
                    here.around.push(Around { class, path: path.clone(), member: index });
                    path.push(index as u32);
                    let done = self.class(&member.class, here, path);
                    path.pop();
                    here.around.pop();
                    done.map_err(|reason| format!("{}: {reason}", brief(&member.name)))?;
                }
            }
            FieldClass::Array(inner) => {
                let count = self.count(&inner.length, here, path)?;
                self.align(class.align_bits());
                path.push(0);
                let done = self.elements(count, &inner.element, here, path);
                path.pop();
                done?;
            }
            FieldClass::Variant(inner) => {
                let selector = inner.selector.as_ref().ok_or("a variant without a tag")?;
                self.variant(&inner.options, selector, here, path)?;
            }
            FieldClass::Optional(inner) => {
                let (register, signed) = self.register(&inner.selector, here, path)?;
                let choices = match &inner.ranges {
                    Some(ranges) => ranges
                        .iter()
                        .map(|r| Choice { low: r.low, high: r.high, option: 1, target: 0 })
                        .collect(),
                    // A boolean: anything but zero, with any sign.
                    None => vec![
                        Choice { low: i128::MIN, high: -1, option: 1, target: 0 },
                        Choice { low: 1, high: i128::MAX, option: 1, target: 0 },
                    ],
                };
                let table = self.table(choices);
                let maybe = self.here();
                self.push(Op::Maybe { register, signed, table, end: 0 });
                path.push(0);
                let done = self.class(&inner.class, here, path);
                path.pop();
                done?;
                let end = self.here();
                self.patch(maybe, |op| {
                    if let Op::Maybe { end: target, .. } = op {
                        *target = end;
                    }
                });
            }
        }
        Ok(())
    }

    fn number(&mut self, roles: Roles, scope: Scope, path: &[u32]) {
        if self.finding {
            return;
        }
        if roles != Roles::default() {
            self.push(Op::Role(roles));
        }
        for register in self.written_at(&(scope, path.to_vec())) {
            self.push(Op::Save(register));
        }
    }

    fn elements<'a>(
        &mut self,
        count: Count,
        element: &'a FieldClass,
        here: &mut Here<'a, '_>,
        path: &mut Vec<u32>,
    ) -> Result<(), String> {
        if let FieldClass::Scalar(inner) = element {
            let address: Address = (here.scope, path.clone());
            let plain = inner.roles == Roles::default() && !is_odd_real(&inner.scalar);
            if plain && self.written_at(&address).is_empty() {
                self.push(Op::Packed { count, scalar: inner.scalar });
                return Ok(());
            }
        }
        let repeat = self.here();
        self.push(Op::Repeat { count, end: 0 });
        self.class(element, here, path)?;
        self.push(Op::Next);
        let after = self.here();
        self.patch(repeat, |op| {
            if let Op::Repeat { end, .. } = op {
                *end = after;
            }
        });
        Ok(())
    }

    fn variant<'a>(
        &mut self,
        options: &'a [OptionClass],
        selector: &Location,
        here: &mut Here<'a, '_>,
        path: &mut Vec<u32>,
    ) -> Result<(), String> {
        let targets = here.resolve(selector, path)?;
        let signed = sign(&targets)?;
        let register = self.register_of(&targets);
        let labels = targets[0].1.labels();
        let by_label = options.iter().any(|o| matches!(o.selection, Selection::Label(_)));
        if by_label && targets.iter().any(|(_, class)| class.labels() != labels) {
            return Err("a tag that is in several options of a variant has other labels in \
                        each of them"
                .to_owned());
        }
        let mut choices = Vec::new();
        for (index, option) in options.iter().enumerate() {
            let ranges = match &option.selection {
                Selection::Ranges(ranges) => ranges.as_slice(),
                Selection::Label(name) => labels
                    .iter()
                    .find(|label| *label.name == **name)
                    .or_else(|| labels.iter().find(|label| shown(&label.name) == shown(name)))
                    .map_or(&[][..], |label| label.ranges.as_slice()),
            };
            let choice = |r: &lateralis_model::Range| Choice {
                low: r.low,
                high: r.high,
                option: index as u32,
                target: 0,
            };
            choices.extend(ranges.iter().map(choice));
        }
        let table = self.table(choices);
        self.push(Op::Select { register, signed, table });
        let mut jumps = Vec::new();
        for (index, option) in options.iter().enumerate() {
            let target = self.here();
            if let Some(choices) = self.program.choices.get_mut(table as usize) {
                let of_option = choices.iter_mut().filter(|c| c.option == index as u32);
                of_option.for_each(|choice| choice.target = target);
            }
            path.push(index as u32);
            let done = self.class(&option.class, here, path);
            path.pop();
            done.map_err(|reason| format!("{}: {reason}", brief(&option.name)))?;
            if index + 1 < options.len() {
                jumps.push(self.here());
                self.push(Op::Jump(0));
            }
        }
        let end = self.here();
        for jump in jumps {
            self.patch(jump, |op| *op = Op::Jump(end));
        }
        Ok(())
    }

    fn table(&mut self, choices: Vec<Choice>) -> u32 {
        if !self.finding {
            self.program.choices.push(choices);
        }
        self.program.choices.len().saturating_sub(1) as u32
    }

    fn patch(&mut self, index: u32, change: impl FnOnce(&mut Op)) {
        if let Some(op) = self.program.ops.get_mut(index as usize) {
            change(op);
        }
    }

    fn count(
        &mut self,
        length: &Length,
        here: &Here<'_, '_>,
        path: &[u32],
    ) -> Result<Count, String> {
        match length {
            Length::Fixed(count) => Ok(Count::Fixed(*count)),
            Length::Field(location) => {
                let (register, signed) = self.register(location, here, path)?;
                if signed {
                    return Err("a length must be an unsigned integer".to_owned());
                }
                Ok(Count::Register(register))
            }
            Length::Terminated => Err("only text has a terminator".to_owned()),
        }
    }

    fn register(
        &mut self,
        at: &Location,
        here: &Here<'_, '_>,
        path: &[u32],
    ) -> Result<(u32, bool), String> {
        let targets = here.resolve(at, path)?;
        let signed = sign(&targets)?;
        Ok((self.register_of(&targets), signed))
    }
}

fn shown(name: &str) -> &str {
    name.strip_prefix('_').unwrap_or(name)
}

/// Whether the number that these fields share is signed.
fn sign(targets: &[Target<'_>]) -> Result<bool, String> {
    let signed = is_signed(targets[0].1);
    if targets.iter().any(|(_, class)| is_signed(class) != signed) {
        return Err("a length or selector is signed in one option of a variant, not in \
                    another"
            .to_owned());
    }
    Ok(signed)
}

fn is_signed(class: &FieldClass) -> bool {
    match class {
        FieldClass::Scalar(class) => class.scalar.kind == ScalarKind::Signed,
        FieldClass::VarInt(class) => class.signed,
        _ => false,
    }
}
