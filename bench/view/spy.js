// SPDX-License-Identifier: Apache-2.0 OR MIT
// Put into the page before anything of it runs: how long its frames and its drawing take, how much comes over the
// wire, and how old the newest event is that is painted. `spy.take()` gives what happened since it was last called.

(() => {
  // Whatever does not happen in a background tab, either, is no work of the page.
  const empty = () => ({ frames: [], views: [], long: [], grown: 0, events: 0, gone: 0, lost: 0 });
  let now = empty();
  let [origin, drawn, last, until] = [null, 0, null, null];

  const request = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (act) =>
    request((stamp) => {
      const begin = performance.now();
      try {
        act(stamp);
      } finally {
        drawn += performance.now() - begin;
      }
    });

  window.WebSocket = class extends WebSocket {
    constructor(...words) {
      super(...words);
      this.addEventListener("message", ({ data }) => {
        if (typeof data !== "string") return void now.views.push(data.byteLength);
        if (data.includes('"origin"')) origin = BigInt(data.match(/"origin": ?"(-?\d+)"/)?.[1] ?? 0);
        if (!data.includes('"grown"')) return;
        const told = JSON.parse(data);
        if (told.event !== "grown") return;
        now.grown++;
        [now.events, now.gone] = [told.events, told.gone.events];
        for (const loss of told.losses) now.lost += loss.count ?? 0;
      });
    }
  };

  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const ofScripts = entry.scripts.reduce((sum, one) => sum + one.duration, 0);
      now.long.push([entry.startTime, entry.duration, ofScripts]);
    }
  }).observe({ type: "long-animation-frame" });

  // One turn for each frame: how long after the one before, what drawing took, and how old what it shows is.
  const turn = (stamp) => {
    const told = document.querySelector("canvas[data-until]")?.dataset.until ?? null;
    if (told !== null) until = Number(told);
    const age =
      origin === null || until === null
        ? null
        : Number(
            BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6)) - origin - BigInt(until),
          ) / 1e6;
    if (last !== null) now.frames.push([stamp - last, drawn, age, stamp]);
    [last, drawn] = [stamp, 0];
    request(turn);
  };
  request(turn);

  window.spy = {
    take() {
      const taken = now;
      now = { ...empty(), events: taken.events, gone: taken.gone };
      return taken;
    },
  };
})();
