// SPDX-License-Identifier: Apache-2.0 OR MIT
// A range of durations of one kind of span, and the places of such spans on the timeline.

import { BadFrame, type Frame, f64, u32 } from "../protocol/frame.ts";
import { rowKey } from "./picture.ts";
import { duration } from "./units.ts";

/** Durations in nanoseconds, both ends included; null for an open end. */
export interface Brush {
  /** Index of the kind in the session's list. */
  kind: number;
  name: string;
  least: number | null;
  most: number | null;
}

/** Time ranges by row, sorted by begin. */
export type Stretches = ReadonlyMap<string, { begin: Float64Array; end: Float64Array }>;

export interface Brushed {
  stretches: Stretches;
  count: number;
}

/** Parameters of the methods `activities` and `brushed`. */
export function parameters(brush: Brush): Record<string, number> {
  return {
    kind: brush.kind,
    least: Math.ceil(brush.least ?? 0),
    ...(brush.most === null ? {} : { most: Math.floor(brush.most) }),
  };
}

export function text(brush: Brush): string {
  const { least, most } = brush;
  if (least === null && most === null) return brush.name;
  if (least === null) return `${brush.name} up to ${duration(most)}`;
  if (most === null) return `${brush.name} from ${duration(least)}`;
  return `${brush.name} from ${duration(least)} to ${duration(most)}`;
}

export function takeBrushed(frame: Frame): Brushed {
  const result = frame.result as { rows?: unknown; count?: unknown } | null;
  if (!Array.isArray(result?.rows)) throw new BadFrame("brushed: no rows");
  const [row, begin, end] = [u32(frame, "row"), f64(frame, "begin"), f64(frame, "end")];
  if (begin.length !== row.length || end.length !== row.length) {
    throw new BadFrame("brushed: columns differ in length");
  }
  const stretches = new Map<string, { begin: Float64Array; end: Float64Array }>();
  for (let from = 0; from < row.length;) {
    let to = from;
    while (to < row.length && row[to] === row[from]) to++;
    const of = result.rows[row[from]] as { lane: number; row: number } | undefined;
    if (!of) throw new BadFrame(`brushed: row ${row[from]} of ${result.rows.length}`);
    stretches.set(rowKey(of.lane, of.row), { begin: begin.subarray(from, to), end: end.subarray(from, to) });
    from = to;
  }
  return { stretches, count: typeof result.count === "number" ? result.count : row.length };
}

/** Bins of a histogram that overlap a brush: [first, end). */
export function binsOf(edges: readonly number[], brush: Pick<Brush, "least" | "most">): [number, number] {
  const bins = Math.max(0, edges.length - 1);
  let first = 0;
  while (first < bins && brush.least !== null && edges[first + 1] <= brush.least) first++;
  let end = bins;
  while (end > first && brush.most !== null && edges[end - 1] > brush.most) end--;
  return [first, end];
}

/** For each edge, the number of durations that are at least as long. */
export function atLeast(counts: readonly number[]): number[] {
  const left: number[] = [];
  let rest = counts.reduce((sum, one) => sum + one, 0);
  for (const count of counts) {
    left.push(rest);
    rest -= count;
  }
  return left;
}
