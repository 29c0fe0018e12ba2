// SPDX-License-Identifier: Apache-2.0 OR MIT
// How much of what was begun is not done: requests without an answer, and what waits for a moment's rest. It stands
// on the page's root as `data-pending`, so that tests and scripts wait for the page instead of for a clock.

let pending = 0;

function tell(change: number): void {
  pending += change;
  document.documentElement.dataset.pending = String(pending);
}

/** Something has begun. Call what is returned when it is done; a second time it does nothing. */
export function begun(): () => void {
  let isDone = false;
  tell(1);
  return () => {
    if (isDone) return;
    isDone = true;
    tell(-1);
  };
}
