// SPDX-License-Identifier: Apache-2.0 OR MIT
import { duration, instant } from "../../logic/units.ts";
import type { Note } from "../../logic/notes.ts";
import { reveal } from "../../logic/viewport.ts";
import { addNote, notes, removeNote, setText, writing } from "../../state/notes.ts";
import * as store from "../../state/store.ts";

/** Notes of users about the recording. */
export function Notes() {
  return (
    <div class="statistics">
      <p class="summary">
        <button class="primary" onClick={addNote}>
          new note
        </button>{" "}
        of the marked range, or of what is selected <kbd>B</kbd>
      </p>
      {notes.value.length > 0 && (
        <table class="notes">
          <tbody>
            {notes.value.map((note) => (
              <Line key={`${note.begin} ${note.end} ${note.text}`} note={note} />
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

function Line({ note }: { note: Note }) {
  const isWritten = writing.value === note;
  return (
    <tr>
      <td>
        <button class="text" title="Show it" onClick={() => show(note)}>
          {instant(note.begin)}
        </button>
      </td>
      <td>{note.end > note.begin ? duration(note.end - note.begin) : ""}</td>
      <td class="note-text">
        <input
          aria-label={`Note at ${instant(note.begin)}`}
          value={note.text}
          placeholder="what is to be seen here?"
          ref={(element) => {
            if (isWritten) element?.focus();
          }}
          onChange={(event) => void setText(note, event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
        />
      </td>
      <td>
        <button
          class="text"
          aria-label={`Delete the note at ${instant(note.begin)}`}
          onClick={() => void removeNote(note)}
        >
          ✕
        </button>
      </td>
    </tr>
  );
}

export function show(note: Note): void {
  const stretch = { t0: note.begin, t1: note.end };
  store.view.value = reveal(store.view.value, stretch, store.whole.value);
  if (note.end > note.begin) store.range.value = stretch;
}
