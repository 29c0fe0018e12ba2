// SPDX-License-Identifier: Apache-2.0 OR MIT
// Panels and two runs on `lat view` of real recordings; what other commands say of them is the answer.

import { spawnSync } from "node:child_process";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { thousands } from "../../src/logic/units.ts";
import { chromiumPath, launch, open } from "../support/browser.ts";
import { LAT, type Served, demo, print, serve, whyNot } from "../support/lat.ts";

const missing = chromiumPath() === null ? "no chromium here: apt-get install chromium" : whyNot();

interface Span {
  name: string;
  count: number;
}
const spans = (trace: string): Span[] =>
  // On a busy machine a budget may be broken: then it ends with 1.
  JSON.parse(spawnSync(LAT, ["stats", "--json", trace], { encoding: "utf8", maxBuffer: 1 << 28 }).stdout).spans;

describe("two recordings of lat demo", () => {
  let traces: string[];
  let served: Served;
  let browser: Browser;
  beforeAll(async () => {
    if (missing !== null) return;
    traces = [demo(60), demo(90)];
    served = await serve(traces);
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    served?.process.removeAllListeners("exit");
    served?.process.kill();
  });

  const drawn = (page: Page, which: string) =>
    expect
      .poll(
        async () => Number(await page.locator(`.half.${which} canvas[data-rows]`).getAttribute("data-rows")),
        { timeout: 60_000 },
      )
      .toBeGreaterThan(0);

  test("stand one above the other, each whole; all of both is on one time line", async ({ skip }) => {
    if (missing !== null) return skip(missing);
    const { page, complaints } = await open(browser, served.url);
    for (const which of ["good", "bad"]) await drawn(page, which);
    const counts = traces.map((trace) => print(trace).length);
    const heads = await page.locator(".half header small").allTextContents();
    expect(heads).toEqual(counts.map((count) => `${thousands(count)} events`));
    await page.getByRole("button", { name: "one time line" }).click();
    await page.locator(`#event-count[data-count="${counts[0] + counts[1]}"]`).waitFor({ timeout: 60_000 });
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test("have as many spans in their histograms as lat stats counts", async ({ skip }) => {
    if (missing !== null) return skip(missing);
    const { page, complaints } = await open(browser, served.url);
    await drawn(page, "bad");
    await page.getByRole("tab", { name: "Histograms" }).click();
    await page.getByRole("combobox", { name: "span" }).selectOption("request");
    const expected = traces.map((trace) => spans(trace).find((span) => span.name === "request")!.count);
    await expect
      .poll(() => page.locator(".of-side").allTextContents())
      .toEqual([
        expect.stringContaining(`good ${thousands(expected[0])} `),
        expect.stringContaining(`bad ${thousands(expected[1])} `),
      ]);
    await page.getByRole("tab", { name: "Difference" }).click();
    await page.locator('.flame-box[data-name="request"]').first().waitFor();
    await page.getByRole("tab", { name: "Changes" }).click();
    await page.locator(".statistics .summary b").first().waitFor({ timeout: 60_000 });
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

describe("panels of a recording of lat demo", () => {
  let trace: string;
  let served: Served;
  let browser: Browser;
  beforeAll(async () => {
    if (missing !== null) return;
    trace = demo(60);
    served = await serve(trace);
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    served?.process.removeAllListeners("exit");
    served?.process.kill();
  });

  test("tell of spans inside spans, tracepoints, and any two numbers", async ({ skip }) => {
    if (missing !== null) return skip(missing);
    const { page, complaints } = await open(browser, served.url);
    await page.locator("#event-count").waitFor();
    await page.getByRole("tab", { name: "Flame graph" }).click();
    const request = page.locator('.flame-box[data-name="request"]').first();
    await request.waitFor();
    await request.click();
    await expect
      .poll(() => page.locator(".facts").textContent())
      .toContain(thousands(spans(trace).find((span) => span.name === "request")!.count));
    await expect
      .poll(() => page.locator("canvas.pulses").getAttribute("data-pulses").then(Number))
      .toBeGreaterThan(0);

    await page.getByRole("tab", { name: "Tracepoints" }).click();
    await page.getByRole("table", { name: "Tracepoints" }).getByText("request").first().waitFor();

    await page.getByRole("tab", { name: "XY" }).click();
    await page.locator(".plot-note").waitFor();
    const sources = page.getByRole("combobox", { name: "of" });
    const events = await sources
      .locator("option")
      .evaluateAll((all) =>
        all
          .map((one) => ({ value: (one as HTMLOptionElement).value, text: one.textContent ?? "" }))
          .filter((one) => one.value.startsWith("event:") && one.text.startsWith("warehouse:")),
      );
    await sources.selectOption(events[0].value);
    await page.locator(".plot canvas").waitFor();
    const [name] = events[0].text.split(" ");
    const count = print(trace).filter((one) => one.name === name).length;
    await expect.poll(() => page.locator(".plot-note").textContent()).toContain(`${thousands(count)} points`);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test("group lanes by cores, processes and threads", async ({ skip }) => {
    if (missing !== null) return skip(missing);
    const { page } = await open(browser, served.url);
    await page.locator(".label").first().waitFor();
    const names = () => page.locator(".lane-name").allTextContents();
    const all = await names();
    expect(all.some((name) => name.startsWith("CPU"))).toBe(true);
    await page.getByRole("combobox", { name: /grouped/ }).selectOption("cores");
    await expect.poll(async () => (await names()).every((name) => name.startsWith("CPU"))).toBe(true);
    await page.getByRole("combobox", { name: /grouped/ }).selectOption("threads");
    await expect.poll(async () => (await names()).some((name) => name.startsWith("CPU"))).toBe(false);
    await expect.poll(() => page.evaluate(() => location.hash)).toContain("lanes=threads");
    await page.context().close();
  });
});
