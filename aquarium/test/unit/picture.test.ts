// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import { badged, lineAt, lines, takeArrows, arrowWidth } from "../../src/logic/arrows.ts";
import { DARK_THEME, LIGHT_THEME, Colours, functionColours, isIdle } from "../../src/logic/colour.ts";
import { firstFrom, itemAt, takeApart } from "../../src/logic/picture.ts";
import { range, runs } from "../../src/logic/steps.ts";
import { BadFrame, decodeFrame } from "../../src/protocol/frame.ts";
import { Superseded } from "../../src/protocol/connection.ts";
import { Loader } from "../../src/state/loader.ts";
import { encodeFrame } from "../support/encode.ts";

const window = { t0: 0, t1: 40, px: 4, nsPerPx: 10 };

function view(items: [row: number, begin: number, end: number][], pixels = 8) {
  return decodeFrame(
    encodeFrame(
      1,
      {
        rows: [
          { lane: 3, row: 0, exact: true },
          { lane: 3, row: 1, exact: false },
        ],
      },
      {
        colour: Uint16Array.from({ length: pixels }, (_, x) => x),
        cover: new Uint8Array(pixels),
        count: new Uint8Array(pixels),
        flags: new Uint8Array(pixels),
        item_row: Uint32Array.from(items, (one) => one[0]),
        item_begin: Float64Array.from(items, (one) => one[1]),
        item_end: Float64Array.from(items, (one) => one[2]),
        item_name: new Uint32Array(items.length),
        item_event: new Float64Array(items.length),
      },
    ),
  );
}

describe("functions of calls", () => {
  test("have their names from the answer, and the colour of the name whatever their number is", () => {
    const frame = view([]);
    const result = { ...(frame.result as object), functions: [[7, "fib"], ["x", 1], [9, "main"]], pending: 5 };
    const picture = takeApart({ ...frame, result }, window, 0);
    expect([...picture.functions!]).toEqual([
      [7, "fib"],
      [9, "main"],
    ]);
    expect(picture.pending).toBe(5);
    expect(takeApart(frame, window, 0).functions!.size).toBe(0);
    const one = functionColours(picture.functions, DARK_THEME);
    const other = functionColours(new Map([[2, "fib"]]), DARK_THEME);
    expect(one.names[7]).toBe("fib");
    expect(one.rgb(7)).toEqual(other.rgb(2));
    expect(functionColours(picture.functions, LIGHT_THEME).rgb(7)).not.toEqual(one.rgb(7));
  });
});

describe("an answer to view", () => {
  test("is taken apart by rows, things sorted", () => {
    const picture = takeApart(
      view([
        [1, 5, 6],
        [0, 20, 25],
        [0, 3, 9],
      ]),
      window,
      2,
    );
    expect(picture.byRow.get("3/1")).toBe(1);
    expect([...picture.rows[1].columns.colour]).toEqual([4, 5, 6, 7]);
    expect([...picture.rows[0].items.begin]).toEqual([3, 20]);
    expect([...picture.rows[1].items.end]).toEqual([6]);
  });
  test("with too few pixels or things of rows that are not there is refused", () => {
    expect(() => takeApart(view([], 7), window, 0)).toThrow(BadFrame);
    expect(() => takeApart(view([[2, 0, 1]]), window, 0)).toThrow(BadFrame);
  });
  test("things are found where they are drawn", () => {
    const { items } = takeApart(
      view([
        [0, 3, 9],
        [0, 20, 20],
        [0, 24, 24],
      ]),
      window,
      0,
    ).rows[0];
    expect(firstFrom(items, 4)).toBe(1);
    expect(itemAt(items, 6, 0)).toBe(0);
    expect(itemAt(items, 11, 1)).toBeNull();
    expect(itemAt(items, 21, 3)).toBe(1);
    expect(itemAt(items, 23, 3)).toBe(2);
  });
});

describe("arrows", () => {
  const frame = decodeFrame(
    encodeFrame(
      1,
      {},
      {
        from_lane: Uint32Array.of(0, 9),
        to_lane: Uint32Array.of(1, 1),
        from: Float64Array.of(10, 10),
        to: Float64Array.of(20, 20),
        count: Uint32Array.of(64, 1),
        channel: Uint32Array.of(0, 0),
      },
    ),
  );
  test("go from lane to lane, thicker with their count; lanes that are not shown have none", () => {
    const all = lines(takeArrows(frame), { t0: 0, t1: 100 }, 1000, (lane) => (lane === 9 ? null : lane * 50));
    expect(all).toEqual([{ x0: 100, y0: 0, x1: 200, y1: 50, count: 64, widthPx: arrowWidth(64), index: 0 }]);
    expect(arrowWidth(64)).toBeGreaterThan(arrowWidth(1));
    expect(lineAt(all, 150, 25, 4)?.index).toBe(0);
    expect(lineAt(all, 150, 40, 4)).toBeNull();
  });
});

