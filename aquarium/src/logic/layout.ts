// SPDX-License-Identifier: Apache-2.0 OR MIT
// Layout of lanes as rows of pixels, from top to bottom: tree order, folding, pinning, search.

import type { Lane, RowInfo, RowKind } from "../protocol/types.ts";
import { rowKey } from "./picture.ts";
import { brief, thousands } from "./units.ts";

export interface PlacedRow {
  lane: number;
  row: number;
  kind: RowKind;
  name: string;
  depth: number;
  script: number | null;
  /** Number of rows that are drawn as this one. */
  packed: number;
  /** Number of items for which no row was left. */
  leftOut: number;
  /** Distance from the top of all lanes, in CSS pixels. */
  y: number;
  height: number;
}

export interface PlacedLane {
  id: number;
  name: string;
  kind: string;
  level: number;
  y: number;
  height: number;
  foldable: boolean;
  folded: boolean;
  pinned: boolean;
  rows: PlacedRow[];
}

export interface Layout {
  lanes: PlacedLane[];
  pinnedHeight: number;
  height: number;
  /** Number of lanes that are hidden because they are empty. */
  emptyLanes: number;
}

export interface LayoutOptions {
  hidden: ReadonlySet<number>;
  /** Scripts whose activities are not drawn. */
  scriptsOff: ReadonlySet<number>;
  folded: ReadonlySet<number>;
  pinned: readonly number[];
  search: string;
  /**
   * Keys of rows to hide because they are empty, together with lanes that have no other rows; null
   * to hide none.
   */
  emptyRows?: ReadonlySet<string> | null;
  /** Lanes that are shown although they are empty. */
  kept?: ReadonlySet<number>;
  /** Order of sibling lanes; null for the recorded order. */
  compare?: ((a: Lane, b: Lane) => number) | null;
}

const ROW_HEIGHT: Record<RowKind, number> = {
  running: 18,
  seen: 4,
  thread_states: 14,
  spans: 16,
  states: 12,
  events: 13,
  level: 34,
  samples: 7,
  stacks: 13,
  calls: 13,
};
const LANE_PAD = 5;
const EMPTY_LANE = 22;

export function rowHeight(kind: RowKind): number {
  return ROW_HEIGHT[kind] ?? 16;
}

/** Whether a row is drawn by density rather than item by item: overlapping bars would look like one. */
export function isDense(row: Pick<PlacedRow, "kind" | "packed">): boolean {
  return row.kind === "events" || row.kind === "samples" || row.packed > 1;
}

/** Label of a row that represents several rows. */
export function packedText({ packed, leftOut }: Pick<PlacedRow, "packed" | "leftOut">): string {
  const rows = `${leftOut > 0 ? brief(packed) : thousands(packed)} rows in one`;
  return leftOut > 0 ? `${rows}, ${brief(leftOut)} left out` : rows;
}

/** Long form of `packedText`. */
export function packedTitle({ packed, leftOut }: Pick<PlacedRow, "packed" | "leftOut">): string {
  const drawn = [
    `So many overlap here that ${thousands(packed)} rows are drawn in one:`,
    "as high as there are many, in the colour of what takes most.",
  ];
  const rest =
    leftOut === 0
      ? ["Lists and numbers have them all."]
      : [
          `${thousands(leftOut)} more had room on no row:`,
          "they are counted with their kind, but neither drawn nor listed nor exported.",
        ];
  return [...drawn, ...rest].join(" ");
}

/**
 * Interfaces follow the cores, with both directions of an interface next to each other: packets
 * begin before, or long after, the threads that they are for.
 */
function withPackets(roots: readonly Lane[]): Lane[] {
  const packets = roots.filter((lane) => lane.kind === "packets");
  packets.sort((a, b) => a.name.localeCompare(b.name));
  const cores = roots.filter((lane) => lane.kind === "cpu");
  return [...cores, ...packets, ...roots.filter((lane) => lane.kind !== "cpu" && lane.kind !== "packets")];
}

/**
 * Lanes with parents before children; a lane with a missing parent, or which is its own ancestor,
 * is placed at the top level.
 */
