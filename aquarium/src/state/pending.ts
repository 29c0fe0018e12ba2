// SPDX-License-Identifier: Apache-2.0 OR MIT
// Number of unfinished tasks: requests without a response, and delayed updates. The root element of
// the page contains it as `data-pending`, so that tests and scripts wait for the page instead of a
// fixed time.

let pending = 0;

function tell(change: number): void {
  pending += change;
  document.documentElement.dataset.pending = String(pending);
}

/** Starts a task. Call the returned function when it is done; further calls do nothing. */
export function begun(): () => void {
  let isDone = false;
  tell(1);
  return () => {
    if (isDone) return;
    isDone = true;
    tell(-1);
  };
}
