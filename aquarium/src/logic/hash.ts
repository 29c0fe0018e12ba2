// SPDX-License-Identifier: Apache-2.0 OR MIT
// State of the page in the URL: a link restores view, filter and selection.

import { ORDERS, type Order } from "./activity.ts";
import type { Filter } from "./filter.ts";
import { GROUPINGS, type Grouping } from "./layout.ts";
import type { Interval } from "./viewport.ts";

export interface Shown {
  view: Interval | null;
  filter: Filter;
  range: Interval | null;
  /** The selected item: its lane, its row, and its begin. */
  selected: { lane: number; row: number; t: number } | null;
  folded: ReadonlySet<number>;
  pinned: readonly number[];
  grouping: Grouping;
  order: Order;
  /** Empty lanes are hidden. */
  hideEmpty: boolean;
  tab: string;
  arrows: boolean;
  /** The axis is labelled in ticks of the clock. */
  ticks: boolean;
  /** Two compared recordings by their numbers, and the time in each that is 0. */
  compared: { good: number; bad: number; anchors: [number, number] } | null;
}

/** A longer list in a URL is invalid, or too long for a link. */
const LONGEST_LIST = 10_000;

export function write(shown: Shown): string {
  const parts: string[] = [];
  const add = (key: string, value: string) => value !== "" && parts.push(`${key}=${value}`);
  if (shown.view) add("view", interval(shown.view));
  if (shown.range) add("range", interval(shown.range));
  if (shown.selected)
    add("selected", `${shown.selected.lane},${shown.selected.row},${number(shown.selected.t)}`);
  add("lanes-off", list(shown.filter.lanesOff));
  add("events-off", list(shown.filter.classesOff));
  add("applications-off", list(shown.filter.applicationsOff));
  add("folded", list(shown.folded));
  add("pinned", shown.pinned.join(","));
  if (shown.grouping !== "all") add("lanes", shown.grouping);
  if (shown.order !== "recorded") add("order", shown.order);
  if (shown.hideEmpty) add("empty", "hidden");
  if (shown.tab !== "events") add("tab", encodeURIComponent(shown.tab));
  if (!shown.arrows) add("arrows", "off");
  if (shown.ticks) add("axis", "ticks");
  if (shown.compared) {
    const { good, bad, anchors } = shown.compared;
    add("compared", [good, bad, ...anchors.map(number)].join(","));
  }
  return parts.length === 0 ? "" : `#${parts.join("&")}`;
}

/** Parses the hash of a URL; invalid parts are ignored. */
export function read(hash: string): Shown {
  const values = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (key: string) => values.get(key) ?? "";
  const selected = text("selected").split(",").map(Number);
  return {
    view: readInterval(text("view")),
    range: readInterval(text("range")),
    selected:
      selected.length === 3 && selected.every(Number.isFinite)
        ? { lane: selected[0], row: selected[1], t: selected[2] }
        : null,
    filter: {
      lanesOff: new Set(readList(text("lanes-off"))),
      classesOff: new Set(readList(text("events-off"))),
      applicationsOff: new Set(readList(text("applications-off"))),
      // Scripts exist in a server's memory: their ids are invalid on another server.
      scriptsOn: new Set(),
      activitiesOff: new Set(),
    },
    folded: new Set(readList(text("folded"))),
    pinned: readList(text("pinned")),
    grouping: GROUPINGS.find((one) => one === text("lanes")) ?? "all",
    order: ORDERS.find((one) => one === text("order")) ?? "recorded",
    hideEmpty: text("empty") === "hidden",
    tab: /^[a-z]{1,20}$/.test(text("tab")) ? text("tab") : "events",
    arrows: text("arrows") !== "off",
    ticks: text("axis") === "ticks",
    compared: readCompared(text("compared")),
  };
}

function number(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function interval(one: Interval): string {
  return `${number(one.t0)},${number(one.t1)}`;
}

function list(ids: ReadonlySet<number>): string {
  return [...ids].sort((a, b) => a - b).join(",");
}

function readInterval(text: string): Interval | null {
  const [t0, t1, ...rest] = text.split(",").map((part) => (part === "" ? NaN : Number(part)));
  if (rest.length > 0 || !Number.isFinite(t0) || !Number.isFinite(t1) || t1 <= t0) return null;
  return { t0, t1 };
}

function readCompared(text: string): Shown["compared"] {
  if (!/^\d{1,4},\d{1,4},-?[\d.]{1,20},-?[\d.]{1,20}$/.test(text)) return null;
  const [good, bad, first, second] = text.split(",").map(Number);
  return Number.isFinite(first + second) ? { good, bad, anchors: [first, second] } : null;
}

function readList(text: string): number[] {
  return text
    .split(",")
    .filter((part) => /^\d{1,9}$/.test(part))
    .slice(0, LONGEST_LIST)
    .map(Number);
}
