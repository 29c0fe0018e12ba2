// SPDX-License-Identifier: Apache-2.0 OR MIT
// The lower canvas: lanes, bars, dots, density, counters, losses and damage. Text and marks are on
// the upper one.

import { ticks } from "../../logic/axis.ts";
import {
  type Colours,
  type Theme,
  UNKNOWN_STATE,
  css,
  functionColours,
  threadStateColours,
} from "../../logic/colour.ts";
import { type PlacedLane, type PlacedRow, screenY } from "../../logic/layout.ts";
import { type Picture, type PictureRow, firstFrom, rowKey } from "../../logic/picture.ts";
import { solidRuns } from "../../logic/raster.ts";
import { type Levels, range, runs } from "../../logic/steps.ts";
import { type Interval, toPixel } from "../../logic/viewport.ts";
import type { Loss } from "../../protocol/types.ts";
import type { RowImages } from "./images.ts";

export interface Scene {
  view: Interval;
  /** Frequency for the labels of the axis; null for seconds. */
  axisHz: number | null;
  width: number;
  height: number;
  pinnedHeight: number;
  scrollTop: number;
  lanes: PlacedLane[];
  theme: Theme;
  picture: Picture | null;
  applications: Colours;
  names: Colours;
  classes: Colours;
  scripts: ReadonlyMap<number, Colours>;
  losses: readonly Loss[];
  levels: { window: Interval; of: (row: PlacedRow, lane: PlacedLane) => Levels | null };
  selectedLane: number | null;
  /** Summaries in the headers of processes. */
  summaries: (lane: number) => string;
}

export function coloursOf(scene: Scene, row: Pick<PlacedRow, "kind" | "script">): Colours {
  const { kind } = row;
  if (row.script !== null) return scene.scripts.get(row.script) ?? scene.names;
  if (kind === "running" || kind === "seen") return scene.applications;
  if (kind === "thread_states") return threadStateColours(scene.names);
  if (kind === "calls") return functionColours(scene.picture?.functions, scene.theme);
  return kind === "events" ? scene.classes : scene.names;
}

export function paint(context: CanvasRenderingContext2D, scene: Scene, images: RowImages): void {
  const ratio = globalThis.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.imageSmoothingEnabled = false;
  context.fillStyle = css(scene.theme.canvas);
  context.fillRect(0, 0, scene.width, scene.height);
  images.update(scene);
  // Scrolled lanes are painted first, and pinned lanes over them.
  for (const pinned of scene.pinnedHeight > 0 ? [false, true] : [false]) {
    context.save();
    context.beginPath();
    if (pinned) context.rect(0, 0, scene.width, scene.pinnedHeight);
    else context.rect(0, scene.pinnedHeight, scene.width, scene.height);
    context.clip();
    const lanes = scene.lanes.filter((lane) => lane.pinned === pinned);
    for (const lane of lanes) background(context, scene, lane);
    grid(context, scene);
    for (const lane of lanes) for (const row of lane.rows) paintRow(context, scene, images, lane, row);
    for (const lane of lanes) paintLosses(context, scene, lane);
    context.restore();
  }
  if (scene.pinnedHeight > 0) {
    context.fillStyle = scene.theme.accent;
    context.fillRect(0, scene.pinnedHeight - 1, scene.width, 1);
  }
}

function background(context: CanvasRenderingContext2D, scene: Scene, lane: PlacedLane): void {
  const y = screenY(lane, lane.y, scene.scrollTop);
  if (lane.rows.length > 0) {
    context.fillStyle = css(scene.theme.lane);
    const top = lane.rows[0].y;
    const last = lane.rows[lane.rows.length - 1];
    context.fillRect(0, screenY(lane, top, scene.scrollTop), scene.width, last.y + last.height - top);
  }
  if (lane.id === scene.selectedLane) {
    context.fillStyle = scene.theme.accentSoft;
    context.fillRect(0, y, scene.width, lane.height);
  }
  context.fillStyle = scene.theme.grid;
  context.fillRect(0, y + lane.height - 1, scene.width, 1);
}

