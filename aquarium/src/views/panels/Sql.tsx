// SPDX-License-Identifier: Apache-2.0 OR MIT
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { thousands } from "../../logic/units.ts";
import { RequestError } from "../../protocol/connection.ts";
import * as store from "../../state/store.ts";
import { ask, request } from "../../state/server.ts";
import { EditorBox } from "./EditorBox.tsx";
import { type Column, VirtualList } from "./VirtualList.tsx";

interface Answer {
  columns: string[];
  rows: unknown[][];
  more: boolean;
}

const text = signal("SELECT event, count(*) AS count\nFROM events\nGROUP BY event\nORDER BY count DESC");
const answer = signal<(Answer & { number: number }) | null>(null);
const error = signal<string | null>(null);
const running = signal(false);
let number = 0;

async function run(): Promise<void> {
  if (running.value) return;
  running.value = true;
  error.value = null;
  try {
    answer.value = { ...(await request<Answer>("sql", { text: text.value })), number: ++number };
  } catch (failure) {
    error.value = failure instanceof RequestError ? failure.message : "the connection was lost: run it again";
  } finally {
    running.value = false;
  }
}

const tables = signal<Record<string, string[]>>({});
let asked = false;

/** Requests names for completion when the user first edits a statement. */
async function learnTables(): Promise<void> {
  if (asked || !store.methods.value.has("tables")) return;
  asked = true;
  const answer = await ask<{ tables: { name: string; columns: string[] }[] }>("tables", {});
  if (answer) tables.value = Object.fromEntries(answer.tables.map((one) => [one.name, one.columns]));
  else asked = false;
}

/** Statements over the tables of the recording, executed by lat-sql. */
export function Sql() {
  const held = answer.value;
  useEffect(() => void learnTables(), []);
  return (
    <div class="sql">
      <div class="with-bar">
        <div class="bar">
          <button class="primary" disabled={running.value} onClick={() => void run()}>
            {running.value ? "running…" : "run"}
          </button>
          <kbd>Ctrl+Enter</kbd>
          {held && (
            <span role="status">
              {thousands(held.rows.length)} rows{held.more ? ", and more that are not shown" : ""}
            </span>
          )}
        </div>
        <EditorBox
          of="sql"
          language="sql"
          label="Statement"
          text={text.value}
          error={null}
          tables={tables.value}
          changed={(next) => (text.value = next)}
          run={() => void run()}
        />
      </div>
      <div class="sql-rows">
        {error.value && (
          <p class="empty broken" role="alert">
            {error.value}
          </p>
        )}
        {held && !error.value && <Rows answer={held} />}
      </div>
    </div>
  );
}

function Rows({ answer }: { answer: Answer & { number: number } }) {
  const columns = answer.columns.map((name, index): Column<unknown[]> => ({
    name,
    width: "minmax(90px, 1fr)",
    align: typeof answer.rows[0]?.[index] === "number" ? "right" : undefined,
    cell: (row) => cellText(row[index]),
  }));
  return (
    <VirtualList<unknown[]>
      label="Rows of the statement"
      rows={answer.rows.length}
      of={String(answer.number)}
      columns={columns}
      load={(from, count) => Promise.resolve(answer.rows.slice(from, from + count))}
      empty="No row."
      chosen={() => false}
      choose={() => {}}
    />
  );
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
