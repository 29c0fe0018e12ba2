// SPDX-License-Identifier: Apache-2.0 OR MIT
// The timeline: labels at the left, axis at the top, two canvases, and their pointer events.

import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { GROUPINGS, type Grouping } from "../../logic/layout.ts";
import { brushed } from "../../state/brush.ts";
import * as store from "../../state/store.ts";
import { usePainter } from "../painter.ts";
import { Axis } from "./Axis.tsx";
import { Labels } from "./Labels.tsx";
import { LanesMenu } from "./LanesMenu.tsx";
import { Minimap } from "./Minimap.tsx";
import { Tooltip } from "./Tooltip.tsx";
import { paintMarks } from "./marks.ts";
import { paintPulses } from "./pulses.ts";
import { RowImages } from "./images.ts";
import { paint } from "./paint.ts";
import { attachPointer } from "./pointer.ts";
import { arrowLines, scene, selectedWakes } from "./scene.ts";

export function Timeline() {
  const area = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLCanvasElement>(null);
  const above = useRef<HTMLCanvasElement>(null);
  const pulses = useRef<HTMLCanvasElement>(null);
  const crosshair = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const element = area.current!;
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = element;
      const ratio = devicePixelRatio || 1;
      for (const canvas of [below.current, above.current, pulses.current]) {
        if (!canvas) return;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
      }
      store.canvasSize.value = { width, height };
      const lanes = scroller.current!;
      const bar = `${lanes.offsetWidth - lanes.clientWidth}px`;
      document.documentElement.style.setProperty("--scrollbar", bar);
    });
    observer.observe(element);
    const detach = attachPointer(element);
    return () => {
      observer.disconnect();
      detach();
    };
  }, []);

  usePainting(below, above, pulses);

  useSignalEffect(() => {
    const at = store.hover.value;
    const line = crosshair.current!;
    line.style.display = at ? "block" : "none";
    if (at) line.style.transform = `translateX(${Math.round(at.x)}px)`;
  });

  useSignalEffect(() => {
    const element = scroller.current!;
    if (Math.abs(element.scrollTop - store.scrollTop.value) > 1) element.scrollTop = store.scrollTop.value;
  });

  return (
    <section class="timeline" aria-label="Timeline">
      <Minimap />
      <div class="corner">
        <LaneSearch />
        <Groups />
        <LanesMenu />
      </div>
      <Axis />
      <div
        class="lanes"
        ref={scroller}
        onScroll={(event) => (store.scrollTop.value = event.currentTarget.scrollTop)}
      >
        <div class="lanes-inside" style={{ height: `${store.lanesLayout.value.height}px` }}>
          <Labels />
          <div
            class="canvas-area"
            ref={area}
            tabIndex={0}
            role="application"
            aria-label="Lanes over time: W, A, S, D move and zoom; ? lists all keys"
          >
            <canvas ref={below} aria-hidden="true" />
            <canvas ref={above} aria-hidden="true" />
            <canvas ref={pulses} class="pulses" aria-hidden="true" />
            <div class="crosshair" ref={crosshair} />
            <Tooltip />
            <Hint />
          </div>
        </div>
      </div>
    </section>
  );
}

function usePainting(
  below: { current: HTMLCanvasElement | null },
  above: { current: HTMLCanvasElement | null },
  pulses: { current: HTMLCanvasElement | null },
): void {
  const images = useRef(new RowImages());
  const gather = () => ({
    now: scene.value,
    marks: {
      selected: store.selected.value,
      range: store.range.value,
      arrows: arrowLines.value,
      wakes: selectedWakes.value,
    },
    stretches: brushed.value?.stretches ?? null,
  });
  usePainter(gather, ({ now, marks, stretches }) => {
    const [lower, upper, over] = [below, above, pulses].map((one) => one.current?.getContext("2d"));
    if (!lower || !upper || !over) return;
    paint(lower, now, images.current);
    paintMarks(upper, now, marks);
    // Even an empty third canvas costs each frame as much as a full one.
    const isBrushed = stretches !== null && stretches.size > 0;
    over.canvas.style.display = isBrushed ? "" : "none";
    over.canvas.dataset.pulses = String(isBrushed ? paintPulses(over, now, stretches) : 0);
    // State of the canvas for assistive tools and tests.
    upper.canvas.dataset.view = `${now.view.t0},${now.view.t1}`;
    upper.canvas.dataset.arrows = String(marks.arrows.length);
    upper.canvas.dataset.wakes = String(marks.wakes.length);
    if (now.picture?.until !== undefined) upper.canvas.dataset.until = String(now.picture.until);
  });
}

function LaneSearch() {
  return (
    <input
      id="lane-search"
      type="search"
      placeholder="Search   /"
      aria-label="Search lanes"
      value={store.laneSearch.value}
      onInput={(event) => (store.laneSearch.value = event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        store.laneSearch.value = "";
        event.currentTarget.blur();
      }}
    />
  );
}

const GROUP_NAMES: Record<Grouping, string> = {
  all: "all lanes",
  cores: "CPUs",
  processes: "processes",
  threads: "threads",
};

function Groups() {
  return (
    <select
      aria-label="Which lanes are shown, and how they are grouped"
      title="Which lanes   G"
      value={store.grouping.value}
      onChange={(event) => (store.grouping.value = event.currentTarget.value as Grouping)}
    >
      {GROUPINGS.map((one) => (
        <option key={one} value={one}>
          {GROUP_NAMES[one]}
        </option>
      ))}
    </select>
  );
}

function Hint() {
  if (!store.isOpened.value || store.lanesLayout.value.lanes.length > 0) return null;
  const { laneSearch, lanesLayout, session } = store;
  if (laneSearch.value !== "") return <p class="empty">No lane has this name.</p>;
  if (session.value?.lanes.length === 0) return <p class="empty">This recording has no events.</p>;
  return (
    <p class="empty">
      {lanesLayout.value.emptyLanes > 0
        ? "Nothing is in the shown time and filter: all lanes are hidden as empty."
        : "No lane is left: choose some at the left, or all lanes above."}
    </p>
  );
}
