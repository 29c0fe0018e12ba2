// SPDX-License-Identifier: Apache-2.0 OR MIT
// Comparison of two recordings in a real Chromium.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { DARK_THEME } from "../../src/logic/colour.ts";
import { settled, shownView } from "../support/browser.ts";
import { inChromium, made } from "../support/pages.ts";
import { FakeServer } from "../support/server.ts";
import { makeTrace } from "../support/trace.ts";

const DIFFERENCE = {
  kind: "span",
  name: "lookup",
  what: "median",
  is_worse: true,
  is_time: true,
  before: 2000,
  after: 3000,
  ratio: 1.5,
  ratio_least: 1.4,
  ratio_most: 1.6,
  explained: 40_000,
  probability: 1e-9,
  count_before: 20,
  count_after: 22,
  quality: "exact",
};

const traces = [makeTrace(1), makeTrace(7, 3_000_000)];
const server = new FakeServer(traces[0]);
server.sides = traces.map((trace) => new FakeServer(trace));
for (const side of server.sides) {
  side.more = [
    { id: 90, parent: 0, kind: "counter", name: "free", rows: [{ row: 0, kind: "level", name: "free" }] },
  ];
  side.counters = [{ id: 0, name: "free", lane: 90 }];
}
server.compared = {
  differences: [DIFFERENCE, { ...DIFFERENCE, name: "retry", before: 0, ratio: null }],
  perhaps: [],
  count: 2,
  compared: 12,
  threshold: 0.05,
  events: [100, 110],
  seconds: [0.002, 0.003],
  is_lossy: [false, false],
  pace: null,
};

