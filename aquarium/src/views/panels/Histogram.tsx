// SPDX-License-Identifier: Apache-2.0 OR MIT
// How long spans of one kind took.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { css } from "../../logic/colour.ts";
import { duration, qualified, thousands } from "../../logic/units.ts";
import * as store from "../../state/store.ts";
import { useAnswer } from "./useAnswer.ts";

const BINS = 80;
const span = signal<string | null>(null);

export function histogramOf(name: string): void {
  span.value = name;
  store.openTab("histogram");
}

interface Answer {
  edges: number[];
  counts: number[];
  quality: string;
}

export function Histogram() {
  const kinds = store.session.value?.span_kinds ?? [];
  const kind =
    kinds.find((one) => one.name === span.value) ?? [...kinds].sort((a, b) => b.count - a.count)[0];
  const [t0, t1] = [Math.floor(store.chosen.value.t0), Math.ceil(store.chosen.value.t1)];
  const parameters = kind ? { span: kind.id, filter: store.filterId.value, t0, t1, bins: BINS } : null;
  const { answer, error } = useAnswer<Answer>("histogram", parameters);
  if (!kind) return <p class="empty">This recording has no spans: its schema declares no begin and end.</p>;
  const count = answer?.counts.reduce((sum, one) => sum + one, 0) ?? 0;
  return (
    <div class="with-bar">
      <div class="bar">
        <label>
          span{" "}
          <select value={kind.name} onChange={(event) => (span.value = event.currentTarget.value)}>
            {kinds.map((one) => (
              <option key={one.id} value={one.name}>
                {one.name} ({thousands(one.count)})
              </option>
            ))}
          </select>
        </label>
        <span>
          {qualified(thousands(count), answer?.quality)} in the{" "}
          {store.range.value ? "marked range" : "shown time"}
        </span>
      </div>
      {error ? (
        <p class="empty">{error}</p>
      ) : answer && count > 0 ? (
        <Bars answer={answer} />
      ) : (
        <p class="empty">{answer ? "No such span in this time." : ""}</p>
      )}
    </div>
  );
}

function Bars({ answer }: { answer: Answer }) {
  const box = useRef<HTMLDivElement>(null);
  const theme = store.theme.value;
  useEffect(() => {
    const element = box.current!;
    const size = () => ({
      width: Math.max(element.clientWidth, 100),
      height: Math.max(element.clientHeight - 4, 60),
    });
    const low = answer.edges.slice(0, answer.counts.length);
    const bars = uPlot.paths.bars!({ size: [0.96, 200, 1], align: 1 });
    const axis = {
      stroke: theme.faint,
      grid: { stroke: theme.grid, width: 1 },
      ticks: { stroke: theme.grid, width: 1 },
      font: "11px system-ui",
    };
    // Edges that grow by a factor belong on a logarithmic axis.
    const grows = low.length > 2 && low[0] > 0 && low[2] - low[1] > (low[1] - low[0]) * 1.01;
    const plot = new uPlot(
      {
        ...size(),
        legend: { show: false },
        cursor: { y: false },
        scales: { x: { time: false, distr: grows ? 3 : 1 } },
        axes: [
          { ...axis, values: (_, values) => values.map((value) => (value === null ? "" : duration(value))) },
          { ...axis, size: 60, values: (_, values) => values.map((value) => thousands(value)) },
        ],
        series: [
          {},
          {
            paths: bars,
            fill: css(theme.palette[0], 0.8),
            stroke: css(theme.palette[0]),
            width: 0,
            points: { show: false },
          },
        ],
        hooks: { setCursor: [(self) => caption(self, answer, element)] },
      },
      [low, answer.counts],
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize(size()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [answer, theme]);
  return (
    <div
      class="plot"
      ref={box}
      role="img"
      aria-label={`Histogram: ${answer.counts.length} bins from ${duration(answer.edges[0])} to ${duration(answer.edges[answer.edges.length - 1])}`}
    />
  );
}

function caption(plot: uPlot, answer: Answer, element: HTMLElement): void {
  const index = plot.cursor.idx;
  element.title =
    index === null || index === undefined
      ? ""
      : `${duration(answer.edges[index])} to ${duration(answer.edges[index + 1])}: ${thousands(answer.counts[index])}`;
}
