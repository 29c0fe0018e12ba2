// SPDX-License-Identifier: Apache-2.0 OR MIT
// A page of `lat view` in Chromium, with a spy inside (spy.js), and what its processes take.

import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const { chromium } = createRequire(here("../../aquarium/test/package.json"))("playwright-core");
const PLACES = [
  process.env.CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

const groupOf = (pid) => `/proc/${pid}/autogroup`;

/** How much before others the kernel runs this session, as of `nice`; 0 where it makes no groups of sessions. */
export function priority() {
  return existsSync(groupOf("self")) ? Number(readFileSync(groupOf("self"), "utf8").split("nice ")[1]) : 0;
}

/** The browser is a session of its own: it gets what this one has. */
function passPriority() {
  if (priority() === 0) return;
  for (const task of readdirSync("/proc/self/task")) {
    const children = readFileSync(`/proc/self/task/${task}/children`, "utf8").split(" ").filter(Boolean);
    for (const child of children) writeFileSync(groupOf(child), String(priority()));
  }
}

/** The page, once it shows something; `heap` is what its JavaScript holds after everything else was let go, in MB. */
export async function browse(url) {
  const executablePath = PLACES.find((path) => path && existsSync(path));
  const args = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking"];
  const browser = await chromium.launch({ executablePath, args });
  passPriority();
  const page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
  page.on("pageerror", (error) => console.error(`the page: ${error}`));
  await page.addInitScript({ path: here("spy.js") });
  const begun = performance.now();
  await page.goto(url);
  await page.locator("canvas[data-until]").first().waitFor({ state: "attached" });
  const firstPicture = performance.now() - begun;
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  const heap = async (isCollected) => {
    if (isCollected) await devtools.send("HeapProfiler.collectGarbage");
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find((one) => one.name === "JSHeapUsedSize").value / 1e6;
  };
  return { browser, page, heap, firstPicture, version: browser.version() };
}

/** Memory of a process that is not of files, in MB. */
export function memory(pid) {
  const line = readFileSync(`/proc/${pid}/status`, "utf8").match(/RssAnon:\s+(\d+)/);
  return line ? (Number(line[1]) * 1024) / 1e6 : 0;
}

/** The machine's load of the last minute. */
export const load = () => Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]);

/** Of numbers, the one below which a share of them lies; nothing if there are none. */
export function at(all, share) {
  const sorted = [...all].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor((sorted.length - 1) * share)] : null;
}

export const cell = (value) => (value === null ? "" : Number(value.toFixed(2)));
