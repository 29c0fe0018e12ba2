// SPDX-License-Identifier: Apache-2.0 OR MIT
// Calls of a program whose instructions were recorded, and stacks of samples: compares the drawn
// bars and the items under the pointer with the output of `lat flow` for the same trace.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { settled } from "../support/browser.ts";
import { LAT, print, serve, told, whyNot } from "../support/lat.ts";
import { inChromium } from "../support/pages.ts";

const MADE = fileURLToPath(new URL("../../../../shared/data/pt/made", import.meta.url));
const TRACE = join(MADE, "fibscyc/perf.data");

/** A copy of the files of the machine on which the recorded program ran. */
function machine(): string {
  const root = mkdtempSync(join(tmpdir(), "aquarium-"));
  const mapped = print(TRACE).find((one) => one.name === "mmap2")!.fields.filename as string;
  mkdirSync(join(root, dirname(mapped)), { recursive: true });
  for (const name of ["pb", "pbr"]) symlinkSync(join(MADE, name), join(root, dirname(mapped), name));
  return root;
}

const lane = (page: Page, name: string) => page.locator(".label").filter({ hasText: name }).last();
const area = async (page: Page) => (await page.locator(".canvas-area").boundingBox())!;

/**
 * Colours of bars in one line of pixels from left to right, without the background and colours that
 * occur once.
 */
function colours(page: Page, y: number): Promise<string[]> {
  return page
    .locator(".canvas-area canvas")
    .first()
    .evaluate((element: HTMLCanvasElement, y) => {
      const context = element.getContext("2d")!;
      const { data } = context.getImageData(0, Math.round(y * devicePixelRatio), element.width, 1);
      const found = new Map<string, number>();
      for (let at = 0; at < data.length; at += 4) {
        const key = [...data.slice(at, at + 3)].join(",");
        found.set(key, (found.get(key) ?? 0) + 1);
      }
      return [...found].filter(([, count]) => count > 3).map(([key]) => key);
    }, y);
}

let folder = "";
const recorded = {
  serve: () => serve(TRACE, ["--symfs", (folder = machine())]),
  missing: whyNot() ?? (existsSync(TRACE) ? null : "the trace is not here"),
};

inChromium("calls of recorded instructions", recorded, (begin) => {
  const start = async () => {
    const page = await begin();
    await page.locator("#event-count").waitFor();
    await settled(page);
    return page;
  };

  test("stand below their thread, and a click leads to the instructions of one", async () => {
    const page = await start();
    // The program ran during a hundredth of the recording: zoom to all of it.
    const { x, y: top, width } = await area(page);
    const at = (await lane(page, "thread").boundingBox())!;
    await page.mouse.dblclick(x + 0.0135 * width, at.y + 5 + 6);
    await settled(page);
    const thread = (await lane(page, "thread").boundingBox())!;
    // At least two rows have bars of several colours.
    const rows = [2, 3, 4].map((row) => thread.y - top + 5 + row * 14 + 6);
    const found = await Promise.all(rows.map((y) => colours(page, y)));
    expect(Math.max(...found.map((row) => row.length))).toBeGreaterThan(1);

    const stacks = JSON.parse(told("flow", "stacks", TRACE, "--symfs", folder, "--json"));
    const names = new Set(stacks.functions.map((one: { name: string }) => one.name));
    const details = page.locator("aside.details");
    let kind = "";
    // The pointer finds a call where one is drawn.
    for (let share = 0.3; share < 0.95 && kind !== "call"; share += 0.07) {
      await page.mouse.click(x + share * width, top + rows[0]);
      await settled(page);
      kind = (await details.locator("h3 small").allTextContents())[0] ?? "";
    }
    expect(kind).toBe("call");
    const name = (await details.locator("h3").textContent())!.replace(/call$/, "");
    expect(names).toContain(name);
    const field = async (of: string) =>
      (await details.locator(".field").filter({ hasText: of }).first().locator("dd").textContent())!;
    const count = Number((await field("instructions")).replace(/\D/g, ""));
    await page.getByRole("tab", { name: "Instructions" }).click();
    const list = page.getByRole("grid", { name: "Instructions" });
    await expect.poll(() => list.getAttribute("aria-rowcount")).toBe(String(count));
    const first = list.locator('[data-row="0"]');
    await expect.poll(() => first.textContent()).toContain(await field("address"));
    expect(await first.textContent()).toContain(name);
  });

  test("are counted along time", async () => {
    const page = await start();
    const counter = (await lane(page, "instructions per").boundingBox())!;
    const { y: top } = await area(page);
    const found = await colours(page, counter.y - top + counter.height - 9);
    expect(found.length).toBeGreaterThan(1);
  });
});

const PROGRAM = `
static volatile unsigned long sink;
#define APART __attribute__((noinline))
#define SPIN for (unsigned long i = 0; i < n; i++) sink += i; __asm__ volatile("" ::: "memory")
APART void spin(unsigned long n) { SPIN; }
APART void outer(unsigned long n) { spin(n); __asm__ volatile("" ::: "memory"); }
int main(void) { for (int i = 0; i < 200; i++) outer(1000000); }
`;

/** A recording of samples; null if none can be made. */
function sampled(): string | null {
  const place = mkdtempSync(join(tmpdir(), "aquarium-"));
  writeFileSync(join(place, "program.c"), PROGRAM);
  try {
    const options = ["-O0", "-g", "-fno-omit-frame-pointer", "program.c", "-o", "program"];
    execFileSync("gcc", options, { cwd: place, stdio: "ignore" });
    const words = ["record", "--sample", "999", "-o", "r", "--", "./program"];
    execFileSync(LAT, words, { cwd: place, stdio: "ignore" });
    return join(place, "r");
  } catch {
    return null;
  }
}

const trace = whyNot() === null ? sampled() : null;
const samples = {
  serve: () => serve(trace!),
  missing: whyNot() ?? (trace ? null : "no gcc here, or nothing can be sampled"),
};

inChromium("stacks of samples", samples, (begin) => {
  test("are drawn below their marks, and say the function, its line and how many samples", async () => {
    const page = await begin();
    await page.locator("#event-count").waitFor();
    await settled(page);
    const stacks = JSON.parse(told("flow", "stacks", trace!, "--json")).events[0];
    const label = (await lane(page, "program").boundingBox())!;
    const { x, y: top, width } = await area(page);
    // Marks are 7 pixels high, and the following rows 13, with distances of one pixel.
    const rowAt = (depth: number) => label.y - top + 5 + 8 + depth * 14 + 6;
    const details = page.locator("aside.details");
    let name = "";
    for (let depth = 0; depth < 6 && name !== "outer"; depth++) {
      for (let share = 0.2; share < 0.9 && name !== "outer"; share += 0.1) {
        await page.mouse.click(x + share * width, top + rowAt(depth));
        await settled(page);
        name = ((await details.locator("h3").allTextContents())[0] ?? "").replace(/sampled$/, "");
      }
    }
    expect(name).toBe("outer");
    const text = (await details.textContent())!;
    expect(text).toMatch(/program\.c:6/);
    const count = Number((await details.locator(".field").first().locator("dd").textContent())!);
    expect(count).toBeGreaterThan(0);
    expect(count).toBeLessThanOrEqual(stacks.samples);
  });
});
