// SPDX-License-Identifier: Apache-2.0 OR MIT
// Converts columns of a `view` response to pixels: one image for all rows, which is stretched when drawn.
//
// Bars are one pixel high in the image. Dense rows are DENSITY_PX high: the height of each column
// shows its count on a logarithmic scale, and is at least one pixel for a count above 0.

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
  /** Background colour. */
  background: Rgb;
  /** Colour of an id; the column contains 1 + id. */
  rgb(id: number): Rgb;
}

/** Minimum opacity, so that even a single item in a pixel of thousands is visible. */
const FAINTEST = 0.42;

/** Opacity of a bar's colour over the background. */
export function strength(cover: number): number {
  return cover === 0 ? 0 : FAINTEST + (1 - FAINTEST) * (cover / 255);
}

/** Minimum height, at which a single event is as visible as a dot. */
const LOWEST_PX = 5;
/** 13 pixels are reached at 200 events; higher densities look the same. */
const PX_PER_DOUBLING = 1.2;

/**
 * Height out of DENSITY_PX for `count`, which is round(16·log2(1+n)), so that 255 means some 63,000 events.
 */
export function densityHeight(count: number): number {
  if (count === 0) return 0;
  const doublings = Math.max(0, count / 16 - 1);
  return Math.min(DENSITY_PX, LOWEST_PX + Math.round(doublings * PX_PER_DOUBLING));
}

// A pixel is stored as one number rather than four; its bytes are RGBA on any byte order.
const bytes = new Uint8ClampedArray(4);
const packed = new Uint32Array(bytes.buffer);

function pack(rgb: Rgb): number {
  bytes.set(rgb);
  bytes[3] = 255;
  return packed[0];
}

const HEIGHTS = Uint8Array.from({ length: 256 }, (_, count) => densityHeight(count));

/** Columns [from, to) of a raster, and the image for them, with `wide` pixels per line. */
export interface Part {
  from: number;
  to: number;
  out: Uint32Array;
  wide: number;
}

/** Draws one line of pixels. Empty pixels are transparent, so that the grid is visible. */
function rasterBar({ columns, palette }: RasterRow, { from, to, out }: Part, at: number): void {
  const { colour, cover } = columns;
  // Most neighbours are equal.
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

/** Draws DENSITY_PX lines of pixels; columns grow upwards from the bottom line. */
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
  /** Whether it is drawn by density: events, and rows that represent several. */
  dense: boolean;
  columns: RowColumns;
  palette: Palette;
  /** Drawn item by item: the row then has no lines in the image. */
  exact?: boolean;
}

export interface RasterLines {
  /** First line of each row in the image, and number of its lines. */
  rows: { y: number; height: number }[];
  /** At least 1. */
  height: number;
}

function rasterHeight({ dense, exact }: RasterRow): number {
  if (exact) return 0;
  return dense ? DENSITY_PX : 1;
}

/** Positions of rows in the image, one below the other. */
export function rasterLines(rows: readonly RasterRow[]): RasterLines {
  let y = 0;
  const lines = rows.map((row) => {
    const height = rasterHeight(row);
    y += height;
    return { y: y - height, height };
  });
  return { rows: lines, height: Math.max(y, 1) };
}

/** Draws some columns of all rows; overwrites the previous contents of the image. */
export function rasterPart(rows: readonly RasterRow[], lines: RasterLines, part: Part): void {
  rows.forEach((row, index) => {
    if (row.exact) return;
    const at = lines.rows[index].y * part.wide;
    if (row.dense) rasterDensity(row, part, at);
    else rasterBar(row, part, at);
  });
}

/** Ranges of pixels with one of the flags, for hatching: [first, end). */
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

/** Long ranges of one colour that cover their pixels completely, with room for a name: [first, end, id]. */
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
