// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the find box finds: a time, or events by a part of a name or by an expression. Hits are a filter of the server, so
// that they are counted, listed and stepped through as all events are.

import { batch, effect, signal } from "@preact/signals";
import { type Interval, reveal } from "../logic/viewport.ts";
import { RequestError } from "../protocol/connection.ts";
import type { EventRow, Quality } from "../protocol/types.ts";
import { eventsRow, scrollListTo, showLane, thingOfRow } from "./actions.ts";
import { ask, request } from "./server.ts";
import * as store from "./store.ts";

/** Pixels of the mini-map in which hits are counted. */
const PX = 1024;

export interface Found {
  text: string;
  /** The filter in which it was searched, and the one that leaves the hits. */
  within: number;
  filter: number;
  count: number;
  quality: Quality;
  /** Number of hits in each pixel of a time. */
  pixels: readonly number[];
  of: Interval;
}

type Answer =
  | { kind: "time"; t: number }
  | {
      kind: "name" | "where";
      filter: number;
      count: number;
      quality: Quality;
      begin: number;
      end: number;
      pixels: number[];
    };

export const findText = signal("");
export const findError = signal<string | null>(null);
export const found = signal<Found | null>(null);
/** The hit that is selected: its number, from 0. */
export const hit = signal<number | null>(null);
let hitSelected: store.Selected | null = null;

export function clearFind(): void {
  batch(() => {
    findText.value = "";
    findError.value = null;
    found.value = null;
    hit.value = null;
  });
}

/** True if there are hits to step through, none included. */
async function search(text: string): Promise<boolean> {
  const within = store.filterId.value;
  let answer: Answer;
  try {
    answer = await request<Answer>("search", { text, filter: within, px: PX });
  } catch (error) {
    // One that a newer one replaced has nothing to say.
    if (error instanceof RequestError) {
      batch(() => {
        findError.value = error.message;
        found.value = null;
        hit.value = null;
      });
    }
    return false;
  }
  findError.value = null;
  if (answer.kind === "time") {
    const { t } = answer;
    batch(() => {
      found.value = null;
      hit.value = null;
      store.view.value = reveal(store.view.value, { t0: t, t1: t }, store.whole.value);
    });
    if (store.sync.value) await scrollListTo(t);
    return false;
  }
  const { filter, count, quality, begin, end, pixels } = answer;
  batch(() => {
    found.value = { text, within, filter, count, quality, pixels, of: { t0: begin, t1: end } };
    hit.value = null;
  });
  return true;
}

/** Searches for the text, if that has not been done, and selects the next hit or the one before. */
export async function find(forward = true): Promise<void> {
  const text = findText.value.trim();
  if (text === "") return clearFind();
  const now = found.value;
  const isKnown = now?.text === text && now.within === store.filterId.value && !store.isLive.value;
  if (isKnown || (await search(text))) await stepHit(forward);
}

export async function stepHit(forward: boolean): Promise<void> {
  const now = found.value;
  if (now === null) return;
  const selected = store.selected.value;
  let index: number;
  if (hit.value !== null && selected === hitSelected) index = hit.value + (forward ? 1 : -1);
  else {
    // Behind what is selected, or from the edge of what is shown.
    const { t0, t1 } = store.view.value;
    const t = selected ? selected.begin + (forward ? 1 : 0) : forward ? t0 : t1 + 1;
    const answer = await ask<{ from: number }>("find", { filter: now.filter, t: Math.floor(t) });
    // The server knows these hits no more: the next search makes them anew.
    if (answer === null) return void (found.value = null);
    index = forward ? answer.from : answer.from - 1;
  }
  if (index < 0 || index >= now.count) {
    if (now.count > 0) store.tell(forward ? "no hit after this one" : "no hit before this one");
    return;
  }
  const answer = await ask<{ rows: EventRow[] }>("events", { filter: now.filter, from: index, count: 1 });
  const row = answer?.rows[0];
  if (row === undefined || found.value !== now) return;
  const lane = row.lane;
  hitSelected = { lane, row: eventsRow(lane), begin: row.ts, end: null, thing: thingOfRow(row) };
  batch(() => {
    hit.value = index;
    store.selected.value = hitSelected;
    store.view.value = reveal(store.view.value, { t0: row.ts, t1: row.ts }, store.whole.value);
    showLane(lane);
  });
  if (store.sync.value) await scrollListTo(row.ts);
}

/** Another filter of the page leaves other hits. */
export function startFind(): void {
  effect(() => {
    const within = store.filterId.value;
    const now = found.peek();
    if (now !== null && now.within !== within && store.status.value === "open") void search(now.text);
  });
}
