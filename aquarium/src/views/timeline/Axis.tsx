// SPDX-License-Identifier: Apache-2.0 OR MIT
import { useRef } from "preact/hooks";
import { ticks } from "../../logic/axis.ts";
import { instant } from "../../logic/units.ts";
import { toPixel, toTime, width as span } from "../../logic/viewport.ts";
import { notes } from "../../state/notes.ts";
import * as store from "../../state/store.ts";
import { zoomBy } from "../../state/actions.ts";
import { show } from "../panels/Notes.tsx";

/** Length of the strip with ticks, in screens. */
const STRIP = 8;

/** Labels of time. Dragging marks a range; the wheel zooms. */
export function Axis() {
  const { width } = store.canvasSize.value;
  const view = store.view.value;
  const begin = useRef<number | null>(null);
  const time = (event: PointerEvent | WheelEvent) =>
    toTime(view, event.clientX - (event.currentTarget as HTMLElement).getBoundingClientRect().left, width);
  // Ticks have fixed positions in a strip that moves with the view: each tick that moved by itself
  // would need a new layout.
  const begins = Math.floor(view.t0 / (span(view) * STRIP)) * span(view) * STRIP;
  const shift = toPixel(view, begins, width);
  const left = (x: number) => `${Math.round((x - shift) * 100) / 100}px`;
  return (
    <div
      class="axis"
      aria-label={`Time axis from ${instant(view.t0)} to ${instant(view.t1)}; drag to mark a range`}
      role="group"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        begin.current = time(event);
      }}
      onPointerMove={(event) => {
        if (begin.current === null) return;
        const at = time(event);
        store.range.value = { t0: Math.min(begin.current, at), t1: Math.max(begin.current, at) };
      }}
      onPointerUp={(event) => {
        if (begin.current !== null && time(event) === begin.current) store.range.value = null;
        begin.current = null;
      }}
      onWheel={(event) => {
        event.preventDefault();
        zoomBy(Math.exp(event.deltaY * 0.0015), time(event));
      }}
    >
      {notes.value.map((note) => (
        <button
          key={`note ${note.begin} ${note.end} ${note.text}`}
          class="flag"
          style={{ left: `${toPixel(view, note.begin, width)}px` }}
          title={note.text}
          aria-label={`Note: ${note.text}`}
          onPointerDown={(event) => event.stopPropagation()}
          onClick={() => {
            store.openTab("notes");
            show(note);
          }}
        >
          ⚑
        </button>
      ))}
      <div class="ticks" style={{ transform: `translateX(${shift}px)` }}>
        {ticks(view, width, store.axisHz.value).map((tick) =>
          tick.label === null ? (
            <i class="tick" key={tick.t} style={{ left: left(tick.x) }} />
          ) : (
            <span class="tick" key={tick.t} style={{ left: left(tick.x) }}>
              {tick.label}
            </span>
          ),
        )}
      </div>
    </div>
  );
}
