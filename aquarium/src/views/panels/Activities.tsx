// SPDX-License-Identifier: Apache-2.0 OR MIT
// List of spans, by begin or by duration: most users look for the slowest.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { parameters as brushParameters } from "../../logic/brush.ts";
import { duration, instant, qualified, thousands } from "../../logic/units.ts";
import type { Activity, Thing } from "../../protocol/types.ts";
import { brush, setBrush } from "../../state/brush.ts";
import { select } from "../../state/actions.ts";
import { growth } from "../../state/opening.ts";
import { ask } from "../../state/server.ts";
import * as store from "../../state/store.ts";
import { BrushChip } from "./Histogram.tsx";
import { type Column, VirtualList } from "./VirtualList.tsx";

const order = signal<"begin" | "duration">("duration");
const descending = signal(true);
/** `kind:3` or `script:1`; empty for all kinds of the schema. */
const chosenKind = signal("");
const total = signal<number>(0);

function kindParameter(): Record<string, number> {
  // A brush overrides the chosen kind.
  if (brush.value) return brushParameters(brush.value);
  const [what, id] = chosenKind.value.split(":");
  const known = what !== "script" || store.scripts.value.some((one) => one.id === Number(id));
  return chosenKind.value === "" || !known ? {} : { [what]: Number(id) };
}

interface Answer {
  total: number;
  rows: Activity[];
}

function sorted(by: "begin" | "duration"): Column<Activity>["sort"] {
  return {
    on: order.value === by,
    descending: descending.value,
    by: () => {
      if (order.value === by) descending.value = !descending.value;
      else {
        order.value = by;
        descending.value = by === "duration";
      }
    },
  };
}

export function Activities() {
  const filter = store.filterId.value;
  const range = store.range.value;
  const parameters = {
    ...kindParameter(),
    filter,
    order: order.value,
    descending: descending.value,
    ...(range ? { t0: Math.floor(range.t0), t1: Math.ceil(range.t1) } : {}),
  };
  const of = JSON.stringify(parameters);
  const load = async (from: number, count: number): Promise<Activity[] | null> => {
    const answer = await ask<Answer>("activities", { ...parameters, from, count });
    if (answer && of === JSON.stringify(parameters)) total.value = answer.total;
    return answer?.rows ?? null;
  };
  useEffect(() => void load(0, 1), [of, growth.value]);
  const selected = store.selected.value;
  const columns: Column<Activity>[] = [
    {
      name: "Begin",
      width: "168px",
      align: "right",
      cell: (row) => instant(row.begin),
      sort: sorted("begin"),
    },
    {
      name: "Duration",
      width: "110px",
      align: "right",
      sort: sorted("duration"),
      cell: (row) => (row.end === null ? "not ended" : qualified(duration(row.duration), row.quality)),
    },
    { name: "Activity", width: "minmax(110px, 200px)", cell: (row) => row.name },
    { name: "Key", width: "minmax(80px, 160px)", cell: (row) => (row.key === null ? "" : String(row.key)) },
    {
      name: "Lane",
      width: "minmax(90px, 170px)",
      cell: (row) => store.laneById.value.get(row.lane)?.name ?? "",
    },
    {
      name: "Thread",
      width: "minmax(90px, 1fr)",
      cell: (row) => [row.process, row.thread].filter(Boolean).join(" / "),
    },
  ];
  return (
    <div class="with-bar">
      <div class="bar">
        <label>
          kind{" "}
          <select
            value={brush.value ? `kind:${brush.value.kind}` : chosenKind.value}
            onChange={(event) => {
              setBrush(null);
              chosenKind.value = event.currentTarget.value;
            }}
          >
            <option value="">all kinds</option>
            {(store.session.value?.span_kinds ?? []).map((one) => (
              <option key={one.id} value={`kind:${one.id}`}>
                {one.name} ({thousands(one.count)})
              </option>
            ))}
            {store.scripts.value
              .filter((one) => one.finds)
              .map((one) => (
                <option key={one.name} value={`script:${one.id}`}>
                  script {one.name} ({thousands(one.count)})
                </option>
              ))}
          </select>
        </label>
        <span>
          {thousands(total.value)} {range ? "in the marked range" : ""}
        </span>
        <BrushChip />
      </div>
      <VirtualList<Activity>
        label="Activities"
        rows={total.value}
        of={of}
        version={String(growth.value)}
        columns={columns}
        load={load}
        empty="No activity here."
        chosen={(row) =>
          selected !== null &&
          row.begin === selected.begin &&
          row.lane === selected.lane &&
          (row.end === null || row.end === selected.end)
        }
        choose={(row) =>
          void select(
            { lane: row.lane, row: row.row, begin: row.begin, end: row.end, thing: thingOf(row) },
            "list",
          )
        }
      />
    </div>
  );
}

function thingOf(row: Activity): Thing {
  return {
    kind: "span",
    begin: row.begin,
    end: row.end,
    name: row.name,
    thread: row.thread,
    process: row.process,
    quality: row.quality,
    fields: row.key === null ? [] : [{ name: "key", value: row.key }],
  };
}
