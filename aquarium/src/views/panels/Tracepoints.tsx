// SPDX-License-Identifier: Apache-2.0 OR MIT
// Cycles from a START to its STOP, by name and key; without the cost of the tracepoints once two
// tracepoints were chosen to measure it.

import { signal } from "@preact/signals";
import { duration, qualified, thousands } from "../../logic/units.ts";
import * as store from "../../state/store.ts";
import { useAnswer } from "./useAnswer.ts";

interface Moments {
  count: number;
  min: number;
  max: number;
  mean: number;
  stddev: number;
  q1: number;
  median: number;
  q3: number;
}

interface Row {
  label: string;
  name: string;
  key: string;
  quality: string;
  ns_per_cycle: number | null;
  cycles: Moments | null;
  less: Moments | null;
}

interface Answer {
  rows: Row[];
  count: number;
  joined: string[];
  odd: { stops: number; restarts: number; open: number; backwards: number };
  cost: { effective: Moments; total: Moments; unpaired: number } | null;
}

const outer = signal("");
const inner = signal("");
const unit = signal<"cycles" | "ns">("cycles");

const PARTS: [keyof Moments, string][] = [
  ["min", "least"],
  ["q1", "p25"],
  ["median", "median"],
  ["q3", "p75"],
  ["max", "most"],
  ["mean", "mean"],
  ["stddev", "std dev"],
];

export function Tracepoints() {
  const [t0, t1] = [Math.floor(store.chosen.value.t0), Math.ceil(store.chosen.value.t1)];
  const common = { filter: store.filterId.value, t0, t1 };
  const both = outer.value !== "" && inner.value !== "";
  const plain = useAnswer<Answer>("tracepoints", common);
  const priced = useAnswer<Answer>(
    "tracepoints",
    both ? { ...common, outer: outer.value, inner: inner.value } : null,
  );
  // If the cost cannot be determined, the other values are still shown.
  const answer = both && priced.answer ? priced.answer : plain.answer;
  if (!answer) return <p class="empty">{plain.error ?? "Counting…"}</p>;
  if (!answer.rows.some(hasEntries))
    return <p class="empty">No tracepoint in this time: no event of the schema begins or ends a span.</p>;
  const labels = answer.rows.map((row) => row.label);
  return (
    <div class="with-bar">
      <div class="bar">
        <label>
          in{" "}
          <select
            value={unit.value}
            onChange={(event) => (unit.value = event.currentTarget.value as "cycles" | "ns")}
          >
            <option value="cycles">cycles</option>
            <option value="ns">time</option>
          </select>
        </label>
        <span>cost of looking by</span>
        <Choice label="outer tracepoint" held={outer} labels={labels} />
        <Choice label="inner tracepoint" held={inner} labels={labels} />
        {both && priced.error && <span class="broken">{priced.error}</span>}
        {both && !priced.error && answer.cost && <Cost cost={answer.cost} />}
        {!both && (
          <small>two tracepoints, one alone right inside the other, tell what they cost themselves</small>
        )}
      </div>
      <div class="statistics">
        <table aria-label="Tracepoints">
          <thead>
            <tr>
              <th>tracepoint</th>
              <th>key</th>
              <th class="right">count</th>
              {PARTS.map(([, head]) => (
                <th class="right" key={head}>
                  {head}
                </th>
              ))}
              {answer.cost && <th class="right">median less cost</th>}
              {answer.cost && <th class="right">mean less cost</th>}
            </tr>
          </thead>
          <tbody>
            {answer.rows.filter(hasEntries).map((row) => (
              <tr key={row.label}>
                <td>{row.name}</td>
                <td>{row.key}</td>
                <td class="right">{qualified(thousands(row.cycles?.count ?? 0), row.quality)}</td>
                {PARTS.map(([part]) => (
                  <td class="right" key={part}>
                    {row.cycles ? shown(row.cycles[part], row) : ""}
                  </td>
                ))}
                {answer.cost && <td class="right">{row.less ? shown(row.less.median, row) : ""}</td>}
                {answer.cost && <td class="right">{row.less ? shown(row.less.mean, row) : ""}</td>}
              </tr>
            ))}
          </tbody>
        </table>
        <Oddities answer={answer} />
      </div>
    </div>
  );
}

/**
 * A tracepoint with starts only, or stops only, has no statistics; the list of irregularities below
 * mentions it.
 */
function hasEntries(row: Row): boolean {
  return row.cycles !== null;
}

function shown(cycles: number, row: Row): string {
  if (unit.value === "ns" && row.ns_per_cycle !== null) {
    const ns = cycles * row.ns_per_cycle;
    return ns < 0 ? `−${duration(-ns)}` : duration(ns);
  }
  return thousands(cycles, Number.isInteger(cycles) ? 0 : 1);
}

function Choice({ label, held, labels }: { label: string; held: typeof outer; labels: string[] }) {
  return (
    <select
      aria-label={label}
      value={held.value}
      onChange={(event) => (held.value = event.currentTarget.value)}
    >
      <option value="">{label}</option>
      {labels.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
}

function Cost({ cost }: { cost: NonNullable<Answer["cost"]> }) {
  const { effective, total, unpaired } = cost;
  return (
    <span role="status">
      each measurement has {thousands(effective.median)} cycles too many; the program loses{" "}
      {thousands(total.median)}
      {unpaired > 0 && `; ${thousands(unpaired)} pairs had more inside`}
    </span>
  );
}

function Oddities({ answer }: { answer: Answer }) {
  const { odd } = answer;
  const told = [
    [odd.stops, "STOPs without a START"],
    [odd.restarts, "STARTs before the last had stopped"],
    [odd.open, "STARTs without a STOP"],
    [odd.backwards, "whose counter ran backwards"],
  ].filter(([count]) => (count as number) > 0);
  return (
    <>
      {told.length > 0 && (
        <p class="summary">
          {told.map(([count, what]) => `${thousands(count as number)} ${what}`).join(", ")}
        </p>
      )}
      {answer.joined.length > 0 && (
        <p class="summary">too many keys for rows of their own: {answer.joined.join(", ")}</p>
      )}
      {answer.count > answer.rows.length && (
        <p class="summary">and {thousands(answer.count - answer.rows.length)} more</p>
      )}
    </>
  );
}
