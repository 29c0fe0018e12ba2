// SPDX-License-Identifier: Apache-2.0 OR MIT
// Between the connection and the signals: opens the session, keeps the filter and the pictures up to date.

import { batch, effect } from "@preact/signals";
import { takeArrows } from "../logic/arrows.ts";
import { type Filter, parameters } from "../logic/filter.ts";
import { rowKey, takeApart } from "../logic/picture.ts";
import { type Window, planWindow, serves, width } from "../logic/viewport.ts";
import { visible } from "../logic/layout.ts";
import { Connection, RequestError, Superseded } from "../protocol/connection.ts";
import { type Frame, f64, u32, u8 } from "../protocol/frame.ts";
import type { Quality, Session } from "../protocol/types.ts";
import { Loader } from "./loader.ts";
import * as store from "./store.ts";

const PROTOCOL = 1;
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
  status: changed,
  pushed,
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

/** A request that a view makes; an error is told once, and is the caller's to show as "nothing". */
export async function ask<T>(method: string, parameters: object): Promise<T | null> {
  try {
    return await connection.request<T>(method, parameters);
  } catch (error) {
    if (error instanceof RequestError) store.tell(error.message, "problem");
    else if (!(error instanceof Superseded)) throw error;
    return null;
  }
}

/** The same for whoever shows the error in its place. */
export function request<T>(method: string, parameters: object): Promise<T> {
  return connection.request<T>(method, parameters);
}

let lostAt: number | null = null;

function changed(status: "connecting" | "open" | "lost", attempt: number): void {
  store.status.value = status;
  store.attempt.value = attempt;
  if (status === "lost") lostAt ??= Date.now();
  if (status === "open") void open();
}

async function open(): Promise<void> {
  const session = await ask<Session>("open", {});
  if (session === null) return;
  if (session.version !== PROTOCOL) {
    store.fatal.value = `This page speaks version ${PROTOCOL} of the protocol, the server version ${session.version}: reload the page.`;
    return;
  }
  const before = store.session.value;
  batch(() => {
    // Scripts of an earlier page, or of a server that is gone, mean nothing here: they are run again if they are wanted.
    store.scripts.value = [];
    const { filter } = store;
    filter.value = { ...filter.value, scriptsOn: new Set(), activitiesOff: new Set() };
    store.methods.value = new Set(session.methods);
    store.session.value = withoutScripts(session);
    if (before === null) {
      store.showAll();
      store.follow.value = session.is_live;
    }
    store.picture.value = null;
    // Numbers of filters are this server's own: everything, until it has made ours.
    store.filterId.value = 0;
    store.shownCount.value = null;
    answered = "";
    sentFilter = null;
  });
  if (before !== null) missed(before, session);
}

function withoutScripts(session: Session): Session {
  const lanes = session.lanes.map((lane) => ({
    ...lane,
    rows: lane.rows.filter((row) => row.script === undefined),
  }));
  return { ...session, lanes };
}

function missed(before: Session, now: Session): void {
  const seconds = lostAt === null ? 0 : (Date.now() - lostAt) / 1000;
  lostAt = null;
  const events = (session: Session) => session.recordings.reduce((sum, one) => sum + one.events, 0);
  const more = events(now) - events(before);
  const what = more > 0 ? `${more} events came meanwhile and are shown now` : "nothing was missed";
  store.tell(`connected again after ${seconds.toFixed(1)} s: ${what}`);
}

function pushed(message: { event: string; [key: string]: unknown }): void {
  const session = store.session.value;
  if (session === null) return;
  if (message.event === "grown" && typeof message.end === "number") grown(session, message.end);
  if (message.event === "ended") {
    store.session.value = { ...session, is_live: false };
    store.follow.value = false;
    store.tell("the recording has ended; all of it is here");
  }
}

function grown(session: Session, end: number): void {
  batch(() => {
    const before = session.end;
    store.session.value = { ...session, end };
    // What was the end of the picture is not its end any more.
    picturesStale = store.view.value.t1 >= before || picturesStale;
    if (store.follow.value) {
      const span = width(store.view.value);
      store.show({ t0: end - span * 0.97, t1: end + span * 0.03 });
    }
    // The same filter again, for its count: what was counted stays until then.
    sentFilter = null;
  });
}
let picturesStale = false;

// The filter: sent when it differs from what was sent; everything else follows its number.

let sentFilter: string | null = null;

const filters = new Loader<Filter, { filter: number; count: number; quality: Quality }>(
  (wish) => connection.request("filter", parameters(wish)),
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
  if (wanted === sentFilter) return;
  sentFilter = wanted;
  filters.want(store.filter.value);
}

