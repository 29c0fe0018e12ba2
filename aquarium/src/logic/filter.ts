// SPDX-License-Identifier: Apache-2.0 OR MIT
// The session's filter, and the tree of three-state check boxes that displays it.
//
// The hidden items are a set of leaves. A node shows the state of its leaves. A leaf can have
// several parents (an event belongs to its subsystem and, if it sends, to "send"), whose states are
// always consistent.

import type { Session } from "../protocol/types.ts";

export interface Script {
  id: number;
  name: string;
  /** The script filters events while it is switched on. */
  filters: boolean;
  /** The script finds activities, which have rows of their own. */
  finds: boolean;
}

export interface Filter {
  lanesOff: ReadonlySet<number>;
  classesOff: ReadonlySet<number>;
  applicationsOff: ReadonlySet<number>;
  /** Scripts that are switched on; others have no effect. */
  scriptsOn: ReadonlySet<number>;
  /** Scripts whose activities are not drawn; this affects only the page. */
  activitiesOff: ReadonlySet<number>;
}

export const EVERYTHING: Filter = {
  lanesOff: new Set(),
  classesOff: new Set(),
  applicationsOff: new Set(),
  scriptsOn: new Set(),
  activitiesOff: new Set(),
};

/** Whether nothing is switched off, and no script filters. */
export function leavesAll(filter: Filter): boolean {
  return Object.values(filter).every((one: ReadonlySet<number>) => one.size === 0);
}

export type LeafKind = "lane" | "class" | "application" | "script" | "activity";
export interface Leaf {
  kind: LeafKind;
  id: number;
}

export interface Node {
  key: string;
  label: string;
  /** Number of events, if known. */
  count: number | null;
  quality?: string;
  /** Colour of an application, by its index. */
  swatch?: number;
  /** Description of the class or application, for users who cannot rely on colours. */
  title?: string;
  leaves: Leaf[];
  children: Node[];
}

export type State = "on" | "off" | "mixed";

export function isOn(filter: Filter, leaf: Leaf): boolean {
  switch (leaf.kind) {
    case "lane":
      return !filter.lanesOff.has(leaf.id);
    case "class":
      return !filter.classesOff.has(leaf.id);
    case "application":
      return !filter.applicationsOff.has(leaf.id);
    case "script":
      return filter.scriptsOn.has(leaf.id);
    case "activity":
      return !filter.activitiesOff.has(leaf.id);
  }
}

export function state(filter: Filter, node: Node): State {
  let on = 0;
  for (const leaf of node.leaves) if (isOn(filter, leaf)) on++;
  if (on === node.leaves.length) return "on";
  return on === 0 ? "off" : "mixed";
}

/** A click on a box that is on switches all leaves off; otherwise all are switched on. */
export function toggle(filter: Filter, node: Node): Filter {
  return set(filter, node.leaves, state(filter, node) !== "on");
}

/** Switches the node on, and all other leaves of its kind off. */
export function only(filter: Filter, node: Node, all: readonly Leaf[]): Filter {
  const kinds = new Set(node.leaves.map((leaf) => leaf.kind));
  const off = set(
    filter,
    all.filter((leaf) => kinds.has(leaf.kind)),
    false,
  );
  return set(off, node.leaves, true);
}

export function set(filter: Filter, leaves: readonly Leaf[], on: boolean): Filter {
  const lanesOff = new Set(filter.lanesOff);
  const classesOff = new Set(filter.classesOff);
  const applicationsOff = new Set(filter.applicationsOff);
  const scriptsOn = new Set(filter.scriptsOn);
  const activitiesOff = new Set(filter.activitiesOff);
  const off = { lane: lanesOff, class: classesOff, application: applicationsOff, activity: activitiesOff };
  for (const leaf of leaves) {
    if (leaf.kind === "script") change(scriptsOn, leaf.id, on);
    else change(off[leaf.kind], leaf.id, !on);
  }
  return { lanesOff, classesOff, applicationsOff, scriptsOn, activitiesOff };
}

function change(set: Set<number>, id: number, member: boolean): void {
  if (member) set.add(id);
  else set.delete(id);
}

export function isEverything(filter: Filter): boolean {
  return (
    filter.activitiesOff.size +
      filter.lanesOff.size +
      filter.classesOff.size +
      filter.applicationsOff.size +
      filter.scriptsOn.size ===
    0
  );
}

