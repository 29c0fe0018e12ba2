// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import { search } from "../../src/logic/fuzzy.ts";
import {
  layout,
  packedText,
  packedTitle,
  regrouped,
  rowAt,
  treeOrder,
  visible,
} from "../../src/logic/layout.ts";
import * as L from "../../src/logic/virtual.ts";
import { readNotes } from "../../src/logic/notes.ts";
import type { Lane } from "../../src/protocol/types.ts";

describe("a list of 1e9 rows", () => {
  const big = { rows: 1e9, rowPx: 20, viewPx: 600 };
  test("stays below the height that Chromium can have", () => {
    expect(L.contentPx(big)).toBeLessThan(33_554_428);
    expect(L.contentPx({ ...big, rows: 100 })).toBe(2000);
  });
  test.each([{ ...big }, { ...big, rows: 1000 }, { ...big, rows: 31 }])(
    "every row can be reached: $rows",
    (shape) => {
      for (const row of [0, 1, 17, Math.floor(shape.rows / 3), shape.rows - 30].filter(
        (row) => row <= L.lastTop(shape),
      )) {
        expect(L.topRow(shape, L.scrollFor(shape, row))).toBeCloseTo(row, 3);
      }
      const range = L.contentPx(shape) - shape.viewPx;
      expect(L.topRow(shape, 0)).toBe(0);
      expect(L.shownRows(shape, L.topRow(shape, range)).end).toBe(shape.rows);
    },
  );
  test("short lists do not scroll", () => {
    const short = { rows: 3, rowPx: 20, viewPx: 600 };
    expect(L.topRow(short, 50)).toBe(0);
    expect(L.shownRows(short, 0)).toEqual({ first: 0, end: 3 });
    expect(L.shownRows({ ...short, rows: 0 }, 0)).toEqual({ first: 0, end: 0 });
  });
  test("a row that is seen does not move the list", () => {
    expect(L.topToShow(big, 100, 110)).toBe(100);
    expect(L.topToShow(big, 100, 5000)).toBe(4985);
  });
  test("pages", () => {
    expect(L.pagesFor(190, 410)).toEqual([0, 1, 2]);
  });
});

describe("lanes", () => {
  const lane = (id: number, parent: number | null, name: string, rows = 1): Lane => ({
    id,
    parent,
    kind: "thread",
    name,
    rows: Array.from({ length: rows }, (_, row) => ({ row, kind: "spans", depth: row })),
  });
  const lanes = [
    lane(0, null, "core 0"),
    lane(1, null, "warehouse", 0),
    lane(2, 1, "worker a", 3),
    lane(3, 1, "worker b"),
  ];
  const plain = {
    hidden: new Set<number>(),
    scriptsOff: new Set<number>(),
    folded: new Set<number>(),
    pinned: [],
    search: "",
  };
  const ids = (options: object) => layout(lanes, { ...plain, ...options }).lanes.map((one) => one.id);

  test("stand in the order of their tree, without gaps", () => {
    const placed = layout(lanes, plain);
    expect(placed.lanes.map((one) => [one.id, one.level])).toEqual([
      [0, 0],
      [1, 0],
      [2, 1],
      [3, 1],
    ]);
    let y = 0;
    for (const one of placed.lanes) {
      expect(one.y).toBe(y);
      y += one.height;
    }
    expect(placed.height).toBe(y);
  });
  test("are hidden, folded, pinned and searched", () => {
    expect(ids({ hidden: new Set([1]) })).toEqual([0]);
    expect(ids({ folded: new Set([1]) })).toEqual([0, 1]);
    expect(ids({ pinned: [3] })).toEqual([3, 0, 1, 2]);
    expect(ids({ search: "worker b" })).toEqual([1, 3]);
    expect(ids({ search: "nobody" })).toEqual([]);
    expect(layout(lanes, { ...plain, folded: new Set([2]) }).lanes[2].rows.length).toBe(1);
  });
  test("a parent that is its own ancestor, or is missing, does not hang or hide anything", () => {
    const odd = [lane(0, 1, "a"), lane(1, 0, "b"), lane(2, 99, "c"), lane(3, 3, "d")];
    expect(
      treeOrder(odd)
        .map((one) => one.lane.id)
        .sort(),
    ).toEqual([0, 1, 2, 3]);
  });
  test("the row under a point, scrolled and pinned", () => {
    const placed = layout(lanes, { ...plain, pinned: [3] });
    expect(rowAt(placed, 8, 500)?.lane.id).toBe(3);
    const a = placed.lanes.find((one) => one.id === 2)!;
    expect(rowAt(placed, a.rows[2].y + 3 - 20, 20)?.row?.row).toBe(2);
    expect(rowAt(placed, 1e6, 0)).toBeNull();
    expect(visible(placed, 0, 1e6).length).toBe(4);
    expect(visible(placed, 1e5, 100).map((one) => one.id)).toEqual([3]);
  });
});

