// SPDX-License-Identifier: Apache-2.0 OR MIT
// The brushed range of durations: lists are restricted to it, and the timeline marks its spans.

import { effect, signal } from "@preact/signals";
import { type Brush, type Brushed, parameters, takeBrushed } from "../logic/brush.ts";
import { visible } from "../logic/layout.ts";
import { type Window, planWindow } from "../logic/viewport.ts";
import type { Frame } from "../protocol/frame.ts";
import { Loader } from "./loader.ts";
import { failed, request } from "./server.ts";
import * as store from "./store.ts";

export const brush = signal<Brush | null>(null);
export const brushed = signal<Brushed | null>(null);

export function setBrush(next: Brush | null): void {
  brush.value = next;
  if (next === null) brushed.value = null;
}

interface Wish {
  of: Brush;
  lanes: number[];
  window: Window;
  filter: number;
}

const loader = new Loader<Wish, Frame>(
  ({ of, lanes, window, filter }) =>
    request("brushed", { ...parameters(of), lanes, t0: window.t0, t1: window.t1, px: window.px, filter }),
  (frame, { of }) => {
    if (of === brush.value) brushed.value = takeBrushed(frame);
  },
  failed,
);

let wanted = "";

export function startBrush(): void {
  effect(() => {
    const of = brush.value;
    const session = store.session.value;
    const { width, height } = store.canvasSize.value;
    const lanes = visible(store.lanesLayout.value, store.scrollTop.value, height).map((lane) => lane.id);
    const view = store.view.value;
    const filter = store.filterId.value;
    if (
      store.comparedWhole.value !== null ||
      of === null ||
      session === null ||
      store.status.value !== "open" ||
      width === 0
    )
      return;
    if (!store.methods.value.has("brushed")) return;
    const window = planWindow(view, width, 1);
    // Ids of kinds are valid in one session only: the brush is cleared if the id has another name now.
    if (session.span_kinds.find((kind) => kind.id === of.kind)?.name !== of.name) return setBrush(null);
    const key = JSON.stringify([of, lanes, window.t0, window.t1, filter, session.end]);
    if (key === wanted && brushed.value !== null) return;
    wanted = key;
    loader.want({ of, lanes, window, filter });
  });
}
