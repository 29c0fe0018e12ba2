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

/** One line of RGBA. Empty pixels are transparent, so that hatching and the grid behind show. */
export function rasterBar(columns: RowColumns, palette: Palette, out: Uint8ClampedArray, at: number): void {
  const { colour, cover } = columns;
  for (let x = 0; x < colour.length; x++) {
    const value = colour[x];
    if (value === 0 || cover[x] === 0) {
      out.fill(0, at + 4 * x, at + 4 * x + 4);
      continue;
    }
    put(out, at + 4 * x, mix(palette.background, palette.rgb(value - 1), strength(cover[x])));
  }
}

/** DENSITY_PX lines of RGBA, `stride` bytes apart; columns grow from the bottom line up. */
export function rasterDensity(
  columns: RowColumns,
  palette: Palette,
  out: Uint8ClampedArray,
  at: number,
  stride: number,
): void {
  const { colour, count } = columns;
  for (let x = 0; x < colour.length; x++) {
    const height = colour[x] === 0 ? 0 : densityHeight(count[x]);
    const rgb = height === 0 ? null : palette.rgb(colour[x] - 1);
    for (let line = 0; line < DENSITY_PX; line++) {
      const offset = at + (DENSITY_PX - 1 - line) * stride + 4 * x;
      if (rgb !== null && line < height) put(out, offset, rgb);
      else out.fill(0, offset, offset + 4);
    }
  }
}

function put(out: Uint8ClampedArray, at: number, rgb: Rgb): void {
  out[at] = rgb[0];
  out[at + 1] = rgb[1];
  out[at + 2] = rgb[2];
  out[at + 3] = 255;
}

export interface RasterRow {
  kind: string;
  columns: RowColumns;
  palette: Palette;
}

export interface Raster {
  width: number;
  height: number;
  pixels: Uint8ClampedArray<ArrayBuffer>;
  /** First line of each row in the image, and how many lines it has. */
  lines: { y: number; height: number }[];
}

export function rasterHeight(kind: string): number {
  return kind === "events" ? DENSITY_PX : 1;
}

/** All rows of an answer, one below the other. */
export function raster(rows: readonly RasterRow[], width: number): Raster {
  const lines: { y: number; height: number }[] = [];
  let height = 0;
  for (const row of rows) {
    lines.push({ y: height, height: rasterHeight(row.kind) });
    height += rasterHeight(row.kind);
  }
  const stride = 4 * width;
  const pixels = new Uint8ClampedArray(stride * Math.max(height, 1));
  rows.forEach((row, index) => {
    const at = lines[index].y * stride;
    if (row.kind === "events") rasterDensity(row.columns, row.palette, pixels, at, stride);
    else rasterBar(row.columns, row.palette, pixels, at);
  });
  return { width, height: Math.max(height, 1), pixels, lines };
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
