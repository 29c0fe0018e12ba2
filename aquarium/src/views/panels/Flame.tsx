// SPDX-License-Identifier: Apache-2.0 OR MIT
// Nested spans and their own times, for the marked range or the visible time.

import { computed, signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { css, functionColour } from "../../logic/colour.ts";
import { type FlameAnswer, type Placed, find, layout, toTree } from "../../logic/flame.ts";
import { duration, qualified, thousands } from "../../logic/units.ts";
import { setBrush } from "../../state/brush.ts";
import * as store from "../../state/store.ts";
import { FlameGraph, Sunburst } from "./FlameShapes.tsx";
import { useAnswer } from "./useAnswer.ts";

type By = "all" | "process" | "thread";

const by = signal<By>("all");

/** What is nested: spans, functions on the stacks of samples, or calls of recorded instructions. */
type What = "spans" | "stacks" | "calls";
const WHAT: Record<What, string> = { spans: "spans", stacks: "stacks of samples", calls: "calls" };
/** Null if not chosen; then the recording decides. */
const what = signal<What | null>(null);

/** Kinds that the session contains. */
const kinds = computed<What[]>(() => {
  const rows = (store.session.value?.lanes ?? []).flatMap((lane) => lane.rows);
  return (Object.keys(WHAT) as What[]).filter((kind) => rows.some((row) => row.kind === kind));
});
export const shape = signal<"flame" | "sunburst">("flame");

export function Flame() {
  const [t0, t1] = [Math.floor(store.chosen.value.t0), Math.ceil(store.chosen.value.t1)];
  const of = what.value !== null && kinds.value.includes(what.value) ? what.value : (kinds.value[0] ?? "spans");
  const parameters = { filter: store.filterId.value, t0: Math.max(0, t0), t1, by: by.value, of };
  const { answer, error, waiting } = useAnswer<FlameAnswer>("flame", parameters);
  const root = useMemo(() => (answer ? layout(toTree(answer.nodes)) : null), [answer]);
  return (
    <div class={`with-bar ${waiting ? "stale" : ""}`}>
      <div class="bar">
        {kinds.value.length > 1 && (
          <label>
            what{" "}
            <select value={of} onChange={(event) => (what.value = event.currentTarget.value as What)}>
              {kinds.value.map((kind) => (
                <option key={kind} value={kind}>
                  {WHAT[kind]}
                </option>
              ))}
            </select>
          </label>
        )}
        <label>
          of{" "}
          <select value={by.value} onChange={(event) => (by.value = event.currentTarget.value as By)}>
            <option value="all">all threads together</option>
            <option value="process">each process</option>
            <option value="thread">each thread</option>
          </select>
        </label>
        <ShapeChoice />
        <span>in the {store.range.value ? "marked range" : "shown time"}</span>
        {answer && answer.unfinished > 0 && <span>{thousands(answer.unfinished)} have not ended</span>}
        {answer?.is_cut && <span class="broken">more kinds of nesting than can be shown</span>}
      </div>
      {error ? (
        <p class="empty">{error}</p>
      ) : root && answer && answer.nodes.length > 0 ? (
        <Shape root={root} quality={answer.quality} of={of} />
      ) : (
        <p class="empty">{answer ? `No ${of === "spans" ? "span" : WHAT[of]} in this time.` : ""}</p>
      )}
    </div>
  );
}

export function ShapeChoice() {
  return (
    <label>
      as{" "}
      <select
        value={shape.value}
        onChange={(event) => (shape.value = event.currentTarget.value as "flame" | "sunburst")}
      >
        <option value="flame">flame graph</option>
        <option value="sunburst">sunburst</option>
      </select>
    </label>
  );
}

function Shape({ root, quality, of }: { root: Placed; quality: string; of: What }) {
  const [zoomedKey, setZoomed] = useState(root.data.key);
  const [at, setAt] = useState<string | null>(null);
  const zoomed = find(root, zoomedKey) ?? root;
  const pointed = at === null ? null : find(root, at);
  useEffect(() => setAt(null), [root]);
  const colours = store.nameColours.value;
  const theme = store.theme.value;
  const zoom = (node: Placed) => {
    const next = node === zoomed ? (node.parent ?? node) : node;
    setZoomed(next.data.key);
    // The timeline and the list of spans use the same brush.
    setBrush(
      next.data.kind === null || of !== "spans"
        ? null
        : { kind: next.data.kind, name: next.data.name, least: null, most: null },
    );
  };
  const shapeProps = {
    root,
    zoomed,
    at: pointed,
    colour: (node: Placed) => {
      if (node.data.kind !== null) return colours.css(node.data.kind);
      // Nodes of calls are functions, except for the root and the threads.
      const isCall = of === "calls" && node.depth > (by.value === "all" ? 0 : 1);
      return css(isCall ? functionColour(node.data.name, theme) : theme.idle);
    },
    text: (node: Placed) => node.data.name,
    hover: (node: Placed | null) => setAt(node?.data.key ?? null),
    zoom,
    label: shape.value === "flame" ? "Flame graph" : "Sunburst",
  };
  return (
    <div class="flame-with-facts">
      {shape.value === "flame" ? <FlameGraph {...shapeProps} /> : <Sunburst {...shapeProps} />}
      <Facts node={pointed ?? zoomed} root={root} quality={quality} />
    </div>
  );
}

function Facts({ node, root, quality }: { node: Placed; root: Placed; quality: string }) {
  const { name, count, total, own } = node.data;
  const whole = root.data.total;
  const rows: [string, string][] = [
    ["total", qualified(duration(total), quality)],
    ["of all", whole > 0 ? `${((100 * total) / whole).toFixed(1)} %` : ""],
    ...(node.data.kind === null
      ? []
      : ([
          ["self", qualified(duration(own), quality)],
          ["mean", qualified(duration(count > 0 ? total / count : 0), quality)],
        ] as [string, string][])),
    ["count", qualified(thousands(count), quality === "exact" ? quality : "lower_bound")],
    [
      "inside",
      node
        .ancestors()
        .slice(1, -1)
        .map((one) => one.data.name)
        .join(" ← "),
    ],
  ];
  return (
    <aside class="facts" aria-live="polite" aria-label="Span under the pointer">
      <h3>{name}</h3>
      <dl>
        {rows
          .filter(([, value]) => value !== "")
          .map(([word, value]) => (
            <div key={word}>
              <dt>{word}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </aside>
  );
}
