// SPDX-License-Identifier: Apache-2.0 OR MIT
// Instructions that were executed in a call or a span.

import { useEffect, useState } from "preact/hooks";
import { duration, instant, thousands } from "../../logic/units.ts";
import type { Instruction, Lane } from "../../protocol/types.ts";
import { ask } from "../../state/server.ts";
import * as store from "../../state/store.ts";
import { type Column, VirtualList } from "./VirtualList.tsx";

interface Answer {
  rows: Instruction[];
  /** Null if there are too many to be counted at once. */
  total: number | null;
}

/** The thread and the range of the listed instructions. */
interface Of {
  lane: Lane;
  t0: number;
  t1: number;
  /** For a call: range of instruction numbers, which are more exact than times. */
  first?: number;
  of?: number;
  name: string;
}

/** Number of rows of a list whose end is unknown. */
const UNKNOWN_ROWS = 100_000;

const COLUMNS: Column<Instruction>[] = [
  { name: "Number", width: "96px", align: "right", cell: (row) => thousands(row.number) },
  { name: "Time", width: "150px", align: "right", cell: (row) => (row.ts === null ? "" : instant(row.ts)) },
  { name: "Address", width: "130px", cell: (row) => <code>{row.address}</code> },
  { name: "Instruction", width: "minmax(220px, 1.2fr)", cell: (row) => <code>{row.assembly}</code> },
  {
    name: "Function",
    width: "minmax(140px, 1fr)",
    cell: (row) => (
      <>
        {row.function}
        {row.inlined && <small> · inlined {row.inlined}</small>}
      </>
    ),
  },
  { name: "Source", width: "minmax(140px, 1fr)", cell: (row) => shortLine(row.line) },
];

/** The end of a path identifies the file; the title contains the complete path. */
function shortLine(line: string | null) {
  if (line === null) return null;
  return <span title={line}>{line.split("/").slice(-2).join("/")}</span>;
}

const hasCalls = (lane: Lane) => lane.rows.some((row) => row.kind === "calls");

/**
 * The selected item, if instructions of its thread were recorded; otherwise the marked range of the
 * only such thread.
 */
function chosenOf(): Of | null {
  const lanes = store.session.value?.lanes ?? [];
  const selected = store.selected.value;
  const at = selected && lanes.find((lane) => lane.id === selected.lane);
  const tid = selected?.thing?.tid ?? at?.tid;
  const recorded = lanes.filter(hasCalls);
  const lane =
    recorded.find((lane) => lane.id === selected?.lane) ??
    recorded.find((lane) => tid != null && lane.tid === tid) ??
    (recorded.length === 1 ? recorded[0] : undefined);
  if (!lane) return null;
  if (selected?.thing && selected.end !== null && selected.end >= selected.begin) {
    const { thing, begin, end } = selected;
    const numbers = thing.instructions;
    const by = numbers ? { first: numbers.first, of: numbers.count } : {};
    return { lane, t0: begin, t1: end, ...by, name: thing.name };
  }
  const { t0, t1 } = store.chosen.value;
  return { lane, t0, t1, name: store.range.value ? "the marked time" : "what is seen" };
}

export function Instructions() {
  const of = chosenOf();
  const key = of && JSON.stringify([of.lane.id, of.t0, of.t1, of.first, of.of]);
  const [total, setTotal] = useState<{ key: string; total: number | null } | null>(null);
  const load = (from: number, count: number) => {
    if (!of) return Promise.resolve(null);
    const { lane, t0, t1, first, of: many } = of;
    const by = first === undefined ? {} : { first, of: many };
    return ask<Answer>("instructions", { lane: lane.id, t0, t1, ...by, from, count });
  };
  useEffect(() => {
    if (key === null) return;
    void load(0, 1).then((answer) => answer && setTotal({ key, total: answer.total }));
  }, [key]);
  if (!of || key === null) {
    return <p class="empty">Select a call, or a span of a thread whose instructions were recorded.</p>;
  }
  const known = total?.key === key ? total.total : 0;
  const count = known === null ? "too many instructions to be counted" : `${thousands(known)} instructions`;
  return (
    <div class="with-bar instructions">
      <p class="bar">
        {of.name}: {count} in {duration(of.t1 - of.t0)}, {of.lane.name}
      </p>
      <VirtualList<Instruction>
        label="Instructions"
        rows={known ?? UNKNOWN_ROWS}
        of={key}
        columns={COLUMNS}
        empty={total?.key === key ? "No instruction was executed then." : ""}
        load={(from, rows) => load(from, rows).then((answer) => answer?.rows ?? null)}
        chosen={() => false}
        choose={(row) => row.ts !== null && store.show(around(row.ts))}
      />
    </div>
  );
}

/** A view of the same width, centred on a time. */
function around(time: number) {
  const { t0, t1 } = store.view.value;
  const half = (t1 - t0) / 2;
  return { t0: time - half, t1: time + half };
}