/** Parameters of the method `filter`; sorted, so that equal filters have equal texts. */
export function parameters(filter: Filter): Record<string, number[]> {
  const sorted = (ids: ReadonlySet<number>) => [...ids].sort((a, b) => a - b);
  return {
    lanes_off: sorted(filter.lanesOff),
    classes_off: sorted(filter.classesOff),
    applications_off: sorted(filter.applicationsOff),
    scripts: sorted(filter.scriptsOn),
  };
}

/** The lists of a session that the tree is built from. */
export type Lists = Pick<Session, "applications" | "classes" | "lanes">;

/** The tree of a session. Groups without leaves are left out. */
export function tree(session: Lists, scripts: readonly Script[]): Node[] {
  const groups = [
    cores(session),
    subsystems(session),
    messages(session),
    applications(session),
    ...ofScripts(scripts),
  ];
  return groups.filter((group) => group.leaves.length > 0);
}

function group(key: string, label: string, children: Node[]): Node {
  return { key, label, count: null, leaves: children.flatMap((child) => child.leaves), children };
}

function cores(session: Lists): Node {
  const lanes = session.lanes.filter((lane) => lane.kind === "cpu");
  return group(
    "cores",
    "CPUs",
    lanes.map((lane) => ({
      key: `lane-${lane.id}`,
      label: lane.name,
      count: null,
      leaves: [{ kind: "lane" as const, id: lane.id }],
      children: [],
    })),
  );
}

function subsystems(session: Lists): Node {
  const names = [...new Set(session.classes.map((one) => one.subsystem))];
  return group(
    "subsystems",
    "Subsystems",
    names.map((name) => {
      const classes = session.classes.filter((one) => one.subsystem === name);
      const children = classes.map((one): Node => ({
        key: `class-${one.id}`,
        label: one.name,
        count: one.count,
        quality: one.quality,
        leaves: [{ kind: "class", id: one.id }],
        children: [],
      }));
      // Events of other tracers have no subsystem.
      const subsystem = group(`subsystem-${name}`, name || "no subsystem", children);
      return {
        ...subsystem,
        count: classes.reduce((sum, one) => sum + one.count, 0),
        quality: worst(classes),
      };
    }),
  );
}

function messages(session: Lists): Node {
  const side = (key: "sends" | "receives", label: string): Node[] => {
    const classes = session.classes.filter((one) => one[key] === true);
    if (classes.length === 0) return [];
    return [
      {
        key,
        label,
        count: classes.reduce((sum, one) => sum + one.count, 0),
        quality: worst(classes),
        leaves: classes.map((one) => ({ kind: "class", id: one.id })),
        children: [],
        title: classes.map((one) => `${one.subsystem} ${one.name}`).join(", "),
      },
    ];
  };
  return group("messages", "Messages", [...side("sends", "send"), ...side("receives", "receive")]);
}

function applications(session: Lists): Node {
  return group(
    "applications",
    "Processes",
    session.applications.map((one) => ({
      key: `application-${one.id}`,
      label: one.name === "" ? "Unknown process" : one.name,
      count: one.events,
      quality: one.quality,
      swatch: one.id,
      title: one.pid === undefined ? undefined : `process ${one.pid}`,
      leaves: [{ kind: "application" as const, id: one.id }],
      children: [],
    })),
  );
}

/** At first the filter of a script is switched off, and its activities are switched on. */
function ofScripts(scripts: readonly Script[]): Node[] {
  const nodes = (kind: "script" | "activity", of: readonly Script[]): Node[] =>
    of.map((one) => ({
      key: `${kind}-${one.id}`,
      label: one.name,
      count: null,
      leaves: [{ kind, id: one.id }],
      children: [],
    }));
  return [
    group(
      "scripts",
      "Script filters",
      nodes(
        "script",
        scripts.filter((one) => one.filters),
      ),
    ),
    group(
      "activities",
      "Script activities",
      nodes(
        "activity",
        scripts.filter((one) => one.finds),
      ),
    ),
  ];
}

function worst(parts: readonly { quality: string }[]): string {
  if (parts.some((part) => part.quality === "unknown")) return "unknown";
  return parts.some((part) => part.quality === "lower_bound") ? "lower_bound" : "exact";
}
