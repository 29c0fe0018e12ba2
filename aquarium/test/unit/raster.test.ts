// SPDX-License-Identifier: Apache-2.0 OR MIT
// Compares the rasterizer with an oracle that draws every pixel separately, for random columns.
import { expect, test } from "vitest";
import { mix, type Rgb } from "../../src/logic/colour.ts";
import {
  DENSITY_PX,
  densityHeight,
  flaggedRuns,
  rasterLines,
  rasterPart,
  solidRuns,
  strength,
} from "../../src/logic/raster.ts";
import { random } from "../support/trace.ts";

const background: Rgb = [20, 30, 40];
const palette = { background, rgb: (id: number): Rgb => [(id * 37) % 256, (id * 91) % 256, (id * 13) % 256] };

function randomRow(next: () => number, width: number) {
  const row = { colour: new Uint16Array(width), cover: new Uint8Array(width), count: new Uint8Array(width) };
  for (let x = 0; x < width; x++) {
    if (next() < 0.4) continue;
    row.colour[x] = 1 + Math.floor(next() * 300);
    row.cover[x] = 1 + Math.floor(next() * 255);
    row.count[x] = 16 + Math.floor(next() * 240);
  }
  return row;
}

test("every pixel is what the columns say, over random rows", () => {
  const next = random(11);
  for (let round = 0; round < 60; round++) {
    const width = 1 + Math.floor(next() * 90);
    const rows = Array.from({ length: 1 + Math.floor(next() * 8) }, () => ({
      dense: next() < 0.25,
      columns: randomRow(next, width),
      palette,
      exact: next() < 0.2,
    }));
    // In parts of any width, each over the contents of the previous one, as with tiles.
    const lines = rasterLines(rows);
    const image = new Uint8Array(4 * width * lines.height);
    const wide = 1 + Math.floor(next() * 40);
    const out = new Uint32Array(wide * lines.height).fill(0x12345678);
    for (let from = 0; from < width; from += wide) {
      const to = Math.min(from + wide, width);
      rasterPart(rows, lines, { from, to, out, wide });
      const part = new Uint8Array(out.buffer);
      for (let line = 0; line < lines.height; line++) {
        const at = 4 * wide * line;
        image.set(part.subarray(at, at + 4 * (to - from)), 4 * (width * line + from));
      }
    }
    const expected: number[] = [];
    for (const { dense, columns, exact } of rows) {
      if (exact) continue;
      for (let line = 0; line < (dense ? DENSITY_PX : 1); line++) {
        for (let x = 0; x < width; x++) {
          const there =
            columns.colour[x] !== 0 &&
            (!dense || DENSITY_PX - line <= densityHeight(columns.count[x]));
          const rgb = palette.rgb(columns.colour[x] - 1);
          const seen = dense ? rgb : mix(background, rgb, strength(columns.cover[x]));
          expected.push(...(there ? [...seen, 255] : [0, 0, 0, 0]));
        }
      }
    }
    // An image has at least one line.
    expect(image.length).toBe(Math.max(expected.length, 4 * width));
    expect([...image].slice(0, expected.length)).toEqual(expected);
  }
});

test("the rarest thing is seen, and more is never less", () => {
  expect(strength(0)).toBe(0);
  expect(strength(1)).toBeGreaterThan(0.4);
  expect(densityHeight(16)).toBeGreaterThanOrEqual(4);
  expect(densityHeight(0)).toBe(0);
  for (let value = 1; value < 255; value++) {
    expect(strength(value + 1)).toBeGreaterThan(strength(value));
    expect(densityHeight(value + 1)).toBeGreaterThanOrEqual(densityHeight(value));
  }
  expect(densityHeight(255)).toBe(DENSITY_PX);
});

test("runs of flags", () => {
  expect(flaggedRuns(Uint8Array.of(2, 3, 0, 1, 2), 2)).toEqual([
    [0, 2],
    [4, 5],
  ]);
  expect(flaggedRuns(new Uint8Array(3), 2)).toEqual([]);
});

test("names go on long runs of one colour", () => {
  const colour = Uint16Array.of(1, 1, 1, 2, 2, 0, 0, 0, 3, 3, 3);
  const columns = { colour, cover: new Uint8Array(11).fill(255), count: new Uint8Array(11) };
  expect(solidRuns(columns, 0, 11, 3)).toEqual([
    [0, 3, 0],
    [8, 11, 2],
  ]);
  expect(solidRuns(columns, 1, 11, 2)).toEqual([
    [1, 3, 0],
    [3, 5, 1],
    [8, 11, 2],
  ]);
});
