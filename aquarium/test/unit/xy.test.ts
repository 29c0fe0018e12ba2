// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import { correlation, points } from "../../src/logic/xy.ts";

describe("points of two numbers", () => {
  test("are those that have both, by x, each with its time", () => {
    const found = points([1, 2, 3, 4], [30, NaN, 10, 10], [5, 6, NaN, 8]);
    expect(found).toEqual({ x: [10, 30], y: [8, 5], t: [4, 1] });
    expect(points([], [], [])).toEqual({ x: [], y: [], t: [] });
  });
  test("go together as much as they do", () => {
    const t = Array.from({ length: 50 }, (_, index) => index);
    const of = (y: (index: number) => number) => correlation(points(t, t, t.map(y)));
    expect(of((index) => 3 * index - 7)).toBeCloseTo(1, 12);
    expect(of((index) => -index)).toBeCloseTo(-1, 12);
    expect(of((index) => index % 2)).toBeCloseTo(0, 1);
    expect(of(() => 4)).toBeNull();
    expect(correlation(points([1, 2], [1, 2], [1, 2]))).toBeNull();
  });
});
