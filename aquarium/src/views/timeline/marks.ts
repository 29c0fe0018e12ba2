// SPDX-License-Identifier: Apache-2.0 OR MIT
// The upper canvas: names on bars, arrows, the selection and the marked range.

import { type Line, badged } from "../../logic/arrows.ts";
import { type PlacedLane, type PlacedRow, isDense, screenY } from "../../logic/layout.ts";
import { NO_CPU, type PictureRow, rowKey } from "../../logic/picture.ts";
import { solidRuns } from "../../logic/raster.ts";
import { brief, duration, shortName } from "../../logic/units.ts";
import { type Interval, toPixel } from "../../logic/viewport.ts";
import type { Selected } from "../../state/store.ts";
import { type Scene, coloursOf } from "./paint.ts";
import type { WakeLine } from "../../logic/wakes.ts";

export interface Marks {
  selected: Selected | null;
  range: Interval | null;
  arrows: readonly Line[];
  /** Wakeups of the selected state. */
  wakes: readonly WakeLine[];
}

const FONT = "11px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
/** Minimum width of a readable name. */
const NARROWEST_NAME_PX = 22;
/** More bundles of messages than this are drawn as hairlines without numbers. */
const CROWD = 60;

export function paintMarks(context: CanvasRenderingContext2D, scene: Scene, marks: Marks): void {
  const ratio = globalThis.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, scene.width, scene.height);
  // Below the names, and faint where there are many: arrows must not hide the timeline.
  const isCrowd = marks.arrows.length > CROWD;
  context.globalAlpha = Math.min(1, Math.max(0.1, 45 / Math.max(1, marks.arrows.length)));
  for (const line of marks.arrows) arrow(context, scene, line, isCrowd ? 1 : line.widthPx);
  context.globalAlpha = 1;
  for (const pinned of scene.pinnedHeight > 0 ? [false, true] : [false]) {
    context.save();
    context.beginPath();
    if (pinned) context.rect(0, 0, scene.width, scene.pinnedHeight);
    else context.rect(0, scene.pinnedHeight, scene.width, scene.height);
    context.clip();
    context.font = FONT;
    context.textBaseline = "middle";
    for (const lane of scene.lanes) {
      if (lane.pinned !== pinned) continue;
      for (const row of lane.rows) names(context, scene, lane, row);
      if (lane.kind === "process" && lane.rows.length === 0) summary(context, scene, lane);
    }
    context.restore();
  }
  // In a crowd the tooltip has the number of messages.
  if (!isCrowd) for (const line of badged(marks.arrows, 8)) badge(context, scene, line);
  for (const line of marks.wakes) wake(context, scene, line);
  if (marks.range) rangeBand(context, scene, marks.range);
  if (marks.selected) selection(context, scene, marks.selected);
}

/** In the header of a process, which has no other content. */
function summary(context: CanvasRenderingContext2D, scene: Scene, lane: PlacedLane): void {
  const text = scene.summaries(lane.id);
  if (text === "") return;
  context.fillStyle = scene.theme.faint;
  context.fillText(text, 6, screenY(lane, lane.y, scene.scrollTop) + lane.height / 2 + 0.5);
}

function names(context: CanvasRenderingContext2D, scene: Scene, lane: PlacedLane, row: PlacedRow): void {
  const index = scene.picture?.byRow.get(rowKey(row.lane, row.row));
  if (index === undefined || isDense(row) || row.kind === "level" || row.height < 12) return;
  const found = scene.picture!.rows[index];
  const y = screenY(lane, row.y, scene.scrollTop) + row.height / 2 + 0.5;
  for (const [x0, x1, id, cpu] of found.exact ? bars(scene, found) : solid(scene, found)) {
    name(context, scene, row, x0, x1, y, id, cpu);
  }
  if (row.kind === "thread_states" && found.exact) exits(context, scene, found, y);
}

