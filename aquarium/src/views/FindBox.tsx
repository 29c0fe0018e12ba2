// SPDX-License-Identifier: Apache-2.0 OR MIT
// One box that finds a time, an event or a span by a part of its name, and events by an expression.

import { qualified, thousands } from "../logic/units.ts";
import { halves } from "../state/compare.ts";
import { clearFind, find, findError, findText, found, hit, stepHit } from "../state/find.ts";
import * as store from "../state/store.ts";

export function FindBox() {
  if (!store.methods.value.has("search") || halves.value !== null) return null;
  const now = found.value;
  const isOld = now !== null && now.text !== findText.value.trim();
  return (
    <span class="find" role="search">
      <input
        type="search"
        id="find"
        aria-label="Find"
        aria-invalid={findError.value !== null}
        placeholder="Find: name, field == value, time"
        title={
          "A part of the name of an event or a span; an expression like  size > 4k && $cpu == 0; or a time.   Ctrl+F\n" +
          "Enter: next hit, Shift+Enter: previous hit"
        }
        value={findText.value}
        onInput={(event) => {
          findText.value = event.currentTarget.value;
          if (findText.value === "") clearFind();
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") void find(!event.shiftKey);
          else if (event.key === "Escape") {
            clearFind();
            event.currentTarget.blur();
          } else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      {findError.value !== null && (
        <span class="find-error" role="alert" title={findError.value}>
          {findError.value}
        </span>
      )}
      {now !== null && !isOld && (
        <>
          <span id="find-count" role="status" data-count={now.count} data-hit={hit.value ?? ""}>
            {hit.value !== null && `${thousands(hit.value + 1)} of `}
            {now.count === 0 && now.quality === "exact"
              ? "none"
              : qualified(thousands(now.count), now.quality)}
          </span>
          <button class="text" aria-label="Previous hit" title="Previous hit   <" onClick={() => void stepHit(false)}>
            ‹
          </button>
          <button class="text" aria-label="Next hit" title="Next hit   >" onClick={() => void stepHit(true)}>
            ›
          </button>
        </>
      )}
    </span>
  );
}
