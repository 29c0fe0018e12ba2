// SPDX-License-Identifier: Apache-2.0 OR MIT
// The workflow for which the first Aquarium was described, with `lat view` of real traces: hide a
// core, an event, messages, an application; go from a dot to the list, and from the list to the
// timeline. Every step is compared with the output of `lat print` for the same trace.

import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { duration } from "../../src/logic/units.ts";
import { listRow, settled, shownView, shows } from "../support/browser.ts";
import { type Run, genode } from "../support/genode.ts";
import { type Printed, demo, print, runScript, serve, told, whyNot } from "../support/lat.ts";
import { inChromium } from "../support/pages.ts";

const BARRELFISH = fileURLToPath(new URL("../../../../shared/data/barrelfish/atrace.trc", import.meta.url));

/** The line with a name in a group of the filter tree. */
const line = (page: Page, prefix: string, name: string) =>
  page
    .locator(`.tree-line[data-key^="${prefix}"]`)
    .filter({ has: page.getByText(name, { exact: true }) })
    .first();

interface Case {
  /** An event to hide, as subsystem and name. */
  event: [string, string];
  /** A script that finds activities. */
  script: string;
  messages: boolean;
}

function path(name: string, get: () => string | null, of: Case): void {
  let [trace, events]: [string, Printed[]] = ["", []];
  const missing = whyNot() ?? (get === demo || get() !== null ? null : "the trace is not here");
  const serveIt = () => {
    trace = get()!;
    events = print(trace);
    return serve(trace);
  };
  inChromium(name, { serve: serveIt, missing }, (begin, served) => {
    test("filters, and every number agrees with lat print", async () => {
      const page = await begin();
      let rest = events;
      await shows(page, rest.length);
      expect(await page.getByRole("tab").first().textContent()).toContain("Events – ");

      const core = page.locator('.tree-line[data-key^="lane-"]').first();
      const number = Number((await core.locator(".tree-label").textContent())!.match(/\d+/)![0]);
      await core.click();
      rest = rest.filter((one) => one.cpu !== number);
      await shows(page, rest.length);
      await core.click();
      rest = events;
      await shows(page, rest.length);

      const [subsystem, event] = of.event;
      await page.locator(`.tree-line[data-key="subsystem-${subsystem}"] .fold`).click();
      await line(page, "class-", event).click();
      rest = rest.filter((one) => one.name !== of.event.join(":"));
      expect(rest.length).toBeLessThan(events.length);
      await shows(page, rest.length);

      if (of.messages) {
        const painted = () =>
          page.locator(".canvas-area canvas[data-arrows]").getAttribute("data-arrows").then(Number);
        await expect.poll(painted).toBeGreaterThan(0);
        const titles = await page
          .locator('.tree-line[data-key="sends"], .tree-line[data-key="receives"]')
          .evaluateAll((lines) => lines.map((one) => one.getAttribute("title") ?? ""));
        const hidden = titles.flatMap((title) => title.split(", ").map((one) => one.replace(" ", ":")));
        await page.click('.tree-line[data-key="messages"]');
        rest = rest.filter((one) => !hidden.includes(one.name));
        await shows(page, rest.length);
        await expect.poll(painted).toBe(0);
      }

      const busiest = mode(rest.map((one) => one.process).filter((one) => one !== undefined));
      const lines = page
        .locator('.tree-line[data-key^="application-"]')
        .filter({ has: page.getByText(busiest, { exact: true }) });
      for (let index = 0; index < (await lines.count()); index++) await lines.nth(index).click();
      rest = rest.filter((one) => one.process !== busiest);
      await shows(page, rest.length);
    });

    test("from the list to the graph, and from the dot to the list", async () => {
      const page = await begin();
      await shows(page, events.length);
      const index = Math.min(7, events.length - 1);
      const name = events[index].name.split(":").pop()!;
      const hash = () => page.evaluate(() => location.hash);
      /** Time of a clicked row, as shown by the page. */
      const clicked = async (at: number): Promise<number> => {
        const row = listRow(page, at);
        await expect.poll(() => row.textContent()).toContain(events[at].name.split(":").pop()!);
        const before = await hash();
        await row.click();
        await expect.poll(async () => (await hash()) !== before && /selected=/.test(await hash())).toBe(true);
        return Number((await hash()).match(/selected=\d+,\d+,(\d+)/)![1]);
      };
      // A session may begin before its first event.
      const first = await clicked(0);
      const t = await clicked(index);
      expect(t - first).toBe(events[index].since);
      const lane = Number((await hash()).match(/selected=(\d+)/)![1]);

      // Zoomed to a single event, whose dot is then searched with the pointer, as a user would do.
      await page.goto(`${served().url}#view=${t - 2000},${t + 2000}`);
      await page.reload();
      await shows(page, events.length);
      const laneName = await page.locator(`.tree-line[data-key="lane-${lane}"] .tree-label`).textContent();
      const label = (await page
        .locator(".label")
        .filter({ has: page.getByText(laneName!, { exact: true }) })
        .first()
        .boundingBox())!;
      const area = (await page.locator(".canvas-area").boundingBox())!;
      const view = await shownView(page);
      const x = area.x + ((t - view[0]) / (view[1] - view[0])) * area.width;
      let found = false;
      for (let y = label.y + 3; y < label.y + label.height && !found; y += 3) {
        await page.mouse.move(x, y);
        await settled(page);
        const tooltip = await page.locator(".tooltip h3").allTextContents();
        found = tooltip.some((text) => text.includes(name) && text.includes("event"));
        if (found) await page.mouse.click(x, y);
      }
      expect(found).toBe(true);
      await expect.poll(() => page.locator(".list-row.chosen").first().textContent()).toContain(name);
      const chosen = Number(await page.locator(".list-row.chosen").first().getAttribute("data-row"));
      expect(first + events[chosen].since).toBe(t);
    });

    test("a script of activities gets its rows, its tab, and finds what lat run-script finds", async () => {
      const page = await begin();
      await shows(page, events.length);
      await page.getByRole("tab", { name: "Scripts" }).click();
      await page.getByRole("button", { name: "new" }).click();
      const editor = page.getByRole("textbox", { name: "Script script 1" });
      await editor.fill('activity("broken".begin(');
      await page.keyboard.press("Control+Enter");
      await expect.poll(() => page.locator(".bar [role=alert]").textContent()).toContain("line 1");
      // The editor scrolls to the position after the next frame. If that happened between the
      // selection and the input of `fill`, the old text would remain.
      await settled(page);
      await editor.fill(of.script);
      await settled(page);
      const before = await page.locator(".lanes-inside").getAttribute("style");
      await page.keyboard.press("Control+Enter");
      await page.locator('.tree-line[data-key^="activity-"]').waitFor();
      const found = runScript(trace, of.script);
      const told = async () =>
        (await page.locator(".bar [role=status]").textContent())!.replace(/[^0-9a-z ]/g, "");
      await expect.poll(told).toContain(`${found.length} activities found`);
      await settled(page);
      expect(await page.locator(".lanes-inside").getAttribute("style")).not.toBe(before);

      await page.getByRole("tab", { name: "Activities" }).click();
      await page
        .locator(".bar select")
        .selectOption({ index: -1 + (await page.locator(".bar option").count()) });
      await page.locator(`.list[aria-rowcount="${found.length}"]`).waitFor();
      // The longest first.
      await listRow(page, 0).click();
      const longest = Math.max(...found.map((one) => one.duration_ns));
      await expect.poll(() => page.locator(".details").textContent()).toContain(duration(longest));
      await page.locator('.tree-line[data-key^="activity-"]').click();
      await expect.poll(() => page.locator(".lanes-inside").getAttribute("style")).toBe(before);
    });

    test("what is exported is what lat print says", async () => {
      const page = await begin();
      await shows(page, events.length);
      const [subsystem, event] = of.event;
      await page.locator(`.tree-line[data-key="subsystem-${subsystem}"] .fold`).click();
      await line(page, "class-", event).click();
      const rest = events.filter((one) => one.name !== of.event.join(":"));
      await shows(page, rest.length);
      await page.click(".tabs .save summary");
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name: "CSV" }).click(),
      ]);
      const rows = (await readFile((await file.path())!, "utf8")).trim().split("\n");
      expect(rows.length - 1).toBe(rest.length);
      // Columns: time_ns, cpu, subsystem, event, ….
      const told = rows.slice(1).map((row) => row.split(",").slice(1, 4).filter(Boolean).join(":"));
      expect(told).toEqual(rest.map((one) => `${one.cpu}:${one.name}`));
    });
  });
}

