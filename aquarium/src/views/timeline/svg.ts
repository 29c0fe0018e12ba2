// SPDX-License-Identifier: Apache-2.0 OR MIT
// The timeline as SVG, for papers: from the same columns and items as the canvases.

import type { Line } from "../../logic/arrows.ts";
import { ticks } from "../../logic/axis.ts";
import { css, mix } from "../../logic/colour.ts";
import { type PlacedRow, isDense, packedText, screenY } from "../../logic/layout.ts";
import { type PictureRow, rowKey } from "../../logic/picture.ts";
import { DENSITY_PX, densityHeight, solidRuns, strength } from "../../logic/raster.ts";
import { shortName } from "../../logic/units.ts";
import { toPixel } from "../../logic/viewport.ts";
import { type Scene, coloursOf } from "./paint.ts";

const LABELS_PX = 150;
const AXIS_PX = 24;
const NARROWEST_NAME_PX = 30;
/** Average width of a letter: SVG cannot measure text, so names that might not fit are left out. */
const LETTER_PX = 6.4;

export function svg(scene: Scene, arrows: readonly Line[]): string {
  const lanes = scene.lanes;
  const height = Math.max(0, ...lanes.map((lane) => screenY(lane, lane.y + lane.height, scene.scrollTop)));
  const { width, theme } = scene;
  const parts: string[] = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width + LABELS_PX}" height="${height + AXIS_PX}" font-family="system-ui, sans-serif" font-size="11">`,
    rect(0, 0, width + LABELS_PX, height + AXIS_PX, css(theme.canvas)),
    `<pattern id="lost" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`,
    `<rect width="1.4" height="6" fill="${theme.loss}"/></pattern>`,
    `<svg x="${LABELS_PX}" y="0" width="${width}" height="${height + AXIS_PX}">`,
  ];
  for (const tick of ticks(scene.view, width, scene.axisHz)) {
    if (tick.label === null) continue;
    parts.push(
      rect(tick.x, 0, 1, height + AXIS_PX, theme.grid),
      text(tick.x + 4, 15, theme.faint, tick.label),
    );
  }
  parts.push(`<g transform="translate(0 ${AXIS_PX})">`);
  for (const lane of lanes) {
    for (const row of lane.rows) {
      const index = scene.picture?.byRow.get(rowKey(row.lane, row.row));
      if (index === undefined) continue;
      parts.push(...drawn(scene, row, scene.picture!.rows[index], screenY(lane, row.y, scene.scrollTop)));
    }
  }
  for (const loss of scene.losses) {
    const lane = lanes.find((one) => one.id === loss.lane);
    const [x0, x1] = [loss.begin, loss.end].map((t) => toPixel(scene.view, t, width));
    if (!lane || x1 < 0 || x0 > width) continue;
    const y = screenY(lane, lane.y, scene.scrollTop);
    parts.push(rect(x0, y + 1, Math.max(2, x1 - x0), lane.height - 2, "url(#lost)"));
  }
  for (const line of arrows) parts.push(arrow(line, theme.arrow));
  parts.push("</g></svg>");
  for (const lane of lanes) {
    const y = screenY(lane, lane.y, scene.scrollTop) + AXIS_PX;
    parts.push(text(8 + 12 * lane.level, y + 16, theme.text, lane.name));
    for (const row of lane.rows.filter((row) => row.packed > 1)) {
      const at = screenY(lane, row.y, scene.scrollTop) + AXIS_PX + row.height / 2 + 4;
      parts.push(text(LABELS_PX - 5, at, theme.faint, packedText(row), "end"));
    }
    parts.push(rect(0, y + lane.height - 1, width + LABELS_PX, 1, theme.grid));
  }
  parts.push("</svg>");
  return parts.join("\n");
}

function drawn(scene: Scene, row: PlacedRow, found: PictureRow, y: number): string[] {
  if (row.kind === "events" && found.exact) return dots(scene, found, row, y);
  if (isDense(row)) return density(scene, found, row, y);
  return found.exact ? bars(scene, found, row, y) : runs(scene, found, row, y);
}

function bars(scene: Scene, found: PictureRow, row: PlacedRow, y: number): string[] {
  const parts: string[] = [];
  const { items } = found;
  const colours = coloursOf(scene, row);
  for (let index = 0; index < items.begin.length; index++) {
    if (items.begin[index] > scene.view.t1 || items.end[index] < scene.view.t0) continue;
    const [x0, x1] = [items.begin[index], items.end[index]].map((t) => toPixel(scene.view, t, scene.width));
    parts.push(rect(x0, y, Math.max(1, x1 - x0), row.height, colours.css(items.name[index])));
    parts.push(...name(scene, row, x0, x1, y, items.name[index]));
  }
  return parts;
}

