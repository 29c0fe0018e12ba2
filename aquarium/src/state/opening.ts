// SPDX-License-Identifier: Apache-2.0 OR MIT
// The session: opened, opened again after the connection was lost, and kept as it grows.

import { batch, signal } from "@preact/signals";
import {
  type Push,
  atEdge,
  endedText,
  eventsOf,
  grown,
  hasNewLists,
  missedText,
  newestLosses,
  readPush,
  reopened,
  renumbered,
  shiftBetween,
} from "../logic/live.ts";
import { leavesAll } from "../logic/filter.ts";
import type { Picture } from "../logic/picture.ts";
import { type Interval, clamp } from "../logic/viewport.ts";
import type { Session } from "../protocol/types.ts";
import { Coming } from "./coming.ts";
import { runAgain, wanted } from "./scripts.ts";
import { ask, numbersAreNew, isPictureAsked, overviewAhead, pictureAhead, picturesAreOld } from "./server.ts";
import * as store from "./store.ts";

const PROTOCOL = 1;
/** Lists that are sorted anew as they grow come so often. */
const LIST_MS = 1000;

/** What the server does before there is anything to show. */
export const progress = signal<{ what: string; done: number; of: number | null } | null>(null);
/** How old the newest event was, and when that was told; nobody reads numbers that change more often than this. */
export const AGE_MS = 250;
export const age = signal<{ ns: number | null; toldMs: number } | null>(null);
/** Why nothing comes just now, although the recording is not known to have ended. */
export const silentWhy = signal<string | null>(null);
export const paused = signal(false);
/** Grows with the session, but seldom: for lists that are asked for whole. */
export const growth = signal(0);

/** A word of growth, and when it came. */
type Grown = Extract<Push, { event: "grown" }> & { toldMs: number };

/** What is shown together with it. */
interface Ahead {
  picture: Picture;
  overview: store.Overview | null;
}

/** What came while the page was held. */
let held: Grown | null = null;
let lostAt: number | null = null;
let opening = false;
let openAgain = false;

export function connectionChanged(status: "connecting" | "open" | "lost", attempt: number): void {
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
  begin(before, session);
  if (before !== null && lostAt !== null) tellMissed(before, session);
  lostAt = null;
}

/** A session whose numbers are new: what is told by names stays. */
function begin(before: Session | null, session: Session): void {
  coming.forget();
  const scripts = before === null ? [] : wanted();
  batch(() => {
    progress.value = null;
    silentWhy.value = null;
    held = null;
    // Scripts of an earlier page, or of a server that is gone, mean nothing here: those of this page are run again.
    store.scripts.value = [];
    const now = withoutScripts(session, new Set());
    store.filter.value =
      before === null
        ? { ...store.filter.value, scriptsOn: new Set(), activitiesOff: new Set() }
        : renumbered(store.filter.value, before, now);
    setMethods(session.methods);
    store.session.value = now;
    if (before === null) {
      store.showAll();
      store.follow.value = session.is_live;
      if (session.is_live) toEdge();
    } else {
      const by = shiftBetween(before, session);
      const { t0, t1 } = store.view.value;
      if (by !== 0) {
        store.clearSelection();
        store.show({ t0: t0 + by, t1: t1 + by });
      }
      // One that goes on, and comes anew each time.
      if (session.is_live && store.follow.value) toEdge();
    }
    store.picture.value = null;
    // Numbers of filters are this server's own: everything, until it has made ours.
    store.filterId.value = 0;
    store.shownCount.value = null;
    numbersAreNew();
  });
  void runAgain(scripts, new Set(session.scripts?.map((one) => one.script)));
}

/** The same session with more in its lists. */
async function refresh(): Promise<void> {
  if (opening) {
    openAgain = true;
    return;
  }
  opening = true;
  const session = await ask<Session>("open", {});
  opening = false;
  const before = store.session.value;
  if (session !== null && before !== null) {
    // Losses that it told already are in the lists, too.
    for (const word of [...coming.waiting(), held]) if (word !== null) word.losses = [];
    const known = new Set(store.scripts.value.map((one) => one.id));
    const now = reopened(before, withoutScripts(session, known));
    batch(() => {
      setMethods(session.methods);
      store.session.value = now;
      store.scripts.value = followed(store.scripts.value, session);
      // Counts alone change nothing that is drawn.
      if (now.lanes !== before.lanes || now.end !== before.end) picturesAreOld();
      if (store.follow.value) toEdge();
    });
  }
  if (openAgain) {
    openAgain = false;
    void refresh();
  }
}

function setMethods(methods: readonly string[]): void {
  const { value: known } = store.methods;
  const isSame = known.size === methods.length && methods.every((one) => known.has(one));
  if (!isSame) store.methods.value = new Set(methods);
}

/** What scripts have found by now, of those that look for activities. */
function followed(scripts: store.RanScript[], session: Session): store.RanScript[] {
  const followed = scripts.map((one) => {
    const now = session.scripts?.find((told) => told.script === one.id);
    if (now === undefined) return one;
    const { stopped, count } = now;
    const why = stopped ? [stopped.where, stopped.what].filter(Boolean).join(": ") : null;
    return one.count === count && one.stopped === why ? one : { ...one, count, stopped: why };
  });
  return followed.some((one, index) => one !== scripts[index]) ? followed : scripts;
}