function failed(error: Error): void {
  if (error instanceof RequestError) store.tell(error.message, "problem");
  else throw error;
}

// Pictures.

interface ViewWish {
  lanes: number[];
  window: Window;
  filter: number;
}

/** What was answered last: an answer that lacks rows must not be asked for again and again. */
let answered = "";

const views = new Loader<ViewWish, Frame>(
  ({ lanes, window, filter }) =>
    connection.request("view", { lanes, t0: window.t0, t1: window.t1, px: window.px, filter }),
  (frame, wish) => {
    picturesStale = false;
    answered = JSON.stringify(wish);
    store.picture.value = takeApart(frame, wish.window, wish.filter);
  },
  failed,
);

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
  const { width: wide } = store.canvasSize.value;
  const { lanes, rows } = shownLanes();
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
  const wish = { lanes, window: planWindow(view, devicePx(), rows.length), filter };
  if (!complete && (picturesStale || JSON.stringify(wish) !== answered)) views.want(wish);
}

const arrows = new Loader<{ window: Window; lanes: number[]; filter: number }, Frame>(
  ({ window, lanes, filter }) =>
    connection.request("arrows", { lanes, t0: window.t0, t1: window.t1, px: window.px, filter }),
  (frame, wish) => {
    const arrows = takeArrows(frame);
    store.arrowData.value = { arrows, filter: wish.filter };
    // Programs that share a core send from it to itself: then what is to be seen is between threads.
    const within = arrows.fromLane.reduce(
      (sum, from, index) => sum + Number(from === arrows.toLane[index]),
      0,
    );
    if (store.arrowsBetween.value === null && arrows.count.length > 0) {
      store.arrowsBetween.value = within * 2 > arrows.count.length ? "threads" : "cores";
    }
  },
  failed,
);

let arrowsFor = "";

function wantArrows(): void {
  const session = store.session.value;
  const view = store.view.value;
  const filter = store.filterId.value;
  const between = store.arrowsBetween.value ?? "cores";
  const lanes = store.lanesLayout.value.lanes
    .filter((lane) => between === "cores" || lane.kind !== "cpu")
    .map((lane) => lane.id);
  const wide = store.canvasSize.value.width;
  if (session === null || store.status.value !== "open" || wide === 0 || session.channels.length === 0)
    return;
  if (!store.arrowsOn.value || lanes.length === 0) return;
  // One window of half a screen to both sides: arrows are few, and bundled for the pixels on the screen.
  const window = planWindow(view, wide / 2, 1);
  const key = JSON.stringify([window.t0, window.t1, filter, lanes, session.end]);
  if (key === arrowsFor && store.arrowData.value !== null) return;
  arrowsFor = key;
  arrows.want({ window, lanes, filter });
}

const overviews = new Loader<number, Frame>(
  (filter) => connection.request("overview", { px: OVERVIEW_PX, filter }),
  (frame) => {
    store.overview.value = { count: u32(frame, "count"), flags: u8(frame, "flags") };
  },
  failed,
);

function wantOverview(): void {
  const session = store.session.value;
  if (session === null || store.status.value !== "open") return;
  overviews.want(store.filterId.value);
}

const levelLoader = new Loader<{ counters: number[]; window: Window }, Frame>(
  ({ counters, window }) =>
    connection.request("levels", { counters, t0: window.t0, t1: window.t1, px: window.px }),
  (frame, { counters, window }) => {
    const [low, high, last] = ["low", "high", "last"].map((name) => f64(frame, name));
    const part = (column: Float64Array, index: number) =>
      column.subarray(index * window.px, (index + 1) * window.px);
    store.levels.value = {
      window,
      byCounter: new Map(
        counters.map((id, index) => [
          id,
          { low: part(low, index), high: part(high, index), last: part(last, index) },
        ]),
      ),
    };
  },
  failed,
);

function wantLevels(): void {
  const session = store.session.value;
  const view = store.view.value;
  if (session === null || store.status.value !== "open" || store.canvasSize.value.width === 0) return;
  if (!session.lanes.some((lane) => lane.rows.some((row) => row.kind === "level"))) return;
  const counters = session.counters.map((counter) => counter.id);
  if (counters.length === 0) return;
  levelLoader.want({ counters, window: planWindow(view, store.canvasSize.value.width, counters.length * 5) });
}

/** What is shown, as a file. */
export function exportUrl(
  table: string,
  format: string,
  of = store.range.value ?? store.whole.value,
  filter = store.filterId.value,
): string {
  // The end is exclusive: the last event is within.
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
