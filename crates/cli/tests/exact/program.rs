// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A simulated program and its kernel: all events, and the true activity.

use std::collections::BTreeMap;

/// The generator of Numerical Recipes; only repeatability matters.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// An event class: name, meaning and fields.
pub struct Class {
    pub name: &'static str,
    pub clause: &'static str,
    pub fields: &'static [&'static str],
}

const fn app(name: &'static str, clause: &'static str) -> Class {
    Class { name, clause, fields: &["id", "unit"] }
}

const fn kernel(name: &'static str, fields: &'static [&'static str]) -> Class {
    Class { name, clause: "", fields }
}

/// Classes of the program; each thread has a stream.
pub const APP: [Class; 10] = [
    app("app:work_begin", "begin work"),
    app("app:work_end", "end work"),
    app("app:request_begin", "begin request key id"),
    app("app:request_end", "end request key id"),
    app("app:lock_begin", "begin lock key unit"),
    app("app:lock_end", "end lock key unit"),
    app("app:leave", "send message key id"),
    app("app:arrive", "recv message key id"),
    app("app:level", "counter id as slots key unit"),
    app("app:mode", "state engine id key unit"),
];

/// Classes of the kernel; each CPU has a stream.
pub const KERNEL: [Class; 14] = [
    kernel("sched_switch", &["prev_tid", "prev_state", "next_tid"]),
    kernel("sched_waking", &["tid", "target_cpu"]),
    kernel("syscall_entry_read", &["fd"]),
    kernel("syscall_exit_read", &["ret"]),
    kernel("syscall_entry_write", &["fd"]),
    kernel("syscall_exit_write", &["ret"]),
    kernel("irq_handler_entry", &["irq"]),
    kernel("irq_handler_exit", &["irq"]),
    kernel("softirq_entry", &["vec"]),
    kernel("softirq_exit", &["vec"]),
    kernel("hrtimer_expire_entry", &["hrtimer"]),
    kernel("hrtimer_expire_exit", &["hrtimer"]),
    kernel("x86_irq_vectors_reschedule_entry", &["vector"]),
    kernel("x86_irq_vectors_reschedule_exit", &["vector"]),
];

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub time: u64,
    /// Index into [`APP`] or [`KERNEL`].
    pub class: usize,
    pub tid: u32,
    pub fields: Vec<u64>,
}

/// The writer of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writer {
    Thread(u32),
    Cpu(u32),
}

/// Activity of a CPU between two changes.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    pub begin: u64,
    pub end: u64,
    pub cpu: u32,
    /// 0 if the CPU was idle.
    pub tid: u32,
    pub is_in_kernel: bool,
}

/// The complete true activity.
#[derive(Default)]
pub struct Truth {
    pub streams: BTreeMap<Writer, Vec<Event>>,
    pub stretches: Vec<Stretch>,
}

pub const TIDS: [u32; 5] = [11, 12, 13, 21, 22];
pub const CPUS: u32 = 2;

pub fn pid(tid: u32) -> u32 {
    tid / 10 * 10
}

/// A thread, with the activities in progress.
#[derive(Default, Clone)]
struct Thread {
    /// The system call in progress, by the class of its begin.
    call: Option<usize>,
    is_asleep: bool,
    works: u32,
    locks: Vec<u64>,
}

struct Run {
    random: Random,
    truth: Truth,
    time: u64,
    threads: BTreeMap<u32, Thread>,
    /// Running thread, interrupts in progress, and time of the last change.
    cpus: Vec<(u32, Vec<usize>, u64)>,
    next_id: u64,
    requests: Vec<u64>,
    messages: Vec<u64>,
}

impl Run {
    fn put(&mut self, writer: Writer, class: usize, tid: u32, fields: Vec<u64>) {
        let event = Event { time: self.time, class, tid, fields };
        self.truth.streams.entry(writer).or_default().push(event);
    }

    /// Records the activity of a CPU since its last change.
    fn account(&mut self, cpu: u32) {
        let (tid, interrupts, since) = self.cpus[cpu as usize].clone();
        let is_called = self.threads.get(&tid).is_some_and(|of| of.call.is_some());
        let is_in_kernel = !interrupts.is_empty() || is_called;
        self.truth.stretches.push(Stretch { begin: since, end: self.time, cpu, tid, is_in_kernel });
        self.cpus[cpu as usize].2 = self.time;
    }

    fn kernel(&mut self, cpu: u32, class: usize, fields: Vec<u64>) {
        self.account(cpu);
        let tid = self.cpus[cpu as usize].0;
        self.put(Writer::Cpu(cpu), class, tid, fields);
    }

    fn switch(&mut self, cpu: u32) {
        let from = self.cpus[cpu as usize].0;
        let mut ready: Vec<u32> = self.threads.keys().copied().collect();
        ready.retain(|tid| {
            !self.threads[tid].is_asleep && self.cpus.iter().all(|(on, ..)| on != tid)
        });
        ready.push(0);
        let to = ready[self.random.below(ready.len() as u64) as usize];
        if to == from {
            return;
        }
        // Threads sleep only in system calls.
        let is_called = self.threads.get(&from).is_some_and(|of| of.call.is_some());
        let state = if is_called { self.random.below(3) } else { 0 };
        self.kernel(cpu, 0, vec![from.into(), state, to.into()]);
        if let Some(of) = self.threads.get_mut(&from) {
            of.is_asleep = state != 0;
        }
        self.cpus[cpu as usize].0 = to;
    }

