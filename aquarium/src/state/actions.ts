// SPDX-License-Identifier: Apache-2.0 OR MIT
// Actions of keys, buttons and the palette.

import { batch } from "@preact/signals";
import { ORDERS } from "../logic/activity.ts";
import { GROUPINGS } from "../logic/layout.ts";
import * as F from "../logic/filter.ts";
import { type Interval, focus, pan, reveal, width, zoom } from "../logic/viewport.ts";
import type { EventRow, Thing } from "../protocol/types.ts";
import * as store from "./store.ts";
import { addNote } from "./notes.ts";
import { halves, toggleCompare } from "./compare.ts";
import { found, stepHit } from "./find.ts";
import { toEdge, togglePause } from "./opening.ts";
import { ask } from "./server.ts";

const PAN_SHARE = 0.18;
const ZOOM_STEP = 1.35;

function pointer(): number {
  const { t0, t1 } = store.view.value;
  const at = store.hover.value?.t;
  return at !== undefined && at >= t0 && at <= t1 ? at : (t0 + t1) / 2;
}

export const zoomIn = (): void => zoomBy(1 / ZOOM_STEP);
export const zoomOut = (): void => zoomBy(ZOOM_STEP);

export function zoomBy(factor: number, at = pointer()): void {
  // While following, the newest edge stays in place.
  const edge = store.follow.value ? store.whole.value.t1 : at;
  store.view.value = zoom(store.view.value, edge, factor, store.whole.value);
  if (store.follow.value) store.followSpan.value = width(store.view.value);
}

export function panBy(share: number): void {
  store.follow.value = false;
  store.view.value = pan(store.view.value, share * width(store.view.value), store.whole.value);
}

export const panLeft = (): void => panBy(-PAN_SHARE);
export const panRight = (): void => panBy(PAN_SHARE);

/** Fits the marked range, the selected item, or the whole session. */
export function fitChosen(): void {
  const { value: selected } = store.selected;
  const thing =
    store.range.value ??
    (selected && selected.end !== null && selected.end > selected.begin
      ? { t0: selected.begin, t1: selected.end }
      : null);
  if (thing) store.view.value = focus(thing, store.whole.value);
  else store.showAll();
}

/** Selects an item; if synchronized, the list or the timeline scrolls to it. */
export async function select(
  next: store.Selected,
  from: "graph" | "list",
  reach: Interval | null = null,
): Promise<void> {
  batch(() => {
    store.selected.value = next;
    if (from === "list" && store.sync.value) {
      store.view.value = reveal(
        store.view.value,
        reach ?? { t0: next.begin, t1: next.end ?? next.begin },
        store.whole.value,
      );
      showLane(next.lane);
    }
  });
  if (from === "graph" && store.sync.value) await scrollListTo(next.begin);
}

/** Scrolls to a lane, and unfolds its ancestors. */
export function showLane(id: number): void {
  const lanes = store.laneById.value;
  const unfolded = new Set(store.folded.value);
  for (let lane = lanes.get(id), steps = 0; lane && steps < 64; steps++) {
    unfolded.delete(lane.id);
    lane = lane.parent === null ? undefined : lanes.get(lane.parent);
  }
  if (unfolded.size !== store.folded.value.size) store.folded.value = unfolded;
  const placed = store.lanesLayout.value.lanes.find((lane) => lane.id === id);
  if (!placed || placed.pinned) return;
  const { height } = store.canvasSize.value;
  const top = store.scrollTop.value + store.lanesLayout.value.pinnedHeight;
  if (placed.y < top || placed.y + placed.height > store.scrollTop.value + height) {
    store.scrollTop.value = Math.max(0, placed.y - height / 2);
  }
}

let stamp = 0;

export async function scrollListTo(t: number): Promise<void> {
  const answer = await ask<{ from: number }>("find", { filter: store.filterId.value, t: Math.round(t) });
  if (answer) store.listAt.value = { row: answer.from, stamp: ++stamp };
}

/** Selects the next or previous event, of the selected class if an event is selected. */
export async function step(forward: boolean): Promise<void> {
  const selected = store.selected.value;
  const { t0, t1 } = store.view.value;
  const t = Math.round(selected?.begin ?? (forward ? t0 : t1));
  const kind = selected?.thing?.class;
  const parameters = {
    filter: store.filterId.value,
    t,
    forward,
    ...(kind === null || kind === undefined ? {} : { class: kind }),
  };
  const answer = await ask<{ thing: Thing | null }>("step", parameters);
  if (!answer) return;
  const thing = thingOf(answer);
  if (!thing) {
    store.tell(forward ? "no event after this one" : "no event before this one");
    return;
  }
  const lane =
    thing.lane ?? cpuLane(thing.cpu) ?? selected?.lane ?? store.lanesLayout.value.lanes[0]?.id ?? 0;
  const next = { lane, row: thing.row ?? eventsRow(lane), begin: thing.begin, end: thing.end ?? null, thing };
  batch(() => {
    store.selected.value = next;
    store.view.value = reveal(
      store.view.value,
      { t0: next.begin, t1: next.end ?? next.begin },
      store.whole.value,
    );
    showLane(lane);
  });
  if (store.sync.value) await scrollListTo(next.begin);
}

