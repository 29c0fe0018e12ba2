// SPDX-License-Identifier: Apache-2.0 OR MIT
// Synchronizes the URL's hash with the signals: read when the session is known, written when the
// state settles.

import { batch, effect } from "@preact/signals";
import { read, write } from "../logic/hash.ts";
import { recall } from "./actions.ts";
import { enter, halves } from "./compare.ts";
import { begun } from "./pending.ts";
import * as store from "./store.ts";

const SETTLE_MS = 250;
let wanted = read(location.hash);
let restored = false;

export function restore(): void {
  batch(() => {
    store.filter.value = wanted.filter;
    store.folded.value = wanted.folded;
    store.pinned.value = wanted.pinned;
    store.tab.value = wanted.tab;
    store.grouping.value = wanted.grouping;
    store.laneOrder.value = wanted.order;
    store.hideEmpty.value = wanted.hideEmpty;
    store.keptByLink.value = wanted.view !== null || wanted.compared !== null;
    store.arrowsOn.value = wanted.arrows;
    store.inTicks.value = wanted.ticks;
    store.range.value = wanted.range;
  });
  // A view can only be restored within the limits of a session; ids in another session's filter are
  // invalid.
  effect(() => {
    const session = store.session.value;
    if (session === null || restored) return;
    restored = true;
    const { compared } = wanted;
    if (compared) {
      void enter(compared.good, compared.bad, compared.anchors).then((entered) => {
        if (entered && wanted.view) store.show(wanted.view);
      });
    } else if (wanted.view) store.show(wanted.view);
    const at = wanted.selected;
    if (at && session.lanes.some((lane) => lane.id === at.lane)) {
      void recall(at.lane, at.row, at.t);
    }
  });
  // Pasting a link over another one changes only the hash.
  window.addEventListener("hashchange", () => {
    if (location.hash === written) return;
    wanted = read(location.hash);
    batch(() => {
      store.filter.value = wanted.filter;
      store.range.value = wanted.range;
      store.tab.value = wanted.tab;
      if (wanted.view) store.show(wanted.view);
      else store.showAll();
    });
  });
}

let written = "";

export function keepUrl(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let done: (() => void) | null = null;
  effect(() => {
    const selected = store.selected.value;
    const now = halves.value;
    const hash = write({
      view: store.view.value,
      filter: store.filter.value,
      range: store.range.value,
      folded: store.folded.value,
      pinned: store.pinned.value,
      grouping: store.grouping.value,
      order: store.laneOrder.value,
      hideEmpty: store.hideEmpty.value,
      tab: store.tab.value,
      arrows: store.arrowsOn.value,
      ticks: store.inTicks.value,
      compared: now && {
        good: now.good.info.side,
        bad: now.bad.info.side,
        anchors: [now.good.anchor, now.bad.anchor],
      },
      selected: selected && { lane: selected.lane, row: selected.row ?? 0, t: selected.begin },
    });
    if (store.session.value === null) return;
    clearTimeout(timer);
    done ??= begun();
    timer = setTimeout(() => {
      written = hash;
      history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
      done?.();
      done = null;
    }, SETTLE_MS);
  });
}