function grid(context: CanvasRenderingContext2D, scene: Scene): void {
  for (const tick of ticks(scene.view, scene.width, scene.axisHz)) {
    context.fillStyle = tick.label === null ? scene.theme.gridFaint : scene.theme.grid;
    context.fillRect(Math.round(tick.x), 0, 1, scene.height);
  }
}

function paintRow(
  context: CanvasRenderingContext2D,
  scene: Scene,
  images: RowImages,
  lane: PlacedLane,
  row: PlacedRow,
): void {
  const y = screenY(lane, row.y, scene.scrollTop);
  if (row.kind === "level") {
    const levels = scene.levels.of(row, lane);
    if (levels) paintLevels(context, scene, levels, y, row.height);
    return;
  }
  const index = scene.picture?.byRow.get(rowKey(row.lane, row.row));
  if (index === undefined || !scene.picture) return;
  const found = scene.picture.rows[index];
  if (!found.exact) images.draw(context, scene, index, y, row.height);
  else if (row.kind === "events") paintDots(context, scene, found, y, row.height);
  else if (row.kind === "samples") paintTicks(context, scene, found, y, row.height);
  else paintBars(context, scene, found, row, y);
  if (row.kind === "stacks") paintSampled(context, scene, lane, row, y);
  if (row.kind === "thread_states") paintGapsAndExits(context, scene, found, row, y);
  hatchFlags(context, scene, found, y, row.height);
}

/** Narrower bars have no round corners, which would be invisible. */
const ROUND_PX = 24;

/**
 * Bars of single items, by colour, because changing the colour costs more than drawing. Each is
 * filled separately: the browser takes ten times as long for one path of thousands of bars.
 */
function paintBars(
  context: CanvasRenderingContext2D,
  scene: Scene,
  found: PictureRow,
  row: PlacedRow,
  y: number,
): void {
  const colours = coloursOf(scene, row);
  const { items } = found;
  const byName = new Map<number, number[]>();
  for (let index = 0; index < items.begin.length; index++) {
    if (items.begin[index] > scene.view.t1) break;
    if (items.end[index] < scene.view.t0) continue;
    const of = byName.get(items.name[index]);
    if (of) of.push(index);
    else byName.set(items.name[index], [index]);
  }
  for (const [name, bars] of byName) {
    context.fillStyle = colours.css(name);
    for (const index of bars) {
      const x0 = Math.max(-2, toPixel(scene.view, items.begin[index], scene.width));
      const x1 = Math.min(scene.width + 2, toPixel(scene.view, items.end[index], scene.width));
      // A gap between neighbours, unless nothing else would remain.
      const wide = Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 0.75 : 0));
      if (wide < ROUND_PX) {
        context.fillRect(x0, y, wide, row.height);
        continue;
      }
      context.beginPath();
      context.roundRect(x0, y, wide, row.height, 2);
      context.fill();
    }
  }
}

/** Height and width of the foot of the mark where a thread exited. */
const EXIT_FOOT_PX = 5;

/** Hatches times in which the state of a thread is unknown, and marks where the thread exited. */
function paintGapsAndExits(
  context: CanvasRenderingContext2D,
  scene: Scene,
  found: PictureRow,
  row: PlacedRow,
  y: number,
): void {
  const unknown = scene.names.names.lastIndexOf(UNKNOWN_STATE);
  const hatched = (x0: number, x1: number) => {
    if (x1 < 0 || x0 > scene.width) return;
    context.fillStyle = css(scene.theme.lane);
    context.fillRect(x0, y, Math.max(1, x1 - x0), row.height);
    hatch(context, x0, y, Math.max(1, x1 - x0), row.height, scene.theme.faint);
  };
  if (!found.exact) {
    const { window } = scene.picture!;
    const pixel = (x: number) => toPixel(scene.view, window.t0 + x * window.nsPerPx, scene.width);
    for (const [from, to, id] of solidRuns(found.columns, 0, window.px, 2)) {
      if (id === unknown) hatched(pixel(from), pixel(to));
    }
    return;
  }
  const { items } = found;
  context.fillStyle = scene.theme.text;
  for (let index = 0; index < items.begin.length; index++) {
    if (items.begin[index] > scene.view.t1) break;
    const x1 = toPixel(scene.view, items.end[index], scene.width);
    if (items.name[index] === unknown) {
      hatched(toPixel(scene.view, items.begin[index], scene.width), x1);
      context.fillStyle = scene.theme.text;
    }
    if (items.exits[index] !== 1 || x1 < -EXIT_FOOT_PX || x1 > scene.width) continue;
    context.fillRect(x1, y, 1.5, row.height);
    context.fillRect(x1, y, EXIT_FOOT_PX, 1.5);
    context.fillRect(x1, y + row.height - 1.5, EXIT_FOOT_PX, 1.5);
  }
}

