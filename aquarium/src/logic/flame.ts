// SPDX-License-Identifier: Apache-2.0 OR MIT
// Nested spans: the server's sums as a tree, laid out as a flame graph or a sunburst, and the
// comparison of two trees.

import { type HierarchyRectangularNode, hierarchy, partition } from "d3-hierarchy";

/** A node in the response of the method `flame`. */
export interface FlameNode {
  parent: number | null;
  name: string | null;
  /** For spans: index of the kind in the session's list. */
  kind?: number;
  /** For top-level nodes: the lane of all descendants. */
  lane?: number;
  count: number;
  total: number;
  own: number;
}

export interface FlameAnswer {
  nodes: FlameNode[];
  quality: string;
  unfinished: number;
  is_cut: boolean;
}

/** A node with its children; times in nanoseconds. */
export interface Branch {
  key: string;
  name: string;
  kind: number | null;
  count: number;
  total: number;
  own: number;
  /** Values in the recording that it is compared with. */
  before: { count: number; total: number; own: number } | null;
  children: Branch[];
}

export type Placed = HierarchyRectangularNode<Branch>;

const ROOT_KEY = "";
/** Separator of the names in a path; names in schemas cannot contain it. */
const BELOW = "\u0001";

function branch(key: string, name: string, kind: number | null): Branch {
  return { key, name, kind, count: 0, total: 0, own: 0, before: null, children: [] };
}

/** Parents precede their children; a node that violates this is placed at the top level. */
export function toTree(nodes: readonly FlameNode[]): Branch {
  const root = branch(ROOT_KEY, "all", null);
  const made: Branch[] = [];
  nodes.forEach((node, index) => {
    const above = (node.parent !== null && node.parent < index ? made[node.parent] : undefined) ?? root;
    const name = node.name || "unknown";
    const of = node.lane === undefined ? name : `${name} #${node.lane}`;
    const own = { ...branch(`${above.key}${BELOW}${of}`, name, node.kind ?? null) };
    [own.count, own.total, own.own] = [node.count, node.total, node.own];
    above.children.push(own);
    made.push(own);
  });
  root.total = root.children.reduce((sum, child) => sum + child.total, 0);
  root.count = root.children.reduce((sum, child) => sum + child.count, 0);
  return root;
}

/** Merges two trees: nodes in both occur once, with their previous values. */
export function compared(before: Branch, after: Branch): Branch {
  const numbers = ({ count, total, own }: Branch) => ({ count, total, own });
  const merge = (old: Branch | null, now: Branch | null): Branch => {
    const of = (now ?? old)!;
    const merged = { ...of, ...numbers(now ?? branch("", "", null)) };
    merged.before = old ? numbers(old) : { count: 0, total: 0, own: 0 };
    const byKey = new Map((old?.children ?? []).map((child) => [child.key, child]));
    merged.children = (now?.children ?? []).map((child) => merge(byKey.get(child.key) ?? null, child));
    for (const child of now?.children ?? []) byKey.delete(child.key);
    for (const gone of byKey.values()) merged.children.push(merge(gone, null));
    return merged;
  };
  return merge(before, after);
}

/** Width of a node: its own time and that of its descendants; in a comparison, the larger of both. */
export function layout(root: Branch): Placed {
  const own = (node: Branch) => Math.max(node.own, node.before?.own ?? 0);
  const tree = hierarchy(root, (node) => node.children).sum(own);
  tree.sort((a, b) => (b.value ?? 0) - (a.value ?? 0) || a.data.name.localeCompare(b.data.name));
  return partition<Branch>()(tree);
}

export function find(root: Placed, key: string): Placed | null {
  return root.find((node) => node.data.key === key) ?? null;
}

export interface Box {
  node: Placed;
  /** Begin and end as shares of the width, from 0 to 1, and row relative to the zoomed node. */
  x0: number;
  x1: number;
  row: number;
}

/** Visible boxes while a node is zoomed to the whole width: its ancestors, itself, and its descendants. */
export function boxes(root: Placed, zoomed: Placed, least: number): Box[] {
  const wide = zoomed.x1 - zoomed.x0;
  const found: Box[] = [];
  const above = new Set(zoomed.ancestors());
  const visit = (node: Placed): void => {
    const [x0, x1] = [(node.x0 - zoomed.x0) / wide, (node.x1 - zoomed.x0) / wide];
    if (above.has(node)) found.push({ node, x0: 0, x1: 1, row: node.depth });
    else if (x1 <= 0 || x0 >= 1 || x1 - x0 < least) return;
    else found.push({ node, x0, x1, row: node.depth });
    for (const child of node.children ?? [])
      if (above.has(child) || !above.has(node) || node === zoomed) visit(child);
  };
  if (wide > 0) visit(root);
  return found;
}

/** Relative change of the time, from -1 (removed) to 1 (new); 0 if unchanged. */
export function change(node: Branch): number {
  const before = node.before?.total ?? 0;
  const sum = node.total + before;
  return sum === 0 ? 0 : (node.total - before) / sum;
}

/** The node that an arrow key selects: child, parent, previous or next sibling. */
export function neighbour(node: Placed, key: string): Placed | null {
  const siblings = node.parent?.children ?? [node];
  const at = siblings.indexOf(node);
  switch (key) {
    case "ArrowDown":
      return node.children?.[0] ?? null;
    case "ArrowUp":
      return node.parent;
    case "ArrowRight":
      return siblings[at + 1] ?? null;
    case "ArrowLeft":
      return siblings[at - 1] ?? null;
    default:
      return null;
  }
}
