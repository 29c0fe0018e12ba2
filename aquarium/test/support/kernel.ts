// SPDX-License-Identifier: Apache-2.0 OR MIT
// A trace of a Linux kernel in the format of LTTng, byte by byte: a boss runs on one CPU and
// repeatedly wakes a worker on the other; a visitor runs once and exits.

import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const BOSS = 101;
export const WORKER = 102;
export const VISITOR = 103;

/** States in which a thread is switched out [include/linux/sched.h]. */
const [PREEMPTED, SLEEPING, BLOCKED, DEAD] = [0, 1, 2, 16];

const ROUNDS = 20;
const PERIOD_NS = 100_000;
/** Times within a round: wakeup of the worker, its switch-in, its switch-out. */
const [WAKE_NS, COME_NS, LEAVE_NS] = [20_000, 25_000, 60_000];
/** The round after which the worker waits for a device. */
const BLOCKED_AFTER = 10;
/** Time in which the visitor runs; it exits at the end. */
export const VISIT: [number, number] = [2000, 5000];
/** Time of the last event, relative to the first. */
export const LAST_NS = 5_000_000;

const INTEGERS =
  "typealias integer { size = 16; align = 8; } := u16; typealias integer { size = 32; align = 8; } := u32;\n" +
  "typealias integer { size = 64; align = 8; } := u64; typealias integer { size = 32; align = 8; signed = true; } := i32;\n" +
  "typealias integer { size = 64; align = 8; signed = true; } := i64;\n" +
  "typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := time;\n";

const SWITCH = "i32 _prev_tid; i64 _prev_state; i32 _next_tid; string _next_comm;";
const CLASSES = [
  ["sched_switch", SWITCH],
  ["sched_waking", "i32 _tid; i32 _target_cpu;"],
  ["irq_softirq_entry", "u32 _vec;"],
  ["irq_softirq_exit", "u32 _vec;"],
  ["timer_hrtimer_expire_entry", "u64 _hrtimer;"],
  ["timer_hrtimer_expire_exit", "u64 _hrtimer;"],
];
const [SWITCHES, WAKES, SOFT_BEGINS, SOFT_ENDS, TIMER_BEGINS, TIMER_ENDS] = [0, 1, 2, 3, 4, 5];

const NAMES = new Map([
  [0, "swapper"],
  [BOSS, "boss"],
  [WORKER, "worker"],
  [VISITOR, "visitor"],
]);

const u16 = (value: number): Buffer => Buffer.from(Uint16Array.of(value).buffer);
const i32 = (value: number): Buffer => Buffer.from(Int32Array.of(value).buffer);
const i64 = (value: number): Buffer => Buffer.from(BigInt64Array.of(BigInt(value)).buffer);

interface At {
  t: number;
  bytes: Buffer;
}

const event = (t: number, id: number, ...fields: Buffer[]): At => ({
  t,
  bytes: Buffer.concat([u16(id), i64(1_000_000 + t), ...fields]),
});
const switches = (t: number, from: number, into: number, to: number): At =>
  event(t, SWITCHES, i32(from), i64(into), i32(to), Buffer.from(`${NAMES.get(to)}\0`));

/** Interrupts of each kind, so that the trace shows that none of them caused a wakeup. */
const interrupts = (t: number): At[] => [
  event(t, SOFT_BEGINS, i32(1)),
  event(t + 1, SOFT_ENDS, i32(1)),
  event(t + 2, TIMER_BEGINS, i64(7)),
  event(t + 3, TIMER_ENDS, i64(7)),
];

export interface Kernel {
  folder: string;
  /** Times of the wakeups, relative to the first event, and of the following switch-ins of the worker. */
  woken: number[];
  came: number[];
  /** Total running time of the worker in nanoseconds. */
  worked: number;
}

export function kernel(): Kernel {
  const folder = join(mkdtempSync(join(tmpdir(), "aquarium-")), "kernel");
  const cpus: At[][] = [interrupts(0), interrupts(10)];
  cpus[0].push(switches(1000, 0, PREEMPTED, BOSS));
  cpus[1].push(switches(VISIT[0], 0, PREEMPTED, VISITOR), switches(VISIT[1], VISITOR, DEAD, 0));
  const [woken, came]: number[][] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const t = (round + 1) * PERIOD_NS;
    woken.push(t + WAKE_NS);
    came.push(t + COME_NS);
    cpus[0].push(event(t + WAKE_NS, WAKES, i32(WORKER), i32(1)));
    const into = round === ROUNDS - 1 ? DEAD : round === BLOCKED_AFTER ? BLOCKED : SLEEPING;
    cpus[1].push(switches(t + COME_NS, 0, PREEMPTED, WORKER), switches(t + LEAVE_NS, WORKER, into, 0));
  }
  cpus[0].push(switches(LAST_NS, BOSS, SLEEPING, 0));
  const metadata = [
    `/* CTF 1.8 */\n${INTEGERS}`,
    "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };",
    'env { domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; };',
    "clock { name = monotonic; freq = 1000000000; };",
    "stream { id = 0; packet.context := struct { u32 cpu_id; }; event.header := struct { u16 id; time timestamp; }; };",
    ...CLASSES.map(
      ([name, fields], id) =>
        `event { name = "${name}"; id = ${id}; stream_id = 0; fields := struct { ${fields} }; };`,
    ),
  ];
  writeFolder(folder, metadata.join("\n"), cpus);
  return { folder, woken, came, worked: ROUNDS * (LEAVE_NS - COME_NS) };
}

function writeFolder(folder: string, metadata: string, cpus: At[][]): void {
  mkdirSync(folder);
  writeFileSync(join(folder, "metadata"), metadata);
  cpus.forEach((events, cpu) => {
    const head = Buffer.from(Uint32Array.of(0xc1fc1fc1, 0, cpu).buffer);
    writeFileSync(join(folder, `channel_${cpu}`), Buffer.concat([head, ...events.map((one) => one.bytes)]));
  });
}
