// SPDX-License-Identifier: Apache-2.0 OR MIT
// Scatter plot of any two values: fields of an event, counters, time.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { css } from "../../logic/colour.ts";
import { thousands, duration } from "../../logic/units.ts";
import { reveal } from "../../logic/viewport.ts";
import { type Points, correlation, points } from "../../logic/xy.ts";
import { type Frame, f64 } from "../../protocol/frame.ts";
import * as store from "../../state/store.ts";
import { axisIn, fitted } from "./plot.ts";
import { useAnswer } from "./useAnswer.ts";

const MOST = 4000;
const COUNTER_PX = 2000;
const TIME = "time";

/** `event:ID` or `counters`. */
const source = signal("");
const chosenX = signal(TIME);
const chosenY = signal("");

interface Choices {
  names: { value: string; label: string }[];
  classId: number | null;
}

export function Xy() {
  const session = store.session.value;
  const classes = session?.classes ?? [];
  const counters = session?.counters ?? [];
  const sources = [
    ...(counters.length > 0 ? [{ value: "counters", label: "counters" }] : []),
    ...[...classes]
      .sort((a, b) => b.count - a.count)
      .map((one) => ({
        value: `event:${one.id}`,
        label: `${[one.subsystem, one.name].filter(Boolean).join(":")} (${thousands(one.count)})`,
      })),
  ];
  const of = sources.some((one) => one.value === source.value) ? source.value : (sources[0]?.value ?? "");
  const classId = of.startsWith("event:") ? Number(of.slice(6)) : null;
  const fields = useAnswer<{ fields: string[] }>("fields", classId === null ? null : { class: classId });
  const names =
    classId === null
      ? counters.map((one) => ({ value: `counter:${one.id}`, label: one.name }))
      : (fields.answer?.fields ?? []).map((name) => ({ value: name, label: name }));
  if (of === "") return <p class="empty">There is nothing to draw: no event, no counter.</p>;
  const known = (name: string) => name === TIME || names.some((one) => one.value === name);
  const y = known(chosenY.value) && chosenY.value !== TIME ? chosenY.value : (names[0]?.value ?? "");
  const x = known(chosenX.value) ? chosenX.value : TIME;
  const label = (name: string) => names.find((one) => one.value === name)?.label ?? name;
  return (
    <div class="with-bar">
      <div class="bar">
        <label>
          of{" "}
          <select value={of} onChange={(event) => (source.value = event.currentTarget.value)}>
            {sources.map((one) => (
              <option key={one.value} value={one.value}>
                {one.label}
              </option>
            ))}
          </select>
        </label>
        <Axis word="y" now={y} held={chosenY} choices={{ names, classId }} />
        <Axis
          word="x"
          now={x}
          held={chosenX}
          choices={{ names: [{ value: TIME, label: TIME }, ...names], classId }}
        />
        <span>in the {store.range.value ? "marked range" : "shown time"}; a click goes there</span>
      </div>
      {y === "" ? (
        <p class="empty">This event has no field that is a number.</p>
      ) : classId === null ? (
        <OfCounters x={x} y={y} labels={[label(x), label(y)]} />
      ) : (
        <OfEvents classId={classId} x={x} y={y} labels={[label(x), label(y)]} />
      )}
    </div>
  );
}

function Axis({
  word,
  now,
  held,
  choices,
}: {
  word: string;
  now: string;
  held: typeof chosenX;
  choices: Choices;
}) {
  return (
    <label>
      {word}{" "}
      <select value={now} onChange={(event) => (held.value = event.currentTarget.value)}>
        {choices.names.map((one) => (
          <option key={one.value} value={one.value}>
            {one.label}
          </option>
        ))}
      </select>
    </label>
  );
}

interface Of {
  x: string;
  y: string;
  labels: [string, string];
}

