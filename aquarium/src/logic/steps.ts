// SPDX-License-Identifier: Apache-2.0 OR MIT
// Counters as steps: minimum, maximum and last value of each pixel (NaN if unknown).

import { type Frame, f64 } from "../protocol/frame.ts";
import type { Window } from "./viewport.ts";

export interface Levels {
  low: Float64Array;
  high: Float64Array;
  last: Float64Array;
}

export interface LevelsOf {
  window: Window;
  byCounter: Map<number, Levels>;
}

/** Response of `levels`, by requested counter. */
export function takeLevels(frame: Frame, counters: readonly number[], window: Window): LevelsOf {
  const [low, high, last] = ["low", "high", "last"].map((name) => f64(frame, name));
  const of = (id: number, index: number): [number, Levels] => {
    const part = (column: Float64Array) => column.subarray(index * window.px, (index + 1) * window.px);
    return [id, { low: part(low), high: part(high), last: part(last) }];
  };
  return { window, byCounter: new Map(counters.map(of)) };
}

/** Range of a counter's axis; it begins at 0 unless a value is negative. */
export function range(levels: Levels): { low: number; high: number } | null {
  let low = Infinity;
  let high = -Infinity;
  for (let x = 0; x < levels.low.length; x++) {
    if (levels.low[x] < low) low = levels.low[x];
    if (levels.high[x] > high) high = levels.high[x];
  }
  if (low > high) return null;
  low = Math.min(low, 0);
  return { low, high: high > low ? high : low + 1 };
}

export interface Step {
  x: number;
  /** From 0 (bottom) to 1 (top). */
  low: number;
  high: number;
  last: number;
}

/** Ranges of pixels with known values: nothing is drawn across unknown ones. */
export function runs(levels: Levels, between: { low: number; high: number }): Step[][] {
  const found: Step[][] = [];
  let run: Step[] = [];
  const share = (value: number) => (value - between.low) / (between.high - between.low);
  for (let x = 0; x < levels.last.length; x++) {
    if (Number.isNaN(levels.last[x]) || Number.isNaN(levels.low[x]) || Number.isNaN(levels.high[x])) {
      if (run.length > 0) found.push(run);
      run = [];
      continue;
    }
    run.push({ x, low: share(levels.low[x]), high: share(levels.high[x]), last: share(levels.last[x]) });
  }
  if (run.length > 0) found.push(run);
  return found;
}
