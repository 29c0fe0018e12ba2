// SPDX-License-Identifier: Apache-2.0 OR MIT
// The pictures of docs/guides/view.md, of fresh recordings by `lat demo`: aquarium/test/shots.

import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { launch, open } from "../support/browser.ts";
import { type Served, demo, serve } from "../support/lat.ts";

const IMAGES = process.env.IMAGES ?? fileURLToPath(new URL("../../docs/images/", import.meta.url));
const REST_MS = 1200;
const SIZE = { width: 1280, height: 780 };

const complaints: string[] = [];
const browser = await launch();

/** Opens what a `lat view` serves, and ends that when all is done. */
async function pictures(traces: string[], take: (page: Page) => Promise<void>): Promise<void> {
  const served: Served = await serve(traces);
  const { page, complaints: own } = await open(browser, served.url, SIZE);
  await page.locator("#event-count").waitFor();
  await page.waitForTimeout(REST_MS);
  await take(page);
  complaints.push(...own);
  await page.context().close();
  served.process.removeAllListeners("exit");
  served.process.kill();
}

const shot = (page: Page, name: string) => page.screenshot({ path: `${IMAGES}/${name}.png` });
const tab = async (page: Page, name: string) => {
  await page.getByRole("tab", { name }).click();
  await page.waitForTimeout(REST_MS);
};

/** Into what is selected, so far that things can be told apart. */
async function zoomed(page: Page, steps: number): Promise<void> {
  const area = (await page.locator(".canvas-area").boundingBox())!;
  const hash = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
  const [t0, t1] = (hash.get("view") ?? "0,1").split(",").map(Number);
  const t = Number(hash.get("selected")?.split(",")[2] ?? (t0 + t1) / 2);
  await page.mouse.move(area.x + (area.width * (t - t0)) / (t1 - t0), area.y + area.height * 0.5);
  for (let step = 0; step < steps; step++) await page.keyboard.press("w");
  await page.waitForTimeout(REST_MS);
}

/** Goes to the middle of the events, where there are many. */
async function toMiddle(page: Page): Promise<void> {
  await page.getByRole("tab", { name: /^Events/ }).click();
  await page.locator(".list-row").first().waitFor();
  await page.locator(".list").evaluate((list) => (list.scrollTop = list.scrollHeight / 2));
  await page.waitForTimeout(REST_MS);
  await page.locator(".list-row").nth(3).click();
  await page.waitForTimeout(REST_MS / 2);
}

const given = process.argv[2] ?? demo();
await pictures([given], async (page) => {
  await shot(page, "view");
  await tab(page, "Flame graph");
  await page.locator(".flame-box").nth(2).hover();
  await page.waitForTimeout(REST_MS / 4);
  await shot(page, "view-flame");
  await toMiddle(page);
  await zoomed(page, 8);
  await tab(page, "Histogram");
  const plot = (await page.locator(".plot .u-over").boundingBox())!;
  await page.mouse.move(plot.x + plot.width * 0.5, plot.y + 40);
  await page.mouse.down();
  await page.mouse.move(plot.x + plot.width * 0.98, plot.y + 40, { steps: 5 });
  await page.mouse.up();
  await page.waitForTimeout(REST_MS);
  await shot(page, "view-histogram");
});

await pictures([given], async (page) => {
  await toMiddle(page);
  await zoomed(page, 15);
  await shot(page, "view-zoomed");
  await page.keyboard.press("Escape");
  await page.keyboard.press("t");
  await tab(page, "Statistics");
  await shot(page, "view-light");
});

// Three times as many clients have to wait for each other.
await pictures([demo(400), demo(400, "--threads", "6")], async (page) => {
  await page.locator(".half.bad .label").first().waitFor();
  await page.waitForTimeout(REST_MS * 2);
  await shot(page, "view-compare");
  await tab(page, "Difference");
  await shot(page, "view-difference");
});

await browser.close();
if (complaints.length > 0) {
  console.error(complaints.join("\n"));
  process.exitCode = 1;
}
