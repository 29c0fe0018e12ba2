// SPDX-License-Identifier: Apache-2.0 OR MIT
// Gathers the state to paint from the signals.

import { computed } from "@preact/signals";
import { summaryText } from "../../logic/activity.ts";
import { type Line, linesOn } from "../../logic/arrows.ts";
import { type PlacedLane, type PlacedRow, visible } from "../../logic/layout.ts";
import { type WakeLine, wakeLines } from "../../logic/wakes.ts";
import * as store from "../../state/store.ts";
import type { Session } from "../../protocol/types.ts";
import type { Scene } from "./paint.ts";

export const scene = computed<Scene>(() => {
  const { width, height } = store.canvasSize.value;
  const layout = store.lanesLayout.value;
  const scrollTop = store.scrollTop.value;
  const levels = store.levels.value;
  const counters = store.session.value?.counters ?? [];
  return {
    view: store.view.value,
    axisHz: store.axisHz.value,
    width,
    height,
    pinnedHeight: layout.pinnedHeight,
    scrollTop,
    lanes: visible(layout, scrollTop, height),
    theme: store.theme.value,
    picture: store.picture.value,
    applications: store.applicationColours.value,
    names: store.nameColours.value,
    classes: store.classColours.value,
    scripts: store.scriptColours.value,
    losses: store.session.value?.losses ?? [],
    levels: {
      window: levels?.window ?? { t0: 0, t1: 1 },
      of: (row, lane) => levels?.byCounter.get(counterOf(counters, row, lane) ?? -1) ?? null,
    },
    selectedLane: store.selected.value?.lane ?? null,
    summaries: summaries.value,
  };
});

/** Summary of the threads of a process in the visible time, by lane; empty if unknown. */
export const summaries = computed<(lane: number) => string>(() => {
  const { activity, laneSums } = store;
  const [of, sums] = [activity.value?.of, laneSums.value];
  return (lane) => (of && sums ? summaryText(sums.get(lane), of) : "");
});

/** The counter of a lane's row: the one that names the lane, otherwise the one with its name. */
export function counterOf(counters: Session["counters"], row: PlacedRow, lane: PlacedLane): number | null {
  const byLane = counters.find((one) => one.lane === lane.id);
  const byName =
    counters.find((one) => one.name === (row.name || lane.name)) ??
    counters.find((one) => one.name === lane.name);
  return (byLane ?? byName)?.id ?? null;
}

export const selectedWakes = computed<readonly WakeLine[]>(() => {
  const selected = store.selected.value;
  if (selected === null) return [];
  const { lanesLayout, view, canvasSize, scrollTop } = store;
  const { lane, thing } = selected;
  return wakeLines(thing, lane, lanesLayout.value, view.value, canvasSize.value, scrollTop.value);
});

export const arrowLines = computed<readonly Line[]>(() => {
  const data = store.arrowData.value;
  if (!data || !store.arrowsOn.value || data.filter !== store.filterId.value) return [];
  const { lanesLayout, view, canvasSize, scrollTop } = store;
  return linesOn(data.arrows, lanesLayout.value, view.value, canvasSize.value, scrollTop.value);
});
