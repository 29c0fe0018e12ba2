// SPDX-License-Identifier: Apache-2.0 OR MIT
// The lower part: tabs of lists and numbers, and what is known of the selected thing.

import { untracked } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { TIME_FORMATS, type TimeFormat, qualified, thousands } from "../../logic/units.ts";
import * as store from "../../state/store.ts";
import { halves, picked } from "../../state/compare.ts";
import { exportUrl } from "../../state/server.ts";
import { ThingFields } from "../timeline/Tooltip.tsx";
import { Changes } from "../compare/Changes.tsx";
import { DifferenceGraph } from "../compare/Difference.tsx";
import { Overlaid } from "../compare/Overlaid.tsx";
import { Activities } from "./Activities.tsx";
import { EventList } from "./EventList.tsx";
import { Flame } from "./Flame.tsx";
import { Histogram } from "./Histogram.tsx";
import { Instructions } from "./Instructions.tsx";
import { Notes } from "./Notes.tsx";
import { Scheduling } from "./Scheduling.tsx";
import { Scripts } from "./Scripts.tsx";
import { Sql } from "./Sql.tsx";
import { Tables } from "./Tables.tsx";
import { Tracepoints } from "./Tracepoints.tsx";
import { Utilisation } from "./Utilisation.tsx";
import { Statistics } from "./Statistics.tsx";
import { Xy } from "./Xy.tsx";

interface Tab {
  key: string;
  label: () => ComponentChildren;
  /** The server's method that it needs, if not every server has it. */
  needs?: string;
  panel: () => ComponentChildren;
}

const SCRIPTS: Tab = { key: "scripts", label: () => "Scripts", needs: "script", panel: () => <Scripts /> };

const TABS: Tab[] = [
  { key: "events", label: () => <EventsLabel />, panel: () => <EventList /> },
  { key: "activities", label: () => "Activities", needs: "activities", panel: () => <Activities /> },
  { key: "statistics", label: () => "Statistics", needs: "stats", panel: () => <Statistics /> },
  { key: "tables", label: () => "Tables", needs: "section", panel: () => <Tables /> },
  { key: "histogram", label: () => "Histogram", needs: "histogram", panel: () => <Histogram /> },
  { key: "flame", label: () => "Flame graph", needs: "flame", panel: () => <Flame /> },
  { key: "utilisation", label: () => "Utilisation", needs: "utilisation", panel: () => <Utilisation /> },
  { key: "tracepoints", label: () => "Tracepoints", needs: "tracepoints", panel: () => <Tracepoints /> },
  {
    key: "instructions",
    label: () => "Instructions",
    needs: "instructions",
    panel: () => <Instructions />,
  },
  { key: "xy", label: () => "XY", needs: "values", panel: () => <Xy /> },
  SCRIPTS,
  { key: "sql", label: () => "SQL", needs: "sql", panel: () => <Sql /> },
  { key: "notes", label: () => "Notes", needs: "note", panel: () => <Notes /> },
];

/** By itself: of all tabs it alone changes as a recording grows. */
function EventsLabel() {
  const shown = store.shownCount.value;
  return <>Events{shown ? ` – ${qualified(thousands(shown.count), shown.quality)}` : ""}</>;
}

/** While two recordings are held against each other: of both, by the session's filter. */
const COMPARED: Tab[] = [
  { key: "changes", label: () => "Changes", needs: "compare", panel: () => <Changes /> },
  { key: "overlaid", label: () => "Histograms", needs: "histograms", panel: () => <Overlaid /> },
  { key: "difference", label: () => "Difference", needs: "flame", panel: () => <DifferenceGraph /> },
  SCRIPTS,
];

