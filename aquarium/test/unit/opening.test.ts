// SPDX-License-Identifier: Apache-2.0 OR MIT
// Losses of a live session: they arrive in growth updates, and in the lists when these are
// requested again while an update is not applied yet.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Picture } from "../../src/logic/picture.ts";
import type { Loss, Session } from "../../src/protocol/types.ts";

/** Contents of the fake server, and number of its `open` requests. */
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
  // The picture never arrives.
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

/** Sends a growth update with losses, which the server's lists contain from now on. */
function grow(end: number, losses: Loss[] = []): void {
  server.losses.push(...losses);
  opening.pushed({ event: "grown", begin: 0, end, events: end, lists: 1, gone: { events: 0 }, losses });
}

/** Waits until the lists were requested again, one second after the last applied update. */
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
  // At once, before the lists arrive.
  expect(shown()).toEqual([3100, 4100]);
});

test("so are those of words that wait for their picture", async () => {
  store.follow.value = false;
  grow(1500);
  grow(2000);
  await untilListsCame();
  // The lists are requested again in one second, before the wait for the picture ends.
  grow(3000);
  await vi.advanceTimersByTimeAsync(880);
  store.picture.value = {} as Picture;
  store.follow.value = true;
  const before = server.opens;
  grow(4000, [lost(3100)]);
  grow(5000, [lost(4100)]);
  expect(shown()).toEqual([]);
  await vi.advanceTimersByTimeAsync(120);
  // The lists arrived before the wait for the picture ended.
  expect(server.opens).toBeGreaterThan(before);
  expect(shown()).toEqual([3100, 4100]);
  await vi.advanceTimersByTimeAsync(60);
  expect(store.session.value!.end).toBe(5000);
  expect(shown()).toEqual([3100, 4100]);
});