test("arrows say how many they stand for where it can be read: the thickest first", () => {
  const line = (x: number, count: number) => ({ x0: x, y0: 0, x1: x, y1: 50, count, widthPx: 1, index: 0 });
  const all = [line(0, 9), line(30, 90), line(200, 8), line(400, 1), { ...line(600, 50), y1: 10 }];
  expect(badged(all, 8).map((one) => one.count)).toEqual([90, 8]);
});

test("counters: nothing is drawn across what is not known", () => {
  const levels = {
    low: Float64Array.of(1, 2, NaN, 4),
    high: Float64Array.of(3, 2, NaN, 4),
    last: Float64Array.of(2, 2, NaN, 4),
  };
  const between = range(levels)!;
  expect(between).toEqual({ low: 0, high: 4 });
  expect(runs(levels, between).map((run) => run.map((step) => step.last))).toEqual([[0.5, 0.5], [1]]);
  expect(
    range({ low: Float64Array.of(NaN), high: Float64Array.of(NaN), last: Float64Array.of(NaN) }),
  ).toBeNull();
});

describe("colours", () => {
  test("the first sixteen all differ, and who is idle is grey", () => {
    for (const theme of [DARK_THEME, LIGHT_THEME]) {
      const colours = new Colours(
        ["idle", ...Array.from({ length: 16 }, (_, index) => `app ${index}`)],
        theme,
      );
      expect(new Set(Array.from({ length: 17 }, (_, index) => colours.css(index))).size).toBe(17);
      expect(colours.idle(0)).toBe(true);
    }
    expect(isIdle("swapper/3")).toBe(true);
    expect(isIdle("idler")).toBe(false);
  });
  // Machado et al. 2009, full deuteranopia and protanopia: linear maps of linear RGB.
  const deutan = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ];
  const protan = [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ];
  test.each([
    ["deuteranopia", deutan],
    ["protanopia", protan],
  ])("the first eight differ under %s", (_, matrix) => {
    for (const theme of [DARK_THEME, LIGHT_THEME]) {
      const seen = theme.palette.slice(0, 8).map((rgb) => {
        const linear = rgb.map((part) => (part / 255) ** 2.2);
        return matrix.map(
          (line) =>
            255 *
            Math.max(
              0,
              line.reduce((sum, weight, index) => sum + weight * linear[index], 0),
            ) **
              (1 / 2.2),
        );
      });
      for (let a = 0; a < seen.length; a++) {
        for (let b = 0; b < a; b++) {
          expect(
            Math.hypot(...seen[a].map((part, index) => part - seen[b][index])),
            `${a} and ${b}`,
          ).toBeGreaterThan(14);
        }
      }
    }
  });
});

describe("a moving view's requests", () => {
  test("one in flight, then the newest wish; those between are never sent", async () => {
    const sent: { wish: number; answer: (value: number) => void }[] = [];
    const got: number[] = [];
    const loader = new Loader<number, number>(
      (wish) => new Promise((answer) => sent.push({ wish, answer })),
      (value) => got.push(value),
      (error) => {
        throw error;
      },
      () => 0,
    );
    for (const wish of [1, 2, 3]) loader.want(wish);
    expect(sent.map((one) => one.wish)).toEqual([1]);
    sent[0].answer(10);
    await new Promise((resolve) => setTimeout(resolve));
    expect(sent.map((one) => one.wish)).toEqual([1, 3]);
    sent[1].answer(30);
    await new Promise((resolve) => setTimeout(resolve));
    expect(got).toEqual([10, 30]);
  });
  test("what was superseded is no failure", async () => {
    const failures: Error[] = [];
    const loader = new Loader<number, number>(
      () => Promise.reject(new Superseded("view")),
      () => {},
      (error) => failures.push(error),
    );
    loader.want(1);
    await new Promise((resolve) => setTimeout(resolve));
    expect(failures).toEqual([]);
  });
});
