// SPDX-License-Identifier: Apache-2.0 OR MIT
// The legend: meaning of the colours and marks in the rows of this recording.

import type { ComponentChildren } from "preact";
import { UNKNOWN_STATE, css, threadStateColour } from "../logic/colour.ts";
import type { RowKind } from "../protocol/types.ts";
import * as store from "../state/store.ts";
import { Dialog } from "./Dialogs.tsx";

const STATES: [name: string, meaning: string][] = [
  ["running", "has a CPU; its number is on the bar"],
  ["runnable", "was woken, and waits for a CPU"],
  ["preempted", "another thread took its CPU; it waits for one"],
  ["sleeping", "waits for something; a signal would wake it"],
  ["blocked", "waits for a device or the like (state D); no signal wakes it"],
  ["stopped", "is stopped, traced or parked"],
];

const ROWS: [RowKind, string, string][] = [
  ["running", "bar on a CPU", "the process whose thread runs on the CPU, from its switches"],
  ["seen", "thin bar on a CPU", "events of the process were seen there; it may not have run in between"],
  ["spans", "bars on a thread", "spans; those inside others are below them"],
  ["states", "bars without gaps", "states of the program"],
  ["events", "dots or columns", "single events; columns are higher the more there are"],
  ["samples", "thin lines", "samples of call stacks"],
  ["stacks", "bars below samples", "functions that neighbouring samples found"],
  ["calls", "bars below stacks", "calls, from recorded instructions"],
  ["level", "curve", "a counter: the area up to its value"],
];

export function Legend() {
  const lanes = store.session.value?.lanes ?? [];
  const kinds = new Set(lanes.flatMap((lane) => lane.rows.map((row) => row.kind)));
  const theme = store.theme.value;
  const hasStates = kinds.has("thread_states");
  const close = () => (store.legendOpen.value = false);
  return (
    <Dialog label="Legend" close={close}>
      {hasStates && <h3>States of threads</h3>}
      {hasStates && (
        <dl class="legend-list">
          {STATES.map(([name, meaning]) => (
            <Item key={name} name={name} meaning={meaning}>
              <i class="swatch" style={{ background: css(threadStateColour(name, theme)) }} />
            </Item>
          ))}
          <Item name={UNKNOWN_STATE} meaning="a switch of the thread is missing">
            <Hatch colour={theme.faint} />
          </Item>
          <Item name="exited" meaning="the thread ended here">
            <i class="swatch exit" />
          </Item>
          <Item name="nothing" meaning="before the first and after the last event that says what it did" />
        </dl>
      )}
      <h3>Rows</h3>
      <dl class="legend-list">
        {ROWS.filter(([kind]) => kinds.has(kind)).map(([kind, name, meaning]) => (
          <Item key={kind} name={name} meaning={meaning} />
        ))}
      </dl>
      <h3>What is missing</h3>
      <dl class="legend-list">
        <Item name="lost" meaning="events that the producer counted and did not record">
          <Hatch colour={theme.loss} />
        </Item>
        <Item name="damaged" meaning="bytes that cannot be read">
          <Hatch colour={theme.damage} />
        </Item>
      </dl>
    </Dialog>
  );
}

function Item({ name, meaning, children }: { name: string; meaning: string; children?: ComponentChildren }) {
  return (
    <div>
      <dt>
        {children ?? <i class="swatch none" />}
        {name}
      </dt>
      <dd>{meaning}</dd>
    </div>
  );
}

function Hatch({ colour }: { colour: string }) {
  const stripes = `repeating-linear-gradient(135deg, ${colour} 0 1.2px, transparent 1.2px 4.5px)`;
  return <i class="swatch none" style={{ background: stripes }} />;
}
