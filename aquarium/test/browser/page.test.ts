// SPDX-License-Identifier: Apache-2.0 OR MIT
// The page in a real Chromium, with a generated trace and a brute-force server.

import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import type { Page } from "playwright-core";
import { clockTicks, ticks } from "../../src/logic/axis.ts";
import { listRow, settled, shownView, shows } from "../support/browser.ts";
import { date, instant } from "../../src/logic/units.ts";
import { inChromium, made } from "../support/pages.ts";
import { FakeServer } from "../support/server.ts";
import { makeTrace } from "../support/trace.ts";

/**
 * Compares the axis in a saved picture with the page: for each label, the number of colour values
 * that differ from its text at its place in the page; and the number of colour values outside of
 * all labels that differ from the background.
 */
function axisOf(page: Page, png: Buffer) {
  return page.evaluate(async (base64) => {
    const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob());
    const high = bitmap.height - document.querySelector<HTMLCanvasElement>(".canvas-area canvas")!.height;
    const strip = (paint: (to: CanvasRenderingContext2D) => void) => {
      const to = Object.assign(document.createElement("canvas"), { width: bitmap.width, height: high });
      const context = to.getContext("2d", { willReadFrequently: true })!;
      paint(context);
      return (x: number, wide: number) => [...context.getImageData(x, 0, wide, high).data];
    };
    const saved = strip((to) => to.drawImage(bitmap, 0, 0));
    const [ground] = [saved(0, 1).slice(0, 3)];
    const left = document.querySelector(".canvas-area")!.getBoundingClientRect().left;
    const labels = document.querySelector(".labels")!.clientWidth;
    const covered = new Set<number>();
    const ticks = [...document.querySelectorAll<HTMLElement>(".axis span.tick")].map((tick) => {
      const label = tick.textContent!;
      const at = labels + tick.getBoundingClientRect().left - left + 4;
      let wide = 0;
      const own = strip((to) => {
        to.fillStyle = `rgb(${ground})`;
        to.fillRect(0, 0, bitmap.width, high);
        to.fillStyle = getComputedStyle(document.body).color;
        to.font = "12px system-ui, sans-serif";
        to.textBaseline = "middle";
        to.fillText(label, at, high / 2);
        wide = Math.ceil(to.measureText(label).width) + 2;
      });
      const from = Math.floor(at) - 1;
      for (let x = from; x < from + wide; x++) covered.add(x);
      const [there, expected] = [saved(from, wide), own(from, wide)];
      const ink = expected.filter((value, index) => index % 4 < 3 && value !== ground[index % 4]).length;
      const off = expected.filter((value, index) => Math.abs(value - there[index]) > 8).length;
      return { label, x: at - labels - 4, ink, off };
    });
    let beside = 0;
    for (let x = labels; x < bitmap.width; x++) {
      if (covered.has(x)) continue;
      beside += saved(x, 1).filter((value, index) => index % 4 < 3 && value !== ground[index % 4]).length;
    }
    return { ticks, beside };
  }, png.toString("base64"));
}

const node = (key: string) => `.tree-line[data-key="${key}"]`;
/** Number of non-empty pixels of the upper canvas, which has names and arrows. */
const marks = (page: Page) =>
  page.evaluate(() => {
    const canvas = document.querySelectorAll<HTMLCanvasElement>(".canvas-area canvas")[1];
    const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let at = 3; at < data.length; at += 4) if (data[at] > 0) found++;
    return found;
  });
/** Number of painted arrows, once it satisfies `count`. */
const arrows = (page: Page, count: (painted: number) => boolean) =>
  expect
    .poll(async () =>
      count(Number(await page.locator(".canvas-area canvas[data-arrows]").getAttribute("data-arrows"))),
    )
    .toBe(true);
const trace = makeTrace();
const server = new FakeServer(trace);

