// SPDX-License-Identifier: Apache-2.0 OR MIT
// The pictures of docs/guides/view.md, of a fresh recording by `lat demo`: aquarium/test/shots.

import { fileURLToPath } from "node:url";
import { launch, open } from "../support/browser.ts";
import { demo, serve } from "../support/lat.ts";

const IMAGES = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const REST_MS = 1200;

const served = await serve(process.argv[2] ?? demo());
const browser = await launch();
const { page, complaints } = await open(browser, served.url, { width: 1280, height: 780 });
await page.locator("#event-count").waitFor();
await page.waitForTimeout(REST_MS);
await page.screenshot({ path: `${IMAGES}view.png` });

// Some thousandth of it, around a span that is selected.
const area = (await page.locator(".canvas-area").boundingBox())!;
await page.mouse.move(area.x + area.width * 0.55, area.y + area.height * 0.5);
for (let step = 0; step < 15; step++) await page.keyboard.press("w");
await page.waitForTimeout(REST_MS);
await page.keyboard.press(".");
await page.waitForTimeout(REST_MS);
await page.screenshot({ path: `${IMAGES}view-zoomed.png` });

await page.keyboard.press("Escape");
await page.keyboard.press("t");
await page.getByRole("tab", { name: "Statistics" }).click();
await page.waitForTimeout(REST_MS);
await page.screenshot({ path: `${IMAGES}view-light.png` });
await browser.close();
served.process.removeAllListeners("exit");
served.process.kill();
if (complaints.length > 0) {
  console.error(complaints.join("\n"));
  process.exitCode = 1;
}
