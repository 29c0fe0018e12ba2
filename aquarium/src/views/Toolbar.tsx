// SPDX-License-Identifier: Apache-2.0 OR MIT
import { computed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { clockTicks } from "../logic/axis.ts";
import { eventsOf } from "../logic/live.ts";
import { duration, qualified, thousands } from "../logic/units.ts";
import { width } from "../logic/viewport.ts";
import * as act from "../state/actions.ts";
import * as store from "../state/store.ts";
import { CompareButton } from "./compare/Compare.tsx";
import { FindBox } from "./FindBox.tsx";
import { LiveTools } from "./Live.tsx";
import { savePng, saveSvg } from "./picture.ts";

const ICONS = {
  out: "M3 8h10",
  in: "M3 8h10M8 3v10",
  fit: "M2 5V2h3M11 2h3v3M14 11v3h-3M5 14H2v-3",
  previous: "M10 3 5 8l5 5",
  next: "m6 3 5 5-5 5",
  message: "M2 4h12v8H2zM2 4.5l6 4.5 6-4.5",
  theme: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
  legend: "M2 4h3M2 8h3M2 12h3M8 4h6M8 8h6M8 12h6",
  help: "M6 6a2 2 0 1 1 2.7 1.9c-.5.2-.7.6-.7 1.3M8 11.8v.4",
  camera: "M2 5h3l1-2h4l1 2h3v8H2zM8 11.2a2.4 2.4 0 1 0 0-4.8 2.4 2.4 0 0 0 0 4.8",
};

function Icon({ name }: { name: keyof typeof ICONS }) {
  return (
    <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden="true">
      <path
        d={ICONS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

interface ButtonProps {
  label: string;
  keys?: string;
  pressed?: boolean;
  onClick: () => void;
  children: ComponentChildren;
}

export function Button({ label, keys, pressed, onClick, children }: ButtonProps) {
  return (
    <button
      class={`tool ${pressed ? "pressed" : ""}`}
      aria-label={label}
      aria-pressed={pressed}
      title={keys ? `${label}   ${keys}` : label}
      onClick={onClick}
    >
      {children}
    </button>
  );
}

/**
 * Texts about the recordings and the visible duration, computed so that the toolbar is only
 * rendered when they change.
 */
const recordingTitle = computed(() =>
  store.recordings.value.map((one) => `${one.path} (${one.format})`).join("\n"),
);
const recordingNames = computed(() =>
  store.recordings.value.map((one) => one.path.split("/").filter(Boolean).pop()).join(" + "),
);
const shownSpan = computed(() => {
  const [span, hz] = [width(store.view.value), store.axisHz.value];
  return hz === null ? duration(span) : clockTicks(span, hz);
});

function ShownSpan() {
  const what = "How much time the timeline shows";
  if (store.ticksHz.value === null) {
    return (
      <span class="shown-span" title={what}>
        {shownSpan.value}
      </span>
    );
  }
  const other = store.inTicks.value ? "seconds" : "ticks of the clock";
  return (
    <button
      class="shown-span"
      aria-label={`${what}: ${shownSpan.value}. Axis in ${other}`}
      title={`${what}; click for an axis in ${other}   I`}
      onClick={act.toggleTicks}
    >
      {shownSpan.value}
    </button>
  );
}

export function Toolbar() {
  return (
    <header class="toolbar">
      <h1>
        <img src="icon.svg" alt="" width="18" height="18" />
        Aquarium
      </h1>
      <span class="recording" title={recordingTitle.value}>
        {recordingNames.value}
      </span>
      <Count />
      <Problem />
      <FindBox />
      <span class="spring" />
      <ShownSpan />
      <div class="group" role="group" aria-label="Navigation">
        <Button label="Zoom out" keys="S" onClick={act.zoomOut}>
          <Icon name="out" />
        </Button>
        <Button label="Zoom in" keys="W" onClick={act.zoomIn}>
          <Icon name="in" />
        </Button>
        <Button label="Show everything" keys="0" onClick={store.showAll}>
          <Icon name="fit" />
        </Button>
        <Button label="Previous event" keys="," onClick={() => void act.step(false)}>
          <Icon name="previous" />
        </Button>
        <Button label="Next event" keys="." onClick={() => void act.step(true)}>
          <Icon name="next" />
        </Button>
      </div>
      {act.hasMessages() && (
        <Button label="Message arrows" keys="M" pressed={store.arrowsOn.value} onClick={act.toggleArrows}>
          <Icon name="message" />
        </Button>
      )}
      <CompareButton />
      <LiveTools />
      <Picture />
      <Button
        label={`Switch to ${store.themeName.value === "dark" ? "light" : "dark"}`}
        keys="T"
        onClick={act.toggleTheme}
      >
        <Icon name="theme" />
      </Button>
      <Button label="Legend" keys="E" onClick={() => (store.legendOpen.value = true)}>
        <Icon name="legend" />
      </Button>
      <Button label="All keys" keys="?" onClick={() => (store.hotkeysOpen.value = true)}>
        <Icon name="help" />
      </Button>
    </header>
  );
}

function Picture() {
  const item = (name: string, save: () => void) => (
    <button
      role="menuitem"
      onClick={(event) => {
        event.currentTarget.closest("details")?.removeAttribute("open");
        save();
      }}
    >
      {name}
    </button>
  );
  return (
    <details class="save">
      <summary class="tool" aria-label="Save the picture" title="Save the picture">
        <Icon name="camera" />
      </summary>
      <div class="menu below" role="menu" aria-label="Save the picture">
        {item("PNG", savePng)}
        {item("SVG", saveSvg)}
      </div>
    </details>
  );
}

function Count() {
  const session = store.session.value;
  if (!session) return null;
  const all = eventsOf(session);
  const shown = store.shownCount.value;
  const quality =
    shown?.quality ?? (session.recordings.every((one) => one.quality === "exact") ? "exact" : "lower_bound");
  const count = shown?.count ?? all;
  return (
    <span class="count" role="status" aria-live="polite" id="event-count" data-count={count}>
      <b>{qualified(thousands(count), quality)}</b> events{count !== all ? ` of ${thousands(all)}` : ""}
    </span>
  );
}

function Problem() {
  const losses = store.losses.value;
  const damage = store.damage.value;
  if (losses.length + damage.length === 0) return null;
  const unknown = losses.some((one) => one.count === null);
  const lost = losses.reduce((sum, one) => sum + (one.count ?? 0), 0);
  const parts = [
    losses.length > 0 && (lost > 0 || !unknown ? `${unknown ? "≥ " : ""}${thousands(lost)} lost` : "losses"),
    damage.length > 0 && `${damage.length} damaged`,
  ].filter(Boolean);
  return (
    <button
      class="problem"
      onClick={() => (store.problemsOpen.value = true)}
      title="What was lost or damaged, and where   P"
    >
      ▲ {parts.join(", ")}
    </button>
  );
}
