// SPDX-License-Identifier: Apache-2.0 OR MIT
// Panels and two runs on `lat view` of real recordings; what other commands say of them is the answer.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { thousands } from "../../src/logic/units.ts";
import { demo, print, serve, told, whyNot } from "../support/lat.ts";
import { inChromium } from "../support/pages.ts";

const missing = whyNot();

interface Span {
  name: string;
  count: number;
}
const spans = (trace: string): Span[] => JSON.parse(told("stats", "--json", trace)).spans;

let traces: string[];
const twoRuns = () => serve((traces = [demo(60), demo(90)]));

const drawn = (page: Page, which: string) =>
  expect
    .poll(async () =>
      Number(await page.locator(`.half.${which} canvas[data-rows]`).getAttribute("data-rows")),
    )
    .toBeGreaterThan(0);

inChromium("two recordings of lat demo", { serve: twoRuns, missing }, (begin) => {
  test("stand one above the other, each whole; all of both is on one time line", async () => {
    const page = await begin();
    for (const which of ["good", "bad"]) await drawn(page, which);
    const counts = traces.map((trace) => print(trace).length);
    const heads = await page.locator(".half header small").allTextContents();
    expect(heads).toEqual(counts.map((count) => `${thousands(count)} events`));
    await page.getByRole("button", { name: "one time line" }).click();
    await page.locator(`#event-count[data-count="${counts[0] + counts[1]}"]`).waitFor();
  });

  test("have as many spans in their histograms as lat stats counts", async () => {
    const page = await begin();
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
    await page.locator(".statistics .summary b").first().waitFor();
  });
});

inChromium("a script that filters two recordings", { serve: twoRuns, missing }, (begin) => {
  test("is off while they are held against each other, says why, and comes back", async () => {
    const page = await begin();
    await page.getByRole("button", { name: "one time line" }).click();
    await page.getByRole("tab", { name: "Scripts" }).click();
    await page.getByRole("button", { name: "new" }).click();
    await page.locator(".cm-content").fill('filter("orders", event => event.name === "client:ORDER");');
    await page.keyboard.press("Control+Enter");
    const line = page.locator('.tree-line[data-key^="script-"]');
    await expect.poll(() => line.getAttribute("aria-checked")).toBe("true");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "compare" }).click();
    for (const which of ["good", "bad"]) await drawn(page, which);
    expect(await line.getAttribute("aria-checked")).toBe("false");
    expect(await line.getAttribute("aria-disabled")).toBe("true");
    expect(await line.getAttribute("title")).toContain("all recordings together");
    // No pointer waits for what is disabled to be enabled.
    await line.dispatchEvent("click");
    await page.locator(".notice").filter({ hasText: "all recordings together" }).waitFor();
    expect(await line.getAttribute("aria-checked")).toBe("false");
    await page.getByRole("button", { name: "one time line" }).click();
    await expect.poll(() => line.getAttribute("aria-checked")).toBe("true");
    expect(await line.getAttribute("aria-disabled")).toBe("false");
  });
});

let trace: string;
const oneRun = () => serve((trace = demo(60)));

inChromium("panels of a recording of lat demo", { serve: oneRun, missing }, (begin) => {
  test("tell of spans inside spans, tracepoints, and any two numbers", async () => {
    const page = await begin();
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
  });

  test("group lanes by cores, processes and threads", async () => {
    const page = await begin();
    await page.locator(".label").first().waitFor();
    const names = () => page.locator(".lane-name").allTextContents();
    const all = await names();
    expect(all.some((name) => name.startsWith("CPU"))).toBe(true);
    await page.getByRole("combobox", { name: /grouped/ }).selectOption("cores");
    await expect.poll(async () => (await names()).every((name) => name.startsWith("CPU"))).toBe(true);
    await page.getByRole("combobox", { name: /grouped/ }).selectOption("threads");
    await expect.poll(async () => (await names()).some((name) => name.startsWith("CPU"))).toBe(false);
    await expect.poll(() => page.evaluate(() => location.hash)).toContain("lanes=threads");
  });
});
