// SPDX-License-Identifier: Apache-2.0 OR MIT
// Binary answers (spec/view.md, section 3): columns become typed arrays without copying.

export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

export interface Frame {
  id: number;
  result: unknown;
  columns: Map<string, Column>;
}

const ELEMENT_BYTES = { u8: 1, u16: 2, u32: 4, f64: 8 } as const;
type ElementType = keyof typeof ELEMENT_BYTES;

/** The bytes are not a valid frame; the connection reports it and stays open. */
export class BadFrame extends Error {}

interface Described {
  name: unknown;
  type: unknown;
  offset: unknown;
  length: unknown;
}

function view(buffer: ArrayBuffer, column: Described): [string, Column] {
  const { name, type, offset, length } = column;
  if (typeof name !== "string") throw new BadFrame("a column without a name");
  if (typeof type !== "string" || !(type in ELEMENT_BYTES))
    throw new BadFrame(`${name}: type ${String(type)}`);
  if (!isCount(offset) || !isCount(length)) throw new BadFrame(`${name}: offset or length is no number`);
  if (offset % 8 !== 0) throw new BadFrame(`${name}: offset ${offset} is no multiple of 8`);
  const bytes = ELEMENT_BYTES[type as ElementType];
  if (length > (buffer.byteLength - offset) / bytes) {
    throw new BadFrame(`${name}: ends behind the frame of ${buffer.byteLength} bytes`);
  }
  switch (type as ElementType) {
    case "u8":
      return [name, new Uint8Array(buffer, offset, length)];
    case "u16":
      return [name, new Uint16Array(buffer, offset, length)];
    case "u32":
      return [name, new Uint32Array(buffer, offset, length)];
    case "f64":
      return [name, new Float64Array(buffer, offset, length)];
  }
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

export function decodeFrame(buffer: ArrayBuffer): Frame {
  if (buffer.byteLength < 8) throw new BadFrame(`${buffer.byteLength} bytes are no frame`);
  const head = new DataView(buffer);
  const id = head.getUint32(0, true);
  const jsonBytes = head.getUint32(4, true);
  if (jsonBytes > buffer.byteLength - 8)
    throw new BadFrame(`JSON of ${jsonBytes} bytes ends behind the frame`);
  let json: { result?: unknown; columns?: unknown };
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 8, jsonBytes)));
  } catch (error) {
    throw new BadFrame(`its JSON: ${(error as Error).message}`);
  }
  if (json === null || typeof json !== "object") throw new BadFrame("its JSON is no object");
  const columns = new Map<string, Column>();
  if (json.columns !== undefined && !Array.isArray(json.columns)) throw new BadFrame("columns are no list");
  for (const column of (json.columns ?? []) as Described[]) {
    if (column === null || typeof column !== "object") throw new BadFrame("a column is no object");
    columns.set(...view(buffer, column));
  }
  return { id, result: json.result ?? null, columns };
}

/** A column of 8-bit integers; empty if the server left it out. */
export function u8(frame: Frame, name: string): Uint8Array {
  return pick(frame, name, Uint8Array);
}
export function u16(frame: Frame, name: string): Uint16Array {
  return pick(frame, name, Uint16Array);
}
export function u32(frame: Frame, name: string): Uint32Array {
  return pick(frame, name, Uint32Array);
}
export function f64(frame: Frame, name: string): Float64Array {
  return pick(frame, name, Float64Array);
}

function pick<T extends Column>(frame: Frame, name: string, type: new (length: number) => T): T {
  const column = frame.columns.get(name);
  if (column === undefined) return new type(0);
  if (!(column instanceof type)) throw new BadFrame(`${name} is not ${type.name}`);
  return column;
}
