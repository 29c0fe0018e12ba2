// SPDX-License-Identifier: Apache-2.0 OR MIT
// Follows a recording that grows in Chromium, and tells each second as a row:
// node follow-page.mjs URL SERVER_PID SECONDS, rows on standard output.

import { at, browse, cell, load, memory, priority } from "./browser.mjs";

const [url, server, seconds] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const GARBAGE_EVERY_S = 10;
const { browser, page, heap } = await browse(url);
await page.evaluate(() => spy.take());
const begun = performance.now();
for (let second = 1; second <= seconds; second++) {
  await new Promise((done) => setTimeout(done, Math.max(0, begun + second * 1000 - performance.now())));
  const [now, held] = [await page.evaluate(() => spy.take()), await heap(false)];
  const [lengths, draws, ages] = [0, 1, 2].map((index) => now.frames.map((frame) => frame[index]));
  const known = ages.filter((age) => age !== null);
  const row = {
    second,
    load: load(),
    nice: priority(),
    server_mb: memory(server),
    heap_mb: held,
    heap_kept_mb: second % GARBAGE_EVERY_S === 0 ? await heap(true) : null,
    frames: now.frames.length,
    age_median_ms: at(known, 0.5),
    age_p99_ms: at(known, 0.99),
    age_longest_ms: at(known, 1),
    frame_longest_ms: at(lengths, 1),
    draw_p95_ms: at(draws, 0.95),
    answer_bytes_most: at(now.views, 1),
    answers: now.views.length,
    words: now.grown,
    events: now.events,
    gone: now.gone,
    lost: now.lost,
  };
  if (second === 1) console.log(Object.keys(row).join(","));
  console.log(Object.values(row).map(cell).join(","));
}
await browser.close();