/** Label of the mark where a thread exited, if there is room before the next item. */
function exits(context: CanvasRenderingContext2D, scene: Scene, { items }: PictureRow, y: number): void {
  context.fillStyle = scene.theme.faint;
  for (let index = 0; index < items.exits.length; index++) {
    const x = toPixel(scene.view, items.end[index], scene.width);
    if (items.exits[index] !== 1 || x < 0) continue;
    const next = index + 1 < items.begin.length ? items.begin[index + 1] : scene.view.t1;
    const room = Math.min(toPixel(scene.view, next, scene.width), scene.width) - x;
    if (room > textWidth(context, EXITED) + 14) context.fillText(EXITED, x + 8, y);
  }
}

const EXITED = "exited";

/** A wakeup of the selected state: a line from the waker to the woken thread. */
function wake(context: CanvasRenderingContext2D, scene: Scene, { x, from, to }: WakeLine): void {
  const down = Math.sign(to - from) || 1;
  context.strokeStyle = context.fillStyle = scene.theme.accent;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(x, from, 2.5, 0, 2 * Math.PI);
  context.fill();
  context.beginPath();
  context.moveTo(x, from);
  context.lineTo(x, to - down * 5);
  context.stroke();
  context.beginPath();
  context.moveTo(x, to);
  context.lineTo(x - 4, to - down * 7);
  context.lineTo(x + 4, to - down * 7);
  context.fill();
}

type Bar = [x0: number, x1: number, id: number, cpu?: number];

function bars(scene: Scene, found: PictureRow): Bar[] {
  const list: Bar[] = [];
  const { items } = found;
  for (let index = 0; index < items.begin.length; index++) {
    if (items.begin[index] > scene.view.t1) break;
    const x1 = toPixel(scene.view, items.end[index], scene.width);
    const x0 = toPixel(scene.view, items.begin[index], scene.width);
    if (x1 > 0 && x1 - x0 >= NARROWEST_NAME_PX) list.push([x0, x1, items.name[index], items.cpu[index]]);
  }
  return list;
}

function solid(scene: Scene, found: PictureRow): Bar[] {
  const { window } = scene.picture!;
  const pixel = (x: number) => toPixel(scene.view, window.t0 + x * window.nsPerPx, scene.width);
  const from = Math.max(0, Math.floor((scene.view.t0 - window.t0) / window.nsPerPx));
  const to = Math.min(window.px, Math.ceil((scene.view.t1 - window.t0) / window.nsPerPx));
  const least = Math.ceil(
    (NARROWEST_NAME_PX * (scene.view.t1 - scene.view.t0)) / scene.width / window.nsPerPx,
  );
  return solidRuns(found.columns, from, to, Math.max(least, 2)).map(([a, b, id]) => [pixel(a), pixel(b), id]);
}

function name(
  context: CanvasRenderingContext2D,
  scene: Scene,
  row: PlacedRow,
  x0: number,
  x1: number,
  y: number,
  id: number,
  cpu = NO_CPU,
): void {
  const colours = coloursOf(scene, row);
  const left = Math.max(x0, 0) + 5;
  const room = Math.min(x1, scene.width) - left - 4;
  const short = shortName(colours.names[id] ?? "");
  const full = cpu === NO_CPU ? short : `${short} on CPU ${cpu}`;
  const fits = full !== short && textWidth(context, full) <= room;
  const text = room < NARROWEST_NAME_PX - 9 ? "" : shortened(context, fits ? full : short, room);
  if (text === "") return;
  context.fillStyle = colours.idle(id) ? scene.theme.idleText : scene.theme.barText;
  context.fillText(text, left, y);
}

const widths = new Map<string, number>();

function textWidth(context: CanvasRenderingContext2D, text: string): number {
  let wide = widths.get(text);
  if (wide === undefined) {
    if (widths.size > 20_000) widths.clear();
    widths.set(text, (wide = context.measureText(text).width));
  }
  return wide;
}

function shortened(context: CanvasRenderingContext2D, text: string, room: number): string {
  const wide = textWidth(context, text);
  if (wide <= room) return text;
  const letters = Math.floor((text.length * room) / wide) - 1;
  return letters < 2 ? "" : `${text.slice(0, letters)}…`;
}