/** Samples are drawn thin, so that their distances are visible. */
function paintTicks(
  context: CanvasRenderingContext2D,
  scene: Scene,
  found: PictureRow,
  y: number,
  height: number,
): void {
  context.fillStyle = scene.theme.accent;
  const { begin } = found.items;
  for (let index = firstFrom(found.items, scene.view.t0); index < begin.length; index++) {
    if (begin[index] > scene.view.t1) break;
    const x = toPixel(scene.view, begin[index], scene.width);
    context.fillRect(Math.round(x) - 0.5, y, 1.5, height);
  }
}

/** At a smaller distance, lines would hide the bars. */
const SAMPLES_APART_PX = 7;

/**
 * Draws a line through stacks where each sample was taken: only there is it known what ran; the
 * rest of a bar lies between samples with the same function.
 */
function paintSampled(
  context: CanvasRenderingContext2D,
  scene: Scene,
  lane: PlacedLane,
  row: PlacedRow,
  y: number,
): void {
  const samples = lane.rows.find((one) => one.kind === "samples" && one.name === row.name);
  const index = samples && scene.picture?.byRow.get(rowKey(samples.lane, samples.row));
  if (index === undefined || !scene.picture) return;
  const { exact, items } = scene.picture.rows[index];
  if (!exact) return;
  context.fillStyle = css(scene.theme.lane, 0.75);
  let last = -Infinity;
  for (let at = firstFrom(items, scene.view.t0); at < items.begin.length; at++) {
    if (items.begin[at] > scene.view.t1) break;
    const x = toPixel(scene.view, items.begin[at], scene.width);
    if (x - last >= SAMPLES_APART_PX) context.fillRect(Math.round(x), y, 1, row.height);
    last = x;
  }
}

const DOT_PX = 3;

/** A dot of each colour, drawn once: thousands of copies cost less than thousands of arcs. */
const dots = new Map<string, HTMLCanvasElement>();
const DOTS_KEPT = 512;

function dotOf(colour: string, ratio: number): HTMLCanvasElement {
  const key = `${colour} ${ratio}`;
  let dot = dots.get(key);
  if (dot) return dot;
  if (dots.size >= DOTS_KEPT) dots.clear();
  dot = document.createElement("canvas");
  dot.width = dot.height = Math.ceil(2 * DOT_PX * ratio);
  const context = dot.getContext("2d")!;
  context.fillStyle = colour;
  context.arc(dot.width / 2, dot.width / 2, dot.width / 2, 0, 2 * Math.PI);
  context.fill();
  dots.set(key, dot);
  return dot;
}

function paintDots(
  context: CanvasRenderingContext2D,
  scene: Scene,
  found: PictureRow,
  y: number,
  height: number,
): void {
  const ratio = globalThis.devicePixelRatio || 1;
  const { items } = found;
  const slack = ((scene.view.t1 - scene.view.t0) / scene.width) * DOT_PX;
  // Aligned to pixels of the screen, because other copies would be blurred.
  const whole = (at: number) => Math.round(at * ratio) / ratio;
  const top = whole(y + height / 2 - DOT_PX);
  const byName = new Map<number, HTMLCanvasElement>();
  for (let index = firstFrom(items, scene.view.t0 - slack); index < items.begin.length; index++) {
    if (items.begin[index] > scene.view.t1 + slack) break;
    const x = toPixel(scene.view, items.begin[index], scene.width);
    const name = items.name[index];
    const dot = byName.get(name) ?? dotOf(scene.classes.css(name), ratio);
    byName.set(name, dot);
    context.drawImage(dot, whole(x - DOT_PX), top, dot.width / ratio, dot.height / ratio);
  }
}

