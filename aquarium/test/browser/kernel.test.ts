// SPDX-License-Identifier: Apache-2.0 OR MIT
// A kernel trace: thread states, wakeups, exits. Compares the page with the known contents of the
// trace, and with the output of `lat stats`.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { settled, shownView } from "../support/browser.ts";
import { BOSS, type Kernel, LAST_NS, VISIT, VISITOR, WORKER, kernel } from "../support/kernel.ts";
import { serve, told, whyNot } from "../support/lat.ts";
import { inChromium } from "../support/pages.ts";

let trace: Kernel;
const of = {
  serve: () => {
    trace = kernel();
    return serve(trace.folder);
  },
  missing: whyNot(),
};

inChromium("a trace of a kernel", of, (begin) => {
  const start = async (hash = "") => {
    const page = await begin(hash);
    await page.locator("#event-count").waitFor();
    await settled(page);
    return page;
  };
  const area = async (page: Page) => (await page.locator(".canvas-area").boundingBox())!;
  /** Centre of the row of thread states, which is the first row of the thread's lane. */
  const lane = async (page: Page, tid: number) => {
    const label = page.locator(".label", { has: page.locator("small", { hasText: String(tid) }) }).last();
    return (await label.boundingBox())!.y + 5 + 7;
  };
  const at = async (page: Page, tid: number, t: number) => {
    const [t0, t1] = await shownView(page);
    const { x, width } = await area(page);
    return { x: x + ((t - t0) / (t1 - t0)) * width, y: await lane(page, tid) };
  };
  const click = async (page: Page, tid: number, t: number) => {
    const { x, y } = await at(page, tid, t);
    await page.mouse.click(x, y);
    await settled(page);
  };
  const details = async (page: Page) => (await page.locator(".details").textContent())!;
  const wakes = async (page: Page) =>
    Number(await page.locator("canvas[data-wakes]").getAttribute("data-wakes"));
  /** Contents of a canvas in a time range in the row of a thread: for the lower canvas, the colours. */
  const drawn = async (page: Page, canvas: number, tid: number, from: number, to: number) => {
    const { x: left, y: top } = await area(page);
    const [a, b] = [await at(page, tid, from), await at(page, tid, to)];
    const box = { x: Math.round(a.x - left), y: Math.round(a.y - top), width: Math.round(b.x - a.x) };
    return page
      .locator(".canvas-area canvas")
      .nth(canvas)
      .evaluate((element: HTMLCanvasElement, { x, y, width }) => {
        const { data } = element.getContext("2d")!.getImageData(x, y - 5, width, 10);
        const found = new Map<string, number>();
        for (let at = 0; at < data.length; at += 4) {
          const colour = [...data.subarray(at, at + 4)].join(",");
          found.set(colour, (found.get(colour) ?? 0) + 1);
        }
        return [...found].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
      }, box);
  };

  test("from a thread that runs to the one that woke it, and back, with lines between both", async () => {
    const page = await start();
    const round = 3;
    const view = `#view=${trace.woken[round] - 50_000},${trace.woken[round] + 150_000}`;
    await page.evaluate((hash) => (location.hash = hash), view);
    await settled(page);
    await click(page, WORKER, trace.came[round] + 10_000);
    const running = await details(page);
    expect(running).toContain("running");
    expect(running).toMatch(/CPU1/);
    expect(running).toMatch(/Woken byboss 101/);
    expect(await wakes(page)).toBe(1);

    await page.locator(".details button.link").click();
    await settled(page);
    const boss = await details(page);
    expect(boss).toMatch(/CPU0/);
    // A line for each wakeup in the visible time, and a link for each of all wakeups.
    expect(await page.locator(".details button.link").count()).toBe(trace.woken.length);
    const [t0, t1] = await shownView(page);
    expect(await wakes(page)).toBe(trace.woken.filter((t) => t >= t0 && t <= t1).length);
    expect(await page.locator(".label.chosen").textContent()).toContain(String(BOSS));

    // With the keyboard only: the next wakeup is another one.
    await page.locator(".details button.link").nth(round + 1).focus();
    await page.keyboard.press("Enter");
    await settled(page);
    expect(await details(page)).toContain("runnable");
    expect(await details(page)).toMatch(/Woken byboss 101/);
    expect(await page.locator(".label.chosen").textContent()).toContain(String(WORKER));
  });

  test("a thread that waits names the wake-up that ends it, one for a device included", async () => {
    const page = await start(`#view=${trace.came[10]},${trace.came[11]}`);
    await click(page, WORKER, trace.came[10] + 60_000);
    expect(await details(page)).toContain("blocked");
    expect(await details(page)).toMatch(/Woken byboss 101/);
    // No details of a wait contain a CPU.
    expect(await details(page)).not.toMatch(/CPU\d/);
  });

  test("where a thread exits is marked, as often as lat stats reports it, and nothing is drawn after it", async () => {
    const page = await start(`#view=0,${4 * VISIT[1]}`);
    const stats = JSON.parse(told("stats", trace.folder, "--section", "thread-states", "--json"));
    const exited = stats.thread_states.filter((one: { has_ended: boolean }) => one.has_ended);
    expect(exited.map((one: { tid: number }) => one.tid).sort()).toEqual([WORKER, VISITOR]);
    await click(page, VISITOR, (VISIT[0] + VISIT[1]) / 2);
    expect(await details(page)).toContain("the thread exited");
    await page.keyboard.press("Escape");
    await page.mouse.move(0, 0);
    await settled(page);
    // The word, followed by nothing: the row is empty there.
    expect((await drawn(page, 1, VISITOR, VISIT[1] + 200, VISIT[1] + 2000)).length).toBeGreaterThan(1);
    expect(await drawn(page, 1, VISITOR, 3 * VISIT[1], 4 * VISIT[1] - 500)).toEqual(["0,0,0,0"]);
    const [empty] = await drawn(page, 0, VISITOR, 3 * VISIT[1], 3 * VISIT[1] + 500);
    const [running] = await drawn(page, 0, VISITOR, VISIT[0] + 500, VISIT[0] + 1500);
    expect(running).not.toBe(empty);
    expect(await drawn(page, 0, VISITOR, VISIT[1] + 500, VISIT[1] + 1500)).toContain(empty);
    // The boss sleeps at the end, which is not an exit.
    await page.evaluate((hash) => (location.hash = hash), `#view=${LAST_NS - 20_000},${LAST_NS}`);
    await settled(page);
    await click(page, BOSS, LAST_NS - 10_000);
    expect(await details(page)).not.toContain("exited");
  });

  test("the legend has the states of threads, keeps the focus, and what it covers stays still", async () => {
    const page = await start();
    const before = await shownView(page);
    await page.keyboard.press("e");
    const legend = page.getByRole("dialog", { name: "Legend" });
    await legend.waitFor();
    const text = (await legend.textContent())!;
    for (const state of ["running", "runnable", "preempted", "sleeping", "blocked", "stopped", "unknown", "exited"])
      expect(text).toContain(state);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.closest("[role=dialog]") !== null)).toBe(true);
    await page.keyboard.press("w");
    expect(await shownView(page)).toEqual(before);
    await page.keyboard.press("Escape");
    await legend.waitFor({ state: "detached" });
    await page.keyboard.press("w");
    expect((await shownView(page))[1]).toBeLessThan(before[1]);
  });
});
