// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import { atLeast, binsOf, parameters, takeBrushed, text } from "../../src/logic/brush.ts";
import { BadFrame, decodeFrame } from "../../src/protocol/frame.ts";
import { encodeFrame } from "../support/encode.ts";

describe("a brush", () => {
  const brush = { kind: 3, name: "request", least: 1500.4, most: 2000.9 };

  test("is asked for in whole nanoseconds within it", () => {
    expect(parameters(brush)).toEqual({ kind: 3, least: 1501, most: 2000 });
    expect(parameters({ ...brush, least: null, most: null })).toEqual({ kind: 3, least: 0 });
  });

  test("says what it is of", () => {
    expect(text(brush).replaceAll("\u202f", " ")).toBe("request from 1.500 µs to 2.001 µs");
    expect(text({ ...brush, most: null })).toContain("request from");
    expect(text({ ...brush, least: null, most: null })).toBe("request");
  });

  test("takes each bin that it touches, and no other", () => {
    const edges = [10, 20, 40, 80, 160];
    for (let least = 0; least < 200; least += 5)
      for (let most = least; most < 200; most += 5) {
        const touched = [0, 1, 2, 3].filter((bin) => edges[bin] <= most && edges[bin + 1] > least);
        const [first, end] = binsOf(edges, { least, most });
        expect(Array.from({ length: end - first }, (_, index) => first + index)).toEqual(touched);
      }
    expect(binsOf(edges, { least: null, most: null })).toEqual([0, 4]);
    expect(binsOf([], { least: 1, most: 2 })).toEqual([0, 0]);
  });

  test("latency versus count falls from all to the last bin's", () => {
    expect(atLeast([3, 0, 5, 1])).toEqual([9, 6, 6, 1]);
    expect(atLeast([])).toEqual([]);
  });
});

describe("an answer of brushed", () => {
  const frame = (row: number[], begin: number[], end: number[]) =>
    decodeFrame(
      encodeFrame(
        1,
        {
          rows: [
            { lane: 4, row: 1 },
            { lane: 5, row: 0 },
          ],
          count: 7,
        },
        {
          row: Uint32Array.from(row),
          begin: Float64Array.from(begin),
          end: Float64Array.from(end),
        },
      ),
    );

  test("comes apart by row", () => {
    const { stretches, count } = takeBrushed(frame([0, 0, 1], [10, 30, 5], [20, 31, 90]));
    expect(count).toBe(7);
    expect([...stretches.keys()]).toEqual(["4/1", "5/0"]);
    expect([...stretches.get("4/1")!.begin]).toEqual([10, 30]);
    expect([...stretches.get("5/0")!.end]).toEqual([90]);
  });

  test("that contradicts itself is refused", () => {
    expect(() => takeBrushed(frame([2], [1], [2]))).toThrow(BadFrame);
    expect(() => takeBrushed(frame([0, 0], [1], [2]))).toThrow(BadFrame);
  });
});