/** What a row of the list knows of its event. */
export function thingOfRow(row: EventRow): Thing {
  const info = store.classById.value.get(row.class);
  const lane = store.laneById.value.get(row.lane);
  return {
    kind: "event",
    begin: row.ts,
    end: null,
    name: info?.name ?? "",
    class: row.class,
    lane: row.lane,
    fields: row.fields ?? [],
    application: row.application,
    cpu: lane?.cpu ?? null,
    number: row.number,
    thread: row.thread === null || row.thread === undefined ? null : String(row.thread),
  };
}

/** The method answers `{ thing }`; an answer that is the thing itself means the same. */
export function thingOf(answer: unknown): Thing | null {
  if (answer === null || typeof answer !== "object") return null;
  const held = "thing" in answer ? (answer as { thing: unknown }).thing : answer;
  const thing = held as Thing | null;
  return thing !== null && typeof thing === "object" && typeof thing.begin === "number" ? thing : null;
}

/** The row of a lane that shows its events as dots. */
export function eventsRow(lane: number): number | null {
  return store.laneById.value.get(lane)?.rows.find((row) => row.kind === "events")?.row ?? null;
}

/** Selects an item by its position only, as in a link; the server supplies its details. */
export async function recall(lane: number, row: number, t: number): Promise<void> {
  const place = { lane, row, t: Math.round(t), within: 0 };
  const thing = thingOf(await ask("at", { ...place, filter: store.filterId.value }));
  store.selected.value = { lane, row, begin: thing?.begin ?? t, end: thing?.end ?? null, thing };
  if (thing && store.sync.value) await scrollListTo(thing.begin);
}

/** Selects the state of a lane's thread at a time. */
export async function goToState(lane: number, at: number): Promise<void> {
  const row = store.laneById.value.get(lane)?.rows.find((one) => one.kind === "thread_states")?.row ?? null;
  const place = { lane, row, t: Math.round(at), within: 0, filter: store.filterId.value };
  const thing = row === null ? null : thingOf(await ask("at", place));
  const selected = { lane, row, begin: thing?.begin ?? at, end: thing?.end ?? null, thing };
  batch(() => {
    store.selected.value = selected;
    store.view.value = reveal(store.view.value, { t0: at, t1: at }, store.whole.value);
    showLane(lane);
  });
  if (store.sync.value) await scrollListTo(at);
}

export function cpuLane(cpu: number | null | undefined): number | null {
  if (cpu === null || cpu === undefined) return null;
  return store.session.value?.lanes.find((lane) => lane.kind === "cpu" && lane.cpu === cpu)?.id ?? null;
}

export function toggleNode(node: F.Node): void {
  setFilter(F.toggle(store.filter.value, node));
}

export function onlyNode(node: F.Node): void {
  const all = store.filterTree.value.flatMap((one) => one.leaves);
  setFilter(F.only(store.filter.value, node, all));
}

export function setFilter(filter: F.Filter): void {
  store.filter.value = filter;
}

export function toggleArrows(): void {
  store.arrowsOn.value = !store.arrowsOn.value;
}

export function toggleTicks(): void {
  store.inTicks.value = !store.inTicks.value;
}

export function toggleTheme(): void {
  store.setTheme(store.themeName.value === "dark" ? "light" : "dark");
}

export function toggleFollow(): void {
  store.follow.value = !store.follow.value;
  if (!store.follow.value) return;
  store.followSpan.value = width(store.view.value);
  toEdge();
}

export interface Command {
  name: string;
  keys: string;
  run: () => void;
  /** Condition for the action to be listed in the sheet and the palette. */
  when?: () => boolean;
}

export const focusSearch = (): void =>
  (document.querySelector("#lane-search") as HTMLElement | null)?.focus();

export const focusFind = (): void => (document.querySelector("#find") as HTMLInputElement | null)?.select();

const canFind = (): boolean => store.methods.value.has("search") && halves.value === null;

