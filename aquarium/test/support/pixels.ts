// SPDX-License-Identifier: Apache-2.0 OR MIT
// Rasterizes intervals into pixels one by one, for the pictures of the fake server.

import type { Piece } from "./trace.ts";

export interface Columns {
  t0: number;
  step: number;
  px: number;
  at: number;
}

/** Adds every interval to every pixel that it touches. Returns true if no pixel has more than one. */
export function fill(
  pieces: Piece[],
  { t0, step, px, at }: Columns,
  colour: Uint16Array,
  cover: Uint8Array,
  count: Uint8Array,
  flags: Uint8Array,
): boolean {
  const number = new Uint32Array(px);
  const covered = new Float64Array(px);
  const most = new Float64Array(px);
  for (const piece of pieces) {
    const first = Math.max(0, Math.floor((piece.begin - t0) / step));
    const last = Math.min(px - 1, Math.max(first, Math.ceil((piece.end - t0) / step) - 1));
    for (let x = first; x <= last; x++) {
      const share =
        Math.max(0, Math.min(piece.end, t0 + (x + 1) * step) - Math.max(piece.begin, t0 + x * step)) / step;
      number[x]++;
      covered[x] += share;
      if (colour[at + x] === 0 || share > most[x]) {
        colour[at + x] = piece.name + 1;
        most[x] = share;
      }
    }
  }
  let exact = true;
  for (let x = 0; x < px; x++) {
    if (number[x] === 0) continue;
    cover[at + x] = Math.max(1, Math.min(255, Math.round(covered[x] * 255)));
    count[at + x] = Math.min(255, Math.round(16 * Math.log2(1 + number[x])));
    if (number[x] > 1) {
      flags[at + x] |= 1;
      exact = false;
    }
  }
  return exact;
}
