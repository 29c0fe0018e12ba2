// SPDX-License-Identifier: Apache-2.0 OR MIT
// Nested spans of both recordings in one picture: longer, shorter, new and removed ones.

import { useMemo, useState } from "preact/hooks";
import { type Rgb, css, mix } from "../../logic/colour.ts";
import { factorText } from "../../logic/compare.ts";
import { type FlameAnswer, type Placed, change, compared, find, layout, toTree } from "../../logic/flame.ts";
import { duration, qualified, thousands } from "../../logic/units.ts";
import { appliedToBoth, halves } from "../../state/compare.ts";
import * as store from "../../state/store.ts";
import { ShapeChoice, shape } from "../panels/Flame.tsx";
import { FlameGraph, Sunburst } from "../panels/FlameShapes.tsx";
import { useAnswer } from "../panels/useAnswer.ts";

/**
 * Blue for less, orange for more: colour-blind users can distinguish them, and the text contains
 * the change, too.
 */
const LESS: Rgb = [66, 146, 214];
const MORE: Rgb = [240, 138, 36];

export function DifferenceGraph() {
  const now = halves.value!;
  const { filter, problem } = appliedToBoth.value;
  const asked = (side: number) => (filter === null ? null : { side, filter, by: "all" });
  const good = useAnswer<FlameAnswer>("flame", asked(now.good.info.side));
  const bad = useAnswer<FlameAnswer>("flame", asked(now.bad.info.side));
  const root = useMemo(
    () =>
      good.answer && bad.answer
        ? layout(compared(toTree(good.answer.nodes), toTree(bad.answer.nodes)))
        : null,
    [good.answer, bad.answer],
  );
  const [zoomedKey, setZoomed] = useState("");
  const [at, setAt] = useState<string | null>(null);
  const error = problem ?? good.error ?? bad.error;
  if (error) return <p class="empty">{error}</p>;
  if (!root) return <p class="empty" />;
  if (root.children === undefined) return <p class="empty">Neither recording has spans.</p>;
  const theme = store.theme.value;
  const zoomed = find(root, zoomedKey) ?? root;
  const pointed = at === null ? null : find(root, at);
  const colour = (node: Placed) => {
    const by = change(node.data);
    // An increase by a tenth is visible, but weaker than a doubling.
    const strength = Math.min(1, Math.sqrt(Math.abs(by) * 1.6));
    const same: Rgb = theme.name === "dark" ? [150, 158, 166] : [205, 211, 217];
    return css(mix(same, by < 0 ? LESS : MORE, Math.abs(by) < 0.02 ? 0 : 0.2 + 0.8 * strength));
  };
  const shapeProps = {
    root,
    zoomed,
    at: pointed,
    colour,
    text: (node: Placed) => node.data.name,
    hover: (node: Placed | null) => setAt(node?.data.key ?? null),
    zoom: (node: Placed) => setZoomed((node === zoomed ? (node.parent ?? node) : node).data.key),
    label: "Difference of both recordings",
  };
  const quality = good.answer?.quality === "exact" && bad.answer?.quality === "exact" ? "exact" : "unknown";
  return (
    <div class={`with-bar ${good.waiting || bad.waiting ? "stale" : ""}`}>
      <div class="bar">
        <ShapeChoice />
        <span class="of-side">
          <i class="swatch" style={{ background: css(MORE) }} /> longer in bad
        </span>
        <span class="of-side">
          <i class="swatch" style={{ background: css(LESS) }} /> shorter
        </span>
        <small>as wide as the longer of both</small>
      </div>
      <div class="flame-with-facts">
        {shape.value === "flame" ? <FlameGraph {...shapeProps} /> : <Sunburst {...shapeProps} />}
        <Facts node={pointed ?? zoomed} quality={quality} />
      </div>
    </div>
  );
}

function Facts({ node, quality }: { node: Placed; quality: string }) {
  const { name, total, own, count, before } = node.data;
  const old = before ?? { total: 0, own: 0, count: 0 };
  const shift = old.total === 0 ? "new" : total === 0 ? "gone" : factorText(total / old.total);
  const rows: [string, string, string][] = [
    ["total", qualified(duration(old.total), quality), qualified(duration(total), quality)],
    ["self", qualified(duration(old.own), quality), qualified(duration(own), quality)],
    ["count", thousands(old.count), thousands(count)],
    ["mean", mean(old.total, old.count), mean(total, count)],
  ];
  return (
    <aside class="facts" aria-live="polite" aria-label="Span under the pointer">
      <h3>
        {name} <small>{shift}</small>
      </h3>
      <table>
        <thead>
          <tr>
            <th />
            <th class="right">good</th>
            <th class="right">bad</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([word, good, bad]) => (
            <tr key={word}>
              <td>{word}</td>
              <td class="right">{good}</td>
              <td class="right">{bad}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </aside>
  );
}

function mean(total: number, count: number): string {
  return count === 0 ? "" : duration(total / count);
}