export function treeOrder(
  lanes: readonly Lane[],
  compare: ((a: Lane, b: Lane) => number) | null = null,
): { lane: Lane; level: number; children: boolean }[] {
  const byId = new Map(lanes.map((lane) => [lane.id, lane]));
  const children = new Map<number, Lane[]>();
  const roots: Lane[] = [];
  for (const lane of lanes) {
    if (lane.parent === null || !byId.has(lane.parent) || loops(lane, byId)) roots.push(lane);
    else children.set(lane.parent, [...(children.get(lane.parent) ?? []), lane]);
  }
  const order: { lane: Lane; level: number; children: boolean }[] = [];
  const visit = (lane: Lane, level: number): void => {
    const below = children.get(lane.id) ?? [];
    order.push({ lane, level, children: below.length > 0 });
    for (const child of below) visit(child, level + 1);
  };
  const hasPackets = roots.some((lane) => lane.kind === "packets");
  const ordered = hasPackets ? withPackets(roots) : roots;
  if (compare === null) {
    for (const root of ordered) visit(root, 0);
    return order;
  }
  for (const below of children.values()) below.sort(compare);
  // CPUs and interfaces are sorted by their numbers and stay above the ordered lanes.
  const isFixed = (lane: Lane) => lane.kind === "cpu" || lane.kind === "packets";
  for (const root of ordered.filter(isFixed)) visit(root, 0);
  for (const root of ordered.filter((lane) => !isFixed(lane)).sort(compare)) visit(root, 0);
  return order;
}

/** Shown lanes: all; cores only; processes with their threads; or threads without their processes. */
export type Grouping = "all" | "cores" | "processes" | "threads";
export const GROUPINGS: Grouping[] = ["all", "cores", "processes", "threads"];

export function regrouped(lanes: readonly Lane[], by: Grouping): readonly Lane[] {
  if (by === "all") return lanes;
  const byId = new Map(lanes.map((lane) => [lane.id, lane]));
  const rootOf = (lane: Lane): Lane => {
    let at = lane;
    for (let steps = 0; steps < 64 && at.parent !== null; steps++)
      at = byId.get(at.parent) ?? { ...at, parent: null };
    return at;
  };
  const kept = lanes.filter((lane) => (rootOf(lane).kind === "cpu") === (by === "cores"));
  if (by !== "threads") return kept;
  // Children of a process become top-level lanes; a counter stays below its thread.
  return kept
    .filter((lane) => lane.kind !== "process" || lane.rows.length > 0)
    .map((lane) =>
      lane.parent !== null && byId.get(lane.parent)?.kind === "process" ? { ...lane, parent: null } : lane,
    );
}

function loops(lane: Lane, byId: Map<number, Lane>): boolean {
  const seen = new Set<number>([lane.id]);
  let at = lane.parent;
  while (at !== null && at !== undefined) {
    if (seen.has(at)) return true;
    seen.add(at);
    at = byId.get(at)?.parent ?? null;
  }
  return false;
}

export function matches(lane: Lane, search: string): boolean {
  const text = `${lane.kind} ${lane.name}`.toLowerCase();
  // An id only matches as a whole, because many ids contain the same digits.
  const ids = [lane.pid, lane.tid].map(String);
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word) || ids.includes(word));
}

export function layout(lanes: readonly Lane[], options: LayoutOptions): Layout {
  const order = treeOrder(lanes, options.compare);
  const [kept, emptyLanes] = withoutEmpty(keep(order, options), order, options);
  const placed: PlacedLane[] = [];
  let y = 0;
  const place = (entry: (typeof order)[number], pinned: boolean): void => {
    const lane = entry.lane;
    const all = lane.rows.filter((row) => isShown(lane, row, options));
    const folded = options.folded.has(lane.id);
    // A folded lane still shows its first row.
    const shown = folded ? all.slice(0, 1) : all;
    const rows: PlacedRow[] = [];
    let at = y + LANE_PAD;
    for (const row of shown) {
      const height = rowHeight(row.kind);
      rows.push({
        lane: lane.id,
        row: row.row,
        kind: row.kind,
        name: row.name ?? "",
        depth: row.depth ?? 0,
        script: row.script ?? null,
        packed: row.packed ?? 1,
        leftOut: row.left_out ?? 0,
        y: at,
        height,
      });
      at += height + 1;
    }
    const height = Math.max(at - y + LANE_PAD - 1, EMPTY_LANE);
    placed.push({
      id: lane.id,
      name: lane.name,
      kind: lane.kind,
      level: pinned ? 0 : entry.level,
      y,
      height,
      foldable: entry.children || all.length > 1,
      folded,
      pinned,
      rows,
    });
    y += height;
  };
  const pinned = new Set(options.pinned);
  for (const id of options.pinned) {
    const entry = kept.find((one) => one.lane.id === id);
    if (entry) place(entry, true);
  }
  const pinnedHeight = y;
  for (const entry of kept) if (!pinned.has(entry.lane.id)) place(entry, false);
  return { lanes: placed, pinnedHeight, height: y, emptyLanes };
}

