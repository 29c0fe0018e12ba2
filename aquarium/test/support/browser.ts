// SPDX-License-Identifier: Apache-2.0 OR MIT
// A real Chromium, as packaged by Debian.

import { existsSync } from "node:fs";
import { type Browser, type Locator, type Page, chromium } from "playwright-core";

const PLACES = [
  process.env.CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

export function chromiumPath(): string | null {
  return PLACES.find((path) => path && existsSync(path)) ?? null;
}

// Disables network requests of the browser itself; canvas2d keeps its default, the software
// rasteriser, which is the fastest here.
const FLAGS = [
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** A busy machine needs seconds, not minutes: a longer wait means that the condition never becomes true. */
const NEVER_MS = 120_000;

export function launch(more: string[] = []): Promise<Browser> {
  const executablePath = chromiumPath() ?? undefined;
  return chromium.launch({ executablePath, args: [...FLAGS, ...more], timeout: NEVER_MS });
}

/**
 * Maximum delay of each response, as on a busy or remote machine: reveals tests that do not wait
 * long enough.
 */
const SLOW_ANSWERS_MS = Number(process.env.SLOW_ANSWERS_MS ?? 0);

/** Runs in the page: delays each message of the server by a random time, one after another and in order. */
function slowAnswers(mostMs: number): void {
  if (mostMs === 0) return;
  const sockets = WebSocket.prototype;
  const { set } = Object.getOwnPropertyDescriptor(sockets, "onmessage")!;
  Object.defineProperty(sockets, "onmessage", {
    set(this: WebSocket, told: (message: MessageEvent) => void) {
      let last: Promise<unknown> = Promise.resolve();
      set!.call(this, (message: MessageEvent) => {
        const later = () => new Promise((done) => setTimeout(done, Math.random() * mostMs));
        last = last.then(later).then(() => told.call(this, message));
      });
    },
  });
}

export interface Opened {
  page: Page;
  /** Exceptions and console errors of the page. */
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
  context.setDefaultTimeout(NEVER_MS);
  const page = await context.newPage();
  await page.addInitScript(slowAnswers, SLOW_ANSWERS_MS);
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await page.goto(url);
  return { page, complaints };
}

/**
 * Waits until the page is idle: all requests are answered, delayed updates are done, the URL
 * contains the shown state, and the canvases are painted.
 */
export async function settled(page: Page): Promise<void> {
  const isStill = () =>
    page.evaluate(async () => {
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      const isDone = () => Number(document.documentElement.dataset.pending ?? 0) === 0;
      if (!isDone()) return false;
      // Components render, and send more requests, after the next frame.
      for (let turn = 0; turn < 2; turn++) {
        await frame();
        await frame();
        await new Promise((done) => setTimeout(done));
        if (!isDone()) return false;
      }
      return true;
    });
  while (!(await isStill())) await new Promise((done) => setTimeout(done, 20));
}

/** Waits until this number of events is shown in the list, the timeline and all numbers. */
export async function shows(page: Page, events: number): Promise<void> {
  await page.locator(`#event-count[data-count="${events}"]`).waitFor();
  await settled(page);
}

/** A row of the list, once its contents have arrived: a click before that selects nothing. */
export function listRow(page: Page, index: number): Locator {
  return page.locator(`.list-row[data-row="${index}"]:not(:has(.loading))`);
}

/** The visible time range in nanoseconds, once the page has settled. */
export async function shownView(page: Page): Promise<[number, number]> {
  await settled(page);
  const hash = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
  const [t0, t1] = (hash.get("view") ?? "0,0").split(",").map(Number);
  return [t0, t1];
}
