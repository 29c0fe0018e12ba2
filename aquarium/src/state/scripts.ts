// SPDX-License-Identifier: Apache-2.0 OR MIT
// Scripts of the user: stored by the browser, run by the server.

import { batch, signal } from "@preact/signals";
import { place } from "../logic/place.ts";
import { RequestError } from "../protocol/connection.ts";
import type { ScriptAnswer } from "../protocol/types.ts";
import { request } from "./server.ts";
import * as store from "./store.ts";

export interface Draft {
  name: string;
  text: string;
}

const KEPT_AS = "aquarium-scripts";

const FIRST: Draft[] = [
  {
    name: "one CPU",
    text: `// Which events to keep. Switch it on in the filter at the left.
filter("CPU 0 only", event => event.cpu === 0);
`,
  },
  {
    name: "locks",
    text: `// Which events belong together: what is found gets a row on its lane.
activity("lock")
    .begin("*:MUTEX_LOCK*")
    .end("*:MUTEX_UNLOCK")
    .key("arg");
`,
  },
];

export const drafts = signal<Draft[]>(kept());
export const current = signal(0);
export const error = signal<{ line: number; column: number; text: string } | null>(null);
export const said = signal<string | null>(null);
export const running = signal(false);

function kept(): Draft[] {
  try {
    const found: unknown = JSON.parse(globalThis.localStorage?.getItem(KEPT_AS) ?? "null");
    const good = Array.isArray(found) && found.length > 0 && found.every(isDraft);
    return good ? (found as Draft[]) : FIRST;
  } catch {
    return FIRST;
  }
}

function isDraft(one: unknown): boolean {
  const draft = one as Draft | null;
  return typeof draft?.name === "string" && typeof draft?.text === "string";
}

export function keep(next: Draft[]): void {
  drafts.value = next;
  try {
    localStorage.setItem(KEPT_AS, JSON.stringify(next));
  } catch {
    // Without storage, scripts last as long as the page.
  }
}

export function edit(change: Partial<Draft>): void {
  keep(drafts.value.map((draft, index) => (index === current.value ? { ...draft, ...change } : draft)));
}

export function add(draft: Draft): void {
  keep([...drafts.value, draft]);
  current.value = drafts.value.length - 1;
}

export function remove(): void {
  const rest = drafts.value.filter((_, index) => index !== current.value);
  keep(rest.length === 0 ? FIRST : rest);
  current.value = Math.max(0, current.value - 1);
}

/** Runs the edited script; its filter is switched on, and its activities get their rows. */
export async function run(): Promise<void> {
  const draft = drafts.value[current.value];
  if (!draft || running.value) return;
  batch(() => {
    running.value = true;
    error.value = null;
    said.value = null;
  });
  // In a live session, the new script replaces the old one.
  const before = store.scripts.value.find((one) => one.name === draft.name);
  try {
    took(draft, await request<ScriptAnswer>("script", { name: draft.name, text: draft.text, replaces: before?.id ?? null }));
  } catch (failure) {
    if (!(failure instanceof RequestError)) {
      said.value = "the connection was lost: run it again";
      return;
    }
    const at = place(failure.failure.where);
    error.value = at ? { ...at, text: failure.failure.what } : null;
    said.value = at ? `line ${at.line}, column ${at.column}: ${failure.failure.what}` : failure.message;
  } finally {
    running.value = false;
  }
}

/** A script that ran, and whether its filter and its rows are switched on. */
export interface Wanted extends Draft {
  id: number;
  isOn: boolean;
  isShown: boolean;
}

/** Scripts that have not been run again yet. */
let waiting: readonly Wanted[] = [];

/** Scripts that ran in the shown session, or will. */
export function wanted(): Wanted[] {
  const { scriptsOn, activitiesOff } = store.filter.value;
  const ran = store.scripts.value.map(({ id, name, text, filters }) => ({
    ...{ id, name, text },
    isOn: !filters || scriptsOn.has(id),
    isShown: !activitiesOff.has(id),
  }));
  return [...waiting.filter((one) => ran.every(({ name }) => name !== one.name)), ...ran];
}

/** Runs the scripts of the previous session again; `known` are scripts that the server already has. */
export async function runAgain(scripts: readonly Wanted[], known: ReadonlySet<number>): Promise<void> {
  waiting = scripts;
  for (const one of scripts) {
    try {
      const { id, name, text } = one;
      const answer = await request<ScriptAnswer>("script", { name, text, replaces: known.has(id) ? id : null });
      if (waiting !== scripts) return;
      took(one, answer, one);
    } catch (failure) {
      if (waiting !== scripts || !(failure instanceof RequestError)) return;
      store.tell(`the script "${one.name}" could not be run again: ${failure.message}`, "problem");
    }
  }
  waiting = [];
}

function took(
  draft: Draft,
  answer: ScriptAnswer,
  { isOn, isShown }: Pick<Wanted, "isOn" | "isShown"> = { isOn: true, isShown: true },
): void {
  const finds = answer.kind === "activity";
  const filters = answer.has_filter ?? answer.kind === "filter";
  const before = store.scripts.value.find((one) => one.name === draft.name);
  batch(() => {
    store.scripts.value = [
      // A script that is run again replaces its previous run.
      ...store.scripts.value.filter((one) => one !== before),
      {
        id: answer.script,
        name: draft.name,
        text: draft.text,
        filters,
        finds,
        how: answer.how,
        why: answer.why ?? "",
        count: answer.count,
        names: answer.names ?? [],
        stopped: null,
      },
    ];
    const session = store.session.value;
    if (session && answer.rows) store.session.value = withRows(session, answer, before?.id);
    const scriptsOn = new Set(store.filter.value.scriptsOn);
    if (before) scriptsOn.delete(before.id);
    if (filters && isOn) scriptsOn.add(answer.script);
    const activitiesOff = new Set(store.filter.value.activitiesOff);
    if (before) activitiesOff.delete(before.id);
    if (!isShown) activitiesOff.add(answer.script);
    store.filter.value = { ...store.filter.value, scriptsOn, activitiesOff };
  });
}

function withRows(
  session: NonNullable<typeof store.session.value>,
  answer: ScriptAnswer,
  before: number | undefined,
) {
  const lanes = session.lanes.map((lane) => {
    const rows = lane.rows.filter((row) => row.script === undefined || row.script !== before);
    for (const row of answer.rows ?? [])
      if (row.lane === lane.id) rows.push({ ...row, script: answer.script });
    return { ...lane, rows };
  });
  return { ...session, lanes };
}