function OfEvents({ classId, x, y, labels }: Of & { classId: number }) {
  const [t0, t1] = [Math.floor(store.chosen.value.t0), Math.ceil(store.chosen.value.t1)];
  const names = [x, y].filter((name) => name !== TIME);
  const common = { filter: store.filterId.value, t0, t1, most: MOST };
  const { answer, error } = useAnswer<Frame>("values", { class: classId, fields: names, ...common });
  const shown = useMemo(() => {
    if (!answer) return null;
    const time = f64(answer, "time");
    const column = (name: string) => (name === TIME ? time : f64(answer, `field${names.indexOf(name)}`));
    return points(time, column(x), column(y));
  }, [answer]);
  const { count = 0, units = [] } = (answer?.result ?? {}) as { count?: number; units?: (string | null)[] };
  const unitOf = (name: string) => (name === TIME ? "ns" : (units[names.indexOf(name)] ?? null));
  if (error) return <p class="empty">{error}</p>;
  if (!shown) return <p class="empty" />;
  return (
    <Plot points={shown} of={count} labels={labels} units={[unitOf(x), unitOf(y)]} isTime={x === TIME} />
  );
}

function OfCounters({ x, y, labels }: Of) {
  const view = store.chosen.value;
  const ids = [x, y].filter((name) => name !== TIME).map((name) => Number(name.slice(8)));
  const parameters = { counters: ids, t0: Math.floor(view.t0), t1: Math.ceil(view.t1), px: COUNTER_PX };
  const { answer, error } = useAnswer<Frame>("levels", parameters);
  const shown = useMemo(() => {
    if (!answer) return null;
    const last = f64(answer, "last");
    const step = (parameters.t1 - parameters.t0) / COUNTER_PX;
    const time = Array.from({ length: COUNTER_PX }, (_, index) => parameters.t0 + (index + 0.5) * step);
    const column = (name: string): ArrayLike<number> => {
      if (name === TIME) return time;
      const place = ids.indexOf(Number(name.slice(8)));
      return last.subarray(place * COUNTER_PX, (place + 1) * COUNTER_PX);
    };
    return points(time, column(x), column(y));
  }, [answer]);
  if (error) return <p class="empty">{error}</p>;
  if (!shown) return <p class="empty" />;
  const units: [string | null, string | null] = [x === TIME ? "ns" : null, null];
  return <Plot points={shown} of={shown.x.length} labels={labels} units={units} isTime={x === TIME} />;
}

interface PlotProps {
  points: Points;
  of: number;
  labels: [string, string];
  units: [string | null, string | null];
  isTime: boolean;
}

function Plot({ points: shown, of, labels, units, isTime }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const theme = store.theme.value;
  useEffect(() => {
    const element = box.current!;
    if (shown.x.length === 0) return;
    const axis = {
      ...axisIn(theme),
      labelFont: "11px system-ui",
      labelSize: 16,
    };
    const text = (unit: string | null) => (_: uPlot, values: (number | null)[]) =>
      values.map((value) => (value === null ? "" : unit === "ns" ? duration(value) : brief(value)));
    const { plot, end } = fitted(
      element,
      {
        cursor: { drag: { x: false, y: false } },
        scales: { x: { time: false } },
        axes: [
          { ...axis, label: labels[0], values: text(units[0]) },
          { ...axis, label: labels[1], size: 66, values: text(units[1]) },
        ],
        series: [
          {},
          {
            stroke: css(theme.palette[0], isTime ? 0.5 : 0),
            width: isTime ? 1 : 0,
            paths: isTime ? undefined : () => null,
            points: {
              show: true,
              size: 4.5,
              fill: css(theme.palette[1], 0.75),
              stroke: css(theme.palette[1], 0),
            },
          },
        ],
      },
      [shown.x, shown.y],
    );
    const go = () => {
      const index = plot.cursor.idx;
      const t = index === null || index === undefined ? undefined : shown.t[index];
      if (t !== undefined) store.view.value = reveal(store.view.value, { t0: t, t1: t }, store.whole.value);
    };
    plot.over.addEventListener("click", go);
    return end;
  }, [shown, theme, labels.join(), units.join()]);
  const together = isTime ? null : correlation(shown);
  const some = shown.x.length < of ? ` of ${thousands(of)}` : "";
  return (
    <>
      <p class="plot-note" role="status">
        {thousands(shown.x.length)}
        {some} points{together === null ? "" : `; correlation ${together.toFixed(2)}`}
      </p>
      <div class="plot" ref={box} role="img" aria-label={`${labels[1]} against ${labels[0]}`} />
      {shown.x.length === 0 && <p class="empty">No such value in this time.</p>}
    </>
  );
}

function brief(value: number): string {
  return Number.isInteger(value) ? thousands(value) : value.toPrecision(4);
}