export const COMMANDS: Command[] = [
  { name: "Zoom in", keys: "W", run: zoomIn },
  { name: "Zoom out", keys: "S", run: zoomOut },
  { name: "Move left", keys: "A", run: panLeft },
  { name: "Move right", keys: "D", run: panRight },
  { name: "Show everything", keys: "0", run: store.showAll },
  { name: "Fit the selection", keys: "F", run: fitChosen },
  { name: "Next event (of the selected kind)", keys: ".", run: () => void step(true) },
  { name: "Previous event (of the selected kind)", keys: ",", run: () => void step(false) },
  { name: "Show or hide message arrows", keys: "M", run: toggleArrows, when: () => hasMessages() },
  {
    name: "Arrows between CPUs, or between threads",
    keys: "N",
    run: () => {
      store.arrowsBetween.value = store.arrowsBetween.value === "threads" ? "cores" : "threads";
    },
    when: () => hasMessages(),
  },
  {
    name: "All lanes, CPUs, processes, or threads",
    keys: "G",
    run: () => {
      const next = GROUPINGS.indexOf(store.grouping.value) + 1;
      store.grouping.value = GROUPINGS[next % GROUPINGS.length];
    },
  },
  {
    name: "Hide or show empty lanes and rows",
    keys: "H",
    run: () => void (store.hideEmpty.value = !store.hideEmpty.value),
    when: () => store.methods.value.has("lane_activity"),
  },
  {
    name: "Sort lanes: as recorded, CPU time, name, first or most activity",
    keys: "O",
    run: () => {
      const next = ORDERS.indexOf(store.laneOrder.value) + 1;
      store.laneOrder.value = ORDERS[next % ORDERS.length];
    },
    when: () => store.methods.value.has("lane_activity"),
  },
  { name: "Collapse all lanes", keys: "Z", run: () => store.foldAll(true) },
  { name: "Expand all lanes", keys: "X", run: () => store.foldAll(false) },
  {
    name: "Axis in seconds, or in ticks of the clock",
    keys: "I",
    run: toggleTicks,
    when: () => store.ticksHz.value !== null,
  },
  { name: "Search lanes", keys: "/", run: focusSearch },
  { name: "Find events, spans or a time", keys: "Ctrl+F", run: focusFind, when: canFind },
  { name: "Next hit", keys: ">", run: () => void stepHit(true), when: () => found.value !== null },
  { name: "Previous hit", keys: "<", run: () => void stepHit(false), when: () => found.value !== null },
  {
    name: "Graph and list follow each other: on or off",
    keys: "Y",
    run: () => void (store.sync.value = !store.sync.value),
  },
  {
    name: "Follow the live recording",
    keys: "L",
    run: toggleFollow,
    when: () => store.session.value?.is_live === true,
  },
  {
    name: "Hold the page as it is, or go on",
    keys: "K",
    run: togglePause,
    when: () => store.session.value?.is_live === true,
  },
  {
    name: "Hold two recordings against each other, or not",
    keys: "C",
    run: toggleCompare,
    when: () => store.methods.value.has("compare"),
  },
  {
    name: "Write a note",
    keys: "B",
    run: addNote,
    when: () => store.methods.value.has("note") && halves.value === null,
  },
  { name: "Clear selection and range", keys: "Escape", run: store.clearSelection },
  { name: "Show everything that is filtered out", keys: "R", run: () => setFilter(F.EVERYTHING) },
  {
    name: "Losses and damage",
    keys: "P",
    run: () => void (store.problemsOpen.value = !store.problemsOpen.value),
  },
  {
    name: "Legend: what colours and marks mean",
    keys: "E",
    run: () => void (store.legendOpen.value = !store.legendOpen.value),
  },
  { name: "Dark or light", keys: "T", run: toggleTheme },
  { name: "Keys", keys: "?", run: () => void (store.hotkeysOpen.value = !store.hotkeysOpen.value) },
  { name: "Command palette", keys: "Ctrl+Shift+P", run: () => void (store.paletteOpen.value = true) },
];

export function hasMessages(): boolean {
  return store.channels.value.length > 0;
}

export function available(): Command[] {
  return COMMANDS.filter((one) => one.when === undefined || one.when());
}

const DIALOGS = [store.hotkeysOpen, store.problemsOpen, store.legendOpen];

/** Keys that open and close dialogs, or change the appearance. */
const OF_DIALOGS = new Set(["?", "P", "E", "T"]);

const ARROWS: Record<string, () => void> = {
  ArrowLeft: panLeft,
  ArrowRight: panRight,
  ArrowUp: zoomIn,
  ArrowDown: zoomOut,
  "+": zoomIn,
  "-": zoomOut,
};

/** Handles a key; returns whether it had an effect. Keys typed into input fields are ignored. */
export function key(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  if (event.key === "P" && event.ctrlKey && event.shiftKey) {
    store.paletteOpen.value = !store.paletteOpen.value;
    return true;
  }
  // Lists have a part of their rows: the browser would find little in them.
  if (event.key.toLowerCase() === "f" && event.ctrlKey && !event.shiftKey && !event.altKey && canFind()) {
    focusFind();
    return true;
  }
  if (
    target?.closest("input, textarea, select, [contenteditable], .cm-editor") ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey
  ) {
    return false;
  }
  if (event.key === "Escape" && DIALOGS.some((open) => open.value)) {
    store.hotkeysOpen.value = false;
    store.legendOpen.value = false;
    store.problemsOpen.value = false;
    return true;
  }
  // While a dialog is open, the page under it ignores keys.
  if (DIALOGS.some((open) => open.value)) {
    const toggles = available().filter((one) => OF_DIALOGS.has(one.keys));
    const toggle = toggles.find((one) => one.keys.toLowerCase() === event.key.toLowerCase());
    toggle?.run();
    return toggle !== undefined;
  }
  // Lists, trees and tabs handle the arrow keys themselves.
  const own = target?.closest("[role=grid], [role=tree], [role=tablist], [role=listbox]");
  if (event.key in ARROWS && !own) {
    ARROWS[event.key]();
    return true;
  }
  const command = available().find((one) => one.keys.toLowerCase() === event.key.toLowerCase());
  if (!command) return false;
  command.run();
  return true;
}
