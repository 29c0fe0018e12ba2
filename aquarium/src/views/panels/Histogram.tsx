// SPDX-License-Identifier: Apache-2.0 OR MIT
// Histogram of the durations of one kind of span, or of the times between successive events of a class.

import { signal } from "@preact/signals";
import { text as brushText } from "../../logic/brush.ts";
import { duration, qualified, thousands } from "../../logic/units.ts";
import { brush, brushed, setBrush } from "../../state/brush.ts";
import * as store from "../../state/store.ts";
import { Bins, type Shape, ShapeChoice } from "./Bins.tsx";
import { useAnswer } from "./useAnswer.ts";

const BINS = 80;

/** `span:NAME` or `event:ID`; null for the most frequent span. */
const subject = signal<string | null>(null);
const shape = signal<Shape>("bars");
const per = signal<"thread" | "lane" | "all">("thread");

export function histogramOf(name: string): void {
  subject.value = `span:${name}`;
  store.openTab("histogram");
}

interface Answer {
  edges: number[];
  counts: number[];
  quality: string;
  /** For times between events. */
  median?: number | null;
}

function chosenSubject(): string | null {
  const session = store.session.value;
  const kinds = session?.span_kinds ?? [];
  const now = subject.value;
  if (now?.startsWith("span:") && kinds.some((kind) => `span:${kind.name}` === now)) return now;
  if (now?.startsWith("event:") && store.classById.value.has(Number(now.slice(6)))) return now;
  const most = [...kinds].sort((a, b) => b.count - a.count)[0];
  if (most) return `span:${most.name}`;
  const first = [...(session?.classes ?? [])].sort((a, b) => b.count - a.count)[0];
  return first && store.methods.value.has("deltas") ? `event:${first.id}` : null;
}

export function Histogram() {
  const chosen = chosenSubject();
  const kind = store.session.value?.span_kinds.find((one) => `span:${one.name}` === chosen) ?? null;
  const [t0, t1] = [Math.floor(store.chosen.value.t0), Math.ceil(store.chosen.value.t1)];
  const common = { filter: store.filterId.value, t0, t1, bins: BINS };
  const ofEvent = chosen?.startsWith("event:") ? Number(chosen.slice(6)) : null;
  const spans = useAnswer<Answer>("histogram", kind ? { span: kind.id, ...common } : null);
  const gaps = useAnswer<Answer>(
    "deltas",
    ofEvent === null ? null : { class: ofEvent, per: per.value, ...common },
  );
  if (chosen === null)
    return <p class="empty">This recording has no spans: its schema declares no begin and end.</p>;
  const { answer, error } = kind ? spans : gaps;
  const count = answer?.counts.reduce((sum, one) => sum + one, 0) ?? 0;
  const held = kind !== null && brush.value?.kind === kind.id ? brush.value : null;
  return (
    <div class="with-bar">
      <div class="bar">
        <Subject now={chosen} />
        {ofEvent !== null && (
          <label>
            the next{" "}
            <select
              value={per.value}
              onChange={(event) => (per.value = event.currentTarget.value as typeof per.value)}
            >
              <option value="thread">of its thread</option>
              <option value="lane">of its CPU</option>
              <option value="all">anywhere</option>
            </select>
          </label>
        )}
        <ShapeChoice shape={shape} />
        <span>
          {qualified(thousands(count), answer?.quality)} in the{" "}
          {store.range.value ? "marked range" : "shown time"}
          {answer?.median != null && `, median ${duration(answer.median)}`}
        </span>
        {held && <BrushChip />}
        {kind && !held && <small>drag to brush a range</small>}
      </div>
      {error ? (
        <p class="empty">{error}</p>
      ) : answer && count > 0 ? (
        <Bins
          label={kind ? `Histogram of ${kind.name}` : "Histogram of the time between events"}
          edges={answer.edges}
          series={[{ name: kind?.name ?? "", counts: answer.counts }]}
          shape={shape.value}
          brush={held}
          brushed={
            kind && store.methods.value.has("brushed")
              ? (range) => setBrush(range && { kind: kind.id, name: kind.name, ...range })
              : undefined
          }
        />
      ) : (
        <p class="empty">
          {answer ? (kind ? "No such span in this time." : "No two such events in this time.") : ""}
        </p>
      )}
    </div>
  );
}

function Subject({ now }: { now: string }) {
  const session = store.session.value;
  const classes = store.methods.value.has("deltas") ? (session?.classes ?? []) : [];
  return (
    <label>
      of{" "}
      <select value={now} onChange={(event) => (subject.value = event.currentTarget.value)}>
        <optgroup label="duration of spans">
          {(session?.span_kinds ?? []).map((one) => (
            <option key={one.id} value={`span:${one.name}`}>
              {one.name} ({thousands(one.count)})
            </option>
          ))}
        </optgroup>
        <optgroup label="time between events">
          {classes.map((one) => (
            <option key={one.id} value={`event:${one.id}`}>
              {[one.subsystem, one.name].filter(Boolean).join(":")} ({thousands(one.count)})
            </option>
          ))}
        </optgroup>
      </select>
    </label>
  );
}

/** Shows the brush, with a button to remove it. */
export function BrushChip() {
  const now = brush.value;
  if (!now) return null;
  const count = brushed.value?.count;
  return (
    <span class="chip" role="status">
      {brushText(now)}
      {count !== undefined && <small>{thousands(count)} on the screen</small>}
      <button class="text" aria-label={`Brush no durations of ${now.name}`} onClick={() => setBrush(null)}>
        ✕
      </button>
    </span>
  );
}
