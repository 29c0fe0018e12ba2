// SPDX-License-Identifier: Apache-2.0 OR MIT
// A trace in Chrome's JSON format with more overlapping spans than there are rows to draw.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A request: begin and end in nanoseconds since the first one, and number of requests open at its begin. */
export interface Request {
  begin: number;
  end: number;
  row: number;
}

/**
 * Numbers of simultaneously open requests in three bursts: more than the rows that are drawn
 * separately, a few, and more again.
 */
export const BURSTS = [300, 12, 420];
const APART_US = 4000;

export function requests(): Request[] {
  return BURSTS.flatMap((many, burst) =>
    Array.from({ length: many }, (_, row) => {
      const at = burst * APART_US;
      // They end in a different order than they began.
      return { begin: (at + row) * 1000, end: (at + 1000 + 4 * ((row * 7) % many)) * 1000, row };
    }),
  );
}

/**
 * The contents of the file: all requests are spans of one thread; another thread has a few
 * successive spans.
 */
export function deep(): string {
  const told = requests().flatMap((one, id) =>
    (["b", "e"] as const).map((ph) => {
      const ts = (ph === "b" ? one.begin : one.end) / 1000;
      const name = id % 3 === 0 ? "lookup" : "request";
      return { ph, cat: "shop", name, id, pid: 5, tid: 7, ts, args: { number: id } };
    }),
  );
  // Another thread, whose lane is below.
  for (let at = 0; at < 9; at++) {
    const one = { cat: "shop", name: "carry", pid: 5, tid: 8, args: { number: at } };
    const id = 1000 + at;
    told.push({ ...one, id, ph: "b", ts: 1000 * at }, { ...one, id, ph: "e", ts: 1000 * at + 700 });
  }
  told.sort((a, b) => a.ts - b.ts);
  const names = [
    { ph: "M", name: "process_name", pid: 5, tid: 7, args: { name: "shop" } },
    { ph: "M", name: "thread_name", pid: 5, tid: 7, args: { name: "clerk" } },
    { ph: "M", name: "thread_name", pid: 5, tid: 8, args: { name: "porter" } },
  ];
  const file = join(mkdtempSync(join(tmpdir(), "aquarium-")), "deep.json");
  writeFileSync(file, JSON.stringify({ traceEvents: [...names, ...told] }));
  return file;
}