test("names are found by some of their letters, the nearest first", () => {
  const names = ["Zoom in", "Show everything", "Keys", "Show or hide message arrows"];
  expect(search(names, (name) => name, "arrows")[0]).toBe("Show or hide message arrows");
  expect(search(names, (name) => name, "zi")).toEqual(["Zoom in"]);
  expect(search(names, (name) => name, "qq")).toEqual([]);
});

test("notes: what is none is left out, whoever wrote the file", () => {
  const held = [
    null,
    5,
    { begin: 7, text: "b" },
    { begin: 3, end: 1, text: "a" },
    { begin: NaN, text: "c" },
    { begin: 1 },
  ];
  expect(readNotes(held)).toEqual([
    { begin: 3, end: 3, text: "a" },
    { begin: 7, end: 7, text: "b" },
  ]);
  expect(readNotes({ begin: 1 })).toEqual([]);
});

describe("lanes in groups", () => {
  const lane = (id: number, kind: string, parent: number | null = null, rows = 1): Lane => ({
    id,
    parent,
    kind,
    name: `${kind} ${id}`,
    rows: Array.from({ length: rows }, (_, row) => ({ row, kind: "spans" as const })),
  });
  const lanes = [
    lane(0, "cpu"),
    lane(1, "counter", 0),
    lane(2, "process", null, 0),
    lane(3, "thread", 2),
    lane(4, "counter", 3),
    lane(5, "component"),
  ];
  const shown = (by: Parameters<typeof regrouped>[1]) =>
    treeOrder(regrouped(lanes, by)).map(({ lane, level }) => [lane.id, level]);

  test("packets stand behind cores, what goes in and out of one interface together", () => {
    const named = (id: number, name: string) => ({ ...lane(id, "packets"), name });
    const all = [lane(0, "cpu"), named(1, "lo in"), lane(2, "thread"), named(3, "eth0 in"), lane(4, "cpu")];
    const order = treeOrder([...all, named(5, "eth0 out")]).map((one) => one.lane.id);
    expect(order).toEqual([0, 4, 3, 5, 1, 2]);
  });
  test("are all, or those of cores with what is below, or the others", () => {
    expect(regrouped(lanes, "all")).toBe(lanes);
    expect(shown("cores")).toEqual([
      [0, 0],
      [1, 1],
    ]);
    expect(shown("processes")).toEqual([
      [2, 0],
      [3, 1],
      [4, 2],
      [5, 0],
    ]);
  });
  test("threads stand without their processes, with what is below them", () => {
    expect(shown("threads")).toEqual([
      [3, 0],
      [4, 1],
      [5, 0],
    ]);
    // A process with rows of its own is kept.
    expect(regrouped([lane(2, "process")], "threads")).toHaveLength(1);
  });
  test("a parent that is not there, or its own, ends nothing", () => {
    expect(regrouped([lane(1, "thread", 9)], "cores")).toEqual([]);
    expect(regrouped([lane(1, "thread", 1)], "processes")).toHaveLength(1);
  });
});

test("a row that stands for several says of how many, and what had room on none of them", () => {
  const rows = (more: object) => [{ row: 0, kind: "spans" as const, depth: 255, ...more }];
  const of = { id: 0, parent: null, kind: "thread", name: "clerk" };
  const lane = (more: object): Lane => ({ ...of, rows: rows(more) });
  const nothing = new Set<number>();
  const options = { hidden: nothing, scriptsOff: nothing, folded: nothing, pinned: [], search: "" };
  const told = (more: object) => layout([lane(more)], options).lanes[0].rows[0];
  expect(packedText(told({ packed: 45 }))).toBe("45 rows in one");
  expect(packedTitle(told({ packed: 45 }))).toContain("Lists and numbers have them all.");
  const full = told({ packed: 65_281, left_out: 1234 });
  expect(packedText(full)).toMatch(/^65.*k rows in one, 1.*k left out$/);
  expect(packedTitle(full).replace(/\s/g, " ")).toContain("1 234 more had room on no row");
});
