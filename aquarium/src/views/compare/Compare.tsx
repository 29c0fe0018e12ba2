// SPDX-License-Identifier: Apache-2.0 OR MIT
// Two recordings, one above the other, in their common time.

import { align, alignAtFirst, alignedBy, enter, halves, leave, sides } from "../../state/compare.ts";
import * as store from "../../state/store.ts";
import { Axis } from "../timeline/Axis.tsx";
import { HalfTimeline } from "./HalfTimeline.tsx";

export function Compare() {
  const now = halves.value;
  if (!now) return null;
  // Classes of both recordings, which can be used for alignment.
  const badNames = new Set(now.bad.session.classes.map((one) => `${one.subsystem}:${one.name}`));
  const common = now.good.session.classes.filter((one) => badNames.has(`${one.subsystem}:${one.name}`));
  return (
    <section class="compare" aria-label="Two recordings, aligned">
      <div class="compare-bar">
        <Choice which="good" />
        <Choice which="bad" />
        <label>
          0 is{" "}
          <select
            value=""
            onChange={(event) => {
              const [kind, subsystem, name] = event.currentTarget.value.split("\u0001");
              event.currentTarget.value = "";
              if (kind === "begin") align({ good: 0, bad: 0 }, "the begin of both");
              else if (kind === "first") void alignAtFirst(subsystem, name);
            }}
          >
            <option value="">{alignedBy.value}</option>
            <option value="begin">the begin of both</option>
            <optgroup label="the first of both">
              {common.map((one) => (
                <option key={one.id} value={`first\u0001${one.subsystem}\u0001${one.name}`}>
                  {[one.subsystem, one.name].filter(Boolean).join(":")}
                </option>
              ))}
            </optgroup>
          </select>
        </label>
        <small>select something in each, then “align at” it</small>
        <span class="spring" />
        <button class="text" onClick={leave}>
          one time line
        </button>
      </div>
      <div class="compare-axis">
        <Axis />
      </div>
      <HalfTimeline which="good" />
      <HalfTimeline which="bad" />
    </section>
  );
}

function Choice({ which }: { which: "good" | "bad" }) {
  const now = halves.value!;
  if (sides.value.length < 3) return null;
  return (
    <label>
      {which}{" "}
      <select
        value={String(now[which].info.side)}
        onChange={(event) => {
          const side = Number(event.currentTarget.value);
          const pair = { good: now.good.info.side, bad: now.bad.info.side, [which]: side };
          void enter(pair.good, pair.bad);
        }}
      >
        {sides.value.map((one) => (
          <option key={one.side} value={String(one.side)}>
            {one.path}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Button in the toolbar, shown if there are recordings to compare. */
export function CompareButton() {
  if (!store.methods.value.has("compare")) return null;
  const on = halves.value !== null;
  return (
    <button
      class={`tool ${on ? "pressed" : ""}`}
      aria-pressed={on}
      title="Hold two recordings against each other   C"
      onClick={() => (on ? leave() : void enter())}
    >
      compare
    </button>
  );
}
