// SPDX-License-Identifier: Apache-2.0 OR MIT
// Contents of lanes in the visible time: requested when the view rests, so that lanes do not move
// while it moves.

import { effect } from "@preact/signals";
import { type Activity, takeActivity } from "../logic/activity.ts";
import type { Interval } from "../logic/viewport.ts";
import type { Frame } from "../protocol/frame.ts";
import { Loader } from "./loader.ts";
import { begun } from "./pending.ts";
import { failed, request } from "./server.ts";
import * as store from "./store.ts";

const METHOD = "lane_activity";
/** The view rests if it did not move for this time. */
const REST_MS = 140;
/** Interval of requests for a view that follows a recording, because it never rests. */
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

/** The visible time within the session, without margins. */
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
    // Rows of scripts change with the lists.
    const lists = store.session.value?.lists;
    const key = JSON.stringify([wish, lists, store.scripts.value.length]);
    if (key === wanted) return;
    wanted = key;
    // A following view never completes, and does not count as pending.
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