function paintLevels(
  context: CanvasRenderingContext2D,
  scene: Scene,
  levels: Levels,
  y: number,
  height: number,
): void {
  const between = range(levels);
  if (!between) return;
  const { window } = scene.levels;
  const step = (window.t1 - window.t0) / levels.last.length;
  const px = (x: number) => toPixel(scene.view, window.t0 + x * step, scene.width);
  const py = (share: number) => y + height - 1 - share * (height - 3);
  const line = css(scene.theme.palette[2]);
  for (const run of runs(levels, between)) {
    context.beginPath();
    const area = new Path2D();
    area.moveTo(px(run[0].x), py(0));
    let last = run[0].last;
    for (const at of run) {
      context.moveTo(px(at.x), py(last));
      context.lineTo(px(at.x), py(at.high));
      context.lineTo(px(at.x), py(at.low));
      context.moveTo(px(at.x), py(at.last));
      context.lineTo(px(at.x + 1), py(at.last));
      area.lineTo(px(at.x), py(at.high));
      area.lineTo(px(at.x + 1), py(at.last));
      last = at.last;
    }
    area.lineTo(px(run[run.length - 1].x + 1), py(0));
    context.fillStyle = css(scene.theme.palette[2], 0.22);
    context.fill(area);
    context.strokeStyle = line;
    context.lineWidth = 1;
    context.stroke();
  }
}

function hatchFlags(
  context: CanvasRenderingContext2D,
  scene: Scene,
  found: PictureRow,
  y: number,
  height: number,
): void {
  if (!scene.picture) return;
  const { window } = scene.picture;
  for (const [stretches, colour] of [
    [found.lost, scene.theme.loss],
    [found.damaged, scene.theme.damage],
  ] as const) {
    for (const [from, to] of stretches) {
      const x0 = toPixel(scene.view, window.t0 + from * window.nsPerPx, scene.width);
      const x1 = toPixel(scene.view, window.t0 + to * window.nsPerPx, scene.width);
      if (x1 >= 0 && x0 <= scene.width) hatch(context, x0, y, Math.max(x1 - x0, 2), height, colour);
    }
  }
}

/** Intervals with losses, over the whole lane; losses without a lane are shown on the mini-map. */
function paintLosses(context: CanvasRenderingContext2D, scene: Scene, lane: PlacedLane): void {
  const y = screenY(lane, lane.y, scene.scrollTop);
  for (const loss of scene.losses) {
    if (loss.lane !== lane.id) continue;
    const x0 = toPixel(scene.view, loss.begin, scene.width);
    const x1 = toPixel(scene.view, loss.end, scene.width);
    if (x1 < 0 || x0 > scene.width) continue;
    hatch(context, x0, y + 1, Math.max(x1 - x0, 2), lane.height - 2, scene.theme.loss);
  }
}

const STRIPE_PX = 6;

/** Diagonal stripes that stay in place while the view moves. */
export function hatch(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  colour: string,
): void {
  const left = Math.max(x, -STRIPE_PX);
  const right = Math.min(x + width, context.canvas.width);
  context.save();
  context.beginPath();
  context.rect(left, y, right - left, height);
  context.clip();
  context.globalAlpha = 0.16;
  context.fillStyle = colour;
  context.fillRect(left, y, right - left, height);
  context.globalAlpha = 0.8;
  context.strokeStyle = colour;
  context.lineWidth = 1.2;
  context.beginPath();
  const first = Math.floor((left - height) / STRIPE_PX) * STRIPE_PX;
  for (let at = first; at < right; at += STRIPE_PX) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}
