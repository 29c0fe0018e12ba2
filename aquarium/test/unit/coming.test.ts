// SPDX-License-Identifier: Apache-2.0 OR MIT

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Coming } from "../../src/state/coming.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Updates are numbers, and merged by addition; each picture arrives after `answerMs`, or never. */
function coming(answerMs: number | null) {
  const shown: [number, string | null][] = [];
  const asked: number[] = [];
  const ask = (word: number) =>
    new Promise<string | null>((resolve) => {
      asked.push(word);
      if (answerMs !== null) setTimeout(() => resolve(`picture of ${word}`), answerMs);
    });
  const show = (word: number, picture: string | null) => void shown.push([word, picture]);
  return { shown, asked, of: new Coming<number, string>(ask, show, (before, after) => before + after) };
}

test("a word is shown once, with its picture", async () => {
  const { of, shown } = coming(20);
  of.come(1);
  expect(shown).toEqual([]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(shown).toEqual([[1, "picture of 1"]]);
});

test("what comes while a picture is waited for is one word, asked for after it", async () => {
  const { of, shown, asked } = coming(50);
  for (const word of [1, 10, 100]) of.come(word);
  expect(asked).toEqual([1]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(shown).toEqual([
    [1, "picture of 1"],
    [110, "picture of 110"],
  ]);
});

test("without an answer, words are shown all the same, in their order", async () => {
  const { of, shown } = coming(null);
  of.come(1);
  of.come(2);
  await vi.advanceTimersByTimeAsync(1000);
  of.come(4);
  await vi.advanceTimersByTimeAsync(1000);
  expect(shown).toEqual([
    [1, null],
    [2, null],
    [4, null],
  ]);
});

test("a picture that comes too late is not shown with a word that is shown already", async () => {
  const { of, shown } = coming(400);
  of.come(1);
  await vi.advanceTimersByTimeAsync(200);
  of.come(2);
  await vi.advanceTimersByTimeAsync(1000);
  expect(shown).toEqual([
    [1, null],
    [2, null],
  ]);
});

test("what came is shown at once before something else changes, and forgotten with its session", async () => {
  const { of, shown } = coming(20);
  of.come(1);
  of.come(2);
  of.settle();
  expect(shown).toEqual([
    [1, null],
    [2, null],
  ]);
  of.come(4);
  expect(of.waiting()).toEqual([4]);
  of.forget();
  expect(of.waiting()).toEqual([]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(shown.length).toBe(2);
  of.come(8);
  await vi.advanceTimersByTimeAsync(1000);
  expect(shown[2]).toEqual([8, "picture of 8"]);
});

test("where no picture can be had, words are shown without", async () => {
  const shown: unknown[] = [];
  const of = new Coming<number, string>(
    () => Promise.reject(new Error("superseded")),
    (word, picture) => shown.push([word, picture]),
    (_, after) => after,
  );
  of.come(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(shown).toEqual([[1, null]]);
});
