// SPDX-License-Identifier: Apache-2.0 OR MIT
// Panels, and the comparison of two runs, with `lat view` of real recordings; compared with the
// output of other commands.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { thousands } from "../../src/logic/units.ts";
import { settled, shows } from "../support/browser.ts";
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

const FILTER = '.tree-line[data-key^="script-"]';
const ACTIVITY = '.tree-line[data-key^="activity-"]';

inChromium("scripts on two recordings", { serve: twoRuns, missing }, (begin) => {
  const write = async (page: Page, text: string) => {
    await page.getByRole("tab", { name: "Scripts" }).click();
    await page.getByRole("button", { name: "new" }).click();
    await page.getByRole("textbox", { name: "Script script 1" }).fill(text);
    await page.getByRole("button", { name: "run", exact: true }).click();
  };
  /** With a script that was run during the comparison, and the panel of changes at the bottom. */
  const withScript = async (text: string) => {
    const page = await begin();
    await write(page, text);
    await page.locator(`${FILTER}[aria-checked="true"], ${ACTIVITY}[aria-checked="true"]`).waitFor();
    await page.getByRole("tab", { name: "Changes" }).click();
    await settled(page);
    return page;
  };
  const heads = (page: Page) => page.locator(".half header small").allTextContents();
  const summary = (page: Page) => page.locator(".statistics .summary").first().textContent();
  /** Number of coloured pixels in the rows of a half. */
  const coloured = (page: Page, which: string) =>
    page.locator(`.half.${which} canvas`).first().evaluate((element: HTMLCanvasElement) => {
      const { data } = element.getContext("2d")!.getImageData(0, 0, element.width, element.height);
      let count = 0;
      for (let at = 0; at < data.length; at += 4) {
        const [red, green, blue] = data.subarray(at, at + 3);
        if (Math.max(red, green, blue) - Math.min(red, green, blue) > 60) count++;
      }
      return count;
    });

  test("a filter leaves the same of both halves and their changes, on and off", async () => {
    const page = await withScript('filter("orders", event => event.name === "client:ORDER");');
    const all = traces.map((trace) => print(trace).length);
    const orders = traces.map((trace) => print(trace).filter((one) => one.name === "client:ORDER").length);
    const left = orders.map((count, side) => `${thousands(count)} of ${thousands(all[side])} events`);
    expect(await heads(page)).toEqual(left);
    expect(await summary(page)).toContain(`; ${thousands(orders[0])} and ${thousands(orders[1])} events in`);
    const filtered = [await coloured(page, "good"), await coloured(page, "bad")];
    await page.getByRole("tab", { name: "Difference" }).click();
    // Spans need both of their events.
    await page.locator(".empty", { hasText: "Neither recording has spans." }).waitFor();

    const line = page.locator(FILTER);
    await line.click();
    await expect.poll(() => line.getAttribute("aria-checked")).toBe("false");
    await settled(page);
    expect(await heads(page)).toEqual(all.map((count) => `${thousands(count)} events`));
    await page.locator('.flame-box[data-name="request"]').first().waitFor();
    expect(await coloured(page, "good")).toBeGreaterThan(filtered[0]);
    expect(await coloured(page, "bad")).toBeGreaterThan(filtered[1]);

    await page.getByRole("tab", { name: "Changes" }).click();
    await line.click();
    await expect.poll(() => line.getAttribute("aria-checked")).toBe("true");
    await settled(page);
    expect(await heads(page)).toEqual(left);
    expect([await coloured(page, "good"), await coloured(page, "bad")]).toEqual(filtered);
    expect(await summary(page)).toContain(`; ${thousands(orders[0])} and ${thousands(orders[1])} events in`);
    await page.getByRole("button", { name: "one time line" }).click();
    await shows(page, orders[0] + orders[1]);
  });

  test("one that cannot be compiled says where; mended it says how it runs, and holds on one time line as well", async () => {
    const page = await begin();
    await write(page, 'filter("orders", event =>\n  event.name === );');
    await page.getByRole("alert").filter({ hasText: "line 2, column" }).waitFor();
    // The editor scrolls to the position after the next frame.
    await settled(page);
    const editor = page.getByRole("textbox", { name: "Script script 1" });
    await editor.fill('filter("orders", event =>\n  event.name === "client:ORDER");');
    await page.getByRole("button", { name: "run", exact: true }).click();
    const orders = traces.map((trace) => print(trace).filter((one) => one.name === "client:ORDER").length);
    const both = orders[0] + orders[1];
    await page.getByRole("status").filter({ hasText: `${thousands(both)} events kept, compiled` }).waitFor();
    await page.locator('[role="option"][aria-selected="true"] .badge.compiled').waitFor();
    await settled(page);
    for (const [side, head] of (await heads(page)).entries())
      expect(head.startsWith(`${thousands(orders[side])} of `), head).toBe(true);
    await page.getByRole("button", { name: "one time line" }).click();
    await shows(page, both);
    await page.getByRole("button", { name: "compare" }).click();
    await settled(page);
    expect((await heads(page))[1].startsWith(`${thousands(orders[1])} of `)).toBe(true);
  });

  test("a filter that fails on one says so there; the other is shown, and all once it is off", async () => {
    // On a common timeline, the first event that it sees is one of the first recording.
    const { pid } = print(traces[1])[0];
    const page = await withScript(`let first;
filter("orders", event => {
  first ??= event.pid;
  if (first === ${pid}) for (;;);
  return event.name === "client:ORDER";
});`);
    const [good, bad] = traces.map((trace) => print(trace));
    const orders = good.filter((one) => one.name === "client:ORDER").length;
    expect((await heads(page))[0]).toBe(`${thousands(orders)} of ${thousands(good.length)} events`);
    expect(await page.locator(".half.bad header [role=alert]").textContent()).toContain("a loop");
    expect(await page.locator(".half.good header [role=alert]").count()).toBe(0);
    expect(await page.locator(".panel .empty").textContent()).toContain("a loop");
    expect(await coloured(page, "bad")).toBe(0);
    expect(await coloured(page, "good")).toBeGreaterThan(0);
    await page.locator(FILTER).click();
    await drawn(page, "bad");
    await settled(page);
    expect((await heads(page))[1]).toBe(`${thousands(bad.length)} events`);
    expect(await coloured(page, "bad")).toBeGreaterThan(0);
    await page.locator(".statistics .summary b").first().waitFor();
  });

  test("activities have rows in both, which can be switched off", async () => {
    const page = await withScript(
      'activity("trip").begin("client:ORDER").end("client:DONE").key("id");',
    );
    const heights = (which: string) =>
      page.locator(`.half.${which} .label`).evaluateAll((all) =>
        all.map((one) => [one.textContent, (one as HTMLElement).offsetHeight] as const),
      );
    const before = { good: new Map(await heights("good")), bad: new Map(await heights("bad")) };
    await page.locator(ACTIVITY).click();
    for (const which of ["good", "bad"] as const)
      await expect
        .poll(async () => (await heights(which)).some(([name, height]) => height < before[which].get(name)!))
        .toBe(true);
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
