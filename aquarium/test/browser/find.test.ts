// SPDX-License-Identifier: Apache-2.0 OR MIT
// The find box in Chromium. Lines of `lat print` are the answer.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { settled, shownView } from "../support/browser.ts";
import { type Printed, demo, print, serve, told, whyNot } from "../support/lat.ts";
import { inChromium } from "../support/pages.ts";

let folder: string;
let lines: Printed[];
const of = {
  serve: () => {
    folder = demo();
    lines = print(folder).filter((line) => line.name !== "lateralis:WRITER");
    return serve(folder);
  },
  missing: whyNot(),
};

inChromium("the find box", of, (begin) => {
  const start = async () => {
    const page = await begin();
    await page.locator("#event-count").waitFor();
    await settled(page);
    return page;
  };
  const find = async (page: Page, text: string) => {
    await page.locator("#find").fill(text);
    await page.keyboard.press("Enter");
    await settled(page);
  };
  const counted = (page: Page) => page.locator("#find-count").getAttribute("data-count").then(Number);
  const hit = (page: Page) => page.locator("#find-count").getAttribute("data-hit").then(Number);
  /** Pixels at the top of the mini-map that are not as they were. */
  const top = (page: Page) =>
    page.locator(".minimap canvas").evaluate((element: HTMLCanvasElement) => {
      const { data } = element.getContext("2d")!.getImageData(0, 2, element.width, 1);
      return Array.from({ length: data.length / 4 }, (_, at) => data.slice(4 * at, 4 * at + 3).join());
    });

  test("an expression has as many hits as lat print has lines, and each is selected in its turn", async () => {
    const page = await start();
    const before = await top(page);
    await page.keyboard.press("Control+f");
    await page.keyboard.type("id == 7");
    await page.keyboard.press("Enter");
    await settled(page);
    const times = told("print", folder, "--where", "id == 7", "--format", "json")
      .split("\n")
      .filter((line) => line !== "").length;
    expect(times).toBeGreaterThan(3);
    expect(await counted(page)).toBe(times);
    expect(await hit(page)).toBe(0);
    const marked = (await top(page)).filter((colour, at) => colour !== before[at]).length;
    expect(marked).toBeGreaterThan(0);
    expect(marked).toBeLessThan(before.length / 2);
    const hits = lines.filter((line) => String(line.fields.id) === "7");
    expect(hits.length).toBe(times);
    const details = page.locator(".details h3");
    expect(await details.textContent()).toContain(hits[0].name.split(":")[1]);
    await page.keyboard.press("Enter");
    await settled(page);
    expect(await hit(page)).toBe(1);
    await page.keyboard.press("Shift+Enter");
    await settled(page);
    expect(await hit(page)).toBe(0);
    // The keys of the timeline, once the box has not the focus.
    await page.locator(".canvas-area").focus();
    for (let at = 1; at < times; at++) {
      await page.keyboard.press(">");
      await settled(page);
      expect(await hit(page)).toBe(at);
      const [t0, t1] = await shownView(page);
      expect(hits[at].since).toBeGreaterThanOrEqual(t0);
      expect(hits[at].since).toBeLessThanOrEqual(t1);
    }
    await page.keyboard.press("<");
    await settled(page);
    expect(await hit(page)).toBe(times - 2);
    expect(await page.locator(".list-row.chosen").count()).toBe(1);
  });

  test("a part of a name finds events, and spans that begin with another", async () => {
    const page = await start();
    await find(page, "QUEUE");
    expect(await counted(page)).toBe(lines.filter((line) => line.name === "warehouse:QUEUE").length);
    await find(page, "request");
    expect(await counted(page)).toBe(lines.filter((line) => line.name === "client:ORDER").length);
    await find(page, "nothing like this");
    expect(await page.locator("#find-count").textContent()).toBe("none");
    await page.keyboard.press("Escape");
    expect(await page.locator("#find").inputValue()).toBe("");
    expect(await page.locator("#find-count").count()).toBe(0);
  });

  test("a time is gone to, and what cannot be read is said", async () => {
    const page = await start();
    await page.locator(".canvas-area").focus();
    for (let turn = 0; turn < 12; turn++) await page.keyboard.press("w");
    await settled(page);
    const line = lines[Math.floor(lines.length / 5)];
    await find(page, `@${line.time}`);
    const [t0, t1] = await shownView(page);
    expect(t0).toBeLessThanOrEqual(line.since);
    expect(t1).toBeGreaterThanOrEqual(line.since);
    expect(t1 - t0).toBeLessThan(lines[lines.length - 1].since / 2);
    await find(page, "id ==");
    expect(await page.getByRole("alert").textContent()).toContain("cannot understand");
    expect(await page.locator("#find-count").count()).toBe(0);
  });
});
