// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import * as F from "../../src/logic/filter.ts";
import { read, write } from "../../src/logic/hash.ts";
import type { Session } from "../../src/protocol/types.ts";

const session = {
  lanes: [0, 1].map((id) => ({ id, parent: null, kind: "cpu", name: `core ${id}`, rows: [] })),
  classes: [
    { id: 0, subsystem: "ipc", name: "SEND", count: 5, quality: "exact", sends: true },
    { id: 1, subsystem: "ipc", name: "RECEIVE", count: 4, quality: "lower_bound", receives: true },
    { id: 2, subsystem: "memory", name: "ALLOC", count: 3, quality: "exact" },
  ],
  applications: [
    { id: 0, name: "monitor", events: 7, quality: "exact" },
    { id: 1, name: "", events: 1, quality: "exact" },
  ],
} as unknown as Session;
const nodes = F.tree(session, []);
const find = (key: string, among = nodes): F.Node => {
  for (const node of among) {
    if (node.key === key) return node;
    const below = node.children.length > 0 ? tryFind(key, node.children) : null;
    if (below) return below;
  }
  throw new Error(key);
};
const tryFind = (key: string, among: F.Node[]): F.Node | null => {
  try {
    return find(key, among);
  } catch {
    return null;
  }
};

describe("the filter's tree", () => {
  test("groups that hold nothing are left out", () => {
    expect(nodes.map((node) => node.key)).toEqual(["cores", "subsystems", "messages", "applications"]);
    expect(find("application-1").label).toBe("Unknown process");
    expect(find("subsystem-ipc").quality).toBe("lower_bound");
  });
  test("a box has the state of what is below it", () => {
    const off = F.toggle(F.EVERYTHING, find("lane-0"));
    expect(F.state(off, find("cores"))).toBe("mixed");
    expect(F.state(off, find("lane-0"))).toBe("off");
    expect(F.state(F.toggle(off, find("lane-1")), find("cores"))).toBe("off");
    // A mixed group is switched on, and then off.
    const on = F.toggle(off, find("cores"));
    expect(F.isEverything(on)).toBe(true);
    expect(F.state(F.toggle(on, find("cores")), find("lane-1"))).toBe("off");
  });
  test("send and the event that sends are one", () => {
    const off = F.toggle(F.EVERYTHING, find("sends"));
    expect(F.state(off, find("class-0"))).toBe("off");
    expect(F.state(off, find("subsystem-ipc"))).toBe("mixed");
    expect(F.parameters(off)).toEqual({ lanes_off: [], classes_off: [0], applications_off: [], scripts: [] });
  });
  test("only one of its kind", () => {
    const all = nodes.flatMap((node) => node.leaves);
    const only = F.only(F.toggle(F.EVERYTHING, find("lane-0")), find("class-2"), all);
    expect(F.parameters(only)).toEqual({
      lanes_off: [0],
      classes_off: [0, 1],
      applications_off: [],
      scripts: [],
    });
  });
  test("filters of scripts begin off, activities of scripts on", () => {
    const [filters, activities] = F.tree(session, [
      { id: 4, name: "mutex", filters: true, finds: false },
      { id: 5, name: "locks", filters: false, finds: true },
    ]).slice(-2);
    expect(F.state(F.EVERYTHING, filters)).toBe("off");
    expect(F.parameters(F.toggle(F.EVERYTHING, filters)).scripts).toEqual([4]);
    expect(F.state(F.EVERYTHING, activities)).toBe("on");
    const off = F.toggle(F.EVERYTHING, activities);
    expect([...off.activitiesOff]).toEqual([5]);
    expect(F.parameters(off)).toEqual(F.parameters(F.EVERYTHING));
  });
});

describe("the URL", () => {
  test("holds view, filter, selection and comes back", () => {
    const shown = {
      view: { t0: 12.5, t1: 99 },
      range: { t0: 20, t1: 30 },
      selected: { lane: 3, row: 1, t: 22 },
      tab: "statistics",
      filter: {
        lanesOff: new Set([1, 2]),
        classesOff: new Set([7]),
        applicationsOff: new Set<number>(),
        scriptsOn: new Set<number>(),
        activitiesOff: new Set<number>(),
      },
      folded: new Set([5]),
      pinned: [2],
      arrows: false,
      ticks: true,
      grouping: "threads" as const,
      order: "cpu" as const,
      hideEmpty: true,
      compared: null,
    };
    expect(read(write(shown))).toEqual(shown);
  });
  test.each([
    "",
    "#",
    "#view=1",
    "#view=5,1",
    "#view=a,b&selected=1,2",
    "#lanes-off=1,x,-3&tab=<b>",
    "#view=NaN,Infinity",
    "#%",
  ])("what makes no sense is left out: %s", (hash) => {
    const shown = read(hash);
    expect(shown.view).toBeNull();
    expect(shown.selected).toBeNull();
    expect(shown.tab).toBe("events");
    expect([...shown.filter.lanesOff].every((id) => id >= 0)).toBe(true);
  });
});
