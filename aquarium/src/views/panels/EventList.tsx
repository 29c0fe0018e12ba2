// SPDX-License-Identifier: Apache-2.0 OR MIT
import { useMemo } from "preact/hooks";
import { fieldText, timeText } from "../../logic/units.ts";
import type { EventRow } from "../../protocol/types.ts";
import { eventsRow, select, thingOfRow } from "../../state/actions.ts";
import { growth } from "../../state/opening.ts";
import { ask } from "../../state/server.ts";
import * as store from "../../state/store.ts";
import { type Column, VirtualList } from "./VirtualList.tsx";

/** The server's name for a thread of which nothing is known. */
const UNKNOWN = "unknown";
/** Of a list: a row has no room for more. */
const MOST_IN_ROW = 16;

/** The columns; that of subsystems where events have any. */
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
    { name: "Core", width: "76px", cell: (row) => laneById.value.get(row.lane)?.name ?? "" },
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
      name: "Application",
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

/** Its number, and its name where that is not its application's. */
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
  // Rows have other numbers whenever the oldest were forgotten: asked for anew as seldom as other lists.
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

/** Two events of one time on one lane are told apart by their class, where it is known. */
function isSelected(row: EventRow, selected: store.Selected | null): boolean {
  if (!selected || row.ts !== selected.begin) return false;
  const kind = selected.thing?.class;
  return kind === null || kind === undefined || kind === row.class;
}
