// SPDX-License-Identifier: Apache-2.0 OR MIT
// Live recordings: the age of the newest shown event, following, and control of the recorder.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { lagText } from "../logic/live.ts";
import { thousands } from "../logic/units.ts";
import { toggleFollow } from "../state/actions.ts";
import { AGE_MS, age, heldEvents, paused, progress, silentWhy, togglePause } from "../state/opening.ts";
import { ask } from "../state/server.ts";
import * as store from "../state/store.ts";
import { Button } from "./Toolbar.tsx";

const LOOK_MS = 250;

export function LiveTools() {
  return (
    <>
      {store.isLive.value && (
        <div class="group" role="group" aria-label="Live">
          <LiveBadge />
          <Button label="Follow" keys="L" pressed={store.follow.value} onClick={toggleFollow}>
            ⇥ follow
          </Button>
          <Button label="Hold" keys="K" pressed={paused.value} onClick={togglePause}>
            ❙❙ {paused.value ? <Held /> : "hold"}
          </Button>
        </div>
      )}
      {store.methods.value.has("control") && <Recorder />}
    </>
  );
}

function Held() {
  // The held update is not a signal: it is polled.
  useTick();
  const count = heldEvents();
  return <>held{count > 0 ? ` · ${thousands(count)} more` : ""}</>;
}

/** Renders again from time to time if due: each time costs a frame. */
function useTick(isDue: () => boolean = () => true): void {
  const [, next] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => isDue() && next((n) => n + 1), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
}

/** Shows that the session is live, and the age of the newest shown event. */
function LiveBadge() {
  // While updates arrive, it changes with them.
  useTick(() => performance.now() - (age.peek()?.toldMs ?? 0) > AGE_MS + LOOK_MS);
  const why = silentWhy.value;
  if (why !== null)
    return (
      <span class="live silent" role="status" title={why}>
        <span class="live-dot" />
        no recorder
      </span>
    );
  const told = age.value;
  const lag = told ? lagText(told.ns, performance.now() - told.toldMs) : "";
  return (
    <span class="live" role="status" title="How old the newest event is that is shown">
      <span class="live-dot" />
      live{lag && <small class="lag">{lag} behind</small>}
    </span>
  );
}

type Action = "start" | "stop" | "flush" | "snapshot" | "enable" | "disable";

const ACTS: [Action, string, string][] = [
  ["start", "Go on recording", "starts again what was stopped"],
  ["stop", "Stop recording", "events are not recorded until it goes on"],
  ["flush", "Write what is in the rings", "so that the newest events are on disk"],
  ["snapshot", "Snapshot", "keeps what the rings hold now as a recording"],
];

const patterns = signal("");
const busy = signal<Action | null>(null);

/** Sends a command to the recorder and reports its result; `ask` reports errors. */
export async function control(action: Action, events?: string[]): Promise<void> {
  if (busy.value !== null) return;
  busy.value = action;
  const answer = await ask<{ done?: Record<string, unknown>[] }>("control", {
    action,
    ...(events ? { events } : {}),
  });
  busy.value = null;
  if (answer) store.tell(`${action}: ${doneText(answer.done ?? [])}`);
}

function doneText(done: Record<string, unknown>[]): string {
  const shown = done.map((one) =>
    Object.entries(one)
      .filter(([, value]) => value !== null && typeof value !== "object")
      .map(([name, value]) => `${name} ${String(value)}`)
      .join(", "),
  );
  return shown.filter(Boolean).join("; ") || "done";
}

function Recorder() {
  const close = (element: HTMLElement) => element.closest("details")?.removeAttribute("open");
  const events = () =>
    patterns.value
      .split(/[\s,]+/)
      .map((one) => one.trim())
      .filter(Boolean);
  return (
    <details class="save">
      <summary class="tool" aria-label="Recorder" title="Start, stop, flush, snapshot, enable">
        recorder ▾
      </summary>
      <div class="menu below recorder" role="group" aria-label="Recorder">
        {ACTS.map(([action, name, title]) => (
          <button
            key={action}
            title={title}
            disabled={busy.value !== null}
            onClick={(event) => {
              close(event.currentTarget);
              void control(action);
            }}
          >
            {name}
          </button>
        ))}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const enable = (event.submitter as HTMLButtonElement | null)?.value !== "disable";
            if (events().length > 0) void control(enable ? "enable" : "disable", events());
          }}
        >
          <input
            type="text"
            aria-label="Events to enable or disable"
            placeholder="mutex, io:READ*"
            value={patterns.value}
            onInput={(event) => (patterns.value = event.currentTarget.value)}
          />
          <button type="submit" value="enable">
            enable
          </button>
          <button type="submit" value="disable">
            disable
          </button>
        </form>
      </div>
    </details>
  );
}

/** Shown while the trace is read, before there is a session. */
export function Progress() {
  const now = progress.value;
  if (now === null || store.session.value !== null) return null;
  const { what, done, of } = now;
  const share = of === null || of <= 0 ? undefined : Math.min(1, done / of);
  return (
    <div class="progress" role="status">
      <p>
        {what || "Reading"}: {thousands(done)}
        {of !== null && of > 0 ? ` of ${thousands(of)}` : ""} events
      </p>
      <progress aria-label={what || "Reading"} max={1} value={share} />
    </div>
  );
}
