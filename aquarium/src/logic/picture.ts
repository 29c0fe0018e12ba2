// SPDX-License-Identifier: Apache-2.0 OR MIT
// Decodes the response of `view`: rows with their slices of the columns, and single items of exact rows.

import { BadFrame, type Frame, f64, u16, u32, u8 } from "../protocol/frame.ts";
import { FLAG_DAMAGED, FLAG_LOST, type RowColumns, flaggedRuns } from "./raster.ts";
import type { Window } from "./viewport.ts";

export interface Items {
  begin: Float64Array;
  end: Float64Array;
  name: Uint32Array;
  event: Float64Array;
  /** CPU of running threads, or `NO_CPU`; 1 if a thread exited at the end. Empty if unknown. */
  cpu: Uint16Array;
  exits: Uint8Array;
}

export const NO_CPU = 0xffff;

export interface PictureRow {
  lane: number;
  row: number;
  exact: boolean;
  columns: RowColumns;
  /** Ranges of pixels with losses, and with damage: [first, end). */
  lost: [number, number][];
  damaged: [number, number][];
  /** Items of exact rows, sorted by begin. */
  items: Items;
}

export interface Picture {
  window: Window;
  filter: number;
  rows: PictureRow[];
  byRow: Map<string, number>;
  /** For rows of calls: names of functions by number; no other list contains all of them. */
  functions?: ReadonlyMap<number, string>;
  /** Bytes of recorded instructions that are not decoded yet; later pictures will show more. */
  pending?: number;
  /** End of the session when the picture was requested: it is complete up to there. */
  until?: number;
}

export function rowKey(lane: number, row: number): string {
  return `${lane}/${row}`;
}

export function takeApart(frame: Frame, window: Window, filter: number): Picture {
  const described = (frame.result as { rows?: unknown } | null)?.rows;
  if (!Array.isArray(described)) throw new BadFrame("view: no rows");
  const colour = u16(frame, "colour");
  const cover = u8(frame, "cover");
  const count = u8(frame, "count");
  const flags = u8(frame, "flags");
  const pixels = described.length * window.px;
  for (const [name, column] of Object.entries({ colour, cover, count, flags })) {
    if (column.length !== pixels)
      throw new BadFrame(`view: ${name} has ${column.length} pixels, not ${pixels}`);
  }
  const items = itemsByRow(frame, described.length);
  const rows = described.map((one: { lane: number; row: number; exact?: boolean }, index): PictureRow => {
    const from = index * window.px;
    const to = from + window.px;
    return {
      lane: one.lane,
      row: one.row,
      exact: one.exact === true,
      columns: {
        colour: colour.subarray(from, to),
        cover: cover.subarray(from, to),
        count: count.subarray(from, to),
      },
      lost: flaggedRuns(flags.subarray(from, to), FLAG_LOST),
      damaged: flaggedRuns(flags.subarray(from, to), FLAG_DAMAGED),
      items: items[index],
    };
  });
  return {
    window,
    filter,
    rows,
    byRow: new Map(rows.map((row, index) => [rowKey(row.lane, row.row), index])),
    functions: functionsOf(frame.result),
    pending: pendingOf(frame.result),
  };
}

function functionsOf(result: unknown): ReadonlyMap<number, string> {
  const told = (result as { functions?: unknown } | null)?.functions;
  const pairs = Array.isArray(told) ? told : [];
  return new Map(
    pairs.filter(
      (pair): pair is [number, string] =>
        Array.isArray(pair) && typeof pair[0] === "number" && typeof pair[1] === "string",
    ),
  );
}

/** Bytes of recorded instructions that were not decoded for a response. */
export function pendingOf(result: unknown): number {
  const told = (result as { pending?: unknown } | null)?.pending;
  return typeof told === "number" ? told : 0;
}

/** Counting sort by row: whatever the order of the response, the items of each row are sorted by begin. */
function itemsByRow(frame: Frame, rows: number): Items[] {
  const row = u32(frame, "item_row");
  const begin = f64(frame, "item_begin");
  const end = f64(frame, "item_end");
  const name = u32(frame, "item_name");
  const event = f64(frame, "item_event");
  const cpu = u16(frame, "item_cpu");
  const exits = u8(frame, "item_exits");
  for (const column of [begin, end, name, event]) {
    if (column.length !== row.length) throw new BadFrame("view: item columns differ in length");
  }
  for (const column of [cpu, exits]) {
    if (column.length !== row.length && column.length !== 0)
      throw new BadFrame("view: item columns differ in length");
  }
  const lists: number[][] = Array.from({ length: rows }, () => []);
  for (let index = 0; index < row.length; index++) {
    if (row[index] >= rows) throw new BadFrame(`view: an item of row ${row[index]} of ${rows}`);
    lists[row[index]].push(index);
  }
  return lists.map((list) => {
    list.sort((a, b) => begin[a] - begin[b]);
    return {
      begin: Float64Array.from(list, (index) => begin[index]),
      end: Float64Array.from(list, (index) => end[index]),
      name: Uint32Array.from(list, (index) => name[index]),
      event: Float64Array.from(list, (index) => event[index]),
      cpu: cpu.length === 0 ? cpu : Uint16Array.from(list, (index) => cpu[index]),
      exits: exits.length === 0 ? exits : Uint8Array.from(list, (index) => exits[index]),
    };
  });
}

/** Index of the first item that begins at or after a time. */
export function firstFrom(items: Items, t: number): number {
  let low = 0;
  let high = items.begin.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (items.begin[middle] < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The item drawn at a time: the one that covers it, or a point within `near` of it. */
export function itemAt(items: Items, t: number, near: number): number | null {
  let best: number | null = null;
  let distance = near;
  // Items of one row do not overlap, so that only neighbours of the position are candidates; points
  // may be close to each other.
  for (let index = firstFrom(items, t - near) - 1; index < items.begin.length; index++) {
    if (index < 0) continue;
    const begin = items.begin[index];
    if (begin > t + near) break;
    const away = t < begin ? begin - t : Math.max(0, t - Math.max(items.end[index], begin));
    if (away <= distance) {
      best = index;
      distance = away;
    }
  }
  return best;
}
