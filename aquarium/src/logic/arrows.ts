// SPDX-License-Identifier: Apache-2.0 OR MIT
// Arrows between lanes, for messages.

import { type Frame, BadFrame, f64, u32 } from "../protocol/frame.ts";
import { type Layout, screenY } from "./layout.ts";
import type { Interval } from "./viewport.ts";
import { toPixel } from "./viewport.ts";

export interface Arrows {
  fromLane: Uint32Array;
  toLane: Uint32Array;
  from: Float64Array;
  to: Float64Array;
  count: Uint32Array;
  channel: Uint32Array;
}

export function takeArrows(frame: Frame): Arrows {
  const arrows = {
    fromLane: u32(frame, "from_lane"),
    toLane: u32(frame, "to_lane"),
    from: f64(frame, "from"),
    to: f64(frame, "to"),
    count: u32(frame, "count"),
    channel: u32(frame, "channel"),
  };
  for (const column of Object.values(arrows)) {
    if (column.length !== arrows.fromLane.length) throw new BadFrame("arrows: columns differ in length");
  }
  return arrows;
}

export interface Line {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
  count: number;
  widthPx: number;
  index: number;
}

/** Width by the logarithm of the number of messages. */
export function arrowWidth(count: number): number {
  return Math.min(6, 1 + 0.55 * Math.log2(Math.max(1, count)));
}

/** Lines on the screen; arrows outside of the view, or with an end on an invisible lane, are left out. */
export function lines(
  arrows: Arrows,
  view: Interval,
  widthPx: number,
  laneY: (lane: number) => number | null,
): Line[] {
  const found: Line[] = [];
  for (let index = 0; index < arrows.count.length; index++) {
    const y0 = laneY(arrows.fromLane[index]);
    const y1 = laneY(arrows.toLane[index]);
    if (y0 === null || y1 === null) continue;
    const x0 = toPixel(view, arrows.from[index], widthPx);
    const x1 = toPixel(view, arrows.to[index], widthPx);
    if (Math.max(x0, x1) < 0 || Math.min(x0, x1) > widthPx) continue;
    const count = arrows.count[index];
    found.push({ x0, y0, x1, y1, count, widthPx: arrowWidth(count), index });
  }
  return found;
}

/**
 * Like `lines`, for lanes in screen coordinates: arrows begin and end in the middle of the lane's
 * events, or of its first row.
 */
export function linesOn(
  arrows: Arrows,
  { lanes }: Layout,
  view: Interval,
  size: { width: number; height: number },
  scrollTop: number,
): Line[] {
  const middles = new Map<number, number>();
  for (const lane of lanes) {
    const row = lane.rows.find((one) => one.kind === "events") ?? lane.rows[0];
    const y = row ? row.y + row.height / 2 : lane.y + lane.height / 2;
    middles.set(lane.id, screenY(lane, y, scrollTop));
  }
  const all = lines(arrows, view, size.width, (lane) => middles.get(lane) ?? null);
  return all.filter((line) => Math.max(line.y0, line.y1) > 0 && Math.min(line.y0, line.y1) < size.height);
}

/** Programs that share a core send from the core to itself: arrows are then useful only between threads. */
export function ownLanes({ fromLane, toLane }: Arrows): "cores" | "threads" {
  const within = fromLane.reduce((sum, from, index) => sum + Number(from === toLane[index]), 0);
  return within * 2 > fromLane.length ? "threads" : "cores";
}

const BADGE_ROOM = { x: 60, y: 26 };
const MOST_BADGES = 40;

/** Lines with a visible count: the widest ones, with enough distance for all counts to be readable. */
export function badged(all: readonly Line[], least: number): Line[] {
  const found: Line[] = [];
  const thickest = all.filter((line) => line.count >= least && Math.abs(line.y1 - line.y0) >= 24);
  for (const line of thickest.sort((a, b) => b.count - a.count)) {
    const near = (other: Line) =>
      Math.abs(line.x0 + line.x1 - other.x0 - other.x1) < 2 * BADGE_ROOM.x &&
      Math.abs(line.y0 + line.y1 - other.y0 - other.y1) < 2 * BADGE_ROOM.y;
    if (!found.some(near)) found.push(line);
    if (found.length === MOST_BADGES) break;
  }
  return found;
}

/** The line nearest to a point, at most `within` pixels away. */
export function lineAt(all: readonly Line[], x: number, y: number, within: number): Line | null {
  let best: Line | null = null;
  let distance = within;
  for (const line of all) {
    const away = distanceTo(line, x, y);
    if (away < distance) {
      best = line;
      distance = away;
    }
  }
  return best;
}

function distanceTo(line: Line, x: number, y: number): number {
  const dx = line.x1 - line.x0;
  const dy = line.y1 - line.y0;
  const length = dx * dx + dy * dy;
  const along =
    length === 0 ? 0 : Math.min(1, Math.max(0, ((x - line.x0) * dx + (y - line.y0) * dy) / length));
  return Math.hypot(x - line.x0 - along * dx, y - line.y0 - along * dy);
}
