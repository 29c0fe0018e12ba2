// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import { EVERYTHING } from "../../src/logic/filter.ts";
import {
  atEdge,
  endedText,
  eventsOf,
  grown,
  hasNewLists,
  lagText,
  missedText,
  readPush,
  renumbered,
  reopened,
  shiftBetween,
} from "../../src/logic/live.ts";
import type { Session } from "../../src/protocol/types.ts";

const session = (more: Partial<Session> = {}): Session => ({
  version: 1,
  origin: "1700000000000000000",
  is_date: true,
  begin: 0,
  end: 1000,
  is_live: true,
  lists: 1,
  recordings: [{ path: "/r", format: "ctf", events: 10, quality: "exact" }],
  lanes: [],
  classes: [],
  applications: [],
  names: [],
  span_kinds: [],
  channels: [],
  counters: [],
  losses: [],
  damage: [],
  methods: [],
  ...more,
});
const growth = (more: object = {}) => {
  const push = readPush({ event: "grown", begin: 0, end: 2000, events: 25, lists: 1, ...more });
  if (push?.event !== "grown") throw new Error("not grown");
  return push;
};
const plain = (text: string) => text.replaceAll("\u202f", " ");

describe("what a server pushes", () => {
  test("is read, and what is not there is not made up", () => {
    expect(readPush({ event: "grown", end: 5 })).toEqual({
      event: "grown",
      begin: null,
      end: 5,
      events: null,
      lists: null,
      gone: 0,
      ageNs: null,
      losses: [],
    });
    expect(readPush({ event: "progress", what: "reading", done: -3, of: null })).toEqual({
      event: "progress",
      what: "reading",
      done: 0,
      of: null,
    });
    expect(readPush({ event: "failed", error: { what: "no trace", where: "x", do: "" } })).toEqual({
      event: "failed",
      text: "no trace: x",
    });
  });

  test.each([
    { event: "grown" },
    { event: "grown", end: "late" },
    { event: "grown", end: NaN },
    { event: "news" },
  ])("is left alone if it is nothing known: %j", (told) => expect(readPush(told)).toBeNull());
});

describe("a session that grows", () => {
  test("has what came, and keeps what it has", () => {
    const loss = { lane: null, begin: 1500, end: 1600, count: 7, cause: "ring full" };
    const now = grown(session(), growth({ losses: [loss], begin: 100, gone: { events: 4 } }));
    expect([now.begin, now.end, eventsOf(now), now.gone]).toEqual([100, 2000, 25, { events: 4 }]);
    expect(now.losses).toEqual([loss]);
    expect(grown(now, growth()).losses).toEqual([loss]);
    // The list is limited to the newest thousand losses.
    const many = Array.from({ length: 600 }, (_, count) => ({ ...loss, count }));
    const lossy = grown(grown(now, growth({ losses: many })), growth({ losses: many }));
    expect([lossy.losses.length, lossy.losses[0].count, lossy.losses[999].count]).toEqual([1000, 200, 599]);
    // An update without a number keeps the previous number.
    expect(eventsOf(grown(now, growth({ events: undefined })))).toBe(25);
    const classes = [3, 7].map((count, id) => ({
      id,
      subsystem: "s",
      name: "N",
      count,
      quality: "exact" as const,
    }));
    expect(eventsOf(session({ classes }))).toBe(10);
  });

  test("says when its lists have changed", () => {
    expect(hasNewLists(session(), growth())).toBe(false);
    expect(hasNewLists(session(), growth({ lists: 2 }))).toBe(true);
    expect(hasNewLists(session({ lists: undefined }), growth({ lists: 2 }))).toBe(false);
  });

  test("is followed with its newest edge near the right, at a steady width once it is long enough", () => {
    for (const span of [100, 1000, 1e9]) {
      for (const end of [1, 50, 100, 1e6, 3e9]) {
        const view = atEdge({ t0: 0, t1: end }, span);
        const wide = view.t1 - view.t0;
        expect(wide).toBeCloseTo(Math.min(span, end), 4);
        expect(view.t1).toBeGreaterThanOrEqual(end);
        expect((end - view.t0) / wide).toBeCloseTo(0.97, 3);
      }
    }
  });

  test("tells how far it lies behind: what the server said, and the time since", () => {
    expect(plain(lagText(80e6, 0))).toBe("80.00 ms");
    expect(plain(lagText(80e6, 1000))).toBe("1.080 s");
    expect(lagText(null, 5)).toBe("");
  });

  test("tells what was missed, and how it ended", () => {
    const missed = (packets: number | null, events: number | null) =>
      plain(missedText({ event: "missed", seconds: 2.25, packets, events }));
    expect(missed(0, 0)).toBe("the recorder is back after 2.3 s: nothing was missed");
    expect(missed(3, 1200)).toContain("3 packets with 1 200 events were missed");
    expect(missed(3, null)).toContain("an unknown number of events");
    expect(missed(null, null)).toContain("nobody knows what was missed");
    expect(endedText({ event: "ended", complete: true, why: "" })).toContain("all of it is here");
    expect(endedText({ event: "ended", complete: false, why: "killed" })).toContain("early: killed");
  });
});

