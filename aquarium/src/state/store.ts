// SPDX-License-Identifier: Apache-2.0 OR MIT
// State of the page as signals, and the few operations that change more than one of them.

import { batch, computed, signal } from "@preact/signals";
import { type Activity, type Order, comparing, sums } from "../logic/activity.ts";
import { Colours, DARK_THEME, LIGHT_THEME, type Theme } from "../logic/colour.ts";
import { type Filter, EVERYTHING, type Script, tree } from "../logic/filter.ts";
import { type Grouping, type Layout, layout, regrouped } from "../logic/layout.ts";
import type { Arrows } from "../logic/arrows.ts";
import type { Picture } from "../logic/picture.ts";
import type { LevelsOf } from "../logic/steps.ts";
import { TIME_FORMATS, type TimeFormat } from "../logic/units.ts";
import { type Interval, clamp, fit } from "../logic/viewport.ts";
import type { Status } from "../protocol/connection.ts";
import type { Loss, Quality, Session, Thing } from "../protocol/types.ts";

/** The selection: a position on a lane, and details of the item there. */
export interface Selected {
  lane: number;
  row: number | null;
  begin: number;
  end: number | null;
  thing: Thing | null;
}

/** A script that the server ran, and the names of its activities. */
export interface RanScript extends Script {
  text: string;
  how: string;
  why: string;
  count: number;
  names: readonly string[];
  /** Reason why it was stopped in a live session. */
  stopped: string | null;
}

export interface Notice {
  id: number;
  text: string;
  kind: "info" | "problem";
}

export const status = signal<Status>("connecting");
export const attempt = signal(0);
export const session = signal<Session | null>(null);
export const fatal = signal<string | null>(null);
export const notices = signal<Notice[]>([]);

export const view = signal<Interval>({ t0: 0, t1: 1 });
export const filter = signal<Filter>(EVERYTHING);
/** The server's id of the shown filter; null while it is being created. */
export const filterId = signal<number>(0);
export const shownCount = signal<{ count: number; quality: Quality } | null>(null);
export const scripts = signal<RanScript[]>([]);

export const folded = signal<ReadonlySet<number>>(new Set());
export const pinned = signal<readonly number[]>([]);
export const laneSearch = signal("");
export const grouping = signal<Grouping>("all");
/** Lanes and rows without content in the visible time are hidden. */
export const hideEmpty = signal(false);
export const laneOrder = signal<Order>("recorded");
/** Contents of lanes in the visible time; slightly outdated while the view moves. */
export const activity = signal<Activity | null>(null);
export const scrollTop = signal(0);
/** Size of the part of the timeline that shows lanes, in CSS pixels. */
export const canvasSize = signal({ width: 0, height: 0 });

export const selected = signal<Selected | null>(null);
export const range = signal<Interval | null>(null);
export const hover = signal<{ x: number; y: number; t: number } | null>(null);
export const arrowsOn = signal(true);
/** Times on the axis are in ticks of the clock. */
export const inTicks = signal(false);
/** Ticks per second, if all recordings have clocks of the same frequency. */
export const ticksHz = computed(() => {
  const all = session.value?.recordings.map((one) => one.ticks_hz ?? null) ?? [];
  return all.length > 0 && all.every((hz) => hz === all[0]) ? all[0] : null;
});
/** Frequency for the labels of the axis; null for seconds. */
export const axisHz = computed(() => (inTicks.value ? ticksHz.value : null));
/** Ends of arrows: cores, or the threads that ran there. Null if not chosen; then the picture decides. */
export const arrowsBetween = signal<"cores" | "threads" | null>(null);
export const sync = signal(true);
export const follow = signal(false);
/** Length of the view while following, once the session is that long. */
export const followSpan = signal(5e9);
/** Incremented to count the remaining events again. */
export const counting = signal(0);
export const tab = signal("events");
export const listAt = signal<{ row: number; stamp: number } | null>(null);

export const picture = signal<Picture | null>(null);
/**
 * Incremented after responses that were made before all recorded instructions were decoded, to
 * request them again.
 */
export const moreToSee = signal(0);
export const arrowData = signal<{ arrows: Arrows; filter: number } | null>(null);
export interface Overview {
  count: Uint32Array;
  flags: Uint8Array;
  /** The session's time, filter and losses of the overview. */
  of: Interval;
  filter: number;
  losses: readonly Loss[];
}
export const overview = signal<Overview | null>(null);
export const levels = signal<LevelsOf | null>(null);

export const paletteOpen = signal(false);
export const hotkeysOpen = signal(false);
export const problemsOpen = signal(false);
export const legendOpen = signal(false);

const remembered = (key: string): string | null => {
  try {
    return globalThis.localStorage?.getItem(key) ?? null;
  } catch {
    return null;
  }
};
export const themeName = signal<"dark" | "light">(
  (remembered("aquarium-theme") as "dark" | "light" | null) ??
    (globalThis.matchMedia?.("(prefers-color-scheme: light)").matches ? "light" : "dark"),
);
export const theme = computed<Theme>(() => (themeName.value === "light" ? LIGHT_THEME : DARK_THEME));

const rememberedFormat = remembered("aquarium-time");
/** Format of times in lists. */
export const timeFormat = signal<TimeFormat>(
  TIME_FORMATS.find((one) => one === rememberedFormat) ?? "relative",
);

/** The wheel scrolls lanes and zooms with Ctrl; otherwise the reverse. */
export const wheelScrolls = signal(remembered("aquarium-wheel") !== "zooms");

