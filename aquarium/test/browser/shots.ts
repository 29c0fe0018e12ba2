// SPDX-License-Identifier: Apache-2.0 OR MIT
// The pictures of docs/guides/view.md, of fresh recordings by `lat demo`: aquarium/test/shots.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { launch, open } from "../support/browser.ts";
import { LAT, type Served, demo, serve } from "../support/lat.ts";

const IMAGES = process.env.IMAGES ?? fileURLToPath(new URL("../../docs/images/", import.meta.url));
const REST_MS = 1200;
const SIZE = { width: 1280, height: 780 };

/** Threads that ask over the loopback, and those that answer, the later the longer the question. */
const TALK = `
import socket, threading, time
listening = socket.create_server(("127.0.0.1", 0))
def answer():
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=talk, args=(connection,), daemon=True).start()
def talk(connection):
    while question := connection.recv(4096):
        time.sleep(len(question) * 2e-6)
        connection.sendall(question * 9)
def ask(number):
    connection = socket.create_connection(listening.getsockname())
    for size in range(40, 1000, 40):
        connection.sendall(b"?" * size)
        connection.recv(65536)
        time.sleep(0.0007 * (number + 1))
threading.Thread(target=answer, daemon=True).start()
asking = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
for thread in asking: thread.start()
for thread in asking: thread.join()
`;

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

/** Where what is selected stands. */
async function selectedX(page: Page): Promise<number> {
  const area = (await page.locator(".canvas-area").boundingBox())!;
  const hash = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
  const [t0, t1] = (hash.get("view") ?? "0,1").split(",").map(Number);
  const t = Number(hash.get("selected")?.split(",")[2] ?? (t0 + t1) / 2);
  return area.x + (area.width * (t - t0)) / (t1 - t0);
}

/** Into what is selected, so far that things can be told apart. */
async function zoomed(page: Page, steps: number): Promise<void> {
  const area = (await page.locator(".canvas-area").boundingBox())!;
  await page.mouse.move(await selectedX(page), area.y + area.height * 0.5);
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

// One that goes on: the page follows it.
const growing = `${mkdtempSync(join(tmpdir(), "aquarium-"))}/demo`;
const live = spawn(LAT, ["demo", "-o", growing, "--orders", "1000000"], { stdio: "ignore" });
while (!existsSync(`${growing}/ctf/metadata`)) await new Promise((done) => setTimeout(done, 20));
await pictures([growing], async (page) => {
  await page.waitForTimeout(REST_MS * 3);
  await shot(page, "view-live");
});
live.kill();

// Packets need the right to capture them, and something to talk.
const talk = `${mkdtempSync(join(tmpdir(), "aquarium-"))}/talk`;
const capture = [
  "record",
  "--quiet",
  "-o",
  talk,
  "--with",
  "io",
  "--packets",
  "lo",
  "--",
  "python3",
  "-c",
  TALK,
];
const { stderr } = spawnSync(LAT, capture, { encoding: "utf8" });
if (!existsSync(`${talk}/ctf`) || stderr.includes("CAP_NET_RAW")) {
  console.error(`SKIPPED: view-packets: ${stderr.trim()}`);
} else {
  await pictures([talk], async (page) => {
    await page.getByRole("combobox", { name: /grouped/ }).selectOption("processes");
    await page.locator(".list").evaluate((list) => (list.scrollTop = list.scrollHeight * 0.62));
    await page.waitForTimeout(REST_MS);
    await page.locator(".list-row", { hasText: "packet" }).nth(2).click();
    await page.waitForTimeout(REST_MS / 2);
    await zoomed(page, 9);
    const lane = (await page.locator(".label", { hasText: "lo in" }).boundingBox())!;
    await page.mouse.move(await selectedX(page), lane.y + lane.height / 2);
    await page.waitForTimeout(REST_MS);
    await shot(page, "view-packets");
  });
}

await browser.close();
if (complaints.length > 0) {
  console.error(complaints.join("\n"));
  process.exitCode = 1;
}