function dots(scene: Scene, found: PictureRow, row: PlacedRow, y: number): string[] {
  const parts: string[] = [];
  for (let index = 0; index < found.items.begin.length; index++) {
    const t = found.items.begin[index];
    if (t < scene.view.t0 || t > scene.view.t1) continue;
    const x = toPixel(scene.view, t, scene.width);
    const fill = scene.classes.css(found.items.name[index]);
    parts.push(`<circle cx="${number(x)}" cy="${number(y + row.height / 2)}" r="3" fill="${fill}"/>`);
  }
  return parts;
}

/** Merges equal neighbouring pixels to one rectangle. */
function runs(scene: Scene, found: PictureRow, row: PlacedRow, y: number): string[] {
  const parts: string[] = [];
  const colours = coloursOf(scene, row);
  const { colour, cover } = found.columns;
  const { first, end, pixel } = shown(scene);
  for (let x = first; x < end;) {
    let next = x + 1;
    while (next < end && colour[next] === colour[x] && cover[next] === cover[x]) next++;
    if (colour[x] !== 0) {
      const fill = css(mix(scene.theme.lane, colours.rgb(colour[x] - 1), strength(cover[x])));
      parts.push(rect(pixel(x), y, pixel(next) - pixel(x), row.height, fill));
    }
    x = next;
  }
  for (const [from, to, id] of solidRuns(found.columns, first, end, 2)) {
    parts.push(...name(scene, row, pixel(from), pixel(to), y, id));
  }
  return parts;
}

function density(scene: Scene, found: PictureRow, row: PlacedRow, y: number): string[] {
  const parts: string[] = [];
  const colours = coloursOf(scene, row);
  const { colour, count } = found.columns;
  const { first, end, pixel } = shown(scene);
  for (let x = first; x < end; x++) {
    if (colour[x] === 0) continue;
    const high = (densityHeight(count[x]) / DENSITY_PX) * row.height;
    const fill = colours.css(colour[x] - 1);
    parts.push(rect(pixel(x), y + row.height - high, pixel(x + 1) - pixel(x), high, fill));
  }
  return parts;
}

function shown(scene: Scene): { first: number; end: number; pixel: (x: number) => number } {
  const { window } = scene.picture!;
  const column = (t: number) => (t - window.t0) / window.nsPerPx;
  return {
    first: Math.max(0, Math.floor(column(scene.view.t0))),
    end: Math.min(window.px, Math.ceil(column(scene.view.t1))),
    pixel: (x) => toPixel(scene.view, window.t0 + x * window.nsPerPx, scene.width),
  };
}

function name(scene: Scene, row: PlacedRow, x0: number, x1: number, y: number, id: number): string[] {
  const colours = coloursOf(scene, row);
  const label = shortName(colours.names[id] ?? "");
  const left = Math.max(0, x0) + 4;
  const room = Math.min(scene.width, x1) - left;
  if (room < NARROWEST_NAME_PX || row.height < 12 || label === "") return [];
  const letters = Math.floor(room / LETTER_PX);
  const cut = label.length <= letters ? label : `${label.slice(0, letters - 1)}…`;
  const fill = colours.idle(id) ? scene.theme.idleText : scene.theme.barText;
  return [text(left, y + row.height / 2 + 4, fill, cut)];
}

function arrow(line: Line, colour: string): string {
  const angle = Math.atan2(line.y1 - line.y0, line.x1 - line.x0);
  const corner = (turn: number) =>
    `${number(line.x1 - 7 * Math.cos(angle + turn))},${number(line.y1 - 7 * Math.sin(angle + turn))}`;
  const shaft = `<line x1="${number(line.x0)}" y1="${number(line.y0)}" x2="${number(line.x1)}" y2="${number(line.y1)}"`;
  const head = `<polygon points="${number(line.x1)},${number(line.y1)} ${corner(0.4)} ${corner(-0.4)}" fill="${colour}"/>`;
  return `${shaft} stroke="${colour}" stroke-width="${number(line.widthPx)}"/>${head}`;
}

function rect(x: number, y: number, width: number, height: number, fill: string): string {
  return `<rect x="${number(x)}" y="${number(y)}" width="${number(width)}" height="${number(height)}" fill="${fill}"/>`;
}

function text(x: number, y: number, fill: string, content: string, anchor = "start"): string {
  const at = `x="${number(x)}" y="${number(y)}"${anchor === "start" ? "" : ` text-anchor="${anchor}"`}`;
  return `<text ${at} fill="${fill}">${escaped(content)}</text>`;
}

/**
 * Escapes names, which come from traces and can contain anything; replaces control characters,
 * which XML does not allow.
 */
function escaped(content: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return content
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"]/g, (one) => entities[one]);
}

function number(value: number): string {
  return String(Math.round(value * 100) / 100);
}