function mode(names: string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0][0];
}

let recording = "";
const serveDemo = () => {
  recording = demo();
  return serve(recording);
};
inChromium("promises of a schema", { serve: serveDemo, missing: whyNot() }, (begin) => {
  test("are kept or broken as lat stats says", async () => {
    const page = await begin("#tab=statistics");
    const { budgets } = JSON.parse(told("stats", recording, "--json"));
    expect(budgets.length).toBeGreaterThan(1);
    const shown = async () => {
      const rows = await page.locator(".statistics tr:has(td > div)").all();
      const each = rows.map(async (row) => {
        const span = await row.locator("th, td").first().innerText();
        const cells = await row.locator("td > div").allInnerTexts();
        return cells.map((cell) => `${span.trim()} ${cell}`);
      });
      return (await Promise.all(each)).flat();
    };
    const wanted = budgets.map((one: { budget: string; kept: boolean }) =>
      expect.stringMatching(new RegExp(`^${one.budget} ${one.kept ? "kept" : "broken"}`)),
    );
    await expect.poll(shown).toEqual(expect.arrayContaining(wanted));
    expect(await shown()).toHaveLength(budgets.length);
  });
});

path("lat view of a recording by lat demo", demo, {
  event: ["client", "STATE"],
  messages: true,
  script: 'activity("order").begin("client:ORDER").end("client:DONE").key("id");',
});
path("lat view of Barrelfish's dump", () => (existsSync(BARRELFISH) ? BARRELFISH : null), {
  event: ["threads", "MUTEX_UNLOCK"],
  messages: false,
  script: 'activity("lock").begin("threads:MUTEX_LOCK_NESTED_ENTER").end("threads:MUTEX_UNLOCK").key("arg");',
});
path("lat view of a run of Genode", () => genode().folder, {
  event: ["checkpoint", "START"],
  messages: false,
  script: 'activity("call").begin("rpc:call").end("rpc:returned").key("name");',
});

