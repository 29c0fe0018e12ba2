// SPDX-License-Identifier: Apache-2.0 OR MIT
// Notes about a recording: text of a user at a time, or for a time range.

export interface Note {
  /** Nanoseconds since the session's origin. */
  begin: number;
  end: number;
  text: string;
}

const LONGEST = 10_000;

/** Parses the notes file, which users can edit; invalid notes are ignored. */
export function readNotes(held: unknown): Note[] {
  if (!Array.isArray(held)) return [];
  const notes: Note[] = [];
  for (const one of held as Partial<Note>[]) {
    if (one === null || typeof one !== "object") continue;
    const { begin, end = begin, text } = one;
    if (typeof text !== "string" || !Number.isFinite(begin) || !Number.isFinite(end)) continue;
    notes.push({ begin: begin!, end: Math.max(begin!, end!), text: text.slice(0, LONGEST) });
  }
  return sorted(notes);
}

export function sorted(notes: readonly Note[]): Note[] {
  return [...notes].sort((a, b) => a.begin - b.begin || a.end - b.end);
}
