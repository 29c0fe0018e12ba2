// SPDX-License-Identifier: Apache-2.0 OR MIT
// A trace in the format of Genode's trace recorder (docs/reference/formats/genode.md), byte by
// byte: a shop whose clerks call a store, one at a time.

import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const METADATA = fileURLToPath(
  new URL("../../../crates/seedformats/tests/formats/genode-metadata.txt", import.meta.url),
);
const [CALL, RETURNED, DISPATCH, REPLY, CHECKPOINT] = [1, 2, 3, 4, 7];
const [LEVEL, START, END] = [0, 1, 2];
const CALLS = 40;

const text = (words: string): Buffer => Buffer.from(`${words}\0`);
const u32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value: number): Buffer => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);

interface At {
  t: number;
  bytes: Buffer;
}
const rpc = (t: number, id: number, name: string): At => ({
  t,
  bytes: Buffer.concat([Buffer.of(id), u64(t), text(name)]),
});
const checkpoint = (t: number, data: number, kind: number, name: string): At => ({
  t,
  bytes: Buffer.concat([Buffer.of(CHECKPOINT), u64(t), u32(data), u64(0), Buffer.of(kind), text(name)]),
});

/** Events of one thread as one packet. */
function packet(label: string, thread: string, core: number, events: At[]): Buffer {
  events.sort((a, b) => a.t - b.t);
  const names = Buffer.concat([text(label), text(thread)]);
  const head = 33 + names.length;
  const body = Buffer.concat(events.map((one) => one.bytes));
  return Buffer.concat([
    u32(0xc1fc1fc1),
    u32(0),
    u64(events[0].t),
    u64(events[events.length - 1].t),
    u32(8 * (head + body.length)),
    Buffer.from(Uint16Array.of(8 * head).buffer),
    // Column and row, width and height of the CPU's location, four bits each; the priority.
    Buffer.of(core, 0x11, 128),
    names,
    body,
  ]);
}

export interface Run {
  folder: string;
  /** Duration of each call in nanoseconds. */
  latencies: number[];
  /** Time of the first event, and a time at which the first clerk waits for a reply. */
  begin: number;
  waits: number;
}

export function genode(): Run {
  const folder = join(mkdtempSync(join(tmpdir(), "aquarium-")), "run");
  const store: At[] = [];
  const latencies: number[] = [];
  const clerks = [0, 1].map((clerk) => {
    const events: At[] = [];
    for (let call = 0; call < CALLS; call++) {
      const t = 1_000_000 + (2 * call + clerk) * 100_000;
      const latency = 20_000 + 700 * call + clerk;
      latencies.push(latency);
      events.push(checkpoint(t - 9000, 0, START, "order"), rpc(t, CALL, "take"));
      store.push(rpc(t + 2000, DISPATCH, "take"), checkpoint(t + 4000, (7 * call) % 32, LEVEL, "slots free"));
      store.push(rpc(t + latency - 3000, REPLY, "take"));
      events.push(rpc(t + latency, RETURNED, "take"), checkpoint(t + latency + 5000, 0, END, "order"));
    }
    return events;
  });
  const write = (label: string, thread: string, core: number, events: At[]) => {
    const path = join(folder, label.replaceAll(" -> ", "/"), thread);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, packet(label, thread, core, events));
  };
  write("init -> shop", "clerk 1", 0, clerks[0]);
  write("init -> shop", "clerk 2", 1, clerks[1]);
  write("init -> store", "ep", 1, store);
  writeFileSync(join(folder, "metadata"), readFileSync(METADATA));
  return { folder, latencies, begin: 991_000, waits: 1_010_000 };
}