    fn wake(&mut self, cpu: u32) {
        let asleep: Vec<u32> =
            self.threads.iter().filter(|(_, of)| of.is_asleep).map(|(tid, _)| *tid).collect();
        if asleep.is_empty() {
            return;
        }
        let tid = asleep[self.random.below(asleep.len() as u64) as usize];
        let target = self.random.below(CPUS.into());
        self.kernel(cpu, 1, vec![tid.into(), target]);
        self.threads.get_mut(&tid).expect("a thread").is_asleep = false;
    }

    fn interrupt(&mut self, cpu: u32) {
        let kinds = [6, 8, 10, 12];
        let class = kinds[self.random.below(4) as usize];
        // An interrupt does not interrupt itself.
        if self.cpus[cpu as usize].1.contains(&class) {
            return;
        }
        self.kernel(cpu, class, vec![class as u64]);
        self.cpus[cpu as usize].1.push(class);
    }

    fn step(&mut self) {
        self.time += self.random.below(4) * self.random.below(40);
        let cpu = self.random.below(CPUS.into()) as u32;
        let (tid, interrupts, _) = self.cpus[cpu as usize].clone();
        if let Some(class) = interrupts.last().copied() {
            match self.random.below(4) {
                0 => self.wake(cpu),
                1 if interrupts.len() < 3 => self.interrupt(cpu),
                _ => {
                    self.kernel(cpu, class + 1, vec![class as u64]);
                    self.cpus[cpu as usize].1.pop();
                }
            }
            return;
        }
        match self.random.below(12) {
            0..3 => return self.switch(cpu),
            3 => return self.interrupt(cpu),
            4 => return self.wake(cpu),
            _ => {}
        }
        let Some(thread) = self.threads.get(&tid).cloned() else { return };
        if let Some(class) = thread.call {
            if self.random.below(2) == 0 {
                self.kernel(cpu, class + 1, vec![0]);
                self.threads.get_mut(&tid).expect("a thread").call = None;
            }
            return;
        }
        if self.random.below(4) == 0 {
            let class = [2, 4][self.random.below(2) as usize];
            self.kernel(cpu, class, vec![3]);
            self.threads.get_mut(&tid).expect("a thread").call = Some(class);
            return;
        }
        self.program(tid, &thread);
    }

    fn program(&mut self, tid: u32, thread: &Thread) {
        let unit = self.random.below(3);
        let id = self.next_id;
        let is_held = self.threads.values().any(|of| of.locks.contains(&unit));
        let one_of = |list: &mut Vec<u64>, random: &mut Random| {
            (!list.is_empty()).then(|| list.remove(random.below(list.len() as u64) as usize))
        };
        let of = self.threads.get_mut(&tid).expect("a thread");
        let (class, id, unit) = match self.random.below(10) {
            0 if thread.works < 4 => {
                of.works += 1;
                (0, id, unit)
            }
            1 if thread.works > 0 => {
                of.works -= 1;
                (1, id, unit)
            }
            2 => {
                self.requests.push(id);
                (2, id, unit)
            }
            3 => match one_of(&mut self.requests, &mut self.random) {
                Some(id) => (3, id, unit),
                None => return,
            },
            4 if !is_held => {
                of.locks.push(unit);
                (4, id, unit)
            }
            5 => match of.locks.pop() {
                Some(unit) => (5, id, unit),
                None => return,
            },
            6 => {
                self.messages.push(id);
                (6, id, unit)
            }
            7 => match one_of(&mut self.messages, &mut self.random) {
                Some(id) => (7, id, unit),
                None => return,
            },
            8 => (8, self.random.below(50), unit),
            9 => (9, self.random.below(3), unit),
            _ => return,
        };
        self.next_id += 1;
        self.put(Writer::Thread(tid), class, tid, vec![id, unit]);
    }
}

impl Truth {
    /// Simulates the given number of steps from a seed.
    pub fn of(seed: u64, steps: usize) -> Self {
        let threads = TIDS.iter().map(|tid| (*tid, Thread::default())).collect();
        let mut run = Run {
            random: Random(seed.wrapping_mul(977) + 1),
            truth: Self::default(),
            time: 1_000_000,
            threads,
            cpus: vec![(0, Vec::new(), 1_000_000); CPUS as usize],
            next_id: 1,
            requests: Vec::new(),
            messages: Vec::new(),
        };
        // Both ends of the recording have an event whatever else is missing.
        run.put(Writer::Thread(TIDS[0]), 8, TIDS[0], vec![0, 0]);
        for _ in 0..steps {
            run.step();
        }
        run.put(Writer::Thread(TIDS[0]), 8, TIDS[0], vec![0, 0]);
        (0..CPUS).for_each(|cpu| run.account(cpu));
        run.truth
    }

    /// Returns the nanoseconds of the selected CPU activity between two times.
    pub fn nanos(&self, (from, until): (u64, u64), is_it: impl Fn(&Stretch) -> bool) -> u64 {
        let all = self.stretches.iter().filter(|stretch| is_it(stretch));
        all.map(|it| it.end.min(until).saturating_sub(it.begin.max(from))).sum()
    }
}
