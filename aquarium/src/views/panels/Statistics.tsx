// SPDX-License-Identifier: Apache-2.0 OR MIT
// Counts and durations in the marked range, or in the visible time.

import { duration, qualified, thousands } from "../../logic/units.ts";
import type { SpanStats, Stats } from "../../protocol/types.ts";
import * as store from "../../state/store.ts";
import { histogramOf } from "./Histogram.tsx";
import { useAnswer } from "./useAnswer.ts";

const TIMES = ["total", "min", "mean", "p50", "p90", "p99", "p999", "max"] as const;
const HEADS: Record<(typeof TIMES)[number], string> = {
  total: "total",
  min: "shortest",
  mean: "mean",
  p50: "median",
  p90: "p90",
  p99: "p99",
  p999: "p99.9",
  max: "longest",
};

export function Statistics() {
  const [t0, t1] = [Math.floor(store.chosen.value.t0), Math.ceil(store.chosen.value.t1)];
  const { answer, error, waiting } = useAnswer<Stats>("stats", { filter: store.filterId.value, t0, t1 });
  if (error) return <p class="empty">{error}</p>;
  if (!answer) return <p class="empty">Counting…</p>;
  const seconds = (t1 - t0) / 1e9;
  const classes = [...answer.classes].filter((one) => one.count > 0).sort((a, b) => b.count - a.count);
  return (
    <div class={`statistics ${waiting ? "stale" : ""}`}>
      <p class="summary">
        <b>{qualified(thousands(answer.events.count), answer.events.quality)}</b> events in{" "}
        {duration(t1 - t0)} of the {store.range.value ? "marked range" : "shown time"}:{" "}
        {thousands(answer.events.count / seconds)} a second
      </p>
      {answer.spans.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>span</th>
              <th class="right">count</th>
              {TIMES.map((time) => (
                <th class="right" key={time}>
                  {HEADS[time]}
                </th>
              ))}
              <th>budget</th>
            </tr>
          </thead>
          <tbody>
            {answer.spans.map((span) => (
              <tr
                key={span.name}
                tabIndex={0}
                title={`Histogram of ${span.name}`}
                onClick={() => histogramOf(span.name)}
                onKeyDown={(event) => event.key === "Enter" && histogramOf(span.name)}
              >
                <td>{span.name}</td>
                <td class="right">{qualified(thousands(span.count), span.quality)}</td>
                {TIMES.map((time) => (
                  <td class="right" key={time}>
                    {span.count > 0 ? duration(span[time]) : ""}
                  </td>
                ))}
                <td>
                  <Budgets span={span} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <table>
        <thead>
          <tr>
            <th>subsystem</th>
            <th>event</th>
            <th class="right">count</th>
            <th class="right">a second</th>
            <th class="share">share</th>
          </tr>
        </thead>
        <tbody>
          {classes.map((one) => {
            const id = one.class ?? one.id ?? -1;
            const info = store.classById.value.get(id);
            return (
              <tr key={id}>
                <td>{info?.subsystem}</td>
                <td>
                  <i class="dot" style={{ background: store.classColours.value.css(id) }} />
                  {info?.name}
                </td>
                <td class="right">{qualified(thousands(one.count), one.quality)}</td>
                <td class="right">{thousands(one.count / seconds)}</td>
                <td class="share">
                  <i
                    style={{
                      width: `${(100 * one.count) / Math.max(1, classes[0].count)}%`,
                      background: store.classColours.value.css(id),
                    }}
                  />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Budgets({ span }: { span: SpanStats }) {
  return (span.budgets ?? []).map(({ text, kept, quality }) => (
    <div key={text}>
      {text}{" "}
      {kept !== null && (
        <span class={kept ? "kept" : "broken"}>{qualified(kept ? "kept" : "broken", quality)}</span>
      )}
    </div>
  ));
}
