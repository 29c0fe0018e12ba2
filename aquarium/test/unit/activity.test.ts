// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import { type Activity, ORDERS, comparing, summaryText, sums, takeActivity } from "../../src/logic/activity.ts";
import { type LayoutOptions, layout } from "../../src/logic/layout.ts";
import { duration, percent } from "../../src/logic/units.ts";
import { BadFrame, decodeFrame } from "../../src/protocol/frame.ts";
import type { Lane } from "../../src/protocol/types.ts";
import { encodeFrame } from "../support/encode.ts";

const lane = (id: number, parent: number | null, kind: string, name: string, rows = 1): Lane => ({
  id,
  parent,
  kind,
  name,
  rows: Array.from({ length: rows }, (_, row) => ({ row, kind: "spans" })),
});

/** Two CPUs, a process with two threads and a counter, and another process with one thread. */
const LANES = [
  lane(0, null, "cpu", "CPU 0"),
  lane(1, null, "cpu", "CPU 1"),
  lane(2, null, "process", "shop", 0),
  lane(3, 2, "thread", "clerk 2", 2),
  lane(4, 2, "thread", "clerk 10", 2),
  lane(5, 4, "counter", "queue"),
  lane(6, null, "process", "bakery", 0),
  lane(7, 6, "thread", "baker"),
];
const of = { t0: 0, t1: 1000 };
const activity: Activity = {
  of,
  things: Float64Array.of(50, 0, 0, 3, 1, 1, 0, 40),
  first: Float64Array.of(0, NaN, NaN, 400, 300, 0, NaN, 200),
  busy: Float64Array.of(900, 0, NaN, 20, 300, NaN, NaN, 10),
  busyOpen: Uint8Array.of(0, 0, 0, 0, 1, 0, 0, 0),
  emptyRows: new Set(["1/0", "3/1", "7/0"]),
};
const options: LayoutOptions = {
  hidden: new Set(),
  scriptsOff: new Set(),
  folded: new Set(),
  pinned: [],
  search: "",
};
const ids = (more: Partial<LayoutOptions>) => layout(LANES, { ...options, ...more }).lanes.map((one) => one.id);

describe("lanes", () => {
  const all = sums(LANES, activity);
  const order = (by: (typeof ORDERS)[number]) => ids({ compare: comparing(by, all) });

  test("are in the order that is chosen, CPUs first, threads within their process", () => {
    expect(order("recorded")).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(order("cpu")).toEqual([0, 1, 2, 4, 5, 3, 6, 7]);
    expect(order("name")).toEqual([0, 1, 6, 7, 2, 3, 4, 5]);
    expect(order("first")).toEqual([0, 1, 2, 4, 5, 3, 6, 7]);
    expect(order("activity")).toEqual([0, 1, 6, 7, 2, 3, 4, 5]);
    expect(comparing("cpu", null)).toBeNull();
  });

  test("are left out where they are empty, with the rows of others, and counted", () => {
    const placed = layout(LANES, { ...options, emptyRows: activity.emptyRows });
    expect(placed.lanes.map((one) => one.id)).toEqual([0, 2, 3, 4, 5]);
    expect(placed.emptyLanes).toBe(3);
    expect(placed.lanes[2].rows.map((row) => row.row)).toEqual([0]);
    // A pinned or selected lane stays, together with its process.
    expect(ids({ emptyRows: activity.emptyRows, kept: new Set([7]) })).toEqual([0, 2, 3, 4, 5, 6, 7]);
    expect(ids({ emptyRows: activity.emptyRows, pinned: [1] })).toEqual([1, 0, 2, 3, 4, 5]);
    // A folded process is not empty if its descendants are not.
    expect(ids({ emptyRows: activity.emptyRows, folded: new Set([2, 6]) })).toEqual([0, 2]);
    expect(layout(LANES, options).emptyLanes).toBe(0);
  });

  test("of a process say how long their threads ran, and whether that is a lower bound", () => {
    expect(summaryText(all.get(2), of)).toBe(
      `2 threads ran ≥\u202f${duration(320)}, ≥\u202f${percent(0.32)} of a CPU`,
    );
    expect(summaryText(all.get(6), of)).toBe(`1 thread ran ${duration(10)}, ${percent(0.01)} of a CPU`);
    expect(summaryText(all.get(3), of)).toBe("");
    expect(summaryText(undefined, of)).toBe("");
  });
});

describe("an answer to lane_activity", () => {
  const columns = {
    things: Float64Array.of(1, 0),
    first: Float64Array.of(5, NaN),
    busy: Float64Array.of(NaN, 7),
    busy_open: Uint8Array.of(0, 1),
    row_lane: Uint32Array.of(0, 0, 1),
    row: Uint32Array.of(0, 4, 0),
    has: Uint8Array.of(1, 0, 0),
  };
  test("has the rows without anything", () => {
    const taken = takeActivity(decodeFrame(encodeFrame(1, {}, columns)), of);
    expect([...taken.emptyRows]).toEqual(["0/4", "1/0"]);
    expect([...taken.busy]).toEqual([NaN, 7]);
  });
  test.each(["first", "busy", "busy_open", "row", "has"] as const)("with too few of %s is refused", (name) => {
    const short = { ...columns, [name]: columns[name].slice(1) };
    expect(() => takeActivity(decodeFrame(encodeFrame(1, {}, short)), of)).toThrow(BadFrame);
  });
});
