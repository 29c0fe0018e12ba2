// SPDX-License-Identifier: Apache-2.0 OR MIT
// Links from the selected thread state to the waker of the thread, and to the threads that it woke.

import { instant, thousands } from "../../logic/units.ts";
import { threadText, wakerText } from "../../logic/wakes.ts";
import type { Thing, Woken } from "../../protocol/types.ts";
import { goToState } from "../../state/actions.ts";

export function Scheduling({ thing }: { thing: Thing }) {
  const by = thing.woken_by;
  const wakes = thing.wakes;
  if (!by && !wakes) return null;
  const more = wakes ? wakes.count - wakes.threads.length : 0;
  return (
    <div class="scheduling">
      {by && (
        <>
          <h4>Woken by</h4>
          <Link to={by} text={wakerText(by)} />
        </>
      )}
      {wakes && (
        <>
          <h4>Wakes</h4>
          {wakes.threads.map((one) => (
            <Link key={`${one.lane} ${one.at}`} to={one} text={threadText(one)} />
          ))}
          {more > 0 && (
            <p class="faint">
              {wakes.is_cut ? "at least " : ""}
              {thousands(more)} more
            </p>
          )}
        </>
      )}
    </div>
  );
}

/** A thread without a lane has no link target. */
function Link({ to, text }: { to: Woken; text: string }) {
  const { lane, at } = to;
  if (lane == null) {
    return (
      <p>
        {text} <small>{instant(at)}</small>
      </p>
    );
  }
  return (
    <button class="link" title={`Go to what ${text} did then`} onClick={() => void goToState(lane, at)}>
      {text} <small>{instant(at)}</small>
    </button>
  );
}
