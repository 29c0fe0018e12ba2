// SPDX-License-Identifier: Apache-2.0 OR MIT
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { duration, instant, thousands } from "../logic/units.ts";
import { focus } from "../logic/viewport.ts";
import { available } from "../state/actions.ts";
import * as store from "../state/store.ts";

interface DialogProps {
  label: string;
  close: () => void;
  children: ComponentChildren;
}

export function Dialog({ label, close, children }: DialogProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    box.current?.focus();
    return () => before?.focus();
  }, []);
  return (
    <div class="veil" onClick={close}>
      <div
        class="dialog"
        role="dialog"
        aria-modal="true"
        aria-label={label}
        tabIndex={-1}
        ref={box}
        onClick={(event) => event.stopPropagation()}
        onKeyDown={(event) => {
          if (event.key === "Escape") close();
          else if (event.key === "Tab") keepFocus(event, box.current!);
        }}
      >
        <h2>
          {label}
          <button class="text" aria-label="Close" onClick={close}>
            ✕
          </button>
        </h2>
        {children}
      </div>
    </div>
  );
}

/** Keeps the focus within the dialog when Tab is pressed: the page under it is not reachable. */
function keepFocus(event: KeyboardEvent, box: HTMLElement): void {
  const all = [...box.querySelectorAll<HTMLElement>("button, a[href], input, select, [tabindex='0']")];
  if (all.length === 0) return;
  const at = all.indexOf(document.activeElement as HTMLElement);
  const next = event.shiftKey ? at - 1 : at + 1;
  if (at >= 0 && next >= 0 && next < all.length) return;
  event.preventDefault();
  all[event.shiftKey ? all.length - 1 : 0].focus();
}

const MOUSE: [string, string][] = [
  ["Wheel", "scroll the lanes"],
  ["Ctrl + wheel, pinch", "zoom at the pointer (the menu ⋮ of lanes exchanges both)"],
  ["Shift + wheel", "move"],
  ["Drag", "move"],
  ["Shift + drag, drag on the axis", "measure, mark a range"],
  ["Click", "select; the list follows"],
  ["Double click", "fit a span, or everything"],
];

export function Hotkeys() {
  return (
    <Dialog label="Keys" close={() => (store.hotkeysOpen.value = false)}>
      <dl class="keys">
        {available().map((one) => (
          <div key={one.name}>
            <dt>
              <kbd>{one.keys}</kbd>
            </dt>
            <dd>{one.name}</dd>
          </div>
        ))}
        {MOUSE.map(([keys, name]) => (
          <div key={keys}>
            <dt>{keys}</dt>
            <dd>{name}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

/** Losses and damage of the recording: place, amount and reason. */
export function Problems() {
  const session = store.session.value;
  const goTo = (begin: number, end: number) => {
    store.view.value = focus({ t0: begin, t1: Math.max(end, begin + 1) }, store.whole.value);
    store.problemsOpen.value = false;
  };
  const losses = session?.losses ?? [];
  const damage = session?.damage ?? [];
  return (
    <Dialog label="Losses and damage" close={() => (store.problemsOpen.value = false)}>
      {losses.length + damage.length === 0 && <p>Nothing was lost, and every byte could be read.</p>}
      {losses.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>lost</th>
              <th>where</th>
              <th>from</th>
              <th>for</th>
              <th>cause</th>
            </tr>
          </thead>
          <tbody>
            {losses.slice(0, 500).map((loss, index) => (
              <tr
                key={index}
                tabIndex={0}
                onClick={() => goTo(loss.begin, loss.end)}
                onKeyDown={(event) => event.key === "Enter" && goTo(loss.begin, loss.end)}
              >
                <td>{loss.count === null ? "unknown" : thousands(loss.count)}</td>
                <td>{loss.lane === null ? "everywhere" : store.laneById.value.get(loss.lane)?.name}</td>
                <td>{instant(loss.begin)}</td>
                <td>{duration(loss.end - loss.begin)}</td>
                <td>{loss.cause}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {losses.length > 500 && <p>and {thousands(losses.length - 500)} more intervals</p>}
      {damage.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>damaged file</th>
              <th>bytes</th>
              <th>why it cannot be read</th>
            </tr>
          </thead>
          <tbody>
            {damage.slice(0, 500).map((one, index) => (
              <tr key={index}>
                <td>{one.file}</td>
                <td>
                  {thousands(one.begin_bytes)} to {thousands(one.end_bytes)}
                </td>
                <td>{one.reason}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Dialog>
  );
}

export function Notices() {
  return (
    <div class="notices" aria-live="polite">
      {store.notices.value.map((one) => (
        <p key={one.id} class={`notice ${one.kind}`} role={one.kind === "problem" ? "alert" : "status"}>
          {one.text}
          <button class="text" aria-label="Dismiss" onClick={() => store.dismiss(one.id)}>
            ✕
          </button>
        </p>
      ))}
    </div>
  );
}