function isShown(lane: Lane, row: RowInfo, { scriptsOff, emptyRows }: LayoutOptions): boolean {
  if (row.script !== undefined && scriptsOff.has(row.script)) return false;
  return !emptyRows?.has(rowKey(lane.id, row.row));
}

/** Removes lanes without rows and without descendants that have rows; also returns their number. */
function withoutEmpty(
  kept: ReturnType<typeof treeOrder>,
  order: ReturnType<typeof treeOrder>,
  options: LayoutOptions,
): [ReturnType<typeof treeOrder>, number] {
  if (!options.emptyRows) return [kept, 0];
  // Folded lanes count as well.
  const full = new Set<number>();
  const path: Lane[] = [];
  for (const { lane, level } of order) {
    path.length = level;
    path.push(lane);
    const isKept = options.pinned.includes(lane.id) || options.kept?.has(lane.id);
    if (!isKept && !lane.rows.some((row) => isShown(lane, row, options))) continue;
    for (const ancestor of path) full.add(ancestor.id);
  }
  const rest = kept.filter(({ lane }) => full.has(lane.id));
  return [rest, kept.length - rest.length];
}

/** Removes lanes that are hidden, folded, or do not match the search. */
function keep(order: ReturnType<typeof treeOrder>, options: LayoutOptions): ReturnType<typeof treeOrder> {
  const kept: typeof order = [];
  let skipBelow = Infinity;
  const found = options.search.trim() === "" ? null : foundWithAncestors(order, options.search.trim());
  for (const entry of order) {
    if (entry.level > skipBelow) continue;
    skipBelow = Infinity;
    if (options.hidden.has(entry.lane.id)) {
      skipBelow = entry.level;
      continue;
    }
    if (found && !found.has(entry.lane.id)) continue;
    kept.push(entry);
    if (options.folded.has(entry.lane.id) && !found) skipBelow = entry.level;
  }
  return kept;
}

function foundWithAncestors(order: ReturnType<typeof treeOrder>, search: string): Set<number> {
  const found = new Set<number>();
  const path: Lane[] = [];
  for (const { lane, level } of order) {
    path.length = level;
    path.push(lane);
    if (matches(lane, search)) for (const ancestor of path) found.add(ancestor.id);
  }
  return found;
}

/** Visible lanes at a scroll position; pinned lanes are always visible. */
export function visible(layout: Layout, scrollTop: number, height: number): PlacedLane[] {
  const top = layout.pinnedHeight + scrollTop;
  const bottom = scrollTop + height;
  return layout.lanes.filter((lane) => lane.pinned || (lane.y + lane.height > top && lane.y < bottom));
}

/** Position of a lane on the screen; pinned lanes do not scroll. */
export function screenY(lane: { pinned: boolean }, y: number, scrollTop: number): number {
  return lane.pinned ? y : y - scrollTop;
}

/** The row at a point of the screen. */
export function rowAt(
  layout: Layout,
  screen: number,
  scrollTop: number,
): { lane: PlacedLane; row: PlacedRow | null } | null {
  const pinned = screen < layout.pinnedHeight;
  const y = pinned ? screen : screen + scrollTop;
  const lane = layout.lanes.find((one) => one.pinned === pinned && y >= one.y && y < one.y + one.height);
  if (!lane) return null;
  // The gap below a row belongs to it.
  const row = lane.rows.find((one) => y >= one.y && y < one.y + one.height + 1) ?? null;
  return { lane, row };
}
