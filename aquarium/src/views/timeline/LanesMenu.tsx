// SPDX-License-Identifier: Apache-2.0 OR MIT
// Menu next to the search of lanes: order and visibility of lanes, and the function of the wheel.

import { ORDERS, type Order } from "../../logic/activity.ts";
import * as store from "../../state/store.ts";

const ORDER_NAMES: Record<Order, string> = {
  recorded: "as recorded",
  cpu: "CPU time",
  name: "name",
  first: "first activity",
  activity: "most activity",
};

export function LanesMenu() {
  const isAble = store.methods.value.has("lane_activity");
  return (
    <details class="save lanes-menu" onFocusOut={closeIfLeft} onKeyDown={closeByEscape}>
      <summary class="text" aria-label="Order of lanes, and which are shown" title="Lanes: order, empty ones">
        ⋮
      </summary>
      <div class="menu below" role="group" aria-label="Lanes">
        {isAble && (
          <label>
            Sort by
            <select
              aria-label="Sort lanes by"
              title="What is in the shown time   O"
              value={store.laneOrder.value}
              onChange={(event) => (store.laneOrder.value = event.currentTarget.value as Order)}
            >
              {ORDERS.map((one) => (
                <option key={one} value={one}>
                  {ORDER_NAMES[one]}
                </option>
              ))}
            </select>
          </label>
        )}
        {isAble && (
          <label title="Without anything in the shown time and filter   H">
            <input
              type="checkbox"
              checked={store.hideEmpty.value}
              onChange={(event) => (store.hideEmpty.value = event.currentTarget.checked)}
            />
            Hide empty lanes and rows
          </label>
        )}
        <button title="Z" onClick={() => store.foldAll(true)}>
          Collapse all
        </button>
        <button title="X" onClick={() => store.foldAll(false)}>
          Expand all
        </button>
        <label>
          Wheel
          <select
            aria-label="What the wheel does over the timeline"
            title="With Ctrl it does the other"
            value={store.wheelScrolls.value ? "scrolls" : "zooms"}
            onChange={(event) => store.setWheelScrolls(event.currentTarget.value === "scrolls")}
          >
            <option value="scrolls">scrolls, Ctrl zooms</option>
            <option value="zooms">zooms, Ctrl scrolls</option>
          </select>
        </label>
      </div>
    </details>
  );
}

function closeIfLeft(event: FocusEvent & { currentTarget: HTMLDetailsElement }): void {
  const next = event.relatedTarget as Node | null;
  if (next !== null && !event.currentTarget.contains(next)) event.currentTarget.open = false;
}

function closeByEscape(event: KeyboardEvent & { currentTarget: HTMLDetailsElement }): void {
  if (event.key !== "Escape" || !event.currentTarget.open) return;
  event.currentTarget.open = false;
  event.currentTarget.querySelector("summary")?.focus();
  event.stopPropagation();
}