function arrow(context: CanvasRenderingContext2D, scene: Scene, line: Line, widthPx: number): void {
  const dx = line.x1 - line.x0;
  const dy = line.y1 - line.y0;
  const length = Math.hypot(dx, dy);
  if (length < 1) return;
  context.strokeStyle = scene.theme.arrow;
  context.fillStyle = scene.theme.arrow;
  context.lineWidth = widthPx;
  const [ux, uy] = [dx / length, dy / length];
  const head = Math.min(5 + widthPx, length);
  context.beginPath();
  context.moveTo(line.x0, line.y0);
  context.lineTo(line.x1 - ux * head * 0.8, line.y1 - uy * head * 0.8);
  context.stroke();
  context.beginPath();
  context.moveTo(line.x1, line.y1);
  context.lineTo(line.x1 - ux * head - uy * head * 0.45, line.y1 - uy * head + ux * head * 0.45);
  context.lineTo(line.x1 - ux * head + uy * head * 0.45, line.y1 - uy * head - ux * head * 0.45);
  context.fill();
}

/** The number of messages that an arrow represents. */
function badge(context: CanvasRenderingContext2D, scene: Scene, line: Line): void {
  const text = brief(line.count);
  context.font = FONT;
  context.textBaseline = "middle";
  const wide = textWidth(context, text) + 6;
  const x = (line.x0 + line.x1) / 2;
  const y = (line.y0 + line.y1) / 2;
  context.fillStyle = scene.theme.name === "dark" ? "rgba(19,23,28,.85)" : "rgba(255,255,255,.9)";
  context.beginPath();
  context.roundRect(x - wide / 2, y - 7, wide, 14, 4);
  context.fill();
  context.fillStyle = scene.theme.text;
  context.fillText(text, x - wide / 2 + 3, y + 0.5);
}

function rangeBand(context: CanvasRenderingContext2D, scene: Scene, range: Interval): void {
  const x0 = toPixel(scene.view, range.t0, scene.width);
  const x1 = toPixel(scene.view, range.t1, scene.width);
  context.fillStyle = scene.theme.accentSoft;
  context.fillRect(x0, 0, x1 - x0, scene.height);
  context.fillStyle = scene.theme.accent;
  context.fillRect(Math.round(x0), 0, 1, scene.height);
  context.fillRect(Math.round(x1), 0, 1, scene.height);
  const text = duration(range.t1 - range.t0);
  context.font = `600 ${FONT}`;
  context.textBaseline = "middle";
  const wide = context.measureText(text).width;
  const middle = Math.min(Math.max((x0 + x1) / 2, wide / 2 + 10), scene.width - wide / 2 - 10);
  context.beginPath();
  context.roundRect(middle - wide / 2 - 7, 5, wide + 14, 18, 9);
  context.fill();
  context.fillStyle = scene.theme.name === "dark" ? "#06282b" : "#ffffff";
  context.fillText(text, middle - wide / 2, 14.5);
}

function selection(context: CanvasRenderingContext2D, scene: Scene, selected: Selected): void {
  const x0 = toPixel(scene.view, selected.begin, scene.width);
  const x1 = toPixel(scene.view, selected.end ?? selected.begin, scene.width);
  context.fillStyle = scene.theme.accent;
  context.globalAlpha = 0.55;
  context.fillRect(Math.round(x0), 0, 1, scene.height);
  if (x1 - x0 > 2) context.fillRect(Math.round(x1), 0, 1, scene.height);
  context.globalAlpha = 1;
  const lane = scene.lanes.find((one) => one.id === selected.lane);
  if (!lane) return;
  const row =
    lane.rows.find((one) => one.row === selected.row) ??
    lane.rows.find((one) => one.kind === "events") ??
    lane.rows[0];
  if (!row) return;
  const y = screenY(lane, row.y, scene.scrollTop);
  context.strokeStyle = scene.theme.accent;
  context.lineWidth = 2;
  context.beginPath();
  if (row.kind === "events" || x1 - x0 < 4) context.arc(x0, y + row.height / 2, 6, 0, 2 * Math.PI);
  else context.roundRect(x0, y - 1, x1 - x0, row.height + 2, 3);
  context.stroke();
}
