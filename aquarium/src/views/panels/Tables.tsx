// SPDX-License-Identifier: Apache-2.0 OR MIT
// The sections of `lat stats` for the marked range, or for what can be seen, and the filter.

import { signal } from "@preact/signals";
import { timeOption } from "../../logic/cells.ts";
import { duration, qualified, thousands } from "../../logic/units.ts";
import { reveal } from "../../logic/viewport.ts";
import type { SectionAnswer } from "../../protocol/types.ts";
import * as store from "../../state/store.ts";
import { histogramOf } from "./Histogram.tsx";
import { SectionTable, type Sorting } from "./SectionTable.tsx";
import { useSection } from "./useSection.ts";

/** Rows that are shown: those that a person reads. */
const ROWS = 500;
/** What is asked for before it is known which sections have anything. */
const FIRST = "threads";

/** Null: the first section that has anything. */
const chosen = signal<string | null>(null);
const guess = signal(FIRST);
const sortings = signal<Readonly<Record<string, Sorting>>>({});

export function Tables() {
  const guessed = guess.value;
  const name = chosen.value ?? guessed;
  const sorting = sortings.value[name] ?? null;
  const { answer, error, waiting } = useSection({
    name,
    filter: store.filterId.value,
    order: sorting?.column,
    descending: sorting?.descending,
    most: ROWS,
  });
  if (error) return <p class="empty">{error}</p>;
  if (!answer) return <p class="empty">Counting…</p>;
  // Nobody has chosen, and there is nothing in the first.
  if (chosen.value === null && answer.name === guessed && answer.total === 0) {
    const first = answer.sections.find((one) => one.count > 0);
    if (first && first.name !== guessed) guess.value = first.name;
  }
  const isSpans = ["spans", "spans_by_thread", "keys", "slowest", "locks"].includes(answer.name);
  return (
    <div class="tables">
      <nav class="section-list" aria-label="Sections">
        {answer.sections.map((one) => (
          <button
            key={one.name}
            class={one.count === 0 ? "none" : ""}
            aria-current={one.name === name}
            onClick={() => (chosen.value = one.name)}
          >
            {one.title}
            <small>{one.count === 0 ? "–" : thousands(one.count)}</small>
          </button>
        ))}
      </nav>
      <div class={`section ${waiting ? "stale" : ""}`} aria-busy={waiting}>
        <Summary answer={answer} />
        {answer.total === 0 ? (
          <p class="empty">None in this time.</p>
        ) : (
          <SectionTable
            section={answer}
            sorting={sorting}
            onSort={(sorting) => (sortings.value = { ...sortings.value, [answer.name]: sorting })}
            onTime={(t) =>
              (store.view.value = reveal(store.view.value, { t0: t, t1: t }, store.whole.value))
            }
            onRow={isSpans ? { title: "Histogram of", act: histogramOf } : undefined}
          />
        )}
        <Rest answer={answer} isSorted={sorting !== null} />
      </div>
    </div>
  );
}

function Summary({ answer }: { answer: SectionAnswer }) {
  const { count, quality } = answer.events;
  return (
    <p class="summary">
      <b>{answer.title}</b> of the {store.range.value ? "marked range" : "shown time"}:{" "}
      {qualified(thousands(count), quality)} events in {qualified(duration(answer.over_ns), quality)}
      <Command answer={answer} />
    </p>
  );
}

/** The same in a terminal; a filter of the page has no words there. */
function Command({ answer }: { answer: SectionAnswer }) {
  if (store.filterId.value !== 0) return null;
  const { from_ns: from, until_ns: until } = answer;
  const options = [from && `--from ${timeOption(from)}`, until && `--until ${timeOption(until)}`];
  const paths = store.recordings.value.map((one) => one.path).join(" ");
  const command = ["lat stats", paths, ...options].filter(Boolean).join(" ");
  return (
    <button
      class="text"
      title={`Copy: ${command}`}
      onClick={() => void navigator.clipboard?.writeText(command).then(() => store.tell("copied"))}
    >
      copy as lat stats
    </button>
  );
}

function Rest({ answer, isSorted }: { answer: SectionAnswer; isSorted: boolean }) {
  const hidden = answer.total - answer.count;
  const sentences = [...answer.remarks];
  if (hidden > 0) {
    const of = isSorted && answer.kept < answer.total ? `, sorted are the first ${thousands(answer.kept)}` : "";
    sentences.unshift(`… ${thousands(hidden)} more${of}`);
  }
  return sentences.map((sentence) => (
    <p class="summary" key={sentence}>
      {sentence}
    </p>
  ));
}
