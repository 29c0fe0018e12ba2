// SPDX-License-Identifier: Apache-2.0 OR MIT
// Columns of a `view` answer become pixels: one image for all rows, stretched to the screen when drawn.
//
// Bars are one pixel high in the image. Events are DENSITY_PX high: each column stands as tall as its count,
// on a logarithmic scale, and at least one pixel where there is anything at all.

import { type Rgb, mix } from "./colour.ts";

export const FLAG_MORE = 1;
export const FLAG_LOST = 2;
export const FLAG_DAMAGED = 4;
export const FLAG_UNFINISHED = 8;

export const DENSITY_PX = 13;

export interface RowColumns {
  colour: Uint16Array;
  cover: Uint8Array;
  count: Uint8Array;
}

export interface Palette {
  /** Behind everything. */
  background: Rgb;
  /** The colour of a value of the column less one: what 1 + id means. */
  rgb(id: number): Rgb;
}

/** Even one thing in a pixel of thousands is seen: nothing is fainter than this. */
const FAINTEST = 0.42;

/** How strongly a bar's colour stands against the background. */
export function strength(cover: number): number {
  return cover === 0 ? 0 : FAINTEST + (1 - FAINTEST) * (cover / 255);
}

/** A single event is as easy to see as a dot. */
const LOWEST_PX = 5;
/** 13 pixels are reached at 200 events: beyond, denser is not more to look at. */
const PX_PER_DOUBLING = 1.2;

/** Pixels of `count` (round(16·log2(1+n)), so 255 stands for some 63,000 events) out of DENSITY_PX. */
export function densityHeight(count: number): number {
  if (count === 0) return 0;
  const doublings = Math.max(0, count / 16 - 1);
  return Math.min(DENSITY_PX, LOWEST_PX + Math.round(doublings * PX_PER_DOUBLING));
}

// A pixel is one number to store, not four: its bytes are those of RGBA whatever the machine's order is.
const bytes = new Uint8ClampedArray(4);
const packed = new Uint32Array(bytes.buffer);

function pack(rgb: Rgb): number {
  bytes.set(rgb);
  bytes[3] = 255;
  return packed[0];
}

/** One line of pixels into an empty image. Empty pixels stay transparent, so that the grid behind shows. */
function rasterBar({ columns, palette }: RasterRow, out: Uint32Array, at: number): void {
  const { colour, cover } = columns;
  // Neighbours are alike most of the time.
  let [value, covered, pixel] = [0, 0, 0];
  for (let x = 0; x < colour.length; x++) {
    if (colour[x] === 0 || cover[x] === 0) continue;
    if (colour[x] !== value || cover[x] !== covered) {
      [value, covered] = [colour[x], cover[x]];
      pixel = pack(mix(palette.background, palette.rgb(value - 1), strength(covered)));
    }
    out[at + x] = pixel;
  }
}

/** DENSITY_PX lines of pixels; columns grow from the bottom line up. */
function rasterDensity({ columns, palette }: RasterRow, out: Uint32Array, at: number, width: number): void {
  const { colour, count } = columns;
  let [value, pixel] = [0, 0];
  for (let x = 0; x < colour.length; x++) {
    if (colour[x] === 0) continue;
    if (colour[x] !== value) pixel = pack(palette.rgb((value = colour[x]) - 1));
    const height = densityHeight(count[x]);
    for (let line = DENSITY_PX - height; line < DENSITY_PX; line++) out[at + line * width + x] = pixel;
  }
}

export interface RasterRow {
  kind: string;
  columns: RowColumns;
  palette: Palette;
  /** Drawn one by one: then it has no lines in the image. */
  exact?: boolean;
}

export interface Raster {
  width: number;
  height: number;
  pixels: Uint8ClampedArray<ArrayBuffer>;
  /** First line of each row in the image, and how many lines it has. */
  lines: { y: number; height: number }[];
}

function rasterHeight({ kind, exact }: RasterRow): number {
  if (exact) return 0;
  return kind === "events" ? DENSITY_PX : 1;
}

/** All rows of an answer, one below the other. */
export function raster(rows: readonly RasterRow[], width: number): Raster {
  const lines: { y: number; height: number }[] = [];
  let height = 0;
  for (const row of rows) {
    lines.push({ y: height, height: rasterHeight(row) });
    height += rasterHeight(row);
  }
  const pixels = new Uint32Array(width * Math.max(height, 1));
  rows.forEach((row, index) => {
    const at = lines[index].y * width;
    if (row.exact) return;
    if (row.kind === "events") rasterDensity(row, pixels, at, width);
    else rasterBar(row, pixels, at);
  });
  return { width, height: Math.max(height, 1), pixels: new Uint8ClampedArray(pixels.buffer), lines };
}

/** Runs of pixels that have one of the flags, for hatching: [first, end). */
export function flaggedRuns(flags: Uint8Array, mask: number): [number, number][] {
  const runs: [number, number][] = [];
  let begin = -1;
  for (let x = 0; x <= flags.length; x++) {
    const on = x < flags.length && (flags[x] & mask) !== 0;
    if (on && begin < 0) begin = x;
    if (!on && begin >= 0) {
      runs.push([begin, x]);
      begin = -1;
    }
  }
  return runs;
}

/** Long runs of one colour that cover their pixels whole: there is room for a name. [first, end, id] */
export function solidRuns(
  columns: RowColumns,
  from: number,
  to: number,
  least: number,
): [number, number, number][] {
  const runs: [number, number, number][] = [];
  const { colour, cover } = columns;
  let begin = from;
  for (let x = from; x <= to; x++) {
    const goes = x < to && x > begin && colour[x] === colour[begin] && cover[x] > 200;
    if (goes || x === begin) continue;
    if (colour[begin] !== 0 && x - begin >= least) runs.push([begin, x, colour[begin] - 1]);
    begin = x;
  }
  return runs;
}
