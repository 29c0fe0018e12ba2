// SPDX-License-Identifier: Apache-2.0 OR MIT
// Definite differences between two recordings, sorted by the time that they explain.

import { type Difference, factorText, shiftText } from "../../logic/compare.ts";
import { duration, qualified, thousands } from "../../logic/units.ts";
import { appliedToBoth, halves } from "../../state/compare.ts";
import * as store from "../../state/store.ts";
import { useAnswer } from "../panels/useAnswer.ts";
import { comparedSpan } from "./Overlaid.tsx";

interface Answer {
  differences: Difference[];
  perhaps: Difference[];
  count: number;
  compared: number;
  threshold: number;
  events: [number, number];
  seconds: [number, number];
  is_lossy: [boolean, boolean];
  pace: { factor: number; least: number; most: number; is_program: boolean } | null;
}

export function Changes() {
  const now = halves.value!;
  const { filter, problem } = appliedToBoth.value;
  const sides = { good: [now.good.info.side], bad: [now.bad.info.side] };
  const { answer, error, waiting } = useAnswer<Answer>("compare", filter === null ? null : { ...sides, filter });
  if (problem) return <p class="empty">{problem}</p>;
  if (error) return <p class="empty">{error}</p>;
  if (!answer) return <p class="empty">Comparing: a look at each event…</p>;
  const percent = answer.threshold * 100;
  return (
    <div class={`statistics ${waiting ? "stale" : ""}`}>
      <p class="summary">
        <b>{thousands(answer.count)}</b> of {thousands(answer.compared)} numbers differ by more than {percent}{" "}
        %; {thousands(Math.round(answer.events[0]))} and {thousands(Math.round(answer.events[1]))} events in{" "}
        {answer.seconds[0].toFixed(3)} s and {answer.seconds[1].toFixed(3)} s
        {answer.is_lossy.some(Boolean) && "; events are missing: only what they could not undo is told"}
      </p>
      <Pace pace={answer.pace} threshold={answer.threshold} />
      {answer.differences.length > 0 ? (
        <Table rows={answer.differences} label="What is different" />
      ) : (
        <p class="summary">Nothing is surely different.</p>
      )}
      {answer.perhaps.length > 0 && (
        <>
          <h3>perhaps: more recordings of both would tell</h3>
          <Table rows={answer.perhaps} label="What is perhaps different" />
        </>
      )}
    </div>
  );
}

function Pace({ pace, threshold }: { pace: Answer["pace"]; threshold: number }) {
  if (!pace || Math.abs(Math.log(pace.factor)) < Math.log1p(threshold)) return null;
  return (
    <p class="summary">
      Everything together takes {factorText(pace.factor)} ({factorText(pace.least)} … {factorText(pace.most)}
      ):{" "}
      {pace.is_program
        ? "more than machines differ by between recordings, so it is taken for the program."
        : "taken for the machine, and shifts are told beside it."}
    </p>
  );
}

function Table({ rows, label }: { rows: readonly Difference[]; label: string }) {
  const most = Math.max(1, ...rows.map((row) => Math.abs(row.explained)));
  return (
    <table aria-label={label}>
      <thead>
        <tr>
          <th>what</th>
          <th>name</th>
          <th />
          <th class="right">good</th>
          <th class="right">bad</th>
          <th class="right">shift</th>
          <th class="right">95 % sure</th>
          <th class="right">time of a run</th>
          <th class="share" />
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Row key={`${row.kind} ${row.name} ${row.what}`} row={row} most={most} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ row, most }: { row: Difference; most: number }) {
  const value = (number: number) =>
    qualified(row.is_time ? duration(number) : thousands(number), row.quality);
  const isSpan = row.kind === "span" || row.kind === "whole span";
  const open = () => {
    if (!isSpan) return;
    comparedSpan.value = row.name;
    store.openTab("overlaid");
  };
  const shift = shiftText(row);
  return (
    <tr
      tabIndex={isSpan ? 0 : undefined}
      title={isSpan ? `Histograms of ${row.name}` : undefined}
      onClick={open}
      onKeyDown={(event) => event.key === "Enter" && open()}
    >
      <td>{row.kind}</td>
      <td>{row.name}</td>
      <td>{row.what}</td>
      <td class="right">{value(row.before)}</td>
      <td class="right">{value(row.after)}</td>
      <td class={`right ${row.is_worse ? "worse" : "better"}`}>
        {row.is_worse ? "▲ " : "▼ "}
        {shift}
      </td>
      <td class="right">
        {shift === "new" || shift === "gone"
          ? ""
          : `${factorText(row.ratio_least)} … ${factorText(row.ratio_most)}`}
      </td>
      <td class="right">
        {row.explained === 0 ? "" : `${row.explained < 0 ? "−" : "+"}${duration(Math.abs(row.explained))}`}
      </td>
      <td class="share">
        <i
          class={row.is_worse ? "bar-worse" : "bar-better"}
          style={{ width: `${(100 * Math.abs(row.explained)) / most}%` }}
        />
      </td>
    </tr>
  );
}
