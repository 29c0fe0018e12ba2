// SPDX-License-Identifier: Apache-2.0 OR MIT
// Encodes binary responses as specified in spec/view.md: independent of the page's decoder, which
// is tested against it.

import type { Column } from "../../src/protocol/frame.ts";

export function encodeFrame(id: number, result: unknown, columns: Record<string, Column>): ArrayBuffer {
  const described = Object.entries(columns).map(([name, column]) => ({
    name,
    type: typeOf(column),
    offset: 0,
    length: column.length,
  }));
  // The JSON contains offsets that depend on its own length: 10 digits are reserved for each.
  const room = JSON.stringify({ result, columns: described }).length + described.length * 10;
  let offset = align(8 + 4 * room);
  Object.values(columns).forEach((column, index) => {
    described[index].offset = offset;
    offset = align(offset + column.byteLength);
  });
  const text = new TextEncoder().encode(JSON.stringify({ result, columns: described }));
  const buffer = new ArrayBuffer(offset);
  const head = new DataView(buffer);
  head.setUint32(0, id, true);
  head.setUint32(4, text.byteLength, true);
  new Uint8Array(buffer, 8, text.byteLength).set(text);
  Object.values(columns).forEach((column, index) => {
    const bytes = new Uint8Array(column.buffer, column.byteOffset, column.byteLength);
    new Uint8Array(buffer, described[index].offset, bytes.length).set(bytes);
  });
  return buffer;
}

function align(offset: number): number {
  return Math.ceil(offset / 8) * 8;
}

function typeOf(column: Column): string {
  if (column instanceof Uint8Array) return "u8";
  if (column instanceof Uint16Array) return "u16";
  if (column instanceof Uint32Array) return "u32";
  return "f64";
}