export function Panels() {
  const all = halves.value ? COMPARED : TABS;
  const tabs = all.filter((tab) => tab.needs === undefined || store.methods.value.has(tab.needs));
  const current = tabs.find((tab) => tab.key === store.tab.value) ?? tabs[0];
  const go = (by: number) => {
    const index = (tabs.indexOf(current) + by + tabs.length) % tabs.length;
    store.openTab(tabs[index].key);
    document.getElementById(`tab-${tabs[index].key}`)?.focus();
  };
  return (
    <section class="panels" aria-label="Lists and numbers">
      <div class="panel-main">
        <div class="tabs">
          <div class="tab-row" role="tablist" aria-label="Lists and numbers">
            {tabs.map((tab) => (
              <button
                key={tab.key}
                id={`tab-${tab.key}`}
                role="tab"
                aria-selected={tab === current}
                aria-controls="panel"
                tabIndex={tab === current ? 0 : -1}
                onClick={() => store.openTab(tab.key)}
                onKeyDown={(event) => {
                  if (event.key === "ArrowRight") go(1);
                  else if (event.key === "ArrowLeft") go(-1);
                  else return;
                  event.preventDefault();
                }}
              >
                {tab.label()}
              </button>
            ))}
          </div>
          {current?.key === "events" && !halves.value && <TimeFormats />}
          {!halves.value && (
            <button
              class={`text ${store.sync.value ? "pressed" : ""}`}
              aria-pressed={store.sync.value}
              title="Graph and list follow each other   Y"
              onClick={() => (store.sync.value = !store.sync.value)}
            >
              ⇅ sync
            </button>
          )}
          {!halves.value && <Save table={current?.key === "activities" ? "activities" : "events"} />}
        </div>
        <div
          class="panel"
          id="panel"
          role="tabpanel"
          aria-labelledby={current ? `tab-${current.key}` : undefined}
        >
          {store.isOpened.value && current?.panel()}
        </div>
      </div>
      <Details />
    </section>
  );
}

const FORMAT_NAMES: Record<TimeFormat, string> = {
  relative: "since the begin",
  utc: "UTC",
  local: "local time",
  raw: "ns since 1970",
};

/** How the list writes times; a clock without a date has no choice. */
function TimeFormats() {
  if (store.session.value?.is_date !== true) return null;
  return (
    <select
      class="time-format"
      aria-label="How the list writes times"
      title="How the list writes times"
      value={store.timeFormat.value}
      onChange={(event) => store.setTimeFormat(event.currentTarget.value as TimeFormat)}
    >
      {TIME_FORMATS.map((one) => (
        <option key={one} value={one}>
          {FORMAT_NAMES[one]}
        </option>
      ))}
    </select>
  );
}

/** What is listed, as a file: made by the server from the same filter, and of the marked range if there is one. */
function Save({ table }: { table: string }) {
  // Each address has the time of all: the menu is made when it is opened, not as a recording grows.
  const [, again] = useState(0);
  const address = (format: string) => untracked(() => exportUrl(table, format));
  const what = `${table}${store.range.value ? " of the marked range" : ""}`;
  return (
    <details class="save" onToggle={() => again((n) => n + 1)}>
      <summary class="text" title={`Save ${what}`}>
        save ▾
      </summary>
      <div class="menu" role="menu" aria-label={`Save ${what}`}>
        {[
          ["csv", "CSV"],
          ["json", "JSON lines"],
          ["parquet", "Parquet"],
        ].map(([format, name]) => (
          <a
            key={format}
            role="menuitem"
            href={address(format)}
            download={`${table}.${format}`}
            onClick={(event) => {
              event.currentTarget.href = address(format);
              event.currentTarget.closest("details")?.removeAttribute("open");
            }}
          >
            {name}
            <small>{what}</small>
          </a>
        ))}
      </div>
    </details>
  );
}

function Details() {
  const selected = halves.value ? picked.value : store.selected.value;
  return (
    <aside class="details" aria-label="Selected" aria-live="polite">
      {selected?.thing ? (
        <ThingFields thing={selected.thing}>
          {!halves.value && <Scheduling thing={selected.thing} />}
        </ThingFields>
      ) : (
        <p class="empty">{selected ? "" : "Click an event, a span or a state to see all of it here."}</p>
      )}
    </aside>
  );
}
