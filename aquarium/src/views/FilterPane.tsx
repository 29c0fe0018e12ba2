// SPDX-License-Identifier: Apache-2.0 OR MIT
// The filter of the session, as a tree of three-state check boxes.

import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { type Node, EVERYTHING, isEverything, state } from "../logic/filter.ts";
import { brief, qualified, thousands } from "../logic/units.ts";
import { onlyNode, setFilter, toggleNode } from "../state/actions.ts";
import * as store from "../state/store.ts";

const open = signal<ReadonlySet<string>>(
  new Set(["cores", "subsystems", "messages", "applications", "scripts", "activities"]),
);
const search = signal("");
const atKey = signal<string | null>(null);

interface Line {
  node: Node;
  level: number;
}

function linesOf(nodes: readonly Node[], letters: string): Line[] {
  const lines: Line[] = [];
  const fits = (node: Node): boolean =>
    node.label.toLowerCase().includes(letters) || node.children.some(fits);
  const visit = (node: Node, level: number) => {
    if (letters !== "" && !fits(node)) return;
    lines.push({ node, level });
    if (letters !== "" || open.value.has(node.key))
      for (const child of node.children) visit(child, level + 1);
  };
  for (const node of nodes) visit(node, 0);
  return lines;
}

export function FilterPane() {
  const lines = linesOf(store.filterTree.value, search.value.trim().toLowerCase());
  const tree = useRef<HTMLDivElement>(null);
  const current = lines.some((line) => line.node.key === atKey.value) ? atKey.value : lines[0]?.node.key;
  const go = (index: number) => {
    const line = lines[Math.min(Math.max(index, 0), lines.length - 1)];
    if (!line) return;
    atKey.value = line.node.key;
    queueMicrotask(() =>
      tree.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(line.node.key)}"]`)?.focus(),
    );
  };
  const keydown = (event: KeyboardEvent) => {
    const index = lines.findIndex((line) => line.node.key === current);
    const line = lines[index];
    if (!line) return;
    const steps: Record<string, () => void> = {
      ArrowDown: () => go(index + 1),
      ArrowUp: () => go(index - 1),
      Home: () => go(0),
      End: () => go(lines.length - 1),
      ArrowRight: () => (open.value.has(line.node.key) ? go(index + 1) : toggleOpen(line.node)),
      ArrowLeft: () =>
        open.value.has(line.node.key) && line.node.children.length > 0
          ? toggleOpen(line.node)
          : go(parentOf(lines, index)),
      " ": () => toggleNode(line.node),
      Enter: () => toggleNode(line.node),
    };
    const step = steps[event.key];
    if (!step) return;
    step();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <aside class="filter" aria-label="Filter">
      <div class="filter-head">
        <input
          type="search"
          placeholder="Filter"
          aria-label="Search the filter's entries"
          value={search.value}
          onInput={(event) => (search.value = event.currentTarget.value)}
        />
        <button
          class="text"
          disabled={isEverything(store.filter.value)}
          onClick={() => setFilter(EVERYTHING)}
          title="Show everything   R"
        >
          all
        </button>
      </div>
      <div class="tree" role="tree" aria-label="What is shown" ref={tree} onKeyDown={keydown}>
        {lines.map((line) => (
          <TreeLine key={line.node.key} line={line} current={line.node.key === current} />
        ))}
      </div>
    </aside>
  );
}

function parentOf(lines: Line[], index: number): number {
  for (let at = index - 1; at >= 0; at--) if (lines[at].level < lines[index].level) return at;
  return index;
}

function toggleOpen(node: Node): void {
  if (node.children.length === 0) return;
  const next = new Set(open.value);
  if (!next.delete(node.key)) next.add(node.key);
  open.value = next;
}

function TreeLine({ line, current }: { line: Line; current: boolean }) {
  const { node, level } = line;
  const now = state(store.filter.value, node);
  const folds = node.children.length > 0;
  const isOpen = open.value.has(node.key);
  return (
    <div
      class={`tree-line level-${level}`}
      role="treeitem"
      aria-level={level + 1}
      aria-checked={now === "mixed" ? "mixed" : now === "on"}
      aria-expanded={folds ? isOpen : undefined}
      tabIndex={current ? 0 : -1}
      data-key={node.key}
      data-state={now}
      style={{ paddingLeft: `${4 + level * 14}px` }}
      title={node.title}
      onClick={() => {
        atKey.value = node.key;
        toggleNode(node);
      }}
    >
      <span
        class="fold"
        aria-hidden="true"
        onClick={(event) => {
          event.stopPropagation();
          toggleOpen(node);
        }}
      >
        {folds ? (isOpen ? "▾" : "▸") : ""}
      </span>
      <span class={`box ${now}`} aria-hidden="true" />
      {node.swatch !== undefined && (
        <i class="swatch" style={{ background: store.applicationColours.value.css(node.swatch) }} />
      )}
      <span class="tree-label">{node.label}</span>
      <button
        class="only"
        tabIndex={-1}
        title={`Only ${node.label}`}
        onClick={(event) => {
          event.stopPropagation();
          onlyNode(node);
        }}
      >
        only
      </button>
      {node.count !== null && (
        <span class="tree-count" title={`${thousands(node.count)} events`}>
          {qualified(brief(node.count), node.quality)}
        </span>
      )}
    </div>
  );
}
