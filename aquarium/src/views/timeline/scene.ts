// SPDX-License-Identifier: Apache-2.0 OR MIT
// What is to be painted, gathered from the signals.

import { computed } from "@preact/signals";
import { type Line, lines } from "../../logic/arrows.ts";
import { type PlacedLane, type PlacedRow, screenY, visible } from "../../logic/layout.ts";
import * as store from "../../state/store.ts";
import type { Scene } from "./paint.ts";

export const scene = computed<Scene>(() => {
  const { width, height } = store.canvasSize.value;
  const layout = store.lanesLayout.value;
  const scrollTop = store.scrollTop.value;
  const levels = store.levels.value;
  return {
    view: store.view.value,
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
      of: (row, lane) => levels?.byCounter.get(counterOf(row, lane) ?? -1) ?? null,
    },
    selectedLane: store.selected.value?.lane ?? null,
  };
});

/** The counter that a lane's row shows: the one that names the lane, else the one of its name. */
export function counterOf(row: PlacedRow, lane: PlacedLane): number | null {
  const counters = store.session.value?.counters ?? [];
  const byLane = counters.find((one) => one.lane === lane.id);
  const byName =
    counters.find((one) => one.name === (row.name || lane.name)) ??
    counters.find((one) => one.name === lane.name);
  return (byLane ?? byName)?.id ?? null;
}

/** Arrows begin and end in the middle of a lane's first row. */
export const arrowLines = computed<readonly Line[]>(() => {
  const data = store.arrowData.value;
  if (!data || !store.arrowsOn.value || data.filter !== store.filterId.value) return [];
  const layout = store.lanesLayout.value;
  const { width, height } = store.canvasSize.value;
  const scrollTop = store.scrollTop.value;
  const middles = new Map<number, number>();
  for (const lane of layout.lanes) {
    const row = lane.rows.find((one) => one.kind === "events") ?? lane.rows[0];
    const y = row ? row.y + row.height / 2 : lane.y + lane.height / 2;
    middles.set(lane.id, screenY(lane, y, scrollTop));
  }
  const all = lines(data.arrows, store.view.value, width, (lane) => middles.get(lane) ?? null);
  return all.filter((line) => Math.max(line.y0, line.y1) > 0 && Math.min(line.y0, line.y1) < height);
});