/** Rows of scripts that this page has not run are somebody else's. */
function withoutScripts(session: Session, known: ReadonlySet<number>): Session {
  const lanes = session.lanes.map((lane) => ({
    ...lane,
    rows: lane.rows.filter((row) => row.script === undefined || known.has(row.script)),
  }));
  return { ...session, lanes };
}

function tellMissed(before: Session, now: Session): void {
  const seconds = lostAt === null ? 0 : (Date.now() - lostAt) / 1000;
  const more = eventsOf(now) - eventsOf(before);
  const what = more > 0 ? `${more} events came meanwhile and are shown now` : "nothing was missed";
  store.tell(`connected again after ${seconds.toFixed(1)} s: ${what}`);
}

export function pushed(message: { event: string; [key: string]: unknown }): void {
  const push = readPush(message);
  if (push === null) return;
  if (push.event === "progress") {
    if (store.session.value === null) progress.value = push;
    return;
  }
  if (push.event === "failed") {
    store.fatal.value = push.text || "There is nothing that can be shown.";
    return;
  }
  const session = store.session.value;
  if (session === null) return;
  switch (push.event) {
    case "grown": {
      silentWhy.value = null;
      const word = { ...push, toldMs: performance.now() };
      if (paused.value) held = held ? joined(held, word) : word;
      else if (hasPictureAhead(session)) coming.come(word);
      else take(word, null);
      break;
    }
    case "disconnected":
      silentWhy.value = push.why || "no connection to the recorder";
      break;
    case "missed":
      silentWhy.value = null;
      store.tell(missedText(push), push.packets === 0 ? "info" : "problem");
      break;
    case "ended":
      coming.settle();
      resume();
      store.session.value = { ...store.session.value!, is_live: false };
      store.follow.value = false;
      silentWhy.value = null;
      age.value = null;
      growth.value++;
      store.tell(endedText(push), push.complete ? "info" : "problem");
      break;
    case "replaced":
      void open();
      break;
  }
}

let lastList = 0;
let listTimer: ReturnType<typeof setTimeout> | undefined;

/** What the filter leaves is counted anew, where growth does not say it: another answer is another frame. */
function count(push: Grown): void {
  const shown = store.shownCount.value;
  const isTold = shown !== null && push.events !== null && push.losses.length === 0;
  if (isTold && leavesAll(store.filter.value)) store.shownCount.value = { ...shown, count: push.events! };
  // What was counted stays until then.
  else store.countAgain();
}

const joined = (before: Grown, after: Grown): Grown => ({
  ...after,
  losses: newestLosses(before.losses, after.losses),
});

const coming = new Coming<Grown, Ahead>(askAhead, take, joined);

/** A view that follows, and has shown something: where it will be is known before it is there. */
function hasPictureAhead(session: Session): boolean {
  const isShown = store.picture.value !== null && !document.hidden;
  return store.follow.value && session.is_live && isShown && !isPictureAsked();
}

/** The view at the newest edge of a session. */
function edgeOf(session: Session): Interval {
  const whole = { t0: session.begin, t1: Math.max(session.end, session.begin + 1) };
  return clamp(atEdge(whole, store.followSpan.value), whole);
}

async function askAhead(push: Grown): Promise<Ahead | null> {
  const session = store.session.value;
  if (session === null) return null;
  const now = grown(session, push);
  const [overview, picture] = await Promise.all([
    overviewAhead(now).catch(() => null),
    pictureAhead(edgeOf(now), push.end),
  ]);
  return picture && { picture, overview };
}

function take(push: Grown, ahead: Ahead | null): void {
  const session = store.session.value;
  if (session === null) return;
  // Whoever has gone elsewhere meanwhile sees what is there.
  const shown = store.follow.value ? ahead : null;
  if (hasNewLists(session, push)) void refresh();
  batch(() => {
    // What was the end of the picture is not its end any more.
    if (shown === null && store.view.value.t1 >= session.end) picturesAreOld();
    if (push.toldMs - (age.value?.toldMs ?? 0) >= AGE_MS) age.value = { ns: push.ageNs, toldMs: push.toldMs };
    store.session.value = grown(session, push);
    if (store.follow.value) toEdge();
    if (shown !== null) store.picture.value = shown.picture;
    if (shown?.overview) store.overview.value = shown.overview;
    count(push);
  });
  const now = performance.now();
  clearTimeout(listTimer);
  const later = () => {
    lastList = performance.now();
    growth.value++;
    // How many events there are of each class and application.
    void refresh();
  };
  if (now - lastList >= LIST_MS) later();
  else listTimer = setTimeout(later, LIST_MS - (now - lastList));
}

export function toEdge(): void {
  store.show(atEdge(store.whole.value, store.followSpan.value));
}

/** Holds everything as it is, or goes on with what came meanwhile. */
export function togglePause(): void {
  if (paused.value) return resume();
  coming.settle();
  paused.value = true;
}

function resume(): void {
  paused.value = false;
  const push = held;
  held = null;
  if (push) take(push, null);
}

/** Events that came while the page was held. */
export function heldEvents(): number {
  const session = store.session.value;
  return held?.events == null || session === null ? 0 : Math.max(0, held.events - eventsOf(session));
}
