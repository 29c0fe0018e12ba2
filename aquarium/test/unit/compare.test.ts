// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import { type Side, commonWhole, factorText, overlap, shiftText, toOwn, withFound } from "../../src/logic/compare.ts";
import { Colours, DARK_THEME } from "../../src/logic/colour.ts";
import { read, write } from "../../src/logic/hash.ts";
import type { Lane, RowInfo } from "../../src/protocol/types.ts";

const side = (origin: string, end: number): Side => ({
  side: 0,
  path: "/r",
  origin,
  begin: 0,
  end,
  events: 1,
  quality: "exact",
});

describe("two recordings", () => {
  test("have rows of what scripts found in each alone, by the numbers that scripts have for both", () => {
    const lane = (id: number, rows: RowInfo[]): Lane => ({ id, parent: null, kind: "cpu", name: "", rows });
    const events: RowInfo = { row: 0, kind: "events" };
    // The server numbers rows of scripts itself, and includes those of other pages.
    const lanes = [lane(0, [events, { row: 1, kind: "spans", script: 0 }]), lane(1, [events])];
    const row = { lane: 0, row: 1, kind: "spans" as const, name: "trip" };
    const answer = { script: 0, kind: "activity" as const, how: "compiled", count: 1, rows: [row] };
    const found = withFound(lanes, new Map([[7, answer]]));
    expect(found.map((one) => one.rows)).toEqual([[events, { ...row, script: 7 }], [events]]);
    expect(withFound(lanes, new Map()).map((one) => one.rows)).toEqual([[events], [events]]);
  });

  test("have a time together in which their anchors are at 0", () => {
    const both = [side("1", 1000), side("9", 400)];
    expect(commonWhole(both, [0, 0])).toEqual({ t0: 0, t1: 1000 });
    expect(commonWhole(both, [600, 100])).toEqual({ t0: -600, t1: 400 });
    // A position on the screen is equally far from both anchors.
    const view = { t0: -50, t1: 50 };
    expect([toOwn(view, 600), toOwn(view, 100)]).toEqual([
      { t0: 550, t1: 650 },
      { t0: 50, t1: 150 },
    ]);
    expect(commonWhole([], [])).toEqual({ t0: 0, t1: 1 });
  });

  test("of one time belong on one time line, and others do not", () => {
    const [a, b, c] = [
      side("1700000000000000000", 1000),
      side("1700000000000000999", 5),
      side("1700000000000001001", 5),
    ];
    expect(overlap([a, b])).toBe(true);
    expect(overlap([a, c])).toBe(false);
    expect(overlap([a, c, b])).toBe(true);
    expect(overlap([a])).toBe(false);
    expect(overlap([a, side("no time", 5)])).toBe(false);
  });

  test("differ by words that have no factor where there is none", () => {
    expect(shiftText({ before: 0, after: 5, ratio: null })).toBe("new");
    expect(shiftText({ before: 5, after: 0, ratio: 0 })).toBe("gone");
    expect(shiftText({ before: 100, after: 150, ratio: 1.5 })).toBe("+50 %");
    expect([0.925, 1, 12].map(factorText)).toEqual(["−7.5 %", "+0.0 %", "×12"]);
  });

  test("give what has one name one colour, wherever it stands in their lists", () => {
    const all = ["idle", "a", "b", "c"];
    const known = new Colours(all, DARK_THEME);
    const byName = new Map(all.map((name, index) => [name, known.rgb(index)]));
    const other = new Colours(["c", "idle", "a"], DARK_THEME, byName);
    expect([other.rgb(0), other.rgb(2)]).toEqual([known.rgb(3), known.rgb(1)]);
    expect(other.idle(1)).toBe(true);
  });

  test("stand in a link with what they are aligned by", () => {
    const shown = { ...read(""), compared: { good: 0, bad: 2, anchors: [1500, 20] as [number, number] } };
    expect(read(write(shown)).compared).toEqual(shown.compared);
    for (const hash of ["#compared=1", "#compared=0,1,x,5", "#compared=-1,2,3,4"]) {
      expect(read(hash).compared).toBeNull();
    }
  });
});
