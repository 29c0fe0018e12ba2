// SPDX-License-Identifier: Apache-2.0 OR MIT
// The `lat` under test: it serves a page, and supplies independent results by other commands.

import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const LAT = process.env.LAT ?? "";

/** Returns null if it can serve the page, otherwise the reason. */
export function whyNot(): string | null {
  if (LAT === "") return "LAT names no lat";
  try {
    const help = execFileSync(LAT, ["view", "--help"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    return help.includes("--no-open") ? null : "this lat has no view";
  } catch {
    return "this lat has no view";
  }
}

/**
 * Output of a command. Exit status 1 is accepted: it reports problems, such as losses on a busy
 * machine, and the output is still valid.
 */
export function told(...words: string[]): string {
  const { status, stdout, stderr } = spawnSync(LAT, words, { encoding: "utf8", maxBuffer: 1 << 30 });
  if (status !== 0 && status !== 1) throw new Error(`lat ${words.join(" ")} ended with ${status}: ${stderr}`);
  return stdout;
}

/** An event in the output of `lat print`. */
export interface Printed {
  /** Nanoseconds since the first event: those since 1970 exceed the exact integers of JavaScript. */
  since: number;
  /** Seconds since 1970, with nine decimals. */
  time: string;
  name: string;
  cpu: number;
  process?: string;
  pid?: number;
  fields: Record<string, unknown>;
}

/**
 * All events in the order of the page's lists: simultaneous events are ordered by CPU, whereas `lat
 * print` orders them by stream.
 */
export function print(trace: string): Printed[] {
  const lines = told("print", "--format", "json", trace)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Printed);
  return lines
    .map((line) => ({ ...line, since: Number(nanos(line.time) - nanos(lines[0].time)) }))
    .sort((a, b) => a.since - b.since || (a.cpu ?? 0) - (b.cpu ?? 0));
}

/** Converts seconds with nine decimals to nanoseconds. */
export function nanos(seconds: string): bigint {
  return BigInt(seconds.replace(".", ""));
}

/** Durations of the activities that a script finds, according to `lat run-script`. */
export function runScript(trace: string, text: string): { duration_ns: number }[] {
  const file = join(mkdtempSync(join(tmpdir(), "aquarium-")), "script.js");
  writeFileSync(file, text);
  return JSON.parse(told("run-script", trace, file, "--json")).activities;
}

/** A recording of real processes, made by `lat demo`. */
export function demo(orders = 100, ...more: string[]): string {
  const folder = join(mkdtempSync(join(tmpdir(), "aquarium-")), "demo");
  told("demo", "-o", folder, "--orders", String(orders), ...more);
  return folder;
}

export interface Served {
  url: string;
  /** URL of the Trace Server Protocol. */
  traceServerUrl: string;
  process: ChildProcess;
  close(): void;
}

export function serve(trace: string | string[], more: string[] = []): Promise<Served> {
  const traces = [trace].flat();
  const child = spawn(LAT, ["view", "--no-open", "--json", ...more, ...traces], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const close = () => {
    child.removeAllListeners("exit");
    child.kill();
  };
  return new Promise((resolve, reject) => {
    let out = "";
    let errors = "";
    child.stderr.on("data", (data) => (errors += data));
    child.on("exit", (code) => reject(new Error(`lat view ended with ${code}: ${errors}`)));
    child.stdout.on("data", (data) => {
      out += data;
      const url = out.match(/"url"\s*:\s*"([^"]+)"/)?.[1];
      const traceServerUrl = out.match(/"trace_server_url"\s*:\s*"([^"]+)"/)?.[1] ?? "";
      if (url) resolve({ url, traceServerUrl, process: child, close });
    });
  });
}
