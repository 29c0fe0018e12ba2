// SPDX-License-Identifier: Apache-2.0 OR MIT
// Histogram of one kind of span in both recordings, with equal bins.

import { signal } from "@preact/signals";
import { css } from "../../logic/colour.ts";
import { duration, qualified, thousands } from "../../logic/units.ts";
import { BOTH, appliedToBoth, halves } from "../../state/compare.ts";
import * as store from "../../state/store.ts";
import { Bins, PAIR, type Shape, ShapeChoice } from "../panels/Bins.tsx";
import { useAnswer } from "../panels/useAnswer.ts";

export const comparedSpan = signal<string | null>(null);
const shape = signal<Shape>("bars");

interface Answer {
  edges: number[];
  sides: { side: number; counts: number[]; count: number; median: number | null; quality: string }[];
}

export function Overlaid() {
  const now = halves.value!;
  const names = [...new Set(BOTH.flatMap((which) => now[which].session.span_kinds.map((one) => one.name)))];
  const counts = new Map(now.good.session.span_kinds.map((one) => [one.name, one.count]));
  const first = [...names].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0))[0];
  const span = names.includes(comparedSpan.value ?? "") ? comparedSpan.value! : first;
  const { filter, problem } = appliedToBoth.value;
  const parameters = {
    good: [now.good.info.side],
    bad: [now.bad.info.side],
    span,
    filter,
    bins: 70,
  };
  const isNone = span === undefined || filter === null;
  const { answer, error, waiting } = useAnswer<Answer>("histograms", isNone ? null : parameters);
  if (span === undefined) return <p class="empty">Neither recording has spans.</p>;
  if (problem) return <p class="empty">{problem}</p>;
  const theme = store.theme.value;
  const series = BOTH.map((which, index) => ({ name: which, counts: answer?.sides[index]?.counts ?? [] }));
  return (
    <div class={`with-bar ${waiting ? "stale" : ""}`}>
      <div class="bar">
        <label>
          span{" "}
          <select value={span} onChange={(event) => (comparedSpan.value = event.currentTarget.value)}>
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <ShapeChoice shape={shape} />
        {BOTH.map((which, index) => {
          const side = answer?.sides[index];
          return (
            <span key={which} class="of-side">
              <i class="swatch" style={{ background: css(theme.palette[PAIR[index]]) }} />
              {which}
              {side && ` ${qualified(thousands(side.count), side.quality)}`}
              {side?.median != null && <small> median {duration(side.median)}</small>}
            </span>
          );
        })}
      </div>
      {error ? (
        <p class="empty">{error}</p>
      ) : answer && answer.edges.length > 1 ? (
        <Bins
          label={`Histograms of ${span} in both recordings`}
          edges={answer.edges}
          series={series}
          shape={shape.value}
          shares
          brush={null}
        />
      ) : (
        <p class="empty">{answer ? "No such span has ended in either." : ""}</p>
      )}
    </div>
  );
}
