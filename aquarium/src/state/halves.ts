// SPDX-License-Identifier: Apache-2.0 OR MIT
// Requests for each of two compared recordings: picture, arrows and counters.

import { effect } from "@preact/signals";
import { ownLanes, takeArrows } from "../logic/arrows.ts";
import { toOwn } from "../logic/compare.ts";
import { visible } from "../logic/layout.ts";
import { type Picture, takeApart } from "../logic/picture.ts";
import { takeLevels } from "../logic/steps.ts";
import { type Interval, type Window, planWindow, serves } from "../logic/viewport.ts";
import type { Frame } from "../protocol/frame.ts";
import {
  BOTH,
  type Half,
  type Which,
  applied,
  arrowsOf,
  halfSize,
  halves,
  layouts,
  levelsOf,
  pictures,
  scrolled,
} from "./compare.ts";
import { startApplied } from "./applied.ts";
import { Loader } from "./loader.ts";
import { arrowLanes, failed, request } from "./server.ts";
import * as store from "./store.ts";

interface Wish {
  side: number;
  window: Window;
  lanes?: number[];
  counters?: number[];
  /** Counters have no filter. */
  filter?: number;
}

function loader(method: string, got: (frame: Frame, wish: Wish) => void): Loader<Wish, Frame> {
  const send = ({ window: { t0, t1, px }, ...rest }: Wish) => request<Frame>(method, { ...rest, t0, t1, px });
  return new Loader(send, got, failed);
}

/** The visible range of a half, in its own time; null if nothing of it is visible. */
function seen(which: Which): { half: Half; own: Interval; width: number; filter: number } | null {
  const half = halves.value?.[which];
  const { width } = halfSize[which].value;
  const [view, { filter }] = [store.view.value, applied[which].value];
  if (!half || store.status.value !== "open" || width === 0 || filter === null) return null;
  return { half, own: toOwn(view, half.anchor), width, filter };
}

function startPictures(which: Which): void {
  let answered = "";
  const views = loader("view", (frame, wish) => {
    answered = JSON.stringify(wish);
    pictures[which].value = takeApart(frame, wish.window, wish.filter ?? 0);
  });
  effect(() => {
    const now = seen(which);
    const placed = visible(layouts[which].value, scrolled[which].value, halfSize[which].value.height);
    const picture = pictures[which].value;
    if (!now || placed.length === 0) return;
    const { half, own, filter } = now;
    const px = Math.round(now.width * (globalThis.devicePixelRatio || 1));
    const rows = placed.flatMap((lane) => lane.rows.filter((row) => row.kind !== "level"));
    const isServed = (of: Picture) =>
      of.filter === filter &&
      serves(of.window, own, px) &&
      rows.every((row) => of.byRow.has(`${row.lane}/${row.row}`));
    if (picture && isServed(picture)) return;
    const window = planWindow(own, px, Math.max(1, rows.length));
    const wish = { side: half.info.side, lanes: placed.map((lane) => lane.id), window, filter };
    // There is no picture after the comparison was restarted, although the same request was
    // answered before.
    if (picture === null || JSON.stringify(wish) !== answered) views.want(wish);
  });
}

function startArrows(which: Which): void {
  let wanted = "";
  const messages = loader("arrows", (frame, { filter = 0 }) => {
    const arrows = takeArrows(frame);
    arrowsOf[which].value = { arrows, filter };
    if (arrows.count.length > 0) store.arrowsBetween.value ??= ownLanes(arrows);
  });
  effect(() => {
    const now = seen(which);
    const lanes = arrowLanes(layouts[which].value);
    const has = arrowsOf[which].value !== null;
    if (!now || !store.arrowsOn.value || now.half.session.channels.length === 0 || lanes.length === 0) return;
    // Bundled for half the number of pixels, as on a single timeline.
    const wish = {
      side: now.half.info.side,
      lanes,
      window: planWindow(now.own, now.width / 2, 1),
      filter: now.filter,
    };
    const key = JSON.stringify(wish);
    if (has && key === wanted) return;
    wanted = key;
    messages.want(wish);
  });
}

function startLevels(which: Which): void {
  let wanted = "";
  const levels = loader("levels", (frame, { counters = [], window }) => {
    levelsOf[which].value = takeLevels(frame, counters, window);
  });
  effect(() => {
    const now = seen(which);
    const has = levelsOf[which].value !== null;
    const counters = now?.half.session.counters.map((counter) => counter.id) ?? [];
    if (!now || counters.length === 0) return;
    const window = planWindow(now.own, now.width, counters.length * 5);
    const wish = { side: now.half.info.side, counters, window };
    const key = JSON.stringify(wish);
    if (has && key === wanted) return;
    wanted = key;
    levels.want(wish);
  });
}

export function startHalves(): void {
  startApplied();
  for (const which of BOTH) {
    startPictures(which);
    startArrows(which);
    startLevels(which);
  }
}
