// SPDX-License-Identifier: Apache-2.0 OR MIT
// Pans and zooms the page for 300 frames, in to a millionth and out again, and tells each frame as a row:
// node pan.mjs URL SERVER_PID, rows on standard output.
//
// Events of the wheel are given to the page once a frame, as a hand on a wheel does; whatever the page does for them,
// drawing included, is in the lengths of frames.

import { browse, cell, load, memory, priority } from "./browser.mjs";

const FRAMES = 300;
const [url, server] = process.argv.slice(2);
const { browser, page, heap, firstPicture, version } = await browse(url);
// Lists have come, and what was compiled for the first time is.
const isStill = () => page.evaluate(() => document.documentElement.dataset.pending === "0");
while (!(await isStill())) await new Promise((done) => setTimeout(done, 50));
console.log("round,load,nice,frame,length_ms,input_ms,draw_ms,view_bytes,ns_per_px,long_scripts_ms");
for (let round = 1; round <= 3; round++) {
  const rows = await page.evaluate(async (frames) => {
    const area = document.querySelector(".timeline .canvas-area");
    const edge = area.getBoundingClientRect();
    const [clientX, clientY] = [edge.left + edge.width * 0.6, edge.top + edge.height * 0.3];
    const wheel = (by) =>
      area.dispatchEvent(new WheelEvent("wheel", { ...by, clientX, clientY, bubbles: true }));
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    // exp(0.0015 deltaY) is what a turn zooms by: 150 of these make a millionth.
    const step = Math.log(1e6) / 0.0015 / (frames / 2);
    const rows = [];
    await frame();
    spy.take();
    const long = [];
    for (let index = 0; index < frames; index++) {
      const begin = performance.now();
      wheel({ deltaY: index < frames / 2 ? -step : step });
      wheel({ deltaY: index % 60 < 30 ? 25 : -25, shiftKey: true });
      const input = performance.now() - begin;
      await frame();
      const now = spy.take();
      long.push(...now.long);
      const [t0, t1] = document.querySelector("canvas[data-view]").dataset.view.split(",").map(Number);
      const [length, draw, , stamp] = now.frames.at(-1) ?? [null, null, null, null];
      const bytes = now.views.length ? Math.max(...now.views) : null;
      rows.push([index, length, input, draw, bytes, (t1 - t0) / edge.width, stamp]);
    }
    // Long frames are told some time later.
    await new Promise((done) => setTimeout(done, 500));
    long.push(...spy.take().long);
    return rows.map((row) => {
      const stamp = row.pop();
      const [, , scripts = null] =
        long.find(([start, duration]) => stamp >= start && stamp <= start + duration) ?? [];
      return [...row, scripts];
    });
  }, FRAMES);
  for (const row of rows) console.log([round, load(), priority(), ...row].map(cell).join(","));
  while (!(await isStill())) await new Promise((done) => setTimeout(done, 50));
}
console.error(
  `Chromium ${version}, load ${load()}; first picture ${firstPicture.toFixed(0)} ms after the page was asked for; ` +
    `heap ${(await heap(true)).toFixed(1)} MB, server ${memory(server).toFixed(0)} MB`,
);
await browser.close();
