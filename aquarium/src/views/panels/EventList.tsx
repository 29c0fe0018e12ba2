// SPDX-License-Identifier: Apache-2.0 OR MIT
import { useMemo } from "preact/hooks";
import { fieldText, timeText } from "../../logic/units.ts";
import type { EventRow } from "../../protocol/types.ts";
import { eventsRow, select, thingOfRow } from "../../state/actions.ts";
import { growth } from "../../state/opening.ts";
import { ask } from "../../state/server.ts";
import * as store from "../../state/store.ts";
import { type Column, VirtualList } from "./VirtualList.tsx";

/** The server's name for an unknown thread. */
const UNKNOWN = "unknown";
/** Maximum number of list elements shown in a row. */
const MOST_IN_ROW = 16;

/** The columns; the subsystem only if events have one. */
function columns(): Column<EventRow>[] {
  const { laneById, classById, session, timeFormat } = store;
  const [format, origin] = [timeFormat.value, session.value?.origin ?? ""];
  const isDate = session.value?.is_date === true;
  const hasSubsystems = session.value?.classes.some((one) => one.subsystem !== "") === true;
  const time = (row: EventRow) => timeText(format, origin, row.ts, isDate);
  const subsystem: Column<EventRow> = {
    name: "Subsystem",
    width: "minmax(70px, 110px)",
    cell: (row) => classById.value.get(row.class)?.subsystem ?? "",
  };
  return [
    { name: "Time", width: "168px", align: "right", cell: time },
    { name: "CPU", width: "76px", cell: (row) => laneById.value.get(row.lane)?.name ?? "" },
    ...(hasSubsystems ? [subsystem] : []),
    {
      name: "Event",
      width: "minmax(110px, 200px)",
      cell: (row) => (
        <>
          <i class="dot" style={{ background: store.classColours.value.css(row.class) }} />
          {classById.value.get(row.class)?.name ?? ""}
        </>
      ),
    },
    {
      name: "Process",
      width: "minmax(80px, 130px)",
      cell: (row) => <ApplicationCell id={row.application} />,
    },
    { name: "Thread", width: "minmax(60px, 120px)", cell: threadText },
    {
      name: "Fields",
      width: "minmax(160px, 1fr)",
      cell: (row) =>
        row.fields?.map((field) => (
          <span class="pair" key={field.name}>
            <small>{field.name}</small> {fieldText(field.label ?? field.value, field.unit, MOST_IN_ROW)}
          </span>
        )) ?? <small>forgotten</small>,
    },
  ];
}

/** Number of the thread, with its name if that differs from the name of its application. */
function threadText({ thread, tid, application }: EventRow): string {
  const number = tid == null ? "" : String(tid);
  const of = application == null ? undefined : store.applicationById.value.get(application)?.name;
  const name = thread == null || thread === of || String(thread) === UNKNOWN ? "" : String(thread);
  return name === `thread ${number}` ? number : `${name} ${number}`.trim();
}

function ApplicationCell({ id }: { id: number | null }) {
  if (id === null || id === undefined) return null;
  const application = store.applicationById.value.get(id);
  return (
    <>
      <i class="swatch" style={{ background: store.applicationColours.value.css(id) }} />
      {application?.name || "unknown"}
    </>
  );
}

export function EventList() {
  const filter = store.filterId.value;
  const count = store.shownCount.value?.count ?? 0;
  const selected = store.selected.value;
  // Row numbers change when events are evicted: the list is requested again at the same interval as
  // other lists.
  const grew = growth.value;
  const gone = useMemo(() => store.session.peek()?.gone?.events ?? 0, [grew]);
  return (
    <VirtualList<EventRow>
      label="Events"
      rows={count}
      of={`${filter} ${gone}`}
      columns={columns()}
      show={store.listAt.value}
      empty={store.shownCount.value ? "No event passes the filter." : ""}
      load={(from, rows) =>
        ask<{ rows: EventRow[] }>("events", { filter, from, count: rows }).then(
          (answer) => answer?.rows ?? null,
        )
      }
      chosen={(row) => isSelected(row, selected)}
      choose={(row) =>
        void select(
          { lane: row.lane, row: eventsRow(row.lane), begin: row.ts, end: null, thing: thingOfRow(row) },
          "list",
        )
      }
    />
  );
}

/** Events with the same time and lane are distinguished by their class, if it is known. */
function isSelected(row: EventRow, selected: store.Selected | null): boolean {
  if (!selected || row.ts !== selected.begin) return false;
  const kind = selected.thing?.class;
  return kind === null || kind === undefined || kind === row.class;
}
