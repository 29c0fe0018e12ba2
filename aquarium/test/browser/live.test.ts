// SPDX-License-Identifier: Apache-2.0 OR MIT
// A live recording: following, pausing, earlier times; and updates from the server.

import type { Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import { listRow, settled, shownView, shows } from "../support/browser.ts";
import { inChromium, nothing } from "../support/pages.ts";
import { FakeServer } from "../support/server.ts";
import { type Trace, makeTrace } from "../support/trace.ts";

const notice = (page: Page, text: string | RegExp) =>
  page.locator(".notice").filter({ hasText: text }).waitFor();

/** Number of pixel columns of a lane that are hatched because of losses. */
async function hatching(
  page: Page,
  lane: string,
): Promise<{ before: number; hatched: () => Promise<number> }> {
  const { y, height } = (await page.locator(".label", { hasText: lane }).boundingBox())!;
  const canvas = page.locator(".canvas-area canvas").first();
  const top = y - (await canvas.boundingBox())!.y;
  // Red, unlike the events and applications in this trace.
  const hatched = () =>
    canvas.evaluate(
      (element: HTMLCanvasElement, { top, height }) => {
        const { data } = element.getContext("2d")!.getImageData(0, top, element.width, height);
        const found = new Set<number>();
        for (let at = 0; at < data.length; at += 4) {
          const [red, green, blue] = data.subarray(at, at + 3);
          if (red - blue > 40 && Math.abs(green - blue) < 20) found.add((at / 4) % element.width);
        }
        return found.size;
      },
      { top: Math.round(top), height: Math.round(height) },
    );
  return { before: await hatched(), hatched };
}

/**
 * Records from now on what changes in the page in each frame. Changes outside of frames, as by a
 * response, count for the next frame. `data-pending` is not visible, and is ignored.
 */
function noteFrames(): void {
  const frames = new Map<number, Set<string>>();
  let before = new Set<string>();
  const names = (records: MutationRecord[]) => {
    const name = ({ target, attributeName, type }: MutationRecord) => {
      const element = target instanceof Element ? target : target.parentElement;
      const own = element?.getAttribute("class") ?? element?.tagName;
      return `${element?.closest(".labels") ? "labels" : own}/${attributeName ?? type}`;
    };
    return records.filter((one) => one.attributeName !== "data-pending").map(name);
  };
  const add = (stamp: number, found: Iterable<string>) => {
    const known = frames.get(stamp) ?? new Set();
    for (const one of found) known.add(one);
    if (known.size > 0) frames.set(stamp, known);
  };
  const observer = new MutationObserver((records) => names(records).forEach((one) => before.add(one)));
  const all = { attributes: true, childList: true, characterData: true, subtree: true };
  observer.observe(document.documentElement, all);
  const request = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (act) =>
    request((stamp) => {
      add(stamp, before);
      before = new Set();
      act(stamp);
      add(stamp, names(observer.takeRecords()));
    });
  Object.assign(window, { shownFrames: () => [...frames.values()].map((names) => [...names]) });
}

inChromium("a recording that still runs", nothing, (begin) => {
  let trace: Trace;
  let server: FakeServer;
  let page: Page;

  beforeEach(async () => {
    trace = makeTrace(4);
    server = new FakeServer(trace);
    server.isLive = true;
    page = await begin(server);
    await shows(page, trace.events.length);
  });

  const end = async () => (await shownView(page))[1];
  const grow = (by: number, more: object = {}) => {
    trace.end += by;
    trace.events.push({ t: trace.end - 1000, core: 0, class: 0, application: 1, fields: [] });
    server.push({
      event: "grown",
      begin: 0,
      end: trace.end,
      events: trace.events.length,
      lists: server.lists,
      gone: { events: 0 },
      age_ns: 40e6,
      losses: [],
      ...more,
    });
  };
  const pressed = (name: string) => page.getByRole("button", { name }).getAttribute("aria-pressed");

  test("is followed until somebody looks back; its end is told", async () => {
    grow(1_000_000);
    await shows(page, trace.events.length);
    await expect.poll(end).toBeGreaterThan(trace.end);
    expect(await page.locator(".live .lag").textContent()).toContain("behind");
    // At another time range: the view stays, and the numbers are updated.
    await page.keyboard.press("w");
    await page.keyboard.press("a");
    await expect.poll(() => pressed("Follow")).toBe("false");
    const before = await end();
    grow(5_000_000);
    await shows(page, trace.events.length);
    expect(await end()).toBe(before);
    await page.keyboard.press("l");
    await expect.poll(end).toBeGreaterThan(trace.end);
    server.push({ event: "ended", complete: true });
    await notice(page, "the recording has ended; all of it is here");
    // The notice and the toolbar are rendered separately.
    await page.getByRole("button", { name: "Follow" }).waitFor({ state: "detached" });
  });

  test("a word of growth that is followed says itself how many events there are", async () => {
    for (let word = 0; word < 3; word++) {
      const before = server.requests.length;
      grow(1_000_000);
      await expect.poll(end).toBeGreaterThan(trace.end);
      await shows(page, trace.events.length);
      const asked = server.requests.slice(before).map((request) => request.method);
      const of = (method: string) => asked.filter((one) => one === method).length;
      expect(of("filter")).toBe(0);
      expect(of("view")).toBeGreaterThan(0);
      // If the picture does not arrive in time, growth is shown without it, and a picture is
      // requested.
      expect(of("view")).toBeLessThanOrEqual(2);
    }
  });

  test("what a word of growth changes is seen in one frame, and nothing else is touched", async () => {
    // A view of constant width: ticks of the axis move with it, and need no new layout.
    for (let step = 0; step < 4; step++) await page.keyboard.press("w");
    await settled(page);
    await page.evaluate(noteFrames);
    const words = 5;
    for (let word = 0; word < words; word++) {
      grow(1_000_000);
      await expect.poll(end).toBeGreaterThan(trace.end);
      await shows(page, trace.events.length);
    }
    const frames = await page.evaluate(() => (window as any).shownFrames() as string[][]);
    const has = (name: string) => frames.filter((changed) => changed.includes(name));
    const [counted, moved] = [has("count/data-count"), has("axis/aria-label")];
    expect(counted.length).toBe(words);
    // Numbers, the axis, and the canvas with its view.
    for (const changed of [...counted, ...moved]) expect(changed).toContain("CANVAS/data-view");
    for (const left of ["labels/style", "tick/style", "tool/class", "A/href", "tab-row/childList"]) {
      expect(has(left)).toEqual([]);
    }
  });

  test("the density of all is asked for where growth is seen in it, and lists draw nothing", async () => {
    const asked = (method: string) => server.requests.filter((one) => one.method === method).length;
    const [overviews, opens] = [asked("overview"), asked("open")];
    const words = 3;
    for (let word = 0; word < words; word++) {
      grow(Math.ceil(trace.end / 1e5));
      await shows(page, trace.events.length);
    }
    await expect.poll(() => asked("open")).toBeGreaterThan(opens);
    const views = asked("view");
    // Requests of an update in progress are accepted, but no more.
    await settled(page);
    expect(asked("view") - views).toBeLessThanOrEqual(1);
    expect(asked("overview")).toBe(overviews);
    grow(Math.ceil(trace.end / 50));
    await expect.poll(() => asked("overview")).toBeGreaterThan(overviews);
  });

  test("zoomed while it is followed keeps that width, and its newest edge", async () => {
    for (let step = 0; step < 4; step++) await page.keyboard.press("w");
    const [t0, t1] = await shownView(page);
    for (let step = 0; step < 3; step++) grow(3_000_000);
    await expect.poll(end).toBeGreaterThan(trace.end);
    const [u0, u1] = await shownView(page);
    expect(u1 - u0).toBeCloseTo(t1 - t0, -1);
    expect(u0).toBeGreaterThan(t1);
  });

  test("held stays as it is, says how much has come, and goes on with all of it", async () => {
    const count = trace.events.length;
    await page.keyboard.press("k");
    await expect.poll(() => pressed("Hold")).toBe("true");
    grow(1_000_000);
    grow(1_000_000, { losses: [{ lane: 1, begin: 10, end: 20, count: 3, cause: "ring full" }] });
    await page.getByText("2 more").waitFor();
    expect(await page.locator("#event-count").getAttribute("data-count")).toBe(String(count));
    await page.keyboard.press("k");
    await shows(page, trace.events.length);
    // Losses that arrive while the page is paused are not dropped.
    await page.locator(".problem").filter({ hasText: "lost" }).click();
    await page.getByRole("cell", { name: "ring full" }).first().waitFor();
  });

  test("losses are hatched on their lane and counted, as they come", async () => {
    const begin = trace.end;
    grow(1_000_000);
    await expect.poll(end).toBeGreaterThan(trace.end);
    const { before, hatched } = await hatching(page, "core 1");
    // Only losses are pushed.
    const lose = (from: number, count: number | null) => {
      const lost = { lane: 1, begin: begin + from, end: begin + from + 200_000, count, cause: "ring full" };
      grow(1000, { losses: [lost] });
    };
    const told = (text: string) => page.locator(".problem").filter({ hasText: text }).waitFor();
    lose(100_000, 7);
    await told("127 lost");
    await expect.poll(hatched).toBeGreaterThan(before);
    const first = await hatched();
    lose(500_000, 30);
    await told("157 lost");
    await expect.poll(hatched).toBeGreaterThan(first * 1.5);
    lose(800_000, null);
    await told("≥ 157 lost");
  });

  test("the list grows at its end, and a filter goes on to choose", async () => {
    await page.click('.tree-line[data-key="lane-0"]');
    const rest = trace.events.filter((one) => one.core !== 0).length;
    await shows(page, rest);
    grow(1_000_000);
    // Its bytes were evicted before they were read.
    trace.events.push({ t: trace.end - 500, core: 1, class: 0, application: 1, fields: null });
    grow(1_000_000);
    await shows(page, rest + 1);
    await page.locator(".list").focus();
    await page.keyboard.press("End");
    const row = listRow(page, rest);
    await expect.poll(() => row.textContent()).toContain("forgotten");
  });

  test("new lanes and names come with the lists, and the filter stays", async () => {
    await page.click('.tree-line[data-key="lane-1"]');
    await shows(page, trace.events.filter((one) => one.core !== 1).length);
    server.more = [{ id: 90, parent: null, kind: "cpu", name: "core 90", cpu: 90, rows: [] }];
    server.lists++;
    grow(1_000_000);
    await page.locator(".lane-name", { hasText: "core 90" }).waitFor();
    await shows(page, trace.events.filter((one) => one.core !== 1).length);
  });

  test("numbered anew it keeps its filter by names", async () => {
    await page.click('.tree-line[data-key="lane-1"]');
    const rest = trace.events.filter((one) => one.core !== 1).length;
    await shows(page, rest);
    server.forget();
    server.push({ event: "replaced" });
    await expect.poll(() => server.requests.filter((one) => one.method === "open").length).toBe(2);
    await shows(page, rest);
    expect(await page.locator('.tree-line[data-key="lane-1"]').getAttribute("aria-checked")).toBe("false");
  });

  test("a recorder that is gone, and back, is told with what was missed", async () => {
    server.push({ event: "disconnected", why: "connection reset" });
    await page.getByText("no recorder").waitFor();
    server.push({ event: "missed", seconds: 1.5, packets: 2, events: 30 });
    await notice(page, "2 packets with 30 events were missed");
    await page.getByText("no recorder").waitFor({ state: "detached" });
    server.push({ event: "ended", complete: false, why: "the recorder was killed" });
    await notice(page, "the recorder was killed");
  });

  test("its recorder is asked from the page", async () => {
    const menu = page.locator('summary[aria-label="Recorder"]');
    await menu.click();
    await page.getByRole("button", { name: "Snapshot" }).click();
    await notice(page, "snapshot: action snapshot");
    await menu.click();
    await page.getByRole("textbox", { name: "Events to enable or disable" }).fill("mutex, io:READ*");
    await page.getByRole("button", { name: "disable" }).click();
    await notice(page, "disable: action disable, events mutex io:READ*");
    const asked = server.requests.filter((one) => one.method === "control").map((one) => one.params);
    expect(asked).toEqual([{ action: "snapshot" }, { action: "disable", events: ["mutex", "io:READ*"] }]);
  });
});

inChromium("a trace that is read first", nothing, (begin) => {
  test("tells how far it is, and what cannot be shown at all", async () => {
    const server = new FakeServer(makeTrace(2));
    server.isSilent = true;
    const page = await begin(server);
    await expect.poll(() => server.requests.length).toBe(1);
    server.push({ event: "progress", what: "reading demo", done: 1000, of: 4000 });
    const bar = page.getByRole("progressbar", { name: "reading demo" });
    await bar.waitFor();
    expect(await bar.getAttribute("value")).toBe("0.25");
    server.push({ event: "failed", error: { what: "no trace", where: "demo", do: "record one" } });
    await page.getByRole("alert").filter({ hasText: "no trace: demo: record one" }).waitFor();
  });
});
