// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connects the connection with the signals: opens the session, and updates the filter and the pictures.

import { batch, effect } from "@preact/signals";
import { ownLanes, takeArrows } from "../logic/arrows.ts";
import { type Filter, parameters } from "../logic/filter.ts";
import { type Picture, pendingOf, rowKey, takeApart } from "../logic/picture.ts";
import { type Interval, type Window, isWithinPixel, planWindow, serves } from "../logic/viewport.ts";
import { type Layout, visible } from "../logic/layout.ts";
import { takeLevels } from "../logic/steps.ts";
import { Connection, RequestError, Superseded } from "../protocol/connection.ts";
import { type Frame, u32, u8 } from "../protocol/frame.ts";
import type { Quality, Session } from "../protocol/types.ts";
import { Loader } from "./loader.ts";
import { connectionChanged, pushed } from "./opening.ts";
import { begun } from "./pending.ts";
import * as store from "./store.ts";

const OVERVIEW_PX = 1024;

export function address(): string {
  const url = new URL("ws", location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const token = new URLSearchParams(location.search).get("token");
  url.search = token ? `?token=${encodeURIComponent(token)}` : "";
  url.hash = "";
  return url.href;
}

const connection = new Connection(address(), {
  status: (status, attempt) => connectionChanged(status, attempt),
  pushed: (message) => pushed(message),
  nonsense: (text) => store.tell(`server: ${text}`, "problem"),
});

export function start(): void {
  connection.connect();
  effect(wantFilter);
  effect(wantView);
  effect(wantArrows);
  effect(wantOverview);
  effect(wantLevels);
}

function send<T = unknown>(method: string, parameters: object): Promise<T> {
  const answered = begun();
  return connection.request<T>(method, parameters).finally(answered);
}

/** Sends a request of a view; an error is reported once, and returns null. */
export async function ask<T>(method: string, parameters: object): Promise<T | null> {
  try {
    return await send<T>(method, parameters);
  } catch (error) {
    if (error instanceof RequestError) store.tell(error.message, "problem");
    else if (!(error instanceof Superseded)) throw error;
    return null;
  }
}

/** Sends a request for a caller that shows the error itself. */
export function request<T>(method: string, parameters: object): Promise<T> {
  return send<T>(method, parameters);
}

/**
 * Marks the picture as outdated: it does not reach the end of the session any more, or lists have changed.
 */
export function picturesAreOld(): void {
  picturesStale = true;
}
let picturesStale = false;

/** Invalidates ids of rows and filters. */
export function numbersAreNew(): void {
  answered = "";
  overviewStale = true;
  sentFilter = null;
}

// The filter: sent when it changes; everything else depends on its id.

let sentFilter: string | null = null;
let countedAt = 0;

const filters = new Loader<Filter, { filter: number; count: number; quality: Quality }>(
  (wish) => send("filter", parameters(wish)),
  (answer) =>
    batch(() => {
      store.filterId.value = answer.filter;
      store.shownCount.value = { count: answer.count, quality: answer.quality };
    }),
  failed,
);

function wantFilter(): void {
  if (store.session.value === null || store.status.value !== "open") return;
  const wanted = JSON.stringify(parameters(store.filter.value));
  // Sent again for a session that has grown, to update its count.
  if (wanted === sentFilter && countedAt === store.counting.value) return;
  sentFilter = wanted;
  countedAt = store.counting.value;
  filters.want(store.filter.value);
}

export function failed(error: Error): void {
  if (error instanceof RequestError) store.tell(error.message, "problem");
  else throw error;
}

// Pictures.

/**
 * During a comparison, the view is in the common time of two recordings, which have pictures of
 * their own.
 */
function isComparing(): boolean {
  return store.comparedWhole.value !== null;
}

interface ViewWish {
  lanes: number[];
  window: Window;
  filter: number;
}

/**
 * The request of the last response, so that a response with missing rows is not requested again and again.
 */
let answered = "";

const views = new Loader<ViewWish, { frame: Frame; until: number }>(
  async ({ lanes, window, filter }) => {
    // The response contains at least the events up to here; later ones may be missing.
    const until = store.session.peek()?.end ?? 0;
    const frame = await send<Frame>("view", { lanes, t0: window.t0, t1: window.t1, px: window.px, filter });
    return { frame, until };
  },
  ({ frame, until }, wish) => {
    picturesStale = false;
    answered = JSON.stringify(wish);
    const picture = takeApart(frame, wish.window, wish.filter);
    store.picture.value = { ...picture, until };
    if ((picture.pending ?? 0) > 0) askSoonAgain();
  },
  failed,
);

/** Interval of pictures while decoding progresses. */
const AGAIN_MS = 60;

/** Requests the same view again: with each picture, the server decodes more of it. */
function askSoonAgain(): void {
  const told = begun();
  setTimeout(() => {
    picturesStale = true;
    store.moreToSee.value++;
    told();
  }, AGAIN_MS);
}

/** Whether a picture of the current view was requested; a picture in advance would replace that request. */
export const isPictureAsked = () => views.isBusy;

/** The picture of a future view; null if it will be outdated, or is not available. */
export async function pictureAhead(view: Interval, until: number): Promise<Picture | null> {
  if (isComparing() || store.status.value !== "open" || devicePx() === 0) return null;
  const { lanes, rows } = shownLanes();
  const filter = store.filterId.value;
  const layout = store.lanesLayout.value;
  const window = planWindow(view, devicePx(), rows.length, 1);
  const frame = await send<Frame>("view", { lanes, t0: window.t0, t1: window.t1, px: window.px, filter });
  if (filter !== store.filterId.value || layout !== store.lanesLayout.value) return null;
  picturesStale = false;
  return { ...takeApart(frame, window, filter), until };
}

function devicePx(): number {
  return Math.round(store.canvasSize.value.width * (globalThis.devicePixelRatio || 1));
}

function shownLanes(): { lanes: number[]; rows: { lane: number; row: number }[] } {
  const { height } = store.canvasSize.value;
  const placed = visible(store.lanesLayout.value, store.scrollTop.value, height);
  // Counters have a method of their own.
  const rows = placed.flatMap((lane) => lane.rows.filter((row) => row.kind !== "level"));
  return { lanes: placed.map((lane) => lane.id), rows };
}

function wantView(): void {
  if (isComparing()) return;
  const { width: wide } = store.canvasSize.value;
  const { lanes, rows } = shownLanes();
  store.moreToSee.value;
  const view = store.view.value;
  const filter = store.filterId.value;
  if (store.session.value === null || store.status.value !== "open" || wide === 0 || lanes.length === 0)
    return;
  const now = store.picture.value;
  const complete =
    now !== null &&
    now.filter === filter &&
    !picturesStale &&
    serves(now.window, view, devicePx()) &&
    rows.every((row) => now.byRow.has(rowKey(row.lane, row.row)));
  const screens = store.follow.value ? 1 : 3;
  const wish = { lanes, window: planWindow(view, devicePx(), rows.length, screens), filter };
  if (!complete && (picturesStale || JSON.stringify(wish) !== answered)) views.want(wish);
}

const arrows = new Loader<{ window: Window; lanes: number[]; filter: number }, Frame>(
  ({ window, lanes, filter }) =>
    send("arrows", { lanes, t0: window.t0, t1: window.t1, px: window.px, filter }),
  (frame, wish) => {
    const arrows = takeArrows(frame);
    store.arrowData.value = { arrows, filter: wish.filter };
    if (arrows.count.length > 0) store.arrowsBetween.value ??= ownLanes(arrows);
  },
  failed,
);

/** Lanes for which arrows are requested. */
export function arrowLanes({ lanes }: Layout): number[] {
  const between = store.arrowsBetween.value ?? "cores";
  return lanes.filter((lane) => between === "cores" || lane.kind !== "cpu").map((lane) => lane.id);
}

let arrowsFor = "";

function wantArrows(): void {
  if (isComparing()) return;
  const session = store.session.value;
  const view = store.view.value;
  const filter = store.filterId.value;
  const lanes = arrowLanes(store.lanesLayout.value);
  const wide = store.canvasSize.value.width;
  if (session === null || store.status.value !== "open" || wide === 0 || session.channels.length === 0)
    return;
  if (!store.arrowsOn.value || lanes.length === 0) return;
  // The window has a margin of half a screen on both sides: arrows are few, and bundled for the
  // pixels of the screen.
  const window = planWindow(view, wide / 2, 1);
  const key = JSON.stringify([window.t0, window.t1, filter, lanes, session.end]);
  if (key === arrowsFor && store.arrowData.value !== null) return;
  arrowsFor = key;
  arrows.want({ window, lanes, filter });
}

/** Contents of an overview: the time of the session, its losses, the filter. */
type Overseen = Pick<store.Overview, "of" | "losses" | "filter">;

async function overviewOf(wish: Overseen): Promise<store.Overview> {
  const frame = await send<Frame>("overview", { px: OVERVIEW_PX, filter: wish.filter });
  // The session may have grown since the request.
  const { begin = wish.of.t0, end = wish.of.t1 } = frame.result as { begin?: number; end?: number };
  const of = { t0: begin, t1: Math.max(end, begin + 1) };
  return { ...wish, of, count: u32(frame, "count"), flags: u8(frame, "flags") };
}

let overviewStale = true;
const overviews = new Loader<Overseen, store.Overview>(
  overviewOf,
  (overview) => {
    overviewStale = false;
    store.overview.value = overview;
  },
  failed,
);

const overseen = (session: Session): Overseen => ({
  of: { t0: session.begin, t1: Math.max(session.end, session.begin + 1) },
  losses: session.losses,
  filter: store.filterId.value,
});

/** Whether the shown overview is that of the session, except for growth that would be invisible. */
function isOverview({ of, losses, filter }: Overseen): boolean {
  const now = store.overview.peek();
  const isOfIt = now !== null && !overviewStale && now.filter === filter && now.losses === losses;
  return isOfIt && isWithinPixel(now.of, of, OVERVIEW_PX);
}

/** The overview of a future session; null if the current one suffices, or none is available. */
export async function overviewAhead(session: Session): Promise<store.Overview | null> {
  const wish = overseen(session);
  if (store.status.value !== "open" || isOverview(wish)) return null;
  const overview = await overviewOf(wish);
  if (wish.filter !== store.filterId.value) return null;
  overviewStale = false;
  return overview;
}

function wantOverview(): void {
  const session = store.session.value;
  if (session === null || store.status.value !== "open") return;
  const wish = overseen(session);
  if (!session.is_live || !isOverview(wish)) overviews.want(wish);
}

const levelLoader = new Loader<{ counters: number[]; window: Window }, Frame>(
  ({ counters, window }) => send("levels", { counters, t0: window.t0, t1: window.t1, px: window.px }),
  (frame, { counters, window }) => {
    store.levels.value = takeLevels(frame, counters, window);
    if (pendingOf(frame.result) > 0) askSoonAgain();
  },
  failed,
);

function wantLevels(): void {
  if (isComparing()) return;
  const session = store.session.value;
  const view = store.view.value;
  store.moreToSee.value;
  if (session === null || store.status.value !== "open" || store.canvasSize.value.width === 0) return;
  if (!session.lanes.some((lane) => lane.rows.some((row) => row.kind === "level"))) return;
  const counters = session.counters.map((counter) => counter.id);
  if (counters.length === 0) return;
  levelLoader.want({ counters, window: planWindow(view, store.canvasSize.value.width, counters.length * 5) });
}

/** URL of an export of the shown table. */
export function exportUrl(
  table: string,
  format: string,
  of = store.range.value ?? store.whole.value,
  filter = store.filterId.value,
): string {
  // The end is exclusive: add 1 to include the last event.
  const [t0, t1] = [Math.floor(of.t0), Math.ceil(of.t1) + 1];
  const parameters = new URLSearchParams({
    table,
    format,
    filter: String(filter),
    t0: String(t0),
    t1: String(t1),
  });
  const token = new URLSearchParams(location.search).get("token");
  if (token) parameters.set("token", token);
  return `export?${parameters}`;
}