let run: Run;
const aRun = () => serve((run = genode()).folder);
inChromium("components of Genode", { serve: aRun, missing: whyNot() }, (begin) => {
  /** Items that the pointer finds from the top to the bottom of a lane at a time. */
  const under = async (page: Page, lane: string, t: number): Promise<string[]> => {
    await page.locator("#lane-search").fill(lane);
    const [t0, t1] = await shownView(page);
    const area = (await page.locator(".canvas-area").boundingBox())!;
    const label = (await page
      .locator(".label")
      .filter({ has: page.getByText(lane, { exact: true }) })
      .first()
      .boundingBox())!;
    const found: string[] = [];
    for (let y = label.y + 3; y < label.y + label.height; y += 4) {
      await page.mouse.move(area.x + ((t - t0) / (t1 - t0)) * area.width, y);
      await settled(page);
      found.push(...(await page.locator(".tooltip").allTextContents()));
    }
    return found;
  };

  test("have their states on their threads' lanes", async () => {
    const page = await begin();
    await page.locator("#event-count").waitFor();
    await settled(page);
    // Times of the page are relative to the begin of the session.
    const from = Number((await firstRow(page)) ?? 0);
    await page.goto(`${page.url().split("#")[0]}#view=${from},${from + 400_000}`);
    await page.reload();
    await page.locator("#event-count").waitFor();
    const waiting = await under(page, "clerk 1", from + run.waits - run.begin);
    expect(waiting.join("\n")).toContain("await_reply");
    const serving = await under(page, "ep", from + run.waits - run.begin);
    expect(serving.join("\n")).toContain("ready");
  });

  test("have latencies of their calls: listed, counted, and in a histogram", async () => {
    const page = await begin("#tab=statistics");
    await page.locator("#event-count").waitFor();
    const longest = duration(Math.max(...run.latencies));
    const row = page
      .locator(".statistics tr")
      .filter({ has: page.getByText("rpc", { exact: true }) })
      .first();
    await expect.poll(() => row.textContent()).toContain(longest);
    expect(await row.locator("td").nth(1).textContent()).toBe(String(run.latencies.length));
    await page.getByRole("tab", { name: "Activities" }).click();
    const kinds = page.locator(".bar select");
    await expect
      .poll(() => kinds.locator("option").allTextContents())
      .toContainEqual(expect.stringMatching(/^rpc/));
    const options = await kinds.locator("option").allTextContents();
    await kinds.selectOption({ index: options.findIndex((one) => one.startsWith("rpc")) });
    await page.locator(`.list[aria-rowcount="${run.latencies.length}"]`).waitFor();
    await listRow(page, 0).click();
    await expect.poll(() => page.locator(".details").textContent()).toContain(longest);
    await page.getByRole("tab", { name: "Histogram" }).click();
    await page.getByRole("combobox", { name: "of" }).selectOption("span:rpc");
    await page.locator(".plot canvas").waitFor();
  });
});

/** Time of the first event, as shown by the page. */
async function firstRow(page: Page): Promise<string | undefined> {
  await listRow(page, 0).click();
  await settled(page);
  return (await page.evaluate(() => location.hash)).match(/selected=\d+,\d+,(\d+)/)?.[1];
}

/** A trace with one event of one stream, without CPUs and threads. */
function bare(): string {
  const folder = mkdtempSync(join(tmpdir(), "aquarium-"));
  const metadata = `/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; };
stream { event.header := struct { integer { size = 64; align = 8; map = clock.c.value; } timestamp; }; };
event { name = "e"; id = 0; fields := struct { integer { size = 8; align = 8; } x; }; };
`;
  writeFileSync(join(folder, "metadata"), metadata);
  writeFileSync(join(folder, "stream"), Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 2]));
  return folder;
}

inChromium("a trace that names no thread", { serve: () => serve(bare()), missing: whyNot() }, (begin) => {
  test("every panel opens and says what it does not know", async () => {
    const page = await begin();
    await shows(page, 2);
    for (const tab of await page.getByRole("tab").all()) {
      await tab.click();
      await settled(page);
    }
    await page.getByRole("tab", { name: "Utilisation" }).click();
    await page.getByText("It is not known who ran in this time.").waitFor();
  });
});
