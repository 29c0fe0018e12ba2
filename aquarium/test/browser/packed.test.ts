// SPDX-License-Identifier: Apache-2.0 OR MIT
// A lane with more overlapping spans than there are rows to draw: its last row represents several,
// says so, and its height shows their number. The expected items under the pointer are counted from
// the generated trace.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { settled, shownView } from "../support/browser.ts";
import { BURSTS, type Request, deep, requests } from "../support/deep.ts";
import { serve, whyNot } from "../support/lat.ts";
import { inChromium } from "../support/pages.ts";

/** Number of rows that are drawn separately; the next one contains all deeper ones. */
const DRAWN = 255;

const ALL = requests();
/** Requests that are open at a time in the last row. */
const under = (t: number): Request[] =>
  ALL.filter((one) => one.row >= DRAWN && one.begin <= t && t <= one.end);

/** Finds the same spans by their names; their rows are below those of the schema. */
const SCRIPT = `const open = new Set();
activity("found", (event, activity) => {
  const { number } = event.fields;
  if (event.name === "carry") return;
  if (open.delete(number)) return activity.end(number);
  open.add(number);
  activity.begin(number);
});`;

const many = { serve: () => serve(deep()), missing: whyNot() };
const area = async (page: Page) => (await page.locator(".canvas-area").boundingBox())!;
const label = (page: Page) => page.locator(".label small.packed").last();

inChromium("spans that overlap more often than there are rows", many, (begin) => {
  const toEnd = async (page: Page) => {
    await page.locator("#event-count").waitFor();
    await page.locator(".lanes").evaluate((lanes) => (lanes.scrollTop = lanes.scrollHeight));
    await settled(page);
  };

  const ofSchema = async () => {
    const page = await begin();
    await toEnd(page);
    return page;
  };

  test("are said to be several rows, beside the row and not below the name of the lane", async () => {
    const page = await ofSchema();
    expect(await label(page).allTextContents()).toEqual([`${BURSTS[2] - DRAWN} rows in one`]);
    expect(await label(page).getAttribute("title")).toContain(`${BURSTS[2] - DRAWN} rows`);
    // The window is so low that most of the lane is scrolled out: its name ends above the label of
    // the packed row.
    await page.setViewportSize({ width: 700, height: 420 });
    await toEnd(page);
    const [name, packed] = await page.evaluate(() => {
      const said = document.querySelector(".label small.packed")!;
      const line = said.closest(".label")!.querySelector(".label-line")!;
      return [line, said].map((one) => one.getBoundingClientRect().toJSON() as DOMRect);
    });
    expect(name.bottom).toBeLessThanOrEqual(packed.top);
    expect(packed.left).toBeGreaterThan(name.left);
  });

  const ofScript = async () => {
    const page = await begin();
    await page.getByRole("tab", { name: "Scripts" }).click();
    await page.getByRole("button", { name: "new" }).click();
    await page.getByRole("textbox", { name: "Script script 1" }).fill(SCRIPT);
    await page.getByRole("button", { name: "run", exact: true }).click();
    await expect.poll(() => page.locator(".label small.packed").count()).toBe(2);
    await toEnd(page);
    return page;
  };

  const STARTS = [
    { of: "a schema", start: ofSchema, told: "span", field: /^number/ },
    { of: "a script", start: ofScript, told: "activity", field: /^key/ },
  ];
  test.for(STARTS)("of $of are as high as there are many, without a name of one of them", async ({ start }) => {
    const page = await start();
    const [t0, t1] = await shownView(page);
    const { y: top, width } = await area(page);
    const { y, height } = (await label(page).boundingBox())!;
    /** Number of coloured pixels of the row at a position, on the canvas of bars or on that of names. */
    const coloured = (canvas: number, x: number) =>
      page
        .locator(".canvas-area canvas")
        .nth(canvas)
        .evaluate(
          (element: HTMLCanvasElement, { x, y, height }) => {
            const { data } = element.getContext("2d")!.getImageData(x, y, 1, height);
            const pixels = Array.from({ length: height }, (_, line) => data.subarray(4 * line, 4 * line + 4));
            const [most, least] = [Math.max, Math.min];
            // On the canvas of names, all pixels that are not transparent.
            const is = ([r, g, b, a]: Uint8ClampedArray) =>
              a < 255 ? a > 0 : most(r, g, b) - least(r, g, b) > 40;
            return pixels.filter(is).length;
          },
          { x, y: Math.round(y - top), height: Math.round(height) },
        );
    const seen = new Map<number, number>();
    for (let x = 4; x < width - 4; x += 3) {
      const t = t0 + (x / width) * (t1 - t0);
      const near = [-2, 0, 2].map((by) => under(t + (by / width) * (t1 - t0)).length);
      // At the edge of a column, either of two numbers is correct.
      if (new Set(near).size === 1) seen.set(near[0], await coloured(0, x));
      expect(await coloured(1, x)).toBe(0);
    }
    const most = Math.max(...seen.keys());
    expect(most).toBeGreaterThan(100);
    expect(seen.get(0)).toBe(0);
    const few = Math.min(...[...seen.keys()].filter((many) => many > 0));
    expect(seen.get(few)).toBeGreaterThan(0);
    expect(seen.get(most)).toBeGreaterThan(seen.get(few)! + 2);
  });

  test.for(STARTS)("of $of are found by the pointer one by one", async ({ start, told, field }) => {
    const page = await start();
    const [t0, t1] = await shownView(page);
    const { x: left, width } = await area(page);
    const { y, height } = (await label(page).boundingBox())!;
    const found = new Set<number>();
    for (let step = 1; step < 40; step++) {
      const x = Math.round((width * step) / 40);
      const [first] = under(Math.round(t0 + (x / width) * (t1 - t0)));
      await page.mouse.move(left + x, y + height / 2);
      await settled(page);
      const number = page.locator(".tooltip dl > div").filter({ hasText: field });
      if (first === undefined) continue;
      expect(await number.locator("dd").textContent()).toBe(String(ALL.indexOf(first)));
      expect(await page.locator(".tooltip h3").textContent()).toContain(told);
      found.add(first.row);
    }
    // Including spans that are not in the first of its rows.
    expect(found.size).toBeGreaterThan(3);
  });
});
