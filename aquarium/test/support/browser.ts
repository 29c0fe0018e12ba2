// SPDX-License-Identifier: Apache-2.0 OR MIT
// A real Chromium, as Debian installs it.

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

// Nothing that phones home; the software rasteriser of canvas2d stays as it is by default, being the fastest here.
const FLAGS = [
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Waiting for longer is waiting for what never comes: a busy machine needs seconds, not minutes. */
const NEVER_MS = 120_000;

export function launch(more: string[] = []): Promise<Browser> {
  const executablePath = chromiumPath() ?? undefined;
  return chromium.launch({ executablePath, args: [...FLAGS, ...more], timeout: NEVER_MS });
}

/** By this much at most each answer is late, as on a busy machine or a far one: finds tests that look too soon. */
const SLOW_ANSWERS_MS = Number(process.env.SLOW_ANSWERS_MS ?? 0);

/** In the page: each message of a server arrives some time later, no two at once, the order as it is. */
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
 * Until the page has done what it was told: all requests are answered, what waits for a moment's rest has had it, the
 * address holds what is shown, and that is painted.
 */
export async function settled(page: Page): Promise<void> {
  const isStill = () =>
    page.evaluate(async () => {
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      const isDone = () => Number(document.documentElement.dataset.pending ?? 0) === 0;
      if (!isDone()) return false;
      // Parts are rendered, and ask for more, behind the next frame.
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

/** Until so many events are shown, in the list, the graph and all numbers. */
export async function shows(page: Page, events: number): Promise<void> {
  await page.locator(`#event-count[data-count="${events}"]`).waitFor();
  await settled(page);
}

/** A row of the list, once what it lists has come: until then a click on it chooses nothing. */
export function listRow(page: Page, index: number): Locator {
  return page.locator(`.list-row[data-row="${index}"]:not(:has(.loading))`);
}

/** The interval of time that the page shows, in nanoseconds, once it has settled. */
export async function shownView(page: Page): Promise<[number, number]> {
  await settled(page);
  const hash = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
  const [t0, t1] = (hash.get("view") ?? "0,0").split(",").map(Number);
  return [t0, t1];
}
