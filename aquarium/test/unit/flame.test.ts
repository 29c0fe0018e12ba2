// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import {
  type FlameNode,
  boxes,
  change,
  compared,
  find,
  layout,
  neighbour,
  toTree,
} from "../../src/logic/flame.ts";
import { random } from "../support/trace.ts";

const node = (parent: number | null, name: string, own: number, total: number, count = 1): FlameNode => ({
  parent,
  name,
  kind: 0,
  count,
  total,
  own,
});
// a contains b twice, and c; another a is inside of b.
const NODES = [node(null, "a", 10, 100), node(0, "b", 50, 60, 2), node(0, "c", 30, 30), node(1, "a", 10, 10)];

/** A tree of random shape whose totals are the sums of the children. */
function randomNodes(seed: number, count: number): FlameNode[] {
  const next = random(seed);
  const nodes: FlameNode[] = [];
  for (let index = 0; index < count; index++) {
    const parent = index === 0 || next() < 0.1 ? null : Math.floor(next() * index);
    nodes.push(node(parent, `n${index}`, Math.floor(next() * 100), 0));
  }
  for (let index = count - 1; index >= 0; index--) {
    nodes[index].total += nodes[index].own;
    const { parent } = nodes[index];
    if (parent !== null) nodes[parent].total += nodes[index].total;
  }
  return nodes;
}

describe("a tree of spans", () => {
  test("has the nodes of the answer below what holds them", () => {
    const root = toTree(NODES);
    expect(root.total).toBe(100);
    expect(root.children.map((one) => one.name)).toEqual(["a"]);
    expect(root.children[0].children.map((one) => one.name)).toEqual(["b", "c"]);
    expect(root.children[0].children[0].children[0].total).toBe(10);
  });

  test("of a server that names parents that are not there, or later, loses nothing and ends", () => {
    const root = toTree([node(7, "x", 1, 1), node(1, "self", 1, 1), node(0, "y", 1, 1)]);
    expect(root.children.map((one) => one.name)).toEqual(["x", "self"]);
    expect(root.children[0].children.map((one) => one.name)).toEqual(["y"]);
  });

  test("is as wide as its time, and children lie within what holds them", () => {
    for (const seed of [1, 2, 3]) {
      const nodes = randomNodes(seed, 300);
      const root = layout(toTree(nodes));
      for (const one of root.descendants()) {
        expect(one.x1 - one.x0).toBeCloseTo(one.data.total / root.data.total, 9);
        if (!one.parent) continue;
        expect(one.x0).toBeGreaterThanOrEqual(one.parent.x0 - 1e-12);
        expect(one.x1).toBeLessThanOrEqual(one.parent.x1 + 1e-12);
      }
    }
  });

  test("zoomed shows a node at the whole width below what holds it, and nothing beside it", () => {
    const root = layout(toTree(NODES));
    const b = root.find((one) => one.data.name === "b")!;
    const shown = boxes(root, b, 0);
    expect(shown.map((one) => [one.node.data.name, one.row])).toEqual([
      ["all", 0],
      ["a", 1],
      ["b", 2],
      ["a", 3],
    ]);
    expect(shown.slice(0, 3).every((one) => one.x0 === 0 && one.x1 === 1)).toBe(true);
    expect(shown[3].x1 - shown[3].x0).toBeCloseTo(10 / 60);
    expect(boxes(root, root, 0)).toHaveLength(5);
    // Nodes below the minimum width are left out, together with their descendants.
    expect(boxes(root, root, 0.35).map((one) => one.node.data.name)).toEqual(["all", "a", "b"]);
  });

  test("is walked by arrow keys", () => {
    const root = layout(toTree(NODES));
    const a = neighbour(root, "ArrowDown")!;
    const b = neighbour(a, "ArrowDown")!;
    expect(b.data.name).toBe("b");
    expect(neighbour(b, "ArrowRight")!.data.name).toBe("c");
    expect(neighbour(b, "ArrowLeft")).toBeNull();
    expect(neighbour(b, "ArrowUp")).toBe(a);
    expect(find(root, b.data.key)).toBe(b);
  });
});

describe("two trees", () => {
  test("stand as one: what is new, gone, longer and the same", () => {
    const after = [
      node(null, "a", 10, 130),
      node(0, "b", 100, 110, 2),
      node(0, "d", 10, 10),
      node(1, "a", 10, 10),
    ];
    const merged = compared(toTree(NODES), toTree(after));
    const by = new Map<string, ReturnType<typeof change>>();
    const visit = (one: typeof merged): void => {
      by.set(one.key.replaceAll("\u0001", "/"), change(one));
      one.children.forEach(visit);
    };
    visit(merged);
    expect(by.get("/a/d")).toBe(1);
    expect(by.get("/a/c")).toBe(-1);
    expect(by.get("/a/b/a")).toBe(0);
    expect(by.get("/a/b")).toBeCloseTo(50 / 170);
    expect(by.size).toBe(6);
    // Wide enough for both recordings: removed nodes stay visible.
    expect(layout(merged).find((one) => one.data.name === "c")!.value).toBe(30);
  });

  test("that are the same differ nowhere", () => {
    const nodes = randomNodes(5, 100);
    const merged = layout(compared(toTree(nodes), toTree(nodes)));
    expect(merged.descendants().every((one) => change(one.data) === 0)).toBe(true);
    expect(merged.descendants()).toHaveLength(101);
  });
});
