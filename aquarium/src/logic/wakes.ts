// SPDX-License-Identifier: Apache-2.0 OR MIT
// Wakeups of the selected thread state, as lines between the lanes of both threads.

import type { Thing, Woken, WokenBy } from "../protocol/types.ts";
import { type Layout, type PlacedLane, screenY } from "./layout.ts";
import { type Interval, toPixel } from "./viewport.ts";

export interface WakeLine {
  x: number;
  /** Heights on the screen: of the waker and of the woken thread. */
  from: number;
  to: number;
}

/** Centre of the row with the lane's thread states, or of its first row. */
function middleOf(lane: PlacedLane, scrollTop: number): number {
  const row = lane.rows.find((one) => one.kind === "thread_states") ?? lane.rows[0];
  return screenY(lane, row ? row.y + row.height / 2 : lane.y + lane.height / 2, scrollTop);
}

/** Lines of wakeups whose time and both lanes are visible. */
export function wakeLines(
  thing: Thing | null,
  lane: number,
  layout: Layout,
  view: Interval,
  size: { width: number; height: number },
  scrollTop: number,
): WakeLine[] {
  if (thing === null) return [];
  const wakers = thing.woken_by ? [{ from: thing.woken_by.lane, to: lane, at: thing.woken_by.at }] : [];
  const woken = (thing.wakes?.threads ?? []).map((one) => ({ from: lane, to: one.lane, at: one.at }));
  const y = (id: number | null | undefined) => {
    const placed = layout.lanes.find((one) => one.id === id);
    return placed ? middleOf(placed, scrollTop) : null;
  };
  return [...wakers, ...woken].flatMap(({ from, to, at }) => {
    const x = toPixel(view, at, size.width);
    const [y0, y1] = [y(from), y(to)];
    const isShown = x >= 0 && x <= size.width && y0 !== null && y1 !== null;
    return isShown && Math.max(y0, y1) > 0 && Math.min(y0, y1) < size.height ? [{ x, from: y0, to: y1 }] : [];
  });
}

/** A thread as text: its name and number. */
export function threadText({ thread, tid }: Woken): string {
  const number = tid == null ? "" : String(tid);
  return thread && thread !== number ? `${thread} ${number}`.trim() : number || "unknown";
}

/** Description of what woke a thread. */
export function wakerText(by: WokenBy): string {
  if (by.kind === "thread") return threadText(by);
  return by.kind === "interrupt" ? "an interrupt" : "unknown";
}
