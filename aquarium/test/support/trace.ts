// SPDX-License-Identifier: Apache-2.0 OR MIT
// A small trace from a pseudo-random generator: identical in each run.

export interface Event {
  t: number;
  core: number;
  class: number;
  application: number;
  fields: { name: string; value: number; unit?: string }[] | null;
}
export interface Piece {
  lane: number;
  row: number;
  begin: number;
  end: number;
  name: number;
}
export interface Message {
  from: number;
  to: number;
  fromLane: number;
  toLane: number;
  application: number;
}
export interface Trace {
  end: number;
  cores: number;
  events: Event[];
  pieces: Piece[];
  messages: Message[];
}

export const CLASSES = [
  { subsystem: "threads", name: "MUTEX_LOCK" },
  { subsystem: "threads", name: "MUTEX_UNLOCK" },
  { subsystem: "ipc", name: "SEND", sends: true },
  { subsystem: "ipc", name: "RECEIVE", receives: true },
  { subsystem: "memory", name: "ALLOC" },
  { subsystem: "memory", name: "OUT_OF_MEMORY" },
];
export const APPLICATIONS = ["idle", "monitor", "mem_serv", "spawnd", "fish"];
export const NAMES = ["request", "parse", "lookup", "reply", "wait"];

export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export function makeTrace(seed = 1, end = 2_000_000, cores = 4): Trace {
  const next = random(seed);
  const trace: Trace = { end, cores, events: [], pieces: [], messages: [] };
  for (let core = 0; core < cores; core++) run(trace, core, next);
  for (let worker = 0; worker < 3; worker++) spans(trace, cores + 1 + worker, next);
  trace.events.push({
    t: Math.round(end * 0.6),
    core: 1,
    class: 5,
    application: 2,
    fields: [{ name: "bytes", value: 4096 }],
  });
  trace.events.sort((a, b) => a.t - b.t || a.core - b.core);
  return trace;
}

function run(trace: Trace, core: number, next: () => number): void {
  for (let t = 0; t < trace.end;) {
    const long = 3000 + Math.floor(next() ** 3 * 60_000);
    const application = next() < 0.3 ? 0 : 1 + Math.floor(next() * (APPLICATIONS.length - 1));
    const end = Math.min(trace.end, t + long);
    trace.pieces.push({ lane: core, row: 0, begin: t, end, name: application });
    const count = application === 0 ? 0 : Math.floor(next() * 4);
    for (let index = 0; index < count; index++) {
      const at = Math.floor(t + next() * (end - t));
      const kind = Math.floor(next() * 5);
      trace.events.push({
        t: at,
        core,
        class: kind,
        application,
        fields: [{ name: "mutex", value: 0x7f00 + kind }],
      });
      if (kind === 2) {
        const to = (core + 1 + Math.floor(next() * (trace.cores - 1))) % trace.cores;
        const arrives = Math.min(trace.end, at + 1500 + Math.floor(next() * 20_000));
        trace.messages.push({ from: at, to: arrives, fromLane: core, toLane: to, application });
      }
    }
    t = end;
  }
}

function spans(trace: Trace, lane: number, next: () => number): void {
  for (let t = Math.floor(next() * 20_000); t < trace.end;) {
    const end = Math.min(trace.end, t + 8000 + Math.floor(next() ** 4 * 150_000));
    trace.pieces.push({ lane, row: 0, begin: t, end, name: 0 });
    let at = t + 500;
    for (const name of [1, 2, 3]) {
      const stop = Math.min(end - 200, at + Math.floor((end - t) * 0.35 * next()) + 300);
      if (stop > at) trace.pieces.push({ lane, row: 1, begin: at, end: stop, name });
      at = stop + 200;
    }
    t = end + Math.floor(next() * 30_000);
  }
}
