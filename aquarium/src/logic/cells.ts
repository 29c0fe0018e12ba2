// SPDX-License-Identifier: Apache-2.0 OR MIT
// Cells of tables as people read them, by the unit of their column.

import type { CellValue, Quality, SectionColumn, Unit } from "../protocol/types.ts";
import { duration, instant, percent, qualified, thousands } from "./units.ts";

/** Decimals of numbers without a unit. */
const DECIMALS = 3;
/** From here on, and below its inverse, digits would be many and say little. */
const LARGE = 1e15;

/** Whether the column reads from its right end. */
export function isNumeric(unit: Unit): boolean {
  return unit !== "text" && unit !== "flag";
}

function number(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < LARGE) return thousands(value);
  const size = Math.abs(value);
  if (size >= LARGE || (size > 0 && size < 1 / 10 ** DECIMALS)) return value.toPrecision(4);
  return thousands(value, DECIMALS);
}

/** Without its quality. */
export function plainCell(value: CellValue, unit: Unit): string {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  switch (unit) {
    case "ns":
      return duration(value);
    case "time":
      return instant(value);
    case "share":
      return percent(value);
    case "bytes":
      return `${thousands(value)}\u202fB`;
    case "per_second":
      return `${thousands(value)}\u202f/s`;
    case "id":
      return String(value);
    default:
      return number(value);
  }
}

export function qualityOf(column: SectionColumn, row: number): Quality {
  return (column.quality.length === 1 ? column.quality[0] : column.quality[row]) ?? "exact";
}

/** The cell of a row with its mark: `≥ 12`, `12 ?`. */
export function cellText(column: SectionColumn, row: number): string {
  const text = plainCell(column.values[row] ?? null, column.unit);
  return text === "" ? "" : qualified(text, qualityOf(column, row));
}

/** `--from` and `--until` of `lat` for a time in nanoseconds; small whole numbers would be seconds. */
export function timeOption(ns: string): string {
  const sign = ns.startsWith("-") ? "-" : "";
  const digits = ns.slice(sign.length).padStart(10, "0");
  return `@${sign}${digits.slice(0, -9)}.${digits.slice(-9)}`;
}
