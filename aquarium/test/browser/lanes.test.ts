// SPDX-License-Identifier: Apache-2.0 OR MIT
// Visibility, order and summaries of lanes of a kernel trace, compared with the output of `lat
// stats`; functions of the wheel.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { duration, qualified } from "../../src/logic/units.ts";
import { settled, shownView } from "../support/browser.ts";
import { type Kernel, LAST_NS, VISIT, VISITOR, WORKER, kernel } from "../support/kernel.ts";
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

inChromium("lanes of a trace of a kernel", of, (begin) => {
  const start = async (hash = "") => {
    const page = await begin(hash);
    await page.locator("#event-count").waitFor();
    await settled(page);
    return page;
  };
  const press = async (page: Page, key: string) => {
    await page.keyboard.press(key);
    await settled(page);
  };
  const names = (page: Page) => page.locator(".label .lane-name").allTextContents();
  const hash = (page: Page) => page.evaluate(() => location.hash);
  const CPUS = ["CPU 0", "CPU 1"];
  const twice = (...names: string[]) => [...CPUS, ...names.flatMap((name) => [name, name])];

  test("are ordered by what they have in the shown time, and a link keeps the order", async () => {
    const page = await start();
    expect(await names(page)).toEqual(twice("boss", "visitor", "worker"));
    const stats = JSON.parse(told("stats", trace.folder, "--section", "thread-states", "--json"));
    const ran = stats.thread_states.map((one: { thread: string; running_ns: number }) => one);
    ran.sort((a: { running_ns: number }, b: { running_ns: number }) => b.running_ns - a.running_ns);
    await press(page, "o");
    expect(await names(page)).toEqual(twice(...ran.map((one: { thread: string }) => one.thread)));
    expect(await hash(page)).toContain("order=cpu");
    await press(page, "o");
    expect(await names(page)).toEqual(twice("boss", "visitor", "worker"));
    await press(page, "o");
    await press(page, "o");
    // The worker has most items.
    expect((await names(page))[2]).toBe("worker");
    // The order depends on the visible time: only the boss ran there.
    const quiet = await start(`#view=${LAST_NS / 2},${LAST_NS}&order=activity`);
    expect((await names(quiet))[2]).toBe("boss");
  });

  test("are left out where they are empty, counted, and come back", async () => {
    const page = await start(`#view=${3 * VISIT[1]},${LAST_NS}`);
    expect(await names(page)).toEqual(twice("boss", "visitor", "worker"));
    await press(page, "h");
    expect(await names(page)).toEqual(twice("boss", "worker"));
    const hidden = page.locator(".empty-lanes");
    expect(await hidden.textContent()).toBe("2 hidden");
    expect(await hash(page)).toContain("empty=hidden");
    // Lanes whose contents are filtered out are empty as well.
    await page.locator(".tree-line", { hasText: "worker" }).last().click();
    await settled(page);
    expect(await names(page)).toEqual(["CPU 0", "CPU 1", "boss", "boss"]);
    expect(await hidden.textContent()).toBe("4 hidden");
    await hidden.click();
    await settled(page);
    expect(await names(page)).toEqual(twice("boss", "visitor", "worker"));
    expect(await hidden.count()).toBe(0);
    // The lane of a sleeping thread is empty, unless it is selected.
    const asleep = await start(`#view=${trace.came[3] + 40_000},${trace.came[3] + 70_000}&empty=hidden`);
    expect(await names(asleep)).toEqual(["CPU 0", "boss", "boss"]);
  });

  test("of processes say how long their threads ran, as lat stats does", async () => {
    const page = await start();
    const stats = JSON.parse(told("stats", trace.folder, "--section", "thread-states", "--json"));
    for (const tid of [WORKER, VISITOR]) {
      const one = stats.thread_states.find((one: { tid: number }) => one.tid === tid);
      const text = qualified(duration(one.running_ns), one.not_exact.running_ns);
      const titles = page.locator(`.label .lane-name[title*="${one.thread} (process)"]`);
      expect(await titles.first().getAttribute("title")).toContain(`1 thread ran ${text}, `);
    }
    expect(trace.worked).toBe(
      stats.thread_states.find((one: { tid: number }) => one.tid === WORKER).running_ns,
    );
  });

  test("are all collapsed, and expanded again", async () => {
    const page = await start();
    await press(page, "z");
    expect(await names(page)).toEqual([...CPUS, "boss", "visitor", "worker"]);
    await press(page, "x");
    expect(await names(page)).toEqual(twice("boss", "visitor", "worker"));
    // The menu has the same function, also with the keyboard only.
    await page.locator(".lanes-menu summary").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Collapse all" }).press("Enter");
    await settled(page);
    expect(await names(page)).toEqual([...CPUS, "boss", "visitor", "worker"]);
    await page.getByRole("combobox", { name: "Sort lanes by" }).selectOption("cpu");
    await settled(page);
    expect(await names(page)).toEqual([...CPUS, "boss", "worker", "visitor"]);
    await page.keyboard.press("Escape");
    expect(await page.getByRole("button", { name: "Collapse all" }).isVisible()).toBe(false);
  });

  test("are scrolled by the wheel, which zooms with Ctrl; or the other way round, as chosen", async () => {
    const page = await start();
    await page.setViewportSize({ width: 1000, height: 480 });
    await settled(page);
    const area = (await page.locator(".canvas-area").boundingBox())!;
    await page.mouse.move(area.x + 300, area.y + 60);
    const scrolled = () => page.locator(".lanes").evaluate((lanes) => lanes.scrollTop);
    const wheel = async (control: boolean) => {
      if (control) await page.keyboard.down("Control");
      await page.mouse.wheel(0, 100);
      if (control) await page.keyboard.up("Control");
      await settled(page);
    };
    const before = await shownView(page);
    await wheel(false);
    await expect.poll(scrolled).toBeGreaterThan(0);
    expect(await shownView(page)).toEqual(before);
    await page.keyboard.press("w");
    const near = await shownView(page);
    const at = await scrolled();
    await wheel(true);
    expect((await shownView(page))[1]).toBeGreaterThan(near[1]);
    expect(await scrolled()).toBe(at);
    await page.locator(".lanes-menu summary").click();
    await page.getByRole("combobox", { name: /wheel does/ }).selectOption("zooms");
    await page.keyboard.press("Escape");
    await page.mouse.move(area.x + 300, area.y + 60);
    await press(page, "w");
    const nearer = await shownView(page);
    await wheel(false);
    expect((await shownView(page))[1]).toBeGreaterThan(nearer[1]);
    expect(await scrolled()).toBe(at);
    await page.evaluate(() => localStorage.clear());
  });
});
