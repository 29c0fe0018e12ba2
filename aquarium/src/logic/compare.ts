// SPDX-License-Identifier: Apache-2.0 OR MIT
// Comparison of two recordings: each has its own time, and an anchor that is time 0 in both.

import type { Lane, Quality, ScriptAnswer } from "../protocol/types.ts";
import type { Interval } from "./viewport.ts";

/** A recording by itself, as in the response of the method `sides`. */
export interface Side {
  side: number;
  path: string;
  origin: string;
  begin: number;
  end: number;
  events: number;
  quality: Quality;
}

/** A changed measurement, as in the response of the method `compare`. */
export interface Difference {
  kind: string;
  name: string;
  what: string;
  is_worse: boolean;
  is_time: boolean;
  before: number;
  after: number;
  ratio: number | null;
  ratio_least: number;
  ratio_most: number;
  explained: number;
  probability: number;
  count_before: number;
  count_after: number;
  quality: string;
}

/**
 * Lanes of a recording with the rows that scripts found there; scripts have the numbers of the
 * whole session.
 */
export function withFound(lanes: readonly Lane[], found: ReadonlyMap<number, ScriptAnswer>): Lane[] {
  const rows = [...found].flatMap(([script, answer]) => (answer.rows ?? []).map((row) => ({ ...row, script })));
  return lanes.map((lane) => {
    const own = lane.rows.filter((row) => row.script === undefined);
    return { ...lane, rows: [...own, ...rows.filter((row) => row.lane === lane.id)] };
  });
}

/** Converts a time of a side to the common time. */
export function toCommon(t: number, anchor: number): number {
  return t - anchor;
}

export function toOwn(view: Interval, anchor: number): Interval {
  return { t0: view.t0 + anchor, t1: view.t1 + anchor };
}

/** Range of the common time that contains both recordings, with their anchors at 0. */
export function commonWhole(sides: readonly Side[], anchors: readonly number[]): Interval {
  const t0 = Math.min(...sides.map((side, index) => toCommon(side.begin, anchors[index] ?? 0)));
  const t1 = Math.max(...sides.map((side, index) => toCommon(side.end, anchors[index] ?? 0)));
  return Number.isFinite(t0) && t1 > t0 ? { t0, t1 } : { t0: 0, t1: 1 };
}

/**
 * Whether the recordings overlap in time. Overlapping recordings belong on one timeline; others can
 * only be compared.
 */
export function overlap(sides: readonly Side[]): boolean {
  const known = sides.every((side) => /^-?\d{1,20}$/.test(side.origin));
  if (!known || sides.length < 2) return false;
  const all = sides.map((side) => {
    const begin = BigInt(side.origin);
    return { begin, end: begin + BigInt(Math.round(side.end)) };
  });
  return all.some((a, index) => all.slice(index + 1).some((b) => a.begin <= b.end && b.begin <= a.end));
}

/** Relative change in percent; empty for new or removed items. */
export function shiftText(of: Pick<Difference, "before" | "after" | "ratio">): string {
  if (of.before === 0 || of.ratio === null) return "new";
  if (of.after === 0) return "gone";
  return factorText(of.ratio);
}

export function factorText(factor: number): string {
  if (factor >= 10) return `×${factor.toFixed(0)}`;
  const percent = (factor - 1) * 100;
  return `${percent < 0 ? "−" : "+"}${Math.abs(percent).toFixed(Math.abs(percent) < 10 ? 1 : 0)} %`;
}
