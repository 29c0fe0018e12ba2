// SPDX-License-Identifier: Apache-2.0 OR MIT

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Loader } from "../../src/state/loader.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Answered requests, if a new one is made every 100 ms and the server takes `answerMs` for each. */
async function answered(answerMs: number, wishes: number): Promise<number[]> {
  const got: number[] = [];
  const send = (wish: number) => new Promise<number>((resolve) => setTimeout(() => resolve(wish), answerMs));
  const loader = new Loader<number, number>(send, (answer) => got.push(answer), () => {}, () => Date.now());
  for (let wish = 0; wish < wishes; wish++) {
    loader.want(wish);
    await vi.advanceTimersByTimeAsync(100);
  }
  return got;
}

test("a quick server answers every wish", async () => {
  expect(await answered(10, 20)).toEqual(Array.from({ length: 20 }, (_, wish) => wish));
});

test("steady wishes are answered however slow the server is, and in order", async () => {
  for (const slow of [140, 400, 1500, 4000]) {
    const got = await answered(slow, 300);
    expect(got.length, `${slow} ms`).toBeGreaterThan(2);
    expect(got).toEqual([...got].sort((a, b) => a - b));
  }
});

test("what was forgotten is not told, and the newest wish is", async () => {
  const got: number[] = [];
  const send = (wish: number) => new Promise<number>((resolve) => setTimeout(() => resolve(wish), 50));
  const loader = new Loader<number, number>(send, (answer) => got.push(answer), () => {}, () => Date.now());
  loader.want(1);
  loader.forget();
  loader.want(2);
  loader.want(3);
  await vi.advanceTimersByTimeAsync(1000);
  expect(got).toEqual([2, 3]);
});
