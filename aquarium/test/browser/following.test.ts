// SPDX-License-Identifier: Apache-2.0 OR MIT
// A script in `lat view` of a live recording: its results grow on the timeline and in the lists,
// and finally equal those of `lat run-script` for the complete recording.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { settled } from "../support/browser.ts";
import { LAT, runScript, serve, whyNot } from "../support/lat.ts";
import { inChromium } from "../support/pages.ts";

const SCRIPT = 'activity("opening").begin("io:OPEN").end("io:OPENED");';

let [folder, end]: [string, string] = ["", ""];
let recorder: ChildProcess;

/** A recording of a program that opens files until it is stopped. */
async function recording() {
  const place = mkdtempSync(join(tmpdir(), "aquarium-"));
  [folder, end] = [join(place, "recording"), join(place, "end")];
  const program = `while [ ! -e ${end} ]; do cat /dev/null; sleep 0.02; done`;
  const words = ["record", "--with", "io", "-o", folder, "--", "sh", "-c", program];
  recorder = spawn(LAT, words, { stdio: "ignore" });
  while (!existsSync(join(folder, "ctf"))) {
    if (recorder.exitCode !== null) throw new Error(`lat record ended with ${recorder.exitCode}`);
    await new Promise((done) => setTimeout(done, 20));
  }
  const served = await serve(folder);
  const close = () => {
    writeFileSync(end, "");
    recorder.kill();
    served.close();
  };
  return { ...served, close };
}

/** Number of activities that the page reports. */
async function found(page: Page): Promise<number> {
  const text = (await page.locator(".bar [role=status]").textContent()) ?? "";
  return Number(text.split(" activities")[0].replace(/\D/g, ""));
}

inChromium("a script while a program is recorded", { serve: recording, missing: whyNot() }, (begin) => {
  test("finds what comes, and in the end what it finds in all of it", async () => {
    const page = await begin();
    await page.locator("#event-count").waitFor();
    await page.getByRole("tab", { name: "Scripts" }).click();
    await page.getByRole("button", { name: "new" }).click();
    await page.getByRole("textbox", { name: "Script script 1" }).fill(SCRIPT);
    await page.keyboard.press("Control+Enter");
    await page.locator('.tree-line[data-key^="activity-"]').waitFor();
    const first = await found(page);
    // Wait for more results while the program runs.
    await expect.poll(() => found(page)).toBeGreaterThan(first + 20);
    writeFileSync(end, "");
    await page.locator(".notice").filter({ hasText: "the recording has ended" }).waitFor();
    const all = runScript(folder, SCRIPT).length;
    await expect.poll(() => found(page)).toBe(all);
    await page.getByRole("tab", { name: "Activities" }).click();
    const kinds = page.locator(".bar select");
    await kinds.selectOption({ index: (await kinds.locator("option").count()) - 1 });
    await page.locator(`.list[aria-rowcount="${all}"]`).waitFor();
    await settled(page);
    // Its row is on the lanes, and disappears when it is switched off.
    const lanes = () => page.locator(".lanes-inside").getAttribute("style");
    const before = await lanes();
    await page.locator('.tree-line[data-key^="activity-"]').click();
    await expect.poll(lanes).not.toBe(before);
  });
});
