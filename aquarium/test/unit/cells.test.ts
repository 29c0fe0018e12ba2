// SPDX-License-Identifier: Apache-2.0 OR MIT
import { expect, test } from "vitest";
import { cellText, plainCell, timeOption } from "../../src/logic/cells.ts";
import type { Quality, SectionColumn } from "../../src/protocol/types.ts";

const plain = (text: string) => text.replaceAll("\u202f", " ");

test("a cell is written by the unit of its column", () => {
  expect(plain(plainCell(1234567, "count"))).toBe("1 234 567");
  expect(plain(plainCell(1234567, "id"))).toBe("1234567");
  expect(plain(plainCell(1500, "ns"))).toBe("1.500 µs");
  expect(plain(plainCell(1_000_000_001, "time"))).toBe("1.000 000 001 s");
  expect(plain(plainCell(0.5, "share"))).toBe("50.0 %");
  expect(plain(plainCell(2048, "bytes"))).toBe("2 048 B");
  expect(plain(plainCell(0.50413, "number"))).toBe("0.504");
  expect(plain(plainCell(0.00001234, "number"))).toBe("0.00001234");
  expect(plain(plainCell(3, "number"))).toBe("3");
  expect(plainCell(null, "ns")).toBe("");
  expect([plainCell(true, "flag"), plainCell(false, "flag")]).toEqual(["yes", "no"]);
});

test("each cell has the mark of its row, or that of all", () => {
  const column = (quality: Quality[]): SectionColumn => ({
    name: "n",
    title: "n",
    unit: "count",
    values: [7, 8, null],
    quality,
  });
  const texts = (quality: Quality[]) => [0, 1, 2].map((row) => plain(cellText(column(quality), row)));
  expect(texts(["lower_bound"])).toEqual(["≥ 7", "≥ 8", ""]);
  expect(texts(["exact", "unknown", "unknown"])).toEqual(["7", "8 ?", ""]);
  expect(texts([])).toEqual(["7", "8", ""]);
});

test("times are options that are read back to the nanosecond", () => {
  expect(timeOption("1795224442047685452")).toBe("@1795224442.047685452");
  expect(timeOption("5")).toBe("@0.000000005");
  expect(timeOption("-1")).toBe("@-0.000000001");
});
