// SPDX-License-Identifier: Apache-2.0 OR MIT
// Notes: read when the session is opened, and written completely at each change.

import { effect, signal } from "@preact/signals";
import { type Note, readNotes, sorted } from "../logic/notes.ts";
import { ask } from "./server.ts";
import * as store from "./store.ts";

export const notes = signal<Note[]>([]);
/** The note that is being edited. */
export const writing = signal<Note | null>(null);

export function startNotes(): void {
  effect(() => {
    if (store.methods.value.has("notes")) void load();
  });
}

async function load(): Promise<void> {
  const answer = await ask<{ notes: unknown }>("notes", {});
  if (answer) notes.value = readNotes(answer.notes);
}

/** Adds a note to the marked range, the selected item, or the time under the pointer. */
export function addNote(): void {
  const { value: range } = store.range;
  const { value: selected } = store.selected;
  const middle = (store.view.value.t0 + store.view.value.t1) / 2;
  const begin = Math.round(range?.t0 ?? selected?.begin ?? store.hover.value?.t ?? middle);
  const end = Math.round(range?.t1 ?? selected?.end ?? begin);
  const note = { begin, end, text: "" };
  notes.value = sorted([...notes.value, note]);
  writing.value = note;
  store.openTab("notes");
}

export async function setText(note: Note, text: string): Promise<void> {
  writing.value = null;
  const rest = notes.value.filter((one) => one !== note);
  // A note without text is removed.
  await write(text.trim() === "" ? rest : sorted([...rest, { ...note, text: text.trim() }]));
}

export function removeNote(note: Note): Promise<void> {
  return write(notes.value.filter((one) => one !== note));
}

async function write(next: Note[]): Promise<void> {
  notes.value = next;
  await ask("note", { notes: next.filter((one) => one.text !== "") });
}
