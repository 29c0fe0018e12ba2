// SPDX-License-Identifier: Apache-2.0 OR MIT
// CPU utilisation by core, thread or application.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { Colours, css } from "../../logic/colour.ts";
import { planWindow } from "../../logic/viewport.ts";
import { type Frame, f64 } from "../../protocol/frame.ts";
import { tickLabel } from "../../logic/axis.ts";
import * as store from "../../state/store.ts";
import { axisIn, fitted } from "./plot.ts";
import { useAnswer } from "./useAnswer.ts";

type By = "cpu" | "thread" | "application";

const by = signal<By>("cpu");
const PIXELS = 300;
/** More lines than distinct colours would be confusing. */
const MOST_LINES = 12;

interface Row {
  id: number;
  name: string;
  quality: "exact" | "lower_bound";
}

export function Utilisation() {
  const view = store.chosen.value;
  // Pixels are a power of two of nanoseconds wide, so that lines do not flicker while the view moves.
  const { nsPerPx } = planWindow(view, PIXELS, 1);
  const t0 = Math.max(0, Math.floor(view.t0 / nsPerPx) * nsPerPx);
  const px = Math.max(1, Math.ceil((Math.min(view.t1, store.whole.value.t1) - t0) / nsPerPx));
  const parameters = { by: by.value, t0, t1: t0 + px * nsPerPx, px };
  const { answer, error } = useAnswer<Frame>("utilisation", parameters);
  return (
    <div class="with-bar">
      <div class="bar">
        <label>
          of{" "}
          <select value={by.value} onChange={(event) => (by.value = event.currentTarget.value as By)}>
            <option value="cpu">CPUs</option>
            <option value="thread">threads</option>
            <option value="application">processes</option>
          </select>
        </label>
        <span>in the {store.range.value ? "marked range" : "shown time"}; 100 % is one CPU</span>
      </div>
      {error ? <p class="empty">{error}</p> : answer && <Lines frame={answer} t0={t0} step={nsPerPx} />}
    </div>
  );
}

function Lines({ frame, t0, step }: { frame: Frame; t0: number; step: number }) {
  const box = useRef<HTMLDivElement>(null);
  const [legend, setLegend] = useState<{ name: string; colour: string; mean: string }[]>([]);
  const theme = store.theme.value;
  const { rows = [], px = 0, by: kind } = frame.result as { rows?: Row[]; px?: number; by?: By };
  useEffect(() => {
    const element = box.current;
    // Without rows, there is a text instead of a plot.
    if (!element) return;
    const all = f64(frame, "share");
    const shown = rows.slice(0, MOST_LINES);
    const series = shown.map((_, index) =>
      Array.from(all.subarray(index * px, (index + 1) * px), (one) => one * 100),
    );
    const own = new Colours(
      shown.map((_, index) => `${index}.`),
      theme,
    );
    const colour = (row: Row, index: number) =>
      css(kind === "application" ? store.applicationColours.value.rgb(row.id) : own.rgb(index));
    const mean = (values: number[]) => values.reduce((sum, one) => sum + one, 0) / Math.max(1, values.length);
    setLegend(
      shown.map((row, index) => {
        const bound = row.quality === "exact" ? "" : "≥ ";
        return { name: row.name, colour: colour(row, index), mean: `${bound}${mean(series[index]).toFixed(1)} %` };
      }),
    );
    const axis = axisIn(theme);
    return fitted(
      element,
      {
        cursor: { y: false },
        scales: { x: { time: false }, y: { range: (_, __, high) => [0, Math.max(100, high ?? 100)] } },
        axes: [
          {
            ...axis,
            values: (_, values, __, ___, increment) => values.map((value) => tickLabel(value, increment)),
          },
          { ...axis, size: 54, values: (_, values) => values.map((value) => `${value} %`) },
        ],
        series: [
          {},
          ...shown.map((row, index) => ({ stroke: colour(row, index), width: 1.4, points: { show: false } })),
        ],
      },
      [Array.from({ length: px }, (_, index) => t0 + (index + 0.5) * step), ...series],
    ).end;
  }, [frame, theme]);
  if (rows.length === 0) return <p class="empty">It is not known who ran in this time.</p>;
  return (
    <div class="plot-legend">
      <div class="plot" ref={box} role="img" aria-label={`Utilisation of ${rows.length} over time`} />
      <ul class="legend">
        {legend.map((one, index) => (
          <li key={index}>
            <i class="swatch" style={{ background: one.colour }} />
            {one.name || "unknown"}
            <small>{one.mean}</small>
          </li>
        ))}
        {rows.length > MOST_LINES && (
          <li>
            <small>and {rows.length - MOST_LINES} that ran less</small>
          </li>
        )}
      </ul>
    </div>
  );
}
