// SPDX-License-Identifier: Apache-2.0 OR MIT
// Columns of a `view` answer become pixels: one image for all rows, stretched to the screen when drawn.
//
// Bars are one pixel high in the image. Rows that are dense are DENSITY_PX high: each column stands as tall as its
// count, on a logarithmic scale, and at least one pixel where there is anything at all.

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

const HEIGHTS = Uint8Array.from({ length: 256 }, (_, count) => densityHeight(count));

/** Columns [from, to) of a raster, and an image of so many pixels a line that they go to. */
export interface Part {
  from: number;
  to: number;
  out: Uint32Array;
  wide: number;
}

/** One line of pixels. Empty ones are transparent, so that the grid behind shows. */
function rasterBar({ columns, palette }: RasterRow, { from, to, out }: Part, at: number): void {
  const { colour, cover } = columns;
  // Neighbours are alike most of the time.
  let [value, covered, pixel] = [0, 0, 0];
  for (let x = from; x < to; x++) {
    if (colour[x] !== value || cover[x] !== covered) {
      [value, covered] = [colour[x], cover[x]];
      const empty = value === 0 || covered === 0;
      pixel = empty ? 0 : pack(mix(palette.background, palette.rgb(value - 1), strength(covered)));
    }
    out[at + x - from] = pixel;
  }
}

/** DENSITY_PX lines of pixels; columns grow from the bottom line up. */
function rasterDensity({ columns, palette }: RasterRow, { from, to, out, wide }: Part, at: number): void {
  const { colour, count } = columns;
  let [value, pixel] = [0, 0];
  for (let x = from; x < to; x++) {
    if (colour[x] !== value) {
      value = colour[x];
      pixel = value === 0 ? 0 : pack(palette.rgb(value - 1));
    }
    const top = DENSITY_PX - (value === 0 ? 0 : HEIGHTS[count[x]]);
    let index = at + x - from;
    for (let line = 0; line < DENSITY_PX; line++, index += wide) out[index] = line < top ? 0 : pixel;
  }
}

export interface RasterRow {
  /** Whether it is drawn by how much there is: events, and rows that stand for several. */
  dense: boolean;
  columns: RowColumns;
  palette: Palette;
  /** Drawn one by one: then it has no lines in the image. */
  exact?: boolean;
}

export interface RasterLines {
  /** First line of each row in the image, and how many lines it has. */
  rows: { y: number; height: number }[];
  /** An image is never without a line. */
  height: number;
}

function rasterHeight({ dense, exact }: RasterRow): number {
  if (exact) return 0;
  return dense ? DENSITY_PX : 1;
}

/** Where rows stand in their image: one below the other. */
export function rasterLines(rows: readonly RasterRow[]): RasterLines {
  let y = 0;
  const lines = rows.map((row) => {
    const height = rasterHeight(row);
    y += height;
    return { y: y - height, height };
  });
  return { rows: lines, height: Math.max(y, 1) };
}

/** All pixels of some columns of all rows, over whatever the image had before. */
export function rasterPart(rows: readonly RasterRow[], lines: RasterLines, part: Part): void {
  rows.forEach((row, index) => {
    if (row.exact) return;
    const at = lines.rows[index].y * part.wide;
    if (row.dense) rasterDensity(row, part, at);
    else rasterBar(row, part, at);
  });
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
