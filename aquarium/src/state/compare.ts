// SPDX-License-Identifier: Apache-2.0 OR MIT
// Comparison of two recordings: their selection, alignment and pictures. Meanwhile the view is in
// the common time, and the filter remains that of the session.

import { type Signal, batch, computed, effect, signal } from "@preact/signals";
import type { Arrows } from "../logic/arrows.ts";
import { type Side, commonWhole, overlap, withFound } from "../logic/compare.ts";
import { Colours } from "../logic/colour.ts";
import { type Layout, layout } from "../logic/layout.ts";
import type { Picture } from "../logic/picture.ts";
import type { LevelsOf } from "../logic/steps.ts";
import type { Quality, ScriptAnswer, Session, Thing } from "../protocol/types.ts";
import { ask } from "./server.ts";
import * as store from "./store.ts";

export type Which = "good" | "bad";
export const BOTH: Which[] = ["good", "bad"];

/** One of the two recordings. */
export interface Half {
  info: Side;
  session: Session;
  /** Time of the recording that is 0 in the common time. */
  anchor: number;
  folded: ReadonlySet<number>;
}

export const sides = signal<Side[]>([]);
export const halves = signal<Record<Which, Half> | null>(null);
export const alignedBy = signal("the begin of both");
export const pictures: Record<Which, Signal<Picture | null>> = { good: signal(null), bad: signal(null) };
/** Messages of each recording, with the filter of the request. */
export const arrowsOf: Record<Which, Signal<{ arrows: Arrows; filter: number } | null>> = {
  good: signal(null),
  bad: signal(null),
};
export const levelsOf: Record<Which, Signal<LevelsOf | null>> = { good: signal(null), bad: signal(null) };
export const scrolled: Record<Which, Signal<number>> = { good: signal(0), bad: signal(0) };
/** Size of each half's canvas in CSS pixels. */
export const halfSize: Record<Which, Signal<{ width: number; height: number }>> = {
  good: signal({ width: 0, height: 0 }),
  bad: signal({ width: 0, height: 0 }),
};
export const picked = signal<{ which: Which; lane: number; row: number; thing: Thing } | null>(null);

/** The filter as applied to a half, and its result. */
export interface Applied {
  /** Null while its scripts run over this recording, or after they failed. */
  filter: number | null;
  /** Number of remaining events; null without a filter. */
  count: number | null;
  quality?: Quality;
  /** Reason why the session's filter cannot be applied. */
  problem: string | null;
}
export const NOTHING_APPLIED: Applied = { filter: null, count: null, problem: null };
export const applied: Record<Which, Signal<Applied>> = {
  good: signal(NOTHING_APPLIED),
  bad: signal(NOTHING_APPLIED),
};
/** Progress of a script on a half. */
export interface Looked {
  looked: number;
  events: number;
}
export const lookingAt: Record<Which, Signal<ReadonlyMap<number, Looked>>> = {
  good: signal(new Map()),
  bad: signal(new Map()),
};
/** Results of scripts on each half; rows have the half's own numbers. */
export const foundOf: Record<Which, Signal<ReadonlyMap<number, ScriptAnswer>>> = {
  good: signal(new Map()),
  bad: signal(new Map()),
};
/** The filter, once it is applied to both halves; null before. */
export const appliedToBoth = computed(() => {
  const [good, bad] = BOTH.map((which) => applied[which].value);
  const filter = good.filter === bad.filter ? good.filter : null;
  return { filter, problem: good.problem ?? bad.problem };
});

/** The view of the joined session, restored after the comparison. */
let viewBefore: { t0: number; t1: number } | null = null;

export async function enter(good = 0, bad = 1, anchors: [number, number] = [0, 0]): Promise<boolean> {
  const answer = await ask<{ sides: Side[] }>("sides", {});
  if (!answer || answer.sides.length < 2) return false;
  sides.value = answer.sides;
  const made = await Promise.all(
    [good, bad].map(async (side, index): Promise<Half | null> => {
      const info = answer.sides[side];
      const session = info ? await ask<Session>("open", { side }) : null;
      return session && { info, session, anchor: anchors[index], folded: firstFolded(session) };
    }),
  );
  const [first, second] = made;
  if (!first || !second) return false;
  batch(() => {
    if (store.comparedWhole.value === null) viewBefore = store.view.value;
    halves.value = { good: first, bad: second };
    picked.value = null;
    alignedBy.value = anchors.some((one) => one !== 0) ? "what was chosen" : "the begin of both";
    for (const which of BOTH) {
      for (const one of [pictures, arrowsOf, levelsOf]) one[which].value = null;
    }
    store.clearSelection();
    store.comparedWhole.value = wholeOf(halves.value);
    store.showAll();
  });
  return true;
}

