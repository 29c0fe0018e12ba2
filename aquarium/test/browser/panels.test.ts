// SPDX-License-Identifier: Apache-2.0 OR MIT
// Panels with statistics in a real Chromium: histogram and brush, flame graph and sunburst.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { settled } from "../support/browser.ts";
import { inChromium, made } from "../support/pages.ts";
import { FakeServer } from "../support/server.ts";
import { kindsOf, matching, spansOf } from "../support/spans.ts";
import { NAMES, makeTrace } from "../support/trace.ts";

const trace = makeTrace();
const server = new FakeServer(trace);

inChromium("panels", made(server), (begin) => {
  const start = async (tab: string) => {
    const page = await begin(`#tab=${tab}`);
    await page.locator("#event-count").waitFor();
    await settled(page);
    return page;
  };
  const listed = (page: Page) =>
    page.locator('[role="grid"][aria-label="Activities"]').getAttribute("aria-rowcount").then(Number);
  const pulses = (page: Page) => page.locator("canvas.pulses").getAttribute("data-pulses").then(Number);

  test("a brushed range of a histogram filters the list and pulses on the timeline", async () => {
    const page = await start("histogram");
    await page.locator(".plot canvas").waitFor();
    await settled(page);
    expect(await pulses(page)).toBe(0);
    const box = (await page.locator(".plot .u-over").boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await page.locator(".chip").waitFor();
    await expect.poll(() => pulses(page)).toBeGreaterThan(0);
    await page.getByRole("tab", { name: "Activities" }).click();
    const asked = server.requests.filter((one) => one.method === "brushed").pop()!.params;
    const expected = matching(trace, asked).length;
    expect(expected).toBeGreaterThan(0);
    expect(expected).toBeLessThan(kindsOf(trace)[asked.kind].count);
    await expect.poll(() => listed(page)).toBe(expected);
    // Without the brush, all kinds are listed, and no marks pulse.
    await page.getByRole("button", { name: /^Brush no durations/ }).click();
    await expect.poll(() => listed(page)).toBe(spansOf(trace).length);
    await expect.poll(() => pulses(page)).toBe(0);
  });

  test("a range is brushed with the keyboard alone", async () => {
    const page = await start("histogram");
    await page.locator(".plot canvas").waitFor();
    await settled(page);
    await page.locator(".plot").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Shift+ArrowRight");
    await page.locator(".chip").waitFor();
    const asked = () => server.requests.filter((one) => one.method === "brushed").pop()?.params;
    const histogram = server.requests.filter((one) => one.method === "histogram").pop()!.params;
    expect(histogram.bins).toBe(80);
    await expect.poll(() => (asked()?.most ?? 0) > (asked()?.least ?? 0)).toBe(true);
    await page.keyboard.press("Escape");
    await page.locator(".chip").waitFor({ state: "detached" });
  });

  test("latency versus count has as many as there are", async () => {
    const page = await start("histogram");
    await page.locator(".plot canvas").waitFor();
    await settled(page);
    await page.getByRole("combobox", { name: "as" }).selectOption("curve");
    await settled(page);
    const box = (await page.locator(".plot .u-over").boundingBox())!;
    await page.mouse.move(box.x + 1, box.y + 40);
    const most = [...kindsOf(trace)].sort((a, b) => b.count - a.count)[0];
    await expect
      .poll(() => page.locator(".plot").getAttribute("title"))
      .toContain(`or longer: ${most.count}`);
  });

  test("a flame graph has each span once; a click zooms and shows its kind everywhere", async () => {
    const page = await start("flame");
    const boxes = page.locator(".flame .flame-box");
    await expect.poll(() => boxes.count()).toBe(5);
    expect(
      new Set(await boxes.evaluateAll((all) => all.map((one) => (one as SVGElement).dataset.name))),
    ).toEqual(new Set(["all", "request", "parse", "lookup", "reply"]));
    const wide = async (name: string) =>
      (await page.locator(`.flame-box[data-name="${name}"] rect`).boundingBox())!.width;
    const before = await wide("parse");
    await page.locator('.flame-box[data-name="parse"]').click();
    await expect.poll(() => wide("parse")).toBeGreaterThan(before * 1.5);
    const parse = NAMES.indexOf("parse");
    await expect.poll(() => pulses(page)).toBeGreaterThan(0);
    await page.getByRole("tab", { name: "Activities" }).click();
    await expect.poll(() => listed(page)).toBe(kindsOf(trace)[parse].count);
  });

  test("the same as a sunburst, by keyboard", async () => {
    const page = await start("flame");
    await page.locator(".flame .flame-box").first().waitFor();
    await page.getByRole("combobox", { name: "as" }).selectOption("sunburst");
    await expect.poll(() => page.locator(".sunburst path").count()).toBe(4);
    await page.locator(".sunburst").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    const facts = page.locator(".facts");
    await expect.poll(() => facts.textContent()).toMatch(/inside\s*request/);
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".sunburst path").count()).toBe(0);
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator(".sunburst path").count()).toBe(4);
  });
});
