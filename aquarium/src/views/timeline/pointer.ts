// SPDX-License-Identifier: Apache-2.0 OR MIT
// Mouse and wheel over the lanes: dragging moves the view, Shift+drag measures. The wheel scrolls
// the lanes, and zooms to the pointer with Ctrl or a pinch gesture (or the reverse, as chosen);
// with Shift it moves the view. A click selects, a double click fits.

import { rowAt } from "../../logic/layout.ts";
import { itemAt, rowKey } from "../../logic/picture.ts";
import { focus, pan, toTime, width } from "../../logic/viewport.ts";
import type { Thing } from "../../protocol/types.ts";
import { select, thingOf, zoomBy } from "../../state/actions.ts";
import { ask } from "../../state/server.ts";
import * as store from "../../state/store.ts";

const CLICK_PX = 4;
/** Steps of a mouse wheel are larger than those of a touchpad. */
const FINGERS_PX = 40;
/** Height of a line, for browsers that report wheel steps in lines. */
const LINE_PX = 20;
/** Maximum distance of a click from a dot. */
export const NEAR_PX = 6;

export function attachPointer(element: HTMLElement): () => void {
  const abort = new AbortController();
  const options = { signal: abort.signal };
  let drag: { x: number; y: number; measure: boolean; moved: boolean; t: number } | null = null;
  const place = (event: MouseEvent) => {
    const edge = element.getBoundingClientRect();
    return { x: event.clientX - edge.left, y: event.clientY - edge.top };
  };
  const timeAt = (x: number) => toTime(store.view.value, x, store.canvasSize.value.width);

  element.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0) return;
      const { x, y } = place(event);
      drag = { x, y, measure: event.shiftKey, moved: false, t: timeAt(x) };
      element.setPointerCapture(event.pointerId);
    },
    options,
  );

  element.addEventListener(
    "pointermove",
    (event) => {
      const { x, y } = place(event);
      store.hover.value = drag?.moved && !drag.measure ? null : { x, y, t: timeAt(x) };
      if (!drag) return;
      if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < CLICK_PX) return;
      drag.moved = true;
      if (drag.measure) {
        const t = timeAt(x);
        store.range.value = { t0: Math.min(drag.t, t), t1: Math.max(drag.t, t) };
        return;
      }
      store.follow.value = false;
      const view = store.view.value;
      store.view.value = pan(
        view,
        ((drag.x - x) / store.canvasSize.value.width) * width(view),
        store.whole.value,
      );
      const scroller = element.closest(".lanes");
      if (scroller) scroller.scrollTop -= y - drag.y;
      drag.x = x;
      drag.y = y;
    },
    options,
  );

  element.addEventListener(
    "pointerup",
    (event) => {
      const clicked = drag !== null && !drag.moved;
      drag = null;
      const { x, y } = place(event);
      if (clicked) void click(x, y);
    },
    options,
  );
  element.addEventListener("pointercancel", () => (drag = null), options);
  element.addEventListener("pointerleave", () => (store.hover.value = null), options);

  element.addEventListener(
    "dblclick",
    (event) => {
      const { x, y } = place(event);
      void thingUnder(x, y).then((found) => {
        const thing = found?.thing;
        if (thing?.end != null && thing.end > thing.begin) {
          store.view.value = focus({ t0: thing.begin, t1: thing.end }, store.whole.value);
        } else store.showAll();
      });
    },
    options,
  );

  element.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const isPinch = event.ctrlKey || event.metaKey;
      const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      const view = store.view.value;
      if (event.shiftKey || Math.abs(across) > Math.abs(event.deltaY)) {
        store.follow.value = false;
        store.view.value = pan(
          view,
          (across / store.canvasSize.value.width) * width(view),
          store.whole.value,
        );
      } else if (isPinch === store.wheelScrolls.value) {
        // Touchpads send small steps.
        const speed = isPinch && Math.abs(event.deltaY) < FINGERS_PX ? 0.01 : 0.0015;
        const factor = Math.exp(Math.min(Math.max(event.deltaY, -400), 400) * speed);
        zoomBy(factor, timeAt(place(event).x));
      } else {
        const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
        element.closest(".lanes")?.scrollBy({ top: event.deltaY * lines, behavior: "instant" });
      }
    },
    { ...options, passive: false },
  );
  return () => abort.abort();
}

export interface Under {
  lane: number;
  row: number;
  thing: Thing | null;
}

/** The item under a point of the lanes; the server knows all its fields. */
export async function thingUnder(x: number, y: number): Promise<Under | null> {
  const place = rowAt(store.lanesLayout.value, y, store.scrollTop.value);
  if (!place?.row || place.row.kind === "level") return null;
  const view = store.view.value;
  const perPixel = width(view) / store.canvasSize.value.width;
  const t = toTime(view, x, store.canvasSize.value.width);
  const { lane, row } = place.row;
  const near = perPixel * NEAR_PX;
  // If the page knows the items, it requests exactly the one that is drawn there.
  const picture = store.picture.value;
  const known = picture?.rows[picture.byRow.get(rowKey(lane, row)) ?? -1];
  const exact = known?.exact && picture?.filter === store.filterId.value;
  const item = exact ? itemAt(known.items, t, near) : null;
  if (exact && item === null) return { lane, row, thing: null };
  const at = item !== null && place.row.kind === "events" ? known!.items.begin[item] : t;
  const answer = await ask("at", {
    lane,
    row,
    t: Math.round(at),
    within: Math.ceil(near),
    filter: store.filterId.value,
  });
  return { lane, row, thing: thingOf(answer) };
}

async function click(x: number, y: number): Promise<void> {
  const found = await thingUnder(x, y);
  if (!found?.thing) {
    store.clearSelection();
    return;
  }
  const { thing } = found;
  await select(
    { lane: found.lane, row: found.row, begin: thing.begin, end: thing.end ?? null, thing },
    "graph",
  );
}