inChromium("two recordings", made(server), (begin) => {
  const start = async (hash = "") => {
    const page = await begin(hash);
    await page.locator(".half.bad .label").first().waitFor();
    await settled(page);
    return page;
  };
  const views = (side: number) =>
    server.requests
      .filter((one) => one.method === "view" && one.params.side === side)
      .map((one) => one.params);
  const drawn = (page: Page, which: string) =>
    expect
      .poll(async () =>
        Number(await page.locator(`.half.${which} canvas[data-rows]`).getAttribute("data-rows")),
      )
      .toBeGreaterThan(0);

  test("of different times stand one above the other at once, and one time line is a click away", async () => {
    const page = await start();
    await drawn(page, "good");
    await drawn(page, "bad");
    expect(await page.getByRole("tab").allTextContents()).toEqual(["Changes", "Histograms", "Difference"]);
    await page.getByRole("button", { name: "one time line" }).click();
    await page.getByRole("region", { name: "Timeline" }).waitFor();
    expect((await page.getByRole("tab").allTextContents())[0]).toContain("Events");
    await page.keyboard.press("c");
    await drawn(page, "good");
    await drawn(page, "bad");
  });

  test("move and zoom together, and are aligned at what was selected in each", async () => {
    const page = await start();
    await drawn(page, "good");
    const whole = await shownView(page);
    for (let step = 0; step < 3; step++) await page.keyboard.press("w");
    const view = await shownView(page);
    expect(view[1] - view[0]).toBeLessThan((whole[1] - whole[0]) / 2);
    for (const side of [0, 1]) {
      const { t0, t1 } = views(side).at(-1)!;
      expect(t0 <= view[0] && t1 >= view[1] && t1 - t0 < 8 * (view[1] - view[0])).toBe(true);
    }
    // Align at the first ALLOC of both.
    await page.getByRole("combobox", { name: "0 is" }).selectOption({ label: "memory:ALLOC" });
    const first = traces.map((trace) => trace.events.find((one) => one.class === 4)!.t);
    await expect.poll(() => page.evaluate(() => location.hash)).toContain(`compared=0,1,${first.join(",")}`);
    await settled(page);
    // A position on the screen is equally far from the anchors of both.
    const asked = async (which: string) => {
      const count = server.requests.filter((one) => one.method === "at").length;
      const area = (await page.locator(`.half.${which} .canvas-area`).boundingBox())!;
      await page.mouse.click(area.x + 300, area.y + 14);
      const at = () => server.requests.filter((one) => one.method === "at");
      await expect.poll(() => at().length).toBe(count + 1);
      return at().pop()!.params.t;
    };
    expect((await asked("bad")) - (await asked("good"))).toBe(first[1] - first[0]);
  });

  test("what was clicked in one is told, and can be put at 0", async () => {
    const page = await start();
    await drawn(page, "bad");
    const area = (await page.locator(".half.bad .canvas-area").boundingBox())!;
    const label = (await page.locator(".half.bad .label", { hasText: "core 0" }).boundingBox())!;
    await page.mouse.click(area.x + area.width * 0.5, label.y + 5 + 9);
    const button = page.locator(".half.bad header button");
    await button.waitFor();
    expect(await page.locator(".details").textContent()).toContain("running");
    const begin = server.requests.filter((one) => one.method === "at").pop()!.params;
    expect(begin.side).toBe(1);
    await button.click();
    await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/compared=0,1,0,[1-9]/);
  });

  test("changes are ranked; a span leads to its histograms; the difference is a sunburst", async () => {
    const page = await start();
    const rows = page.getByRole("table", { name: "What is different" }).locator("tbody tr");
    await rows.first().waitFor();
    expect(await rows.first().textContent()).toContain("▲ +50 %");
    expect(await rows.nth(1).textContent()).toContain("new");
    await rows.first().click();
    await page.getByRole("img", { name: "Histograms of lookup in both recordings" }).waitFor();
    await page.getByRole("tab", { name: "Difference" }).click();
    await page.locator(".flame .flame-box").first().waitFor();
    await page.getByRole("combobox", { name: "as" }).selectOption("sunburst");
    await expect.poll(() => page.locator(".sunburst path").count()).toBe(4);
    await page.locator('.sunburst .flame-box[data-name="lookup"]').hover();
    await expect.poll(() => page.locator(".facts").textContent()).toContain("lookup");
  });

  test("have their messages as arrows, and their counters", async () => {
    const page = await start();
    const arrows = (which: string) =>
      page.locator(`.half.${which} canvas[data-arrows]`).getAttribute("data-arrows").then(Number);
    for (const which of ["good", "bad"]) await expect.poll(() => arrows(which)).toBeGreaterThan(0);
    for (const which of ["good", "bad"]) {
      const lane = page.locator(`.half.${which} .label`, { hasText: "free" });
      const { y, height } = (await lane.boundingBox())!;
      const canvas = page.locator(`.half.${which} canvas`).first();
      const top = y - (await canvas.boundingBox())!.y;
      // The line of a counter has a colour that no event or application has here.
      const columns = await canvas.evaluate(
        (element: HTMLCanvasElement, [top, height, rgb]) => {
          const { data } = element.getContext("2d")!.getImageData(0, top, element.width, height);
          const found = new Set<number>();
          for (let at = 0; at < data.length; at += 4)
            if (rgb.every((one, part) => Math.abs(data[at + part] - one) < 40))
              found.add((at / 4) % element.width);
          return found.size;
        },
        [Math.round(top), Math.round(height), DARK_THEME.palette[2]] as const,
      );
      expect(columns).toBeGreaterThan(100);
    }
    await page.keyboard.press("m");
    for (const which of ["good", "bad"]) await expect.poll(() => arrows(which)).toBe(0);
  });

  test("a link opens both as they were aligned", async () => {
    const page = await start("#view=-1000,50000&compared=0,1,5000,9000");
    await expect.poll(() => page.evaluate(() => location.hash)).toContain("view=-1000,50000");
    await expect.poll(() => views(1).pop()!.t0 <= 8000 && views(1).pop()!.t1 >= 59000).toBe(true);
  });
});
