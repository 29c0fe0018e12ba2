// SPDX-License-Identifier: Apache-2.0 OR MIT
// A real Chromium, as Debian installs it.

import { existsSync } from "node:fs";
import { type Browser, type Page, chromium } from "playwright-core";

const PLACES = [
  process.env.CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

export function chromiumPath(): string | null {
  return PLACES.find((path) => path && existsSync(path)) ?? null;
}

// Nothing that phones home; the software rasteriser of canvas2d stays as it is by default, being the fastest here.
const FLAGS = [
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath() ?? undefined, args: FLAGS });
}

export interface Opened {
  page: Page;
  /** What the page complained of: exceptions and console errors. */
  complaints: string[];
}

export async function open(
  browser: Browser,
  url: string,
  size = { width: 1440, height: 900 },
  scale = 1,
): Promise<Opened> {
  const context = await browser.newContext({
    viewport: size,
    deviceScaleFactor: scale,
    colorScheme: "dark",
    acceptDownloads: true,
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await page.goto(url);
  return { page, complaints };
}
