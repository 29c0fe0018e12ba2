// SPDX-License-Identifier: Apache-2.0 OR MIT
// Losses of a session that grows: a word of growth tells them, and so does a session that is opened again for its lists
// while that word is not shown yet.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Picture } from "../../src/logic/picture.ts";
import type { Loss, Session } from "../../src/protocol/types.ts";

/** What the server has, and what it is asked for. */
const server = vi.hoisted(() => ({ losses: [] as unknown[], opens: 0, session: {} as object }));

vi.mock("../../src/state/scripts.ts", () => ({ runAgain: async () => {}, wanted: () => [] }));
vi.mock("../../src/state/server.ts", () => ({
  ask: async (method: string) => {
    if (method !== "open") throw new Error(method);
    server.opens++;
    return { ...server.session, losses: [...server.losses] };
  },
  numbersAreNew: () => {},
  picturesAreOld: () => {},
  isPictureAsked: () => false,
  overviewAhead: async () => null,
  // It never comes.
  pictureAhead: () => new Promise(() => {}),
}));

const store = await import("../../src/state/store.ts");
const opening = await import("../../src/state/opening.ts");

beforeEach(async () => {
  vi.useFakeTimers();
  vi.stubGlobal("document", { hidden: false });
  const lists = { lanes: [], classes: [], applications: [], names: [], recordings: [], channels: [], damage: [] };
  const numbers = { version: 1, origin: "0", is_date: false, begin: 0, end: 1000, is_live: true, events: 1 };
  server.session = { ...lists, ...numbers, lists: 1, gone: { events: 0 }, methods: ["open"], scripts: [] };
  Object.assign(server, { losses: [], opens: 0 });
  opening.connectionChanged("open", 0);
  await vi.advanceTimersByTimeAsync(0);
});
afterEach(() => {
  if (opening.paused.value) opening.togglePause();
  store.session.value = null;
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const lost = (begin: number): Loss => ({ lane: 1, begin, end: begin + 5, count: 7, cause: "ring full" });

/** A word of growth with what was lost, which the server has from now on. */
function grow(end: number, losses: Loss[] = []): void {
  server.losses.push(...losses);
  opening.pushed({ event: "grown", begin: 0, end, events: end, lists: 1, gone: { events: 0 }, losses });
}

/** Until lists were asked for again, which they are a second after the last word that was shown. */
async function untilListsCame(): Promise<void> {
  const before = server.opens;
  for (let ms = 0; server.opens === before && ms < 5000; ms += 50) await vi.advanceTimersByTimeAsync(50);
  expect(server.opens).toBeGreaterThan(before);
}

const shown = () => (store.session.value as Session).losses.map((loss) => loss.begin);

test("losses of words that are held are told once, though the lists have them by then", async () => {
  store.follow.value = false;
  grow(2000);
  grow(3000);
  opening.togglePause();
  grow(4000, [lost(3100)]);
  expect(shown()).toEqual([]);
  await untilListsCame();
  expect(shown()).toEqual([3100]);
  grow(5000, [lost(4100)]);
  opening.togglePause();
  // In the very moment, not when the lists come again.
  expect(shown()).toEqual([3100, 4100]);
});

test("so are those of words that wait for their picture", async () => {
  store.follow.value = false;
  grow(1500);
  grow(2000);
  await untilListsCame();
  // They come again in a second, less than what is waited until then.
  grow(3000);
  await vi.advanceTimersByTimeAsync(880);
  store.picture.value = {} as Picture;
  store.follow.value = true;
  const before = server.opens;
  grow(4000, [lost(3100)]);
  grow(5000, [lost(4100)]);
  expect(shown()).toEqual([]);
  await vi.advanceTimersByTimeAsync(120);
  // The lists came before the picture was given up.
  expect(server.opens).toBeGreaterThan(before);
  expect(shown()).toEqual([3100, 4100]);
  await vi.advanceTimersByTimeAsync(60);
  expect(store.session.value!.end).toBe(5000);
  expect(shown()).toEqual([3100, 4100]);
});
