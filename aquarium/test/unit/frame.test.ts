// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import { BadFrame, decodeFrame, f64, u16, u32, u8 } from "../../src/protocol/frame.ts";
import { takeApart } from "../../src/logic/picture.ts";
import { encodeFrame } from "../support/encode.ts";
import { random } from "../support/trace.ts";

const frame = () =>
  encodeFrame(
    7,
    { rows: [1] },
    {
      a: Uint8Array.of(1, 2, 3),
      b: Uint16Array.of(65535, 4),
      c: Uint32Array.of(2 ** 32 - 1),
      d: Float64Array.of(0.5, -1e300),
    },
  );

describe("binary answers", () => {
  test("come back as they were laid out", () => {
    const read = decodeFrame(frame());
    expect(read.id).toBe(7);
    expect(read.result).toEqual({ rows: [1] });
    expect([...u8(read, "a")]).toEqual([1, 2, 3]);
    expect([...u16(read, "b")]).toEqual([65535, 4]);
    expect([...u32(read, "c")]).toEqual([2 ** 32 - 1]);
    expect([...f64(read, "d")]).toEqual([0.5, -1e300]);
    expect(u8(read, "missing").length).toBe(0);
  });

  test("a column is not copied", () => {
    const buffer = frame();
    expect(u8(decodeFrame(buffer), "a").buffer).toBe(buffer);
  });

  test("a column of another type than expected is refused", () => {
    expect(() => u32(decodeFrame(frame()), "a")).toThrow(BadFrame);
  });

  test("cut anywhere, a frame is refused or reads within what is left", () => {
    const whole = frame();
    for (let length = 0; length < whole.byteLength; length++) {
      try {
        for (const column of decodeFrame(whole.slice(0, length)).columns.values()) {
          expect(column.byteOffset + column.byteLength).toBeLessThanOrEqual(length);
        }
      } catch (error) {
        expect(error).toBeInstanceOf(BadFrame);
      }
    }
  });

  test("bytes changed anywhere raise nothing but BadFrame", () => {
    const next = random(3);
    for (let round = 0; round < 5000; round++) {
      const bytes = new Uint8Array(frame());
      for (let change = 0; change < 3; change++)
        bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256);
      try {
        takeApart(decodeFrame(bytes.buffer), { t0: 0, t1: 4, px: 4, nsPerPx: 1 }, 0);
      } catch (error) {
        expect(error).toBeInstanceOf(BadFrame);
      }
    }
  });

  const json = (columns: unknown) => {
    const text = new TextEncoder().encode(JSON.stringify({ result: null, columns }));
    const buffer = new ArrayBuffer(8 + text.length);
    new DataView(buffer).setUint32(4, text.length, true);
    new Uint8Array(buffer, 8).set(text);
    return buffer;
  };
  test.each([
    ["no list", 5],
    ["no object", [null]],
    ["no name", [{ type: "u8", offset: 0, length: 0 }]],
    ["unknown type", [{ name: "a", type: "i128", offset: 0, length: 0 }]],
    ["not aligned", [{ name: "a", type: "u8", offset: 4, length: 1 }]],
    ["negative", [{ name: "a", type: "u8", offset: -8, length: 1 }]],
    ["too long", [{ name: "a", type: "f64", offset: 0, length: 2 ** 52 }]],
    ["a fraction", [{ name: "a", type: "u8", offset: 0, length: 1.5 }]],
  ])("columns: %s", (_, columns) => {
    expect(() => decodeFrame(json(columns))).toThrow(BadFrame);
  });
});
