// SPDX-License-Identifier: Apache-2.0 OR MIT
// Tables of a range in Chromium. `lat stats` of the same range is the answer.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { settled, shownView } from "../support/browser.ts";
import { demo, nanos, print, serve, told, whyNot } from "../support/lat.ts";
import { inChromium } from "../support/pages.ts";

let folder: string;
let first: bigint;
const of = {
  serve: () => {
    folder = demo();
    first = nanos(print(folder)[0].time);
    return serve(folder);
  },
  missing: whyNot(),
};

/** Nanoseconds since the first event as `--from` reads them. */
const option = (since: number): string => {
  const digits = String(first + BigInt(since)).padStart(10, "0");
  return `@${digits.slice(0, -9)}.${digits.slice(-9)}`;
};

interface Span {
  name: string;
  count: number;
  total_ns: number;
  self_ns: number;
}
/** From the first to the last nanosecond, both included. */
const stats = (range?: [number, number]) =>
  JSON.parse(
    told(
      ...["stats", folder, "--json"],
      ...(range ? ["--from", option(range[0]), "--until", option(range[1])] : []),
    ),
  );
const digits = (text: string | null) => Number((text ?? "").replace(/[^0-9]/g, ""));

inChromium("tables of a range", of, (begin) => {
  const start = async (hash = "#tab=tables") => {
    const page = await begin(hash);
    await page.locator("#event-count").waitFor();
    await settled(page);
    return page;
  };
  const choose = async (page: Page, title: string) => {
    await page
      .getByRole("navigation", { name: "Sections" })
      .getByRole("button", { name: new RegExp(`^${title}\\s*[0-9–]`) })
      .click();
    await page.locator('nav button[aria-current="true"]', { hasText: title }).waitFor();
    await settled(page);
  };
  /** Texts of the cells under a heading. */
  const column = async (page: Page, heading: string) => {
    const heads = await page.locator(".section th button").allTextContents();
    const at = heads.findIndex((one) => one.replace(/ [↓↑]$/, "") === heading);
    expect(at).toBeGreaterThanOrEqual(0);
    return page.locator(`.section tbody td:nth-child(${at + 1})`).allTextContents();
  };
  const sort = async (page: Page, heading: string) => {
    await page.getByRole("columnheader", { name: heading, exact: true }).getByRole("button").click();
    await settled(page);
  };
  const sorted = (page: Page) => page.locator("th[aria-sort]").getAttribute("aria-sort");
  const counted = async (page: Page) => {
    const summary = (await page.locator(".section .summary").first().textContent())!;
    return digits(summary.split(":")[1].split("events")[0]);
  };

  test("all spans are those of lat stats, sorted by a click, in the other order by the next", async () => {
    const page = await start();
    const all = stats();
    expect(await counted(page)).toBe(all.events_total);
    await choose(page, "Spans");
    const spans: Span[] = all.spans;
    expect(await column(page, "span")).toEqual(spans.map((one) => one.name));
    expect((await column(page, "count")).map(digits)).toEqual(spans.map((one) => one.count));
    const names = (sign: number) =>
      [...spans].sort((a, b) => sign * (a.total_ns - b.total_ns)).map((one) => one.name);
    await sort(page, "total");
    expect(await sorted(page)).toBe("descending");
    expect(await column(page, "span")).toEqual(names(-1));
    await sort(page, "total ↓");
    expect(await sorted(page)).toBe("ascending");
    expect(await column(page, "span")).toEqual(names(1));
    await sort(page, "span");
    expect(await column(page, "span")).toEqual(spans.map((one) => one.name).sort());
    // A row's name leads to the histogram of it.
    await page.locator(".section tbody button.link").first().click();
    await page.getByRole("tab", { name: "Histogram", selected: true }).waitFor();
  });

  test("another range has its own numbers, and one without events says so", async () => {
    const page = await start();
    await choose(page, "Spans");
    const [, end] = await shownView(page);
    const [t0, t1] = [Math.floor(end / 3), Math.floor(end / 2)];
    await page.evaluate((hash) => (location.hash = hash), `#tab=tables&range=${t0},${t1}`);
    await settled(page);
    const part = stats([t0, t1 - 1]);
    expect(part.events_total).toBeGreaterThan(0);
    expect(part.events_total).toBeLessThan(stats().events_total);
    expect(await counted(page)).toBe(part.events_total);
    expect((await column(page, "count")).map(digits)).toEqual(part.spans.map((one: Span) => one.count));
    await choose(page, "Messages");
    const heads = await page.locator(".section th").count();
    expect(heads).toBeGreaterThan(3);
    expect((await column(page, "received")).map(digits)).toEqual(
      part.messages.map((one: { matched: number }) => one.matched),
    );
    // After an event comes nothing for a while.
    const times = print(folder).map((one) => one.since);
    const gaps = times.slice(1).map((t, at) => ({ at: times[at], wide: t - times[at] }));
    const { at, wide } = gaps.sort((a, b) => b.wide - a.wide)[0];
    const empty = [at + 1, at + 1 + Math.floor(wide / 2)];
    expect(stats([empty[0], empty[1] - 1]).events_total).toBe(0);
    await page.evaluate((hash) => (location.hash = hash), `#tab=tables&range=${empty[0]},${empty[1]}`);
    await settled(page);
    expect(await counted(page)).toBe(0);
    expect(await page.locator(".section .empty").textContent()).toBe("None in this time.");
    expect(await page.locator(".section table").count()).toBe(0);
  });
});
