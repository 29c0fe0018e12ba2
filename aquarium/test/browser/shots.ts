// SPDX-License-Identifier: Apache-2.0 OR MIT
// Generates the pictures of docs/guides/view.md from new recordings of `lat demo`:
// aquarium/test/shots.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { launch, open } from "../support/browser.ts";
import { LAT, type Served, demo, print, serve } from "../support/lat.ts";

const IMAGES = process.env.IMAGES ?? fileURLToPath(new URL("../../docs/images/", import.meta.url));
const REST_MS = 1200;
const SIZE = { width: 1280, height: 780 };

/**
 * Client threads send questions over the loopback interface; server threads reply later to longer
 * questions.
 */
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

/** The interpreter itself rather than a script that starts it. */
const PYTHON = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";

const complaints: string[] = [];
const browser = await launch();

/** Opens the page of a `lat view`, and stops that at the end. */
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

/** Shows the range of length `ns` with the most events of a name, and selects an event in its middle. */
async function toBusiest(page: Page, trace: string, name: string, ns: number): Promise<void> {
  const times = print(trace)
    .filter((one) => one.name === name)
    .map((one) => one.since);
  let [from, best, most] = [0, 0, 0];
  times.forEach((time, to) => {
    while (time - times[from] > ns) from++;
    if (to - from > most) [best, most] = [from, to - from];
  });
  const view = `#view=${times[best]},${times[best] + ns}`;
  await page.evaluate((hash) => (location.hash = hash), view);
  await page.waitForTimeout(REST_MS);
  const area = (await page.locator(".canvas-area").boundingBox())!;
  const middle = times[best + Math.floor(most / 2)] - times[best];
  // The events of the first lane are below its bar, if it has one.
  const lane = (await page.locator(".label").first().boundingBox())!;
  await page.mouse.click(area.x + (area.width * middle) / ns, lane.y + lane.height - 11);
  await page.waitForTimeout(REST_MS);
}

const given = process.argv[2] ?? demo();
await pictures([given], async (page) => {
  await shot(page, "view");
  await tab(page, "Flame graph");
  await page.locator(".flame-box").nth(2).hover();
  await page.waitForTimeout(REST_MS / 4);
  await shot(page, "view-flame");
  await toBusiest(page, given, "client:SEND", 3e6);
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
  await toBusiest(page, given, "client:SEND", 3e5);
  // The list is next to it, and the pointer is outside.
  await page.mouse.move(0, 0);
  await shot(page, "view-zoomed");
  await page.keyboard.press("Escape");
  await page.keyboard.press("t");
  await tab(page, "Statistics");
  await shot(page, "view-light");
});

// With three times as many clients, they wait for each other.
await pictures([demo(1500), demo(1500, "--threads", "6")], async (page) => {
  await page.locator(".half.bad .label").first().waitFor();
  await page.waitForTimeout(REST_MS * 2);
  await shot(page, "view-compare");
  await tab(page, "Difference");
  await shot(page, "view-difference");
});

// A live recording, which the page follows.
const growing = `${mkdtempSync(join(tmpdir(), "aquarium-"))}/demo`;
const live = spawn(LAT, ["demo", "-o", growing, "--orders", "1000000"], { stdio: "ignore" });
while (!existsSync(`${growing}/ctf/metadata`)) await new Promise((done) => setTimeout(done, 20));
await pictures([growing], async (page) => {
  await page.waitForTimeout(REST_MS * 3);
  // On a busy machine, pictures take longer.
  const lateNs = () =>
    page.locator("canvas[data-until]").evaluate((canvas) => {
      const { view = "0,0", until = "0" } = (canvas as HTMLElement).dataset;
      return Number(view.split(",")[1]) - Number(until);
    });
  while ((await lateNs()) > 5e8) await page.waitForTimeout(50);
  await shot(page, "view-live");
});
live.kill();

// Capturing packets needs privileges, and traffic.
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
  PYTHON,
  "-c",
  TALK,
];
const { stderr } = spawnSync(LAT, capture, { encoding: "utf8" });
if (!existsSync(`${talk}/ctf`) || stderr.includes("CAP_NET_RAW")) {
  console.error(`SKIPPED: view-packets: ${stderr.trim()}`);
} else {
  await pictures([talk], async (page) => {
    await page.getByRole("combobox", { name: /grouped/ }).selectOption("processes");
    await toBusiest(page, talk, "packets:packet", 12e6);
    await shot(page, "view-packets");
  });
}

await browser.close();
if (complaints.length > 0) {
  console.error(complaints.join("\n"));
  process.exitCode = 1;
}