describe("a session that is numbered anew", () => {
  const lane = (id: number, kind: string, more: object) => ({
    id,
    parent: null,
    kind,
    name: "x",
    rows: [],
    ...more,
  });
  const of = (...names: string[]) =>
    names.map((name, id) => ({ id, subsystem: "s", name, count: 0, quality: "exact" as const }));
  const before = session({
    classes: of("A", "B", "C"),
    lanes: [lane(0, "cpu", { cpu: 0 }), lane(1, "cpu", { cpu: 1 }), lane(2, "thread", { tid: 7 })],
    applications: [
      { id: 0, name: "unknown", events: 1, quality: "exact" },
      { id: 1, name: "a", pid: 5, events: 1, quality: "exact" },
    ],
  });
  const after = session({
    origin: "1699999999999999000",
    classes: of("C", "X", "B"),
    lanes: [lane(0, "thread", { tid: 7 }), lane(1, "cpu", { cpu: 1 })],
    applications: [{ id: 0, name: "a", pid: 5, events: 1, quality: "exact" }],
  });

  test("keeps its filter by names; what is gone is not filtered", () => {
    const filter = {
      ...EVERYTHING,
      classesOff: new Set([0, 1]),
      lanesOff: new Set([0, 2]),
      applicationsOff: new Set([1]),
      scriptsOn: new Set([3]),
    };
    const now = renumbered(filter, before, after);
    expect([...now.classesOff]).toEqual([2]);
    expect([...now.lanesOff]).toEqual([0]);
    expect([...now.applicationsOff]).toEqual([0]);
    expect(now.scriptsOn.size).toBe(0);
  });

  test("moves times to its own origin, to the nanosecond", () => {
    expect(shiftBetween(before, after)).toBe(1000);
    expect(shiftBetween(before, { ...after, origin: "later" })).toBe(0);
  });
});

test("a session that is opened again is new only where it differs, and as long as what is shown", () => {
  const lane = { id: 0, parent: null, kind: "cpu", name: "core 0", rows: [] };
  const lost = { lane: 0, begin: 1, end: 2, count: 3, cause: "ring full" };
  const before = session({ lanes: [lane], losses: [lost], events: 10, gone: { events: 0 } });
  const opened = session({ end: 3000, events: 30, lanes: [{ ...lane }], losses: [{ ...lost }] });
  const now = reopened(before, { ...opened, gone: { events: 5 } });
  expect(now).toEqual(before);
  for (const list of ["lanes", "losses", "names", "classes", "recordings"] as const) {
    expect(now[list]).toBe(before[list]);
  }
  // Lanes are replaced if the version of the lists differs; they are not compared one by one.
  expect(reopened(before, { ...opened, lists: 2 }).lanes).toBe(opened.lanes);
  expect(reopened(before, { ...opened, losses: [lost, lost] }).losses).toHaveLength(2);
  // A session that is not live gets no growth updates, and takes its extent from the new lists.
  expect(reopened({ ...before, is_live: false }, { ...opened, is_live: false }).end).toBe(3000);
  expect(reopened(before, { ...opened, origin: "5" }).end).toBe(3000);
});