/** The common time of two compared recordings, or null; the view is then in that time. */
export const comparedWhole = signal<Interval | null>(null);
/** Whether the link contained a view, so that no default view is chosen. */
export const keptByLink = signal(false);

export const whole = computed<Interval>(() => {
  if (comparedWhole.value) return comparedWhole.value;
  const open = session.value;
  return open ? { t0: open.begin, t1: Math.max(open.end, open.begin + 1) } : { t0: 0, t1: 1 };
});

// These lists are equal from one growth update to the next: values derived from them are not
// computed again.
type Lists = "applications" | "channels" | "classes" | "damage" | "lanes" | "losses" | "names" | "recordings";
const listOf = <Key extends Lists>(key: Key) => {
  const none: Session[Key] = [];
  return computed<Session[Key]>(() => session.value?.[key] ?? none);
};
const applications = listOf("applications");
const classes = listOf("classes");
const lanes = listOf("lanes");
const names = listOf("names");
export const channels = listOf("channels");
export const damage = listOf("damage");
export const losses = listOf("losses");
export const recordings = listOf("recordings");
export const isLive = computed(() => session.value?.is_live === true);
export const isOpened = computed(() => session.value !== null);

export const applicationColours = computed(
  () =>
    new Colours(
      applications.value.map((one) => one.name),
      theme.value,
    ),
);
export const nameColours = computed(() => new Colours(names.value, theme.value));
export const classColours = computed(
  () =>
    new Colours(
      classes.value.map((one) => `${one.subsystem} ${one.name}`),
      theme.value,
    ),
);

export const scriptColours = computed(
  () => new Map(scripts.value.map((one) => [one.id, new Colours(one.names, theme.value)])),
);

const lists = computed(() => ({
  applications: applications.value,
  classes: classes.value,
  lanes: lanes.value,
}));
export const filterTree = computed(() => tree(lists.value, scripts.value));

/** Sums of each lane and its descendants; null while unknown. */
export const laneSums = computed(() => (activity.value ? sums(lanes.value, activity.value) : null));
const selectedLanes = computed<ReadonlySet<number>>(() => {
  const lane = selected.value?.lane;
  return new Set(lane === undefined ? [] : [lane]);
});

export const lanesLayout = computed<Layout>(() =>
  layout(regrouped(lanes.value, grouping.value), {
    hidden: filter.value.lanesOff,
    scriptsOff: filter.value.activitiesOff,
    folded: folded.value,
    pinned: pinned.value,
    search: laneSearch.value,
    emptyRows: hideEmpty.value ? (activity.value?.emptyRows ?? null) : null,
    kept: selectedLanes.value,
    compare: laneOrder.value === "recorded" ? null : comparing(laneOrder.value, laneSums.value),
  }),
);

export const laneById = computed(() => new Map(lanes.value.map((lane) => [lane.id, lane])));
export const applicationById = computed(() => new Map(applications.value.map((one) => [one.id, one])));
export const classById = computed(() => new Map(classes.value.map((one) => [one.id, one])));

/** Range of lists, statistics and exports: the marked range, or the visible time. */
export const chosen = computed<Interval>(() => range.value ?? view.value);

/** Methods of this server: functions that need others are hidden. */
export const methods = signal<ReadonlySet<string>>(new Set());

export function countAgain(): void {
  counting.value++;
}

export function show(next: Interval): void {
  view.value = clamp(next, whole.value);
}

export function showAll(): void {
  view.value = fit(whole.value);
}

let nextNotice = 1;
const NOTICE_MS = 9000;

export function tell(text: string, kind: Notice["kind"] = "info"): void {
  if (notices.value.some((one) => one.text === text)) return;
  const id = nextNotice++;
  notices.value = [...notices.value.slice(-3), { id, text, kind }];
  if (kind === "info") setTimeout(() => dismiss(id), NOTICE_MS);
}

export function dismiss(id: number): void {
  notices.value = notices.value.filter((one) => one.id !== id);
}

export function setTheme(name: "dark" | "light"): void {
  themeName.value = name;
  try {
    localStorage.setItem("aquarium-theme", name);
  } catch {
    // Private windows have no storage: the setting then lasts as long as the page.
  }
}

export function setTimeFormat(format: TimeFormat): void {
  timeFormat.value = format;
  try {
    localStorage.setItem("aquarium-time", format);
  } catch {
    // As above.
  }
}

export function setWheelScrolls(scrolls: boolean): void {
  wheelScrolls.value = scrolls;
  try {
    localStorage.setItem("aquarium-wheel", scrolls ? "scrolls" : "zooms");
  } catch {
    // As above.
  }
}

/** Folds or unfolds all lanes that have children or several rows. */
export function foldAll(fold: boolean): void {
  const parents = new Set(lanes.value.map((lane) => lane.parent));
  const foldable = lanes.value.filter((lane) => parents.has(lane.id) || lane.rows.length > 1);
  folded.value = new Set(fold ? foldable.map((lane) => lane.id) : []);
}

export function toggleFold(lane: number): void {
  const next = new Set(folded.value);
  if (!next.delete(lane)) next.add(lane);
  folded.value = next;
}

export function togglePin(lane: number): void {
  const now = pinned.value;
  pinned.value = now.includes(lane) ? now.filter((one) => one !== lane) : [...now, lane];
}

export function clearSelection(): void {
  batch(() => {
    selected.value = null;
    range.value = null;
  });
}

export function openTab(name: string): void {
  tab.value = name;
}
