// SPDX-License-Identifier: Apache-2.0 OR MIT
// The session: opened, reopened after a lost connection, and updated as it grows.

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
/** Minimum interval of updates of lists that are requested completely. */
const LIST_MS = 1000;

/** Progress of the server before there is a session. */
export const progress = signal<{ what: string; done: number; of: number | null } | null>(null);
/** Minimum interval of updates of the age of the newest event; faster changes are unreadable. */
export const AGE_MS = 250;
export const age = signal<{ ns: number | null; toldMs: number } | null>(null);
/** Reason why no events arrive, although the recording is not known to have ended. */
export const silentWhy = signal<string | null>(null);
export const paused = signal(false);
/** Changes as the session grows, at most once per `LIST_MS`: for lists that are requested completely. */
export const growth = signal(0);

/** A growth update, and the time of its arrival. */
type Grown = Extract<Push, { event: "grown" }> & { toldMs: number };

/** What is shown together with an update. */
interface Ahead {
  picture: Picture;
  overview: store.Overview | null;
}

/** Update that arrived while the page was paused. */
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

/** Starts a session with new ids; state that is known by names is kept. */
function begin(before: Session | null, session: Session): void {
  coming.forget();
  const scripts = before === null ? [] : wanted();
  batch(() => {
    progress.value = null;
    silentWhy.value = null;
    held = null;
    // Scripts of an earlier page or server do not exist here: those of this page are run again.
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
      // A live session is followed again.
      if (session.is_live && store.follow.value) toEdge();
    }
    store.picture.value = null;
    // Ids of filters are valid on one server only: show everything until this server has created
    // our filter.
    store.filterId.value = 0;
    store.shownCount.value = null;
    numbersAreNew();
  });
  void runAgain(scripts, new Set(session.scripts?.map((one) => one.script)));
}

/** Requests the lists of the same session again. */
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
    // The lists already contain the losses of pending updates.
    for (const word of [...coming.waiting(), held]) if (word !== null) word.losses = [];
    const known = new Set(store.scripts.value.map((one) => one.id));
    const now = reopened(before, withoutScripts(session, known));
    batch(() => {
      setMethods(session.methods);
      store.session.value = now;
      store.scripts.value = followed(store.scripts.value, session);
      // Changes of counts alone do not affect the picture.
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

/** Updates the counts of scripts that find activities. */
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

/** Removes rows of scripts that other pages have run. */
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

/**
 * Counts the remaining events again unless the update contains the number: another response costs
 * another frame.
 */
function count(push: Grown): void {
  const shown = store.shownCount.value;
  const isTold = shown !== null && push.events !== null && push.losses.length === 0;
  if (isTold && leavesAll(store.filter.value)) store.shownCount.value = { ...shown, count: push.events! };
  // The old count stays until then.
  else store.countAgain();
}

const joined = (before: Grown, after: Grown): Grown => ({
  ...after,
  losses: newestLosses(before.losses, after.losses),
});

const coming = new Coming<Grown, Ahead>(askAhead, take, joined);

/**
 * Whether the picture can be requested in advance: the view follows and already shows a picture, so
 * that its next position is known.
 */
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
  // If the user has moved the view meanwhile, the picture in advance is not used.
  const shown = store.follow.value ? ahead : null;
  if (hasNewLists(session, push)) void refresh();
  batch(() => {
    // The session now extends beyond the end of the picture.
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
    // Updates the counts of classes and applications.
    void refresh();
  };
  if (now - lastList >= LIST_MS) later();
  else listTimer = setTimeout(later, LIST_MS - (now - lastList));
}

export function toEdge(): void {
  store.show(atEdge(store.whole.value, store.followSpan.value));
}

/** Pauses the display, or continues with all updates since then. */
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

/** Number of events that arrived while the page was paused. */
export function heldEvents(): number {
  const session = store.session.value;
  return held?.events == null || session === null ? 0 : Math.max(0, held.events - eventsOf(session));
}
