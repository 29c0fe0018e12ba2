// SPDX-License-Identifier: Apache-2.0 OR MIT
// Spans inside spans: the server's sums as a tree, laid out as a flame graph or a sunburst, and two of them compared.

import { type HierarchyRectangularNode, hierarchy, partition } from "d3-hierarchy";

/** A node of the method `flame`. */
export interface FlameNode {
  parent: number | null;
  name: string | null;
  /** Of spans; their number among the session's kinds. */
  kind?: number;
  /** Of what all below belong to. */
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
  /** The same of the recording it is compared with. */
  before: { count: number; total: number; own: number } | null;
  children: Branch[];
}

export type Placed = HierarchyRectangularNode<Branch>;

const ROOT_KEY = "";
/** Between names of a path: no name of a schema has it. */
const BELOW = "\u0001";

function branch(key: string, name: string, kind: number | null): Branch {
  return { key, name, kind, count: 0, total: 0, own: 0, before: null, children: [] };
}

/** Parents come before their children; a node that says otherwise stands at the top. */
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

/** Two trees as one: what is in both stands once, with what it was before. */
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

/** How wide a node is: its own time with that of all below; of two, the longer. */
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
  /** Shares of the width, from 0 to 1, and rows from the zoomed node down. */
  x0: number;
  x1: number;
  row: number;
}

/** What is seen with a node zoomed to the whole width: what holds it, it, and what is inside. */
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

/** By how much something takes longer now, from -1 (gone) to 1 (new); 0 where nothing changed. */
export function change(node: Branch): number {
  const before = node.before?.total ?? 0;
  const sum = node.total + before;
  return sum === 0 ? 0 : (node.total - before) / sum;
}

/** The neighbour that an arrow key means: in, out, before, behind. */
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
