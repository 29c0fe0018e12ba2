// SPDX-License-Identifier: Apache-2.0 OR MIT
// Readable numbers: units, thousands separators, dates.

const NARROW_SPACE = "\u202f";

/** 1234567.8 becomes `1 234 567.8`, with thin spaces that do not break. */
export function thousands(value: number, decimals = 0): string {
  const [whole, fraction] = Math.abs(value).toFixed(decimals).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, NARROW_SPACE);
  const sign = value < 0 && Number(value.toFixed(decimals)) !== 0 ? "−" : "";
  return sign + grouped + (fraction === undefined ? "" : `.${fraction}`);
}

const UNITS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

export function unitFor(ns: number): { ns: number; name: string } {
  const size = Math.abs(ns);
  for (const [scale, name] of UNITS) if (size >= scale) return { ns: scale, name };
  return { ns: 1, name: "ns" };
}

/** A duration with four significant digits: `37.71 µs`, `1.650 ms`, `484 ns`. */
export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return "unknown";
  if (ns === 0) return `0${NARROW_SPACE}ns`;
  let unit = unitFor(ns);
  // 999.96 µs would be rounded to 1000 µs: use 1 ms.
  if (unit.name !== "s" && Math.abs(ns) / unit.ns >= 999.95) unit = unitFor(unit.ns * 1000);
  const value = ns / unit.ns;
  const whole = Math.abs(ns) < 1000 && Number.isInteger(ns);
  const digits = whole ? 0 : Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value))));
  return `${thousands(value, Math.min(digits, 3))}${NARROW_SPACE}${unit.name}`;
}

/** A time to the nanosecond; `12 345 678 ns` is hard to read, so it is `0.012 345 678 s`. */
export function instant(ns: number): string {
  const seconds = Math.floor(Math.abs(ns) / 1e9);
  const rest = Math.floor(Math.abs(ns) - seconds * 1e9);
  const fraction = rest
    .toString()
    .padStart(9, "0")
    .replace(/(\d{3})(?=\d)/g, `$1${NARROW_SPACE}`);
  return `${ns < 0 ? "−" : ""}${thousands(seconds)}.${fraction}${NARROW_SPACE}s`;
}

/**
 * The date (UTC) of a time, if the session's clock has dates; to the nanosecond, which `Date` does
 * not support.
 */
export function date(origin: string, ns: number): string | null {
  if (!/^-?\d{1,20}$/.test(origin)) return null;
  const total = BigInt(origin) + BigInt(Math.round(ns));
  const millis = Number(total / 1_000_000n);
  const when = new Date(millis);
  if (Number.isNaN(when.getTime())) return null;
  const below = (((total % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n).toString().padStart(9, "0");
  return `${when.toISOString().slice(0, 19).replace("T", " ")}.${below}`;
}

/** Format of times in lists: since the first event, as UTC or local time, or in nanoseconds since 1970. */
export type TimeFormat = "relative" | "utc" | "local" | "raw";
export const TIME_FORMATS: TimeFormat[] = ["relative", "utc", "local", "raw"];

/** A time in a list; relative to the first event if the session's clock has no dates. */
export function timeText(format: TimeFormat, origin: string, ns: number, isDate: boolean): string {
  if (format === "relative" || !isDate || !/^-?\d{1,20}$/.test(origin)) return instant(ns);
  const total = BigInt(origin) + BigInt(Math.round(ns));
  if (format === "raw") return String(total);
  const minutes = format === "utc" ? 0 : -new Date(Number(total / 1_000_000n)).getTimezoneOffset();
  const text = date(origin, ns + minutes * 60e9);
  if (text === null) return instant(ns);
  const [clock, fraction] = text.slice(11).split(".");
  return `${clock}.${fraction.replace(/(\d{3})(?=\d)/g, `$1${NARROW_SPACE}`)}`;
}

const SHORT: [number, string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A short count: `980`, `12.3k`, `4.10M`. */
export function brief(count: number): string {
  for (const [scale, letter] of SHORT) {
    if (Math.abs(count) >= scale * 0.99995) {
      const value = count / scale;
      return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)}${letter}`;
    }
  }
  return String(count);
}

/** A share of 1 as a percentage: `12.3 %`, `0.45 %`. */
export function percent(share: number): string {
  const value = share * 100;
  const decimals = value === 0 || value >= 99.95 ? 0 : value >= 1 ? 1 : 2;
  return `${thousands(value, decimals)}${NARROW_SPACE}%`;
}

/** Marks numbers that losses affect: `≥ 12`, `12 ?`. */
export function qualified(text: string, quality: string | undefined): string {
  if (quality === "lower_bound") return `≥${NARROW_SPACE}${text}`;
  if (quality === "unknown") return `${text}${NARROW_SPACE}?`;
  return text;
}

/** The last part of a name, for narrow places: `MUTEX_HELD` of `threads:MUTEX_HELD`. */
export function shortName(name: string): string {
  const short = name.slice(name.lastIndexOf(":") + 1);
  return short === "" ? name : short;
}

/** Minimum length at which a list of numbers below 256 is shown as bytes, of a packet for instance. */
const LEAST_BYTES = 16;

function listText(list: readonly unknown[], most: number): string {
  const isByte = (one: unknown) => Number.isInteger(one) && Number(one) >= 0 && Number(one) <= 255;
  const shown = list.slice(0, most);
  const rest = shown.length < list.length ? ` … ${thousands(list.length)} in all` : "";
  if (list.length < LEAST_BYTES || !list.every(isByte)) return `${JSON.stringify(shown)}${rest}`;
  return shown.map((one) => Number(one).toString(16).padStart(2, "0")).join(" ") + rest;
}

/**
 * A field's value with its unit; at most `most` elements of a list. Times in nanoseconds are shown
 * in a readable unit.
 */
export function fieldText(value: unknown, unit?: string | null, most = 1024): string {
  if (value === null || value === undefined) return "unknown";
  if (Array.isArray(value)) return listText(value, most);
  if (typeof value === "number") {
    if (unit === "ns") return duration(value);
    // A number without a unit is often an id: digits without separators can be searched for and copied.
    return unit
      ? `${Number.isInteger(value) ? thousands(value) : value}${NARROW_SPACE}${unit}`
      : String(value);
  }
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return unit ? `${text}${NARROW_SPACE}${unit}` : text;
}