inChromium("in Chromium", made(server), (begin) => {
  const start = async (hash = "") => {
    const page = await begin(hash);
    await page.locator("#event-count").waitFor();
    await settled(page);
    return page;
  };

  test("all is shown, and nothing is complained of", async () => {
    const page = await start();
    await shows(page, trace.events.length);
    expect(await page.locator(".label").count()).toBe(8);
    expect(await page.locator(".list-row").first().textContent()).toContain("core");
    expect(await page.getByRole("tab").allTextContents()).toEqual([
      expect.stringMatching(/^Events – /),
      "Activities",
      "Statistics",
      "Histogram",
      "Flame graph",
      "Notes",
    ]);
    expect(await page.title()).toBe("generator – Aquarium");
  });

  test("core, event, messages and application are hidden; every number follows; the list is saved", async () => {
    const page = await start();
    let rest = trace.events;
    await shows(page, rest.length);
    await page.click(node("lane-0"));
    rest = rest.filter((one) => one.core !== 0);
    await shows(page, rest.length);
    expect(await page.locator(".lane-name").allTextContents()).not.toContain("core 0");
    await page.click(`${node("subsystem-threads")} .fold`);
    await page.click(node("class-1"));
    rest = rest.filter((one) => one.class !== 1);
    await shows(page, rest.length);
    expect(await page.locator(node("subsystem-threads")).getAttribute("aria-checked")).toBe("mixed");

    await arrows(page, (painted) => painted > 0);
    const withArrows = await marks(page);
    await page.click(node("messages"));
    rest = rest.filter((one) => one.class !== 2 && one.class !== 3);
    await shows(page, rest.length);
    await arrows(page, (painted) => painted === 0);
    expect(await marks(page)).toBeLessThan(withArrows);

    await page.click(node("application-4"));
    rest = rest.filter((one) => one.application !== 4);
    await shows(page, rest.length);
    expect(await page.getByRole("tab").first().textContent()).toBe(`Events – ${rest.length}`);

    await page.click(".tabs .save summary");
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "CSV" }).click(),
    ]);
    const lines = (await readFile((await file.path())!, "utf8")).trim().split("\n");
    expect(lines.length - 1).toBe(rest.length);
  });

  test("a click on a dot scrolls the list to it, a click on a row moves the graph to it", async () => {
    const page = await start(`#view=${trace.end * 0.7},${trace.end * 0.7 + 60_000}`);
    await shows(page, trace.events.length);
    const inside = trace.events.find(
      (one) => one.t > trace.end * 0.7 + 10_000 && one.t < trace.end * 0.7 + 50_000,
    )!;
    const area = (await page.locator(".canvas-area").boundingBox())!;
    const label = (await page.locator(".label", { hasText: `core ${inside.core}` }).boundingBox())!;
    await settled(page);
    const x = area.x + ((inside.t - trace.end * 0.7) / 60_000) * area.width;
    // The row of events is below the bar, which is 18 pixels high.
    await page.mouse.click(x, label.y + 5 + 19 + 6);
    const row = page.locator(".list-row.chosen");
    await row.waitFor();
    const index = trace.events.indexOf(inside);
    const chosen = Number(await row.first().getAttribute("data-row"));
    expect(trace.events[chosen].t).toBe(inside.t);
    expect(chosen).toBe(index);
    expect(await page.locator(".details").textContent()).toContain("mutex");

    // A distant row of the list: the timeline follows.
    await page.locator(".list").focus();
    await page.keyboard.press("Home");
    await listRow(page, 2).click();
    await expect
      .poll(() => page.evaluate(() => location.hash))
      .toMatch(new RegExp(`selected=${trace.events[2].core},1,${trace.events[2].t}`));
    const view = (await page.evaluate(() => location.hash))
      .match(/view=([^&]*)/)![1]
      .split(",")
      .map(Number);
    expect(view[0]).toBeLessThanOrEqual(trace.events[2].t);
    expect(view[1]).toBeGreaterThanOrEqual(trace.events[2].t);

    // It does not follow without sync.
    await page.keyboard.press("Home");
    await page.locator("text=⇅ sync").click();
    const before = await page.evaluate(() => location.hash.match(/view=([^&]*)/)![1]);
    await page.locator(".list").focus();
    await page.keyboard.press("End");
    await listRow(page, trace.events.length - 1).click();
    await expect
      .poll(() => page.evaluate(() => location.hash))
      .toContain(`,${trace.events[trace.events.length - 1].t}`);
    expect(await page.evaluate(() => location.hash.match(/view=([^&]*)/)![1])).toBe(before);
  });

  test("a single event is seen with everything shown, and found by its dot's tooltip", async () => {
    const page = await start("#events-off=0,1,2,3,4");
    await shows(page, 1);
    const rare = trace.events.find((one) => one.class === 5)!;
    const area = (await page.locator(".canvas-area").boundingBox())!;
    const label = (await page.locator(".label", { hasText: "core 1" }).boundingBox())!;
    const whole = trace.end * 1.02;
    const x = area.x + ((rare.t + trace.end * 0.01) / whole) * area.width;
    await settled(page);
    await page.mouse.move(x, label.y + 5 + 19 + 6);
    const tooltip = page.locator(".tooltip");
    await expect.poll(() => tooltip.textContent()).toContain("OUT_OF_MEMORY");
    expect(await tooltip.textContent()).toContain("bytes");
  });

  test("the axis counts ticks of the clock where that is wanted, and the link says so", async () => {
    const page = await start();
    await shows(page, trace.events.length);
    const labels = () => page.locator(".axis span.tick").allTextContents();
    const wide = await page.locator(".canvas-area").evaluate((area) => area.clientWidth);
    const [t0, t1] = await shownView(page);
    const expected = (hz: number | null) => {
      const found = ticks({ t0, t1 }, wide, hz);
      return found.map((tick) => tick.label).filter((label) => label !== null);
    };
    await expect.poll(labels).toEqual(expected(null));
    await page.keyboard.press("i");
    await expect.poll(labels).toEqual(expected(2_500_000_000));
    const span = page.getByRole("button", { name: /Axis in seconds/ });
    expect(await span.textContent()).toBe(clockTicks(t1 - t0, 2_500_000_000));
    await expect.poll(() => page.evaluate(() => location.hash)).toContain("axis=ticks");
    await span.click();
    await expect.poll(labels).toEqual(expected(null));
  });

  test("keys: zoom, move, fit, next, arrows, sheet, palette, search", async () => {
    const page = await start();
    await shows(page, trace.events.length);
    const view = () => shownView(page);
    const [a0, a1] = await view();
    await page.keyboard.press("w");
    const [b0, b1] = await view();
    expect(b1 - b0).toBeLessThan((a1 - a0) * 0.9);
    await page.keyboard.press("d");
    expect((await view())[0]).toBeGreaterThan(b0);
    await page.keyboard.press("0");
    expect(await view()).toEqual([a0, a1]);
    await arrows(page, (painted) => painted > 0);
    const withArrows = await marks(page);
    await page.keyboard.press("m");
    await arrows(page, (painted) => painted === 0);
    expect(await marks(page)).toBeLessThan(withArrows);
    await page.keyboard.press(".");
    await page.locator(".list-row.chosen").waitFor();
    expect(await page.locator(".list-row.chosen").first().getAttribute("data-row")).toBe("0");
    await page.keyboard.press("Shift+?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("Control+Shift+P");
    await page.getByRole("combobox", { name: "Command" }).fill("dark or");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
    await page.keyboard.press("/");
    await page.keyboard.type("worker 1");
    await expect.poll(() => page.locator(".lane-name").allTextContents()).toEqual(["warehouse", "worker 1"]);
  });

  test("the list has threads, and times as they are chosen", async () => {
    const page = await start();
    await shows(page, trace.events.length);
    const row = listRow(page, 3);
    const cell = (at: number) => row.locator("span[role=gridcell]").nth(at).textContent();
    const event = trace.events[3];
    expect(await page.locator(".list-head [role=columnheader]").allTextContents()).toContain("Thread");
    expect(await row.textContent()).toContain(`worker ${4711 + (event.core % 3)}`);
    expect(await cell(0)).toBe(instant(event.t));
    const format = page.getByRole("combobox", { name: "How the list writes times" });
    await format.selectOption("utc");
    const time = date("1700000000000000000", event.t)!.slice(11);
    expect((await cell(0))!.replaceAll("\u202f", "")).toBe(time);
    await format.selectOption("raw");
    expect(await cell(0)).toBe(String(1_700_000_000_000_000_000n + BigInt(Math.round(event.t))));
    await page.getByRole("tab", { name: "Statistics" }).click();
    expect(await format.count()).toBe(0);
    await page.evaluate(() => localStorage.clear());
  });

  test("the filter's tree by keyboard alone", async () => {
    const page = await start();
    await shows(page, trace.events.length);
    await page.locator(node("cores")).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Space");
    await shows(page, trace.events.filter((one) => one.core !== 0).length);
    expect(await page.locator(node("cores")).getAttribute("aria-checked")).toBe("mixed");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Space");
    await shows(page, trace.events.length);
  });

  test("measuring by Shift and drag marks a range that statistics are of", async () => {
    const page = await start("#tab=statistics");
    await shows(page, trace.events.length);
    const area = (await page.locator(".canvas-area").boundingBox())!;
    await page.keyboard.down("Shift");
    await page.mouse.move(area.x + 200, area.y + 30);
    await page.mouse.down();
    await page.mouse.move(area.x + 500, area.y + 30, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await expect.poll(() => page.evaluate(() => location.hash)).toContain("range=");
    // Both the link and the numbers follow the range, and finally agree.
    await expect
      .poll(async () => {
        const [t0, t1] = (await page.evaluate(() => location.hash))
          .match(/range=([^&]*)/)![1]
          .split(",")
          .map(Number);
        const within = trace.events.filter((one) => one.t >= t0 && one.t < t1).length;
        return (await page.locator(".statistics .summary").textContent())?.includes(`${within} events`);
      })
      .toBe(true);
  });

  test("a link opens what was shown", async () => {
    const page = await start("#view=100000,300000&lanes-off=0,2&tab=activities&arrows=off");
    await shows(page, trace.events.filter((one) => one.core !== 0 && one.core !== 2).length);
    await expect.poll(() => page.evaluate(() => location.hash)).toContain("view=100000,300000");
    expect(await page.getByRole("tab", { selected: true }).textContent()).toBe("Activities");
    expect(await page.locator('button[aria-label="Message arrows"]').getAttribute("aria-pressed")).toBe(
      "false",
    );
  });

  test("a link to an event opens with all that is known of it", async () => {
    const event = trace.events[50];
    const page = await start(`#selected=${event.core},1,${event.t}`);
    await expect.poll(() => page.locator(".details").textContent()).toContain("mutex");
    await expect.poll(() => page.locator(".list-row.chosen").first().getAttribute("data-row")).toBe("50");
  });

  test("the picture is saved as PNG and as SVG, which has what is drawn", async () => {
    const page = await start(`#view=0,120000&events-off=2,3`);
    await shows(page, trace.events.filter((one) => one.class !== 2 && one.class !== 3).length);
    await settled(page);
    const save = async (name: string) => {
      await page.locator('summary[aria-label="Save the picture"]').click();
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name }).click(),
      ]);
      return readFile((await file.path())!);
    };
    const png = await save("PNG");
    expect([...png.subarray(1, 4)]).toEqual([..."PNG"].map((letter) => letter.charCodeAt(0)));
    // A PNG contains width and height at offsets 16 and 20.
    expect(png.readUInt32BE(16)).toBeGreaterThan(800);
    const axis = await axisOf(page, png);
    const wide = await page.locator(".canvas-area").evaluate((area) => area.clientWidth);
    const expected = ticks({ t0: 0, t1: 120_000 }, wide).filter((tick) => tick.label !== null);
    expect(axis.ticks.map((tick) => tick.label)).toEqual(expected.map((tick) => tick.label));
    expect(axis.ticks.length).toBeGreaterThan(3);
    axis.ticks.forEach(({ x, ink, off }, index) => {
      expect(Math.abs(x - expected[index].x)).toBeLessThan(1);
      expect(ink).toBeGreaterThan(50);
      expect(off).toBe(0);
    });
    expect(axis.beside).toBe(0);
    const text = (await save("SVG")).toString();
    const parsed = await page.evaluate((source) => {
      const document = new DOMParser().parseFromString(source, "image/svg+xml");
      return {
        broken: document.querySelector("parsererror") !== null,
        names: [...document.querySelectorAll("text")].map((one) => one.textContent),
        shapes: document.querySelectorAll("rect, circle").length,
      };
    }, text);
    expect(parsed.broken).toBe(false);
    expect(parsed.names).toEqual(expect.arrayContaining(["core 0", "core 3", "worker 2", "request"]));
    expect(parsed.shapes).toBeGreaterThan(40);
  });

  test("notes are read, written and deleted, and stand on the axis", async () => {
    const page = await start("#tab=notes");
    await page.locator('.flag[title="here it began"]').waitFor();
    await page.keyboard.press("b");
    await page.keyboard.type("a word");
    await page.keyboard.press("Enter");
    await page.locator('.flag[title="a word"]').waitFor();
    await expect
      .poll(() => (server.notes as { text: string }[]).map((note) => note.text))
      .toEqual(["here it began", "a word"]);
    await page.getByRole("button", { name: "Delete the note" }).first().click();
    await expect.poll(() => (server.notes as unknown[]).length).toBe(1);
  });

  test("every control has a name", async () => {
    const page = await start();
    await shows(page, trace.events.length);
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, [tabindex], [role=tab]")]
        .filter(
          (one) =>
            !(
              one.getAttribute("aria-label") ||
              one.getAttribute("aria-labelledby") ||
              one.textContent?.trim() ||
              one.closest("label")
            ),
        )
        .map((one) => one.outerHTML.slice(0, 120)),
    );
    expect(nameless).toEqual([]);
  });
});

// Complaints about the unreachable server are expected.
inChromium(
  "a server that goes away",
  { ...made(new FakeServer(makeTrace(2))), complains: true },
  (begin, served) => {
    test("is told, tried again, and what was missed is told too", async () => {
      const gone = makeTrace(2);
      const page = await begin();
      await shows(page, gone.events.length);
      await page.click(node("lane-1"));
      await shows(page, gone.events.filter((one) => one.core !== 1).length);
      await served().close();
      await page.getByRole("alert").filter({ hasText: "is lost" }).waitFor();
      const more = makeTrace(2);
      more.events.push({ t: more.end - 1, core: 0, class: 0, application: 1, fields: [] });
      const second = new FakeServer(more);
      await second.listen(Number(new URL(served().url).port));
      await page.getByText("1 events came meanwhile").waitFor();
      // The filter is still that of the session.
      await shows(page, more.events.filter((one) => one.core !== 1).length);
      await second.close();
    });
  },
);
