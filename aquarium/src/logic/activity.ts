// SPDX-License-Identifier: Apache-2.0 OR MIT
// Contents of lanes in a time range: which lanes are empty, their order, and summaries of
// processes.

import { BadFrame, type Frame, f64, u32, u8 } from "../protocol/frame.ts";
import type { Lane } from "../protocol/types.ts";
import { rowKey } from "./picture.ts";
import { duration, percent, qualified } from "./units.ts";
import type { Interval } from "./viewport.ts";

/** Columns by lane; `NaN` if there is nothing, or the value is unknown. */
export interface Activity {
  of: Interval;
  /** Number of events, and of intervals that touch the range. */
  things: Float64Array;
  /** Time of the first event, or begin of the first interval. */
  first: Float64Array;
  /** Nanoseconds in which the lane's thread, or any thread on its CPU, ran. */
  busy: Float64Array;
  /** 1 if the thread can have run for longer, because its state is not known in the whole range. */
  busyOpen: Uint8Array;
  /** Keys of rows without content. */
  emptyRows: ReadonlySet<string>;
}

export function takeActivity(frame: Frame, of: Interval): Activity {
  const [things, first, busy] = ["things", "first", "busy"].map((name) => f64(frame, name));
  const busyOpen = u8(frame, "busy_open");
  const [lane, row, has] = [u32(frame, "row_lane"), u32(frame, "row"), u8(frame, "has")];
  if ([first, busy, busyOpen].some((column) => column.length !== things.length))
    throw new BadFrame("lane_activity: columns of lanes differ in length");
  if (row.length !== lane.length || has.length !== lane.length)
    throw new BadFrame("lane_activity: columns of rows differ in length");
  const emptyRows = new Set<string>();
  for (let at = 0; at < lane.length; at++) if (has[at] === 0) emptyRows.add(rowKey(lane[at], row[at]));
  return { of, things, first, busy, busyOpen, emptyRows };
}

/** Order of lanes: as recorded, or by their contents in the range. */
export type Order = "recorded" | "cpu" | "name" | "first" | "activity";
export const ORDERS: Order[] = ["recorded", "cpu", "name", "first", "activity"];

/** Sums of a lane and its descendants. */
interface Sum {
  things: number;
  first: number;
  busy: number;
  isOpen: boolean;
  threads: number;
}

/** Sums of all lanes and their descendants, by lane id. */
export function sums(lanes: readonly Lane[], activity: Activity): ReadonlyMap<number, Sum> {
  const byId = new Map(lanes.map((lane) => [lane.id, lane]));
  const all = new Map<number, Sum>();
  const none = (): Sum => ({ things: 0, first: Infinity, busy: NaN, isOpen: false, threads: 0 });
  for (const lane of lanes) {
    const { things, first, busy } = activity;
    const [own, since, ran] = [things[lane.id] ?? 0, first[lane.id] ?? NaN, busy[lane.id] ?? NaN];
    let at: Lane | undefined = lane;
    for (let steps = 0; at !== undefined && steps < 64; steps++) {
      const sum = all.get(at.id) ?? none();
      sum.things += own;
      if (since < sum.first) sum.first = since;
      if (!Number.isNaN(ran)) sum.busy = (Number.isNaN(sum.busy) ? 0 : sum.busy) + ran;
      sum.isOpen ||= activity.busyOpen[lane.id] === 1;
      if (lane.kind === "thread" && at !== lane) sum.threads++;
      all.set(at.id, sum);
      at = at.parent === null ? undefined : byId.get(at.parent);
    }
  }
  return all;
}

/** Returns a comparison for a stable sort of lanes; null for the recorded order. */
export function comparing(
  order: Order,
  of: ReadonlyMap<number, Sum> | null,
): ((a: Lane, b: Lane) => number) | null {
  if (order === "recorded") return null;
  if (order === "name") return (a, b) => a.name.localeCompare(b.name, "en", { numeric: true });
  if (of === null) return null;
  const number = (lane: Lane): number => {
    const sum = of.get(lane.id);
    if (order === "first") return sum?.first ?? Infinity;
    const most = (order === "cpu" ? sum?.busy : sum?.things) ?? 0;
    return Number.isNaN(most) ? 1 : -most;
  };
  return (a, b) => {
    const [x, y] = [number(a), number(b)];
    return x < y ? -1 : x > y ? 1 : 0;
  };
}

/** Text in the header of a process that summarizes its threads in the range. */
export function summaryText(sum: Sum | undefined, of: Interval): string {
  if (sum === undefined || sum.threads === 0) return "";
  const threads = `${sum.threads} thread${sum.threads === 1 ? "" : "s"}`;
  if (Number.isNaN(sum.busy)) return threads;
  const quality = sum.isOpen ? "lower_bound" : "exact";
  const share = percent(sum.busy / Math.max(1, of.t1 - of.t0));
  return `${threads} ran ${qualified(duration(sum.busy), quality)}, ${qualified(share, quality)} of a CPU`;
}
