// SPDX-License-Identifier: Apache-2.0 OR MIT
import { useRef } from "preact/hooks";
import * as store from "../state/store.ts";
import { FilterPane } from "./FilterPane.tsx";
import { Hotkeys, Notices, Problems } from "./Dialogs.tsx";
import { Legend } from "./Legend.tsx";
import { Progress } from "./Live.tsx";
import { halves } from "../state/compare.ts";
import { Compare } from "./compare/Compare.tsx";
import { Palette } from "./Palette.tsx";
import { Panels } from "./panels/Panels.tsx";
import { Timeline } from "./timeline/Timeline.tsx";
import { Toolbar } from "./Toolbar.tsx";

export function App() {
  if (store.fatal.value)
    return (
      <div class="fatal" role="alert">
        <h1>Aquarium</h1>
        <p>{store.fatal.value}</p>
      </div>
    );
  return (
    <div class="app">
      <Toolbar />
      <ConnectionBar />
      <Progress />
      <div class="body">
        <FilterPane />
        <Splitter side="left" variable="--left" least={160} most={520} />
        <main class="main">
          {halves.value ? <Compare /> : <Timeline />}
          <Splitter side="bottom" variable="--bottom" least={90} most={900} />
          <Panels />
        </main>
      </div>
      <Notices />
      {store.paletteOpen.value && <Palette />}
      {store.hotkeysOpen.value && <Hotkeys />}
      {store.problemsOpen.value && <Problems />}
      {store.legendOpen.value && <Legend />}
    </div>
  );
}

function ConnectionBar() {
  if (store.status.value === "open") return null;
  if (store.status.value === "connecting")
    return (
      <p class="connection" role="status">
        Connecting…
      </p>
    );
  return (
    <p class="connection lost" role="alert">
      The connection to lat view is lost. What is drawn stays; trying again (attempt {store.attempt.value}).
    </p>
  );
}

/** Border between two parts, moved by dragging or by the arrow keys. */
function Splitter({
  side,
  variable,
  least,
  most,
}: {
  side: "left" | "bottom";
  variable: string;
  least: number;
  most: number;
}) {
  const from = useRef<{ at: number; size: number } | null>(null);
  const size = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue(variable));
  const set = (px: number) =>
    document.documentElement.style.setProperty(variable, `${Math.min(Math.max(px, least), most)}px`);
  const at = (event: PointerEvent) => (side === "left" ? event.clientX : -event.clientY);
  return (
    <div
      class={`splitter ${side}`}
      role="separator"
      tabIndex={0}
      aria-orientation={side === "left" ? "vertical" : "horizontal"}
      aria-label={side === "left" ? "Width of the filter" : "Height of the lists"}
      onPointerDown={(event) => {
        from.current = { at: at(event), size: size() };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => from.current && set(from.current.size + at(event) - from.current.at)}
      onPointerUp={() => (from.current = null)}
      onKeyDown={(event) => {
        const by = { ArrowLeft: -20, ArrowDown: -20, ArrowRight: 20, ArrowUp: 20 }[event.key];
        if (by === undefined) return;
        set(size() + by);
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}
