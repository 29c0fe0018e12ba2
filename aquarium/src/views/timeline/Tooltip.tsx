// SPDX-License-Identifier: Apache-2.0 OR MIT
// The item under the pointer, with all its details.

import { signal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { lineAt } from "../../logic/arrows.ts";
import { brief, date, duration, fieldText, instant } from "../../logic/units.ts";
import type { Thing } from "../../protocol/types.ts";
import { begun } from "../../state/pending.ts";
import * as store from "../../state/store.ts";
import { threadText, wakerText } from "../../logic/wakes.ts";
import { type Under, thingUnder } from "./pointer.ts";
import { arrowLines } from "./scene.ts";
import { toPixel } from "../../logic/viewport.ts";

const found = signal<Under | null>(null);
/** The server's name for an unknown process or thread, which is not shown. */
const NOBODY = "unknown";
/** A moving pointer sends no requests. */
const REST_MS = 40;

export function Tooltip() {
  const box = useRef<HTMLDivElement>(null);
  const asked = useRef(0);
  useSignalEffect(() => {
    const at = store.hover.value;
    store.filterId.value;
    const stamp = ++asked.current;
    if (at === null) {
      found.value = null;
      return;
    }
    const told = begun();
    setTimeout(() => {
      if (stamp !== asked.current) return told();
      void thingUnder(at.x, at.y)
        .then((under) => stamp === asked.current && (found.value = under))
        .finally(told);
    }, REST_MS);
  });
  const at = store.hover.value;
  if (!at) return null;
  const arrow = found.value?.thing ? null : lineAt(arrowLines.value, at.x, at.y, 4);
  const loss = lossAt(at.x, found.value?.lane ?? null);
  const content = found.value?.thing ? (
    <ThingFields thing={found.value.thing} most={MOST_IN_TOOLTIP} />
  ) : arrow ? (
    <ArrowFields index={arrow.index} />
  ) : null;
  if (!content && !loss) return null;
  const { width, height } = store.canvasSize.value;
  const left = at.x + 340 > width ? Math.max(0, at.x - 340) : at.x + 16;
  const side = at.y > height / 2 ? { bottom: `${height - at.y + 14}px` } : { top: `${at.y + 18}px` };
  return (
    <div class="tooltip" role="tooltip" ref={box} style={{ left: `${left}px`, ...side }}>
      {content}
      {loss && <p class="loss-note">{loss}</p>}
    </div>
  );
}

/** Maximum number of list elements, as the bytes of a packet: more would cover the item under the pointer. */
const MOST_IN_TOOLTIP = 40;

/** The first of the woken threads, and their number. */
function wakesText({ count, is_cut, threads }: NonNullable<Thing["wakes"]>): string {
  const more = count - 1;
  const first = threads[0] ? threadText(threads[0]) : "";
  return `${is_cut ? "≥ " : ""}${first}${more > 0 ? ` and ${brief(more)} more` : ""}`;
}

/** All details of an item, with a limited number of list elements. */
export function ThingFields({
  thing,
  most,
  children,
}: {
  thing: Thing;
  most?: number;
  /** Links to the waker and the woken threads, instead of text. */
  children?: ComponentChildren;
}) {
  const session = store.session.value;
  const info = thing.class == null ? undefined : store.classById.value.get(thing.class);
  const application =
    typeof thing.application === "number"
      ? store.applicationById.value.get(thing.application)?.name
      : (thing.application ?? undefined);
  // The length of a list is shown with the list itself.
  const lengths = new Set((thing.fields ?? []).map((field) => `_${field.name}_length`));
  const fields = (thing.fields ?? []).filter((field) => !lengths.has(field.name));
  const wall = session?.is_date ? date(session.origin, thing.begin) : null;
  const rows: [string, string | null | undefined][] = [
    ["time", instant(thing.begin)],
    ["UTC", wall],
    [
      "duration",
      thing.end == null
        ? thing.kind === "span" || thing.kind === "activity"
          ? "not ended"
          : null
        : thing.end > thing.begin
          ? duration(thing.end - thing.begin)
          : null,
    ],
    ["key", thing.key],
    ["subsystem", info?.subsystem],
    ["process", application ?? thing.process],
    ["thread", thing.thread],
    ["CPU", thing.cpu == null ? null : String(thing.cpu)],
    ["woken by", children ? null : thing.woken_by && wakerText(thing.woken_by)],
    ["wakes", children ? null : thing.wakes && wakesText(thing.wakes)],
    ["then", thing.has_ended ? "the thread exited" : null],
    [
      "quality",
      thing.quality === "lower_bound"
        ? "a lower bound: losses touch it"
        : thing.quality === "unknown"
          ? "unknown: losses touch it"
          : null,
    ],
  ];
  return (
    <>
      <h3>
        {info?.name || thing.name}
        <small>{thing.kind === "thread_state" ? "state of a thread" : thing.kind}</small>
      </h3>
      <dl>
        {rows
          .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== NOBODY)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      {children}
      <dl>
        {fields.map((field) => (
          <div key={`field ${field.name}`} class="field">
            <dt>{field.name}</dt>
            <dd>{fieldText(field.label ?? field.value, field.unit, most)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function ArrowFields({ index }: { index: number }) {
  const arrows = store.arrowData.value?.arrows;
  if (!arrows || index >= arrows.count.length) return null;
  const channel = store.session.value?.channels.find((one) => one.id === arrows.channel[index]);
  const lane = (id: number) => store.laneById.value.get(id)?.name ?? "?";
  const count = arrows.count[index];
  return (
    <>
      <h3>
        {channel?.name ?? "message"}
        <small>{count > 1 ? `${brief(count)} messages` : "message"}</small>
      </h3>
      <dl>
        <div>
          <dt>from</dt>
          <dd>{lane(arrows.fromLane[index])}</dd>
        </div>
        <div>
          <dt>to</dt>
          <dd>{lane(arrows.toLane[index])}</dd>
        </div>
        <div>
          <dt>sent</dt>
          <dd>{instant(arrows.from[index])}</dd>
        </div>
        <div>
          <dt>on the way</dt>
          <dd>{duration(arrows.to[index] - arrows.from[index])}</dd>
        </div>
      </dl>
    </>
  );
}

function lossAt(x: number, lane: number | null): string | null {
  const view = store.view.value;
  const { width } = store.canvasSize.value;
  const loss = (store.session.value?.losses ?? []).find(
    (one) =>
      (one.lane === null || one.lane === lane) &&
      x >= toPixel(view, one.begin, width) - 2 &&
      x <= toPixel(view, one.end, width) + 2,
  );
  if (!loss) return null;
  return `${loss.count === null ? "an unknown number of" : brief(loss.count)} events were lost here: ${loss.cause}`;
}
