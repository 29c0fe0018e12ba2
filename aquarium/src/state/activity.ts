// SPDX-License-Identifier: Apache-2.0 OR MIT
// What lanes have in the shown time: asked for when the view rests, so that lanes stay where they are while it moves.

import { effect } from "@preact/signals";
import { type Activity, takeActivity } from "../logic/activity.ts";
import type { Interval } from "../logic/viewport.ts";
import type { Frame } from "../protocol/frame.ts";
import { Loader } from "./loader.ts";
import { begun } from "./pending.ts";
import { failed, request } from "./server.ts";
import * as store from "./store.ts";

const METHOD = "lane_activity";
/** A view that moved less than this ago moves still. */
const REST_MS = 140;
/** A view that follows a recording never rests: it asks so often. */
const FOLLOW_MS = 1000;

interface Wish {
  of: Interval;
  filter: number;
}

const loader = new Loader<Wish, Activity>(
  async ({ of, filter }) => takeActivity(await request<Frame>(METHOD, { ...of, filter }), of),
  (activity) => (store.activity.value = activity),
  failed,
);

/** The shown time as far as the session has it: margins beside it are not counted. */
function shownTime(): Interval {
  const { view, whole } = store;
  const t0 = Math.floor(Math.max(view.value.t0, whole.value.t0));
  const t1 = Math.ceil(Math.min(view.value.t1, whole.value.t1));
  return { t0, t1: Math.max(t1, t0 + 1) };
}

export function keepActivity(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let done: (() => void) | null = null;
  let wanted = "";
  let askedAt = 0;
  effect(() => {
    const isAble = store.methods.value.has(METHOD) && store.comparedWhole.value === null;
    const isOpen = store.isOpened.value && store.status.value === "open";
    if (!isAble || !isOpen || store.canvasSize.value.width === 0) return;
    const wish = { of: shownTime(), filter: store.filterId.value };
    // Rows of scripts come and go with the lists.
    const lists = store.session.value?.lists;
    const key = JSON.stringify([wish, lists, store.scripts.value.length]);
    if (key === wanted) return;
    wanted = key;
    // One that follows is never done.
    if (!store.follow.value) done ??= begun();
    const rest = store.follow.value ? Math.max(REST_MS, askedAt + FOLLOW_MS - performance.now()) : REST_MS;
    if (store.follow.value && timer !== undefined) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      askedAt = performance.now();
      loader.want({ of: shownTime(), filter: store.filterId.peek() });
      done?.();
      done = null;
    }, rest);
  });
}
