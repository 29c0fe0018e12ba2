// SPDX-License-Identifier: Apache-2.0 OR MIT
// Updates from the server about a live session (spec/view.md, section 5), and their effect on the page.

import type { Loss, Session } from "../protocol/types.ts";
import { type Filter, EVERYTHING } from "./filter.ts";
import { duration, thousands } from "./units.ts";
import type { Interval } from "./viewport.ts";

export type Push =
  | { event: "progress"; what: string; done: number; of: number | null }
  | { event: "failed"; text: string }
  | {
      event: "grown";
      begin: number | null;
      end: number;
      events: number | null;
      lists: number | null;
      gone: number;
      ageNs: number | null;
      losses: Loss[];
    }
  | { event: "disconnected"; why: string }
  | { event: "missed"; seconds: number; packets: number | null; events: number | null }
  | { event: "ended"; complete: boolean; why: string }
  | { event: "replaced" };

type Told = Record<string, unknown>;

const number = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Parses an update; null if this page does not know it. */
export function readPush(told: Told): Push | null {
  switch (told.event) {
    case "progress":
      return {
        event: "progress",
        what: text(told.what),
        done: Math.max(0, number(told.done) ?? 0),
        of: number(told.of),
      };
    case "failed": {
      const { what, where, do: advice } = (told.error ?? {}) as Told;
      return { event: "failed", text: [what, where, advice].map(text).filter(Boolean).join(": ") };
    }
    case "grown": {
      const end = number(told.end);
      if (end === null) return null;
      const gone = (told.gone ?? {}) as Told;
      return {
        event: "grown",
        begin: number(told.begin),
        end,
        events: number(told.events),
        lists: number(told.lists),
        gone: number(gone.events) ?? 0,
        ageNs: number(told.age_ns),
        losses: Array.isArray(told.losses) ? (told.losses as Loss[]) : [],
      };
    }
    case "disconnected":
      return { event: "disconnected", why: text(told.why) };
    case "missed":
      return {
        event: "missed",
        seconds: number(told.seconds) ?? 0,
        packets: number(told.packets),
        events: number(told.events),
      };
    case "ended":
      return { event: "ended", complete: told.complete !== false, why: text(told.why) };
    case "replaced":
      return { event: "replaced" };
    default:
      return null;
  }
}

/** Number of losses that are listed separately; the server keeps the same number. */
const LOSSES_KEPT = 1000;

/** The newest losses of the known and the new ones. */
export function newestLosses(known: Loss[], came: Loss[]): Loss[] {
  return came.length === 0 ? known : [...known, ...came].slice(-LOSSES_KEPT);
}

/** The session after an update. */
export function grown(session: Session, push: Extract<Push, { event: "grown" }>): Session {
  return {
    ...session,
    begin: push.begin ?? session.begin,
    end: Math.max(push.end, push.begin ?? session.begin),
    events: push.events ?? session.events,
    gone: { events: push.gone },
    losses: newestLosses(session.losses, push.losses),
  };
}

/** Keeps the identity of equal objects, so that nothing derived from them is computed again. */
function same<T>(before: T, now: T): T {
  return JSON.stringify(before) === JSON.stringify(now) ? before : now;
}

/**
 * A session after its lists were requested again. It keeps the extent that is shown: the next
 * growth update reports the current extent, and is shown together with its picture.
 */
export function reopened(before: Session, now: Session): Session {
  const isGrowing = before.is_live && before.origin === now.origin;
  const { begin, end, is_live, events, gone } = isGrowing ? before : now;
  const isSame = now.lists !== undefined && now.lists === before.lists;
  return {
    ...now,
    ...{ begin, end, is_live, events, gone },
    lanes: isSame ? before.lanes : now.lanes,
    names: isSame ? before.names : now.names,
    classes: same(before.classes, now.classes),
    applications: same(before.applications, now.applications),
    recordings: same(before.recordings, now.recordings),
    channels: same(before.channels, now.channels),
    losses: same(before.losses, now.losses),
    damage: same(before.damage, now.damage),
  };
}

/** Current number of events. For several recordings, each recording contains the total. */
export function eventsOf(session: Session): number {
  return session.events ?? session.classes.reduce((sum, one) => sum + one.count, 0);
}

/** Whether lists of the session have changed and must be requested with `open`. */
export function hasNewLists(session: Session, push: Extract<Push, { event: "grown" }>): boolean {
  return push.lists !== null && session.lists !== undefined && push.lists !== session.lists;
}

/** A view of length `span` at the newest edge; the whole session if it is shorter. */
export function atEdge(whole: Interval, span: number): Interval {
  const wide = Math.max(1, Math.min(span, whole.t1 - whole.t0));
  return { t0: whole.t1 - wide * 0.97, t1: whole.t1 + wide * 0.03 };
}

export function missedText(push: Extract<Push, { event: "missed" }>): string {
  const after = `the recorder is back after ${push.seconds.toFixed(1)} s`;
  if (push.packets === null) return `${after}: nobody knows what was missed`;
  if (push.packets === 0 && !push.events) return `${after}: nothing was missed`;
  const events = push.events === null ? "an unknown number of" : thousands(push.events);
  return `${after}: ${thousands(push.packets)} packets with ${events} events were missed`;
}

export function endedText(push: Extract<Push, { event: "ended" }>): string {
  if (push.complete) return "the recording has ended; all of it is here";
  return `the recording has ended early${push.why ? `: ${push.why}` : ""}`;
}

/** Age of the newest shown event: the server's value, plus the time since then. */
export function lagText(ageNs: number | null, sinceMs: number): string {
  return ageNs === null ? "" : duration(Math.round((ageNs + Math.max(0, sinceMs) * 1e6) / 1e6) * 1e6);
}

/** Offset between the times of two sessions with different origins, in nanoseconds. */
export function shiftBetween(before: Session, after: Session): number {
  const known = /^-?\d{1,20}$/;
  if (!known.test(before.origin) || !known.test(after.origin)) return 0;
  return Number(BigInt(before.origin) - BigInt(after.origin));
}

/** Converts a filter to another session with other ids, by names. Scripts must be run again. */
export function renumbered(filter: Filter, before: Session, after: Session): Filter {
  const carry = <T extends { id: number }>(
    off: ReadonlySet<number>,
    of: readonly T[],
    now: readonly T[],
    name: (one: T) => string,
  ): Set<number> => {
    const names = new Set(of.filter((one) => off.has(one.id)).map(name));
    return new Set(now.filter((one) => names.has(name(one))).map((one) => one.id));
  };
  return {
    ...EVERYTHING,
    lanesOff: carry(filter.lanesOff, before.lanes, after.lanes, (lane) =>
      [lane.kind, lane.cpu ?? lane.tid ?? lane.pid ?? lane.name].join(" "),
    ),
    classesOff: carry(filter.classesOff, before.classes, after.classes, (one) =>
      [one.subsystem, one.name].join(":"),
    ),
    applicationsOff: carry(filter.applicationsOff, before.applications, after.applications, (one) =>
      [one.name, one.pid].join(" "),
    ),
  };
}