/** Only half of the screen is available: processes with many threads are folded at first. */
function firstFolded(session: Session): ReadonlySet<number> {
  const children = new Map<number, number>();
  for (const lane of session.lanes) {
    if (lane.parent !== null) children.set(lane.parent, (children.get(lane.parent) ?? 0) + 1);
  }
  return new Set([...children].filter(([, count]) => count > 24).map(([id]) => id));
}

function wholeOf({ good, bad }: Record<Which, Half>) {
  return commonWhole([good.info, bad.info], [good.anchor, bad.anchor]);
}

export function leave(): void {
  batch(() => {
    halves.value = null;
    picked.value = null;
    store.comparedWhole.value = null;
    if (viewBefore) store.view.value = viewBefore;
    else store.showAll();
    viewBefore = null;
  });
}

export function toggleCompare(): void {
  if (halves.value) leave();
  else void enter();
}

export function setHalf(which: Which, change: Partial<Half>): void {
  const now = halves.value;
  if (now) halves.value = { ...now, [which]: { ...now[which], ...change } };
}

/** Aligns both recordings at these times, and keeps the centre of the screen. */
export function align(anchors: Partial<Record<Which, number>>, by: string): void {
  const now = halves.value;
  if (!now) return;
  batch(() => {
    const next = { ...now };
    for (const which of BOTH) {
      const anchor = anchors[which];
      if (anchor !== undefined) next[which] = { ...now[which], anchor };
    }
    halves.value = next;
    alignedBy.value = by;
    store.comparedWhole.value = wholeOf(next);
    store.show(store.view.value);
  });
}

/** Aligns both at the first event of a class, by its names. */
export async function alignAtFirst(subsystem: string, name: string): Promise<void> {
  const now = halves.value;
  if (!now) return;
  const { filter } = appliedToBoth.value;
  if (filter === null) return store.tell("the filter is not known yet of both recordings", "problem");
  const found = await Promise.all(
    BOTH.map(async (which) => {
      const { session, info } = now[which];
      const of = session.classes.find((one) => one.subsystem === subsystem && one.name === name);
      if (!of) return null;
      const asked = { side: info.side, filter, t: -1, class: of.id, forward: true };
      const answer = await ask<{ thing: Thing | null }>("step", asked);
      return answer?.thing?.begin ?? null;
    }),
  );
  const [good, bad] = found;
  const full = [subsystem, name].filter(Boolean).join(":");
  if (good === null || bad === null) store.tell(`${full} did not happen in both`, "problem");
  else align({ good, bad }, `the first ${full} of both`);
}

/** Starts the comparison of the opened recordings. */
export async function startCompare(): Promise<void> {
  const answer = await ask<{ sides: Side[] }>("sides", {});
  if (!answer) return;
  sides.value = answer.sides;
  if (answer.sides.length >= 2 && !overlap(answer.sides)) await enter();
}

const sameName = (names: readonly (readonly string[])[]) => [...new Set(names.flat())];

/** Equal names have equal colours in both halves. */
function coloursOf(list: (session: Session) => string[]) {
  return computed(() => {
    const now = halves.value;
    const theme = store.theme.value;
    if (!now) return null;
    const all = sameName(BOTH.map((which) => list(now[which].session)));
    const known = new Colours(all, theme);
    const byName = new Map(all.map((name, index) => [name, known.rgb(index)]));
    const of = (which: Which) => new Colours(list(now[which].session), theme, byName);
    return { good: of("good"), bad: of("bad") };
  });
}
export const colours = {
  applications: coloursOf((session) => session.applications.map((one) => one.name)),
  names: coloursOf((session) => session.names),
  classes: coloursOf((session) => session.classes.map((one) => `${one.subsystem} ${one.name}`)),
};

function layoutOf(which: Which) {
  return computed<Layout>(() => {
    const half = halves.value?.[which];
    const joined = store.session.value;
    if (!half || !joined) return { lanes: [], pinnedHeight: 0, height: 0, emptyLanes: 0 };
    // Cores that the session's filter hides are hidden here as well.
    const cpus = new Set(
      joined.lanes.filter((lane) => store.filter.value.lanesOff.has(lane.id)).map((lane) => lane.cpu),
    );
    const lanes = withFound(half.session.lanes, foundOf[which].value);
    const hidden = lanes.filter((lane) => lane.kind === "cpu" && cpus.has(lane.cpu));
    return layout(lanes, {
      hidden: new Set(hidden.map((lane) => lane.id)),
      scriptsOff: store.filter.value.activitiesOff,
      folded: half.folded,
      pinned: [],
      search: store.laneSearch.value,
    });
  });
}
export const layouts = { good: layoutOf("good"), bad: layoutOf("bad") };

/** Starts the comparison if the opened recordings do not overlap in time. */
export function compareIfApart(): void {
  let asked = false;
  effect(() => {
    if (asked || !store.methods.value.has("sides") || store.session.value === null) return;
    asked = true;
    if (!store.keptByLink.value) void startCompare();
  });
}
