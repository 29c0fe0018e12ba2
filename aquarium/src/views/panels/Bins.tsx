// SPDX-License-Identifier: Apache-2.0 OR MIT
// Histogram of durations as bars or as a falling curve, for one recording or two. A range can be
// brushed by dragging or with the keyboard.

import type { Signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { atLeast, binsOf } from "../../logic/brush.ts";
import { css } from "../../logic/colour.ts";
import { duration, thousands } from "../../logic/units.ts";
import * as store from "../../state/store.ts";
import { axisIn, fitted } from "./plot.ts";

export interface Series {
  name: string;
  counts: number[];
}

export type Shape = "bars" | "curve";

export function ShapeChoice({ shape }: { shape: Signal<Shape> }) {
  return (
    <label>
      as{" "}
      <select value={shape.value} onChange={(event) => (shape.value = event.currentTarget.value as Shape)}>
        <option value="bars">histogram</option>
        <option value="curve">latency versus count</option>
      </select>
    </label>
  );
}

interface Props {
  label: string;
  edges: number[];
  series: Series[];
  shape: Shape;
  /** Shares of the total rather than counts, because compared recordings have different lengths. */
  shares?: boolean;
  brush: { least: number | null; most: number | null } | null;
  brushed?: (range: { least: number; most: number } | null) => void;
}

/** Colours of two compared recordings; they also differ in lightness. */
export const PAIR = [0, 1];

export function Bins(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const newest = useRef(props);
  newest.current = props;
  const plot = useRef<uPlot | null>(null);
  const [focus, setFocus] = useState<{ from: number; to: number } | null>(null);
  const theme = store.theme.value;
  const { edges, series, shape } = props;
  const columns = valuesOf(props);
  const bins = Math.max(0, edges.length - 1);

  useEffect(() => {
    const element = box.current!;
    const low = edges.slice(0, bins);
    // Edges that grow by a factor need a logarithmic axis.
    const grows = low.length > 2 && low[0] > 0 && low[2] - low[1] > (low[1] - low[0]) * 1.01;
    const axis = axisIn(theme);
    const { plot: made, end } = fitted(
      element,
      {
        cursor: { y: false, drag: { x: props.brushed !== undefined, y: false, setScale: false } },
        scales: { x: { time: false, distr: grows ? 3 : 1 } },
        axes: [
          { ...axis, values: (_, values) => values.map((value) => (value === null ? "" : duration(value))) },
          { ...axis, size: 60, values: (_, values) => values.map((value) => tick(value, props.shares)) },
        ],
        series: [{}, ...series.map((_, index) => line(shape, series.length, index))],
        hooks: {
          setCursor: [(self) => caption(self, newest.current, element)],
          setSelect: [
            (self) => {
              const { left, width } = self.select;
              if (width < 2) return;
              const [a, b] = [self.posToVal(left, "x"), self.posToVal(left + width, "x")];
              const [from, to] = binsOf(newest.current.edges, { least: a, most: b });
              if (to > from) newest.current.brushed?.({ least: edges[from], most: edges[to] - 1 });
            },
          ],
        },
      },
      [low, ...columns],
    );
    plot.current = made;
    return () => {
      plot.current = null;
      end();
    };
  }, [JSON.stringify(edges), JSON.stringify(series), shape, theme, props.shares]);

  // The brush is shown wherever it was set.
  const brush = props.brush && (props.brush.least !== null || props.brush.most !== null) ? props.brush : null;
  useEffect(() => {
    const now = plot.current;
    if (!now) return;
    const [from, to] = brush ? binsOf(edges, brush) : [0, 0];
    const [left, right] = to > from ? [now.valToPos(edges[from], "x"), now.valToPos(edges[to], "x")] : [0, 0];
    const height = now.bbox.height / (devicePixelRatio || 1);
    now.setSelect({ left, width: Math.max(0, right - left), top: 0, height }, false);
  }, [brush?.least, brush?.most, JSON.stringify(edges), shape, theme]);

  const keydown = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape" && brush && props.brushed) props.brushed(null);
    else if (by !== undefined && props.brushed) {
      const now = focus ?? { from: 0, to: 0 };
      const to = Math.min(bins - 1, Math.max(0, focus ? now.to + by : 0));
      const next = { from: event.shiftKey ? now.from : to, to };
      setFocus(next);
      const [first, last] = [Math.min(next.from, next.to), Math.max(next.from, next.to)];
      props.brushed({ least: edges[first], most: edges[last + 1] - 1 });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class="plot"
      ref={box}
      role={props.brushed ? "application" : "img"}
      tabIndex={props.brushed ? 0 : undefined}
      onKeyDown={keydown}
      aria-label={`${props.label}: ${bins} bins from ${duration(edges[0])} to ${duration(edges[bins])}${
        props.brushed ? "; arrows choose a bin, with Shift more, Escape none" : ""
      }`}
    />
  );

  function line(kind: Shape, of: number, index: number): uPlot.Series {
    const colour = theme.palette[PAIR[index] ?? index];
    const common = { stroke: css(colour), points: { show: false } };
    if (kind === "curve") return { ...common, width: 1.8, paths: uPlot.paths.stepped!({ align: 1 }) };
    const bars = uPlot.paths.bars!({ size: [0.96, 200, 1], align: 1 });
    return { ...common, paths: bars, fill: css(colour, of > 1 ? 0.5 : 0.8), width: of > 1 ? 1 : 0 };
  }
}

function tick(value: number | null, shares = false): string {
  if (value === null) return "";
  if (shares) return `${(value * 100).toPrecision(2)} %`;
  // Counts have no fractions.
  return Number.isInteger(value) ? thousands(value) : "";
}

function valuesOf({ series, shape, shares }: Props): number[][] {
  return series.map(({ counts }) => {
    const all = counts.reduce((sum, one) => sum + one, 0);
    const values = shape === "curve" ? atLeast(counts) : counts;
    return shares ? values.map((value) => (all === 0 ? 0 : value / all)) : values;
  });
}

function caption(plot: uPlot, props: Props, element: HTMLElement): void {
  const index = plot.cursor.idx;
  if (index === null || index === undefined || index + 1 >= props.edges.length) {
    element.title = "";
    return;
  }
  const values = valuesOf(props);
  const said = props.series.map((one, place) => {
    const value = tick(values[place][index], props.shares);
    return props.series.length > 1 ? `${one.name} ${value}` : value;
  });
  const [low, high] = [duration(props.edges[index]), duration(props.edges[index + 1])];
  element.title =
    props.shape === "curve"
      ? `${low} or longer: ${said.join(", ")}`
      : `${low} to ${high}: ${said.join(", ")}`;
}
