// SPDX-License-Identifier: Apache-2.0 OR MIT
// The session's filter and scripts on each of two compared recordings. Scripts run over each
// recording alone, as if only that had been opened; this takes time, and can fail for one
// recording.

import { computed, effect, untracked } from "@preact/signals";
import type { Looked, Which } from "./compare.ts";
import { BOTH, NOTHING_APPLIED, applied, foundOf, halves, lookingAt } from "./compare.ts";
import { RequestError, Superseded } from "../protocol/connection.ts";
import type { Quality, ScriptAnswer } from "../protocol/types.ts";
import { begun } from "./pending.ts";
import { request } from "./server.ts";
import * as store from "./store.ts";

/** Interval of requests for the progress of a script. */
const ASK_MS = 200;

type LookedAt = { script: number } & Looked;
type FilterAnswer = { count?: number; quality?: Quality; running: LookedAt[] };
type ScriptOfSide = ({ is_running: true } & Looked) | ({ is_running: false } & ScriptAnswer);

/** Repeats a request until its response is final; null if the result is not wanted any more. */
async function last<T>(ask: () => Promise<T>, isLast: (answer: T) => boolean, isWanted: () => boolean) {
  const done = begun();
  try {
    for (;;) {
      const answer = await ask();
      if (!isWanted()) return null;
      if (isLast(answer)) return answer;
      await new Promise((later) => setTimeout(later, ASK_MS));
      if (!isWanted()) return null;
    }
  } catch (error) {
    if (error instanceof Superseded || !isWanted()) return null;
    throw error;
  } finally {
    done();
  }
}

/** Updates the progress of scripts on a half; scripts in `of` that are not in `now` have finished. */
function looks(which: Which, of: Iterable<number>, now: readonly LookedAt[]): void {
  const looking = new Map(lookingAt[which].value);
  for (const script of of) looking.delete(script);
  for (const { script, looked, events } of now) looking.set(script, { looked, events });
  lookingAt[which].value = looking;
}

async function apply(which: Which, side: number, filter: number, isWanted: () => boolean): Promise<void> {
  let known: number[] = [];
  const told = (running: readonly LookedAt[]) => {
    looks(which, known, running);
    known = running.map((one) => one.script);
  };
  try {
    const answer = await last(
      () => request<FilterAnswer>("filter", { side, filter }),
      ({ running }) => {
        told(running);
        return running.length === 0;
      },
      isWanted,
    );
    told([]);
    if (answer === null) return;
    applied[which].value = { filter, count: answer.count ?? null, quality: answer.quality, problem: null };
  } catch (error) {
    told([]);
    if (!(error instanceof RequestError)) throw error;
    applied[which].value = { ...NOTHING_APPLIED, problem: error.message };
  }
}

function startFilter(which: Which): void {
  const side = computed(() => halves.value?.[which].info.side ?? null);
  let [wish, sideBefore]: [number, number | null] = [0, null];
  effect(() => {
    const [now, filter] = [side.value, store.filterId.value];
    const isOpen = store.status.value === "open";
    const own = ++wish;
    untracked(() => {
      if (now !== sideBefore) applied[which].value = NOTHING_APPLIED;
      sideBefore = now;
      if (now === null || !isOpen) return;
      if (filter === 0) applied[which].value = { ...NOTHING_APPLIED, filter };
      else void apply(which, now, filter, () => own === wish);
    });
  });
}

/** Requests the shown activities that are not known for this half yet. */
function startActivities(which: Which): void {
  const side = computed(() => halves.value?.[which].info.side ?? null);
  const wanted = computed(() => {
    const { activitiesOff } = store.filter.value;
    return store.scripts.value.filter((one) => one.finds && !activitiesOff.has(one.id)).map((one) => one.id);
  });
  const asked = new Set<number>();
  let sideBefore: number | null = null;
  const find = async (of: number, script: number) => {
    const isWanted = () => side.peek() === of && asked.has(script);
    try {
      const answer = await last(
        () => request<ScriptOfSide>("script", { side: of, script }),
        (told) => {
          looks(which, [script], told.is_running ? [{ ...told, script }] : []);
          return !told.is_running;
        },
        isWanted,
      );
      looks(which, [script], []);
      if (answer === null || answer.is_running) return void asked.delete(script);
      foundOf[which].value = new Map(foundOf[which].value).set(script, answer);
    } catch (error) {
      looks(which, [script], []);
      if (!(error instanceof RequestError)) throw error;
      store.tell(error.message, "problem");
    }
  };
  effect(() => {
    const now = side.value;
    const scripts = wanted.value;
    const isOpen = store.status.value === "open";
    const known = new Set(store.scripts.value.map((one) => one.id));
    untracked(() => {
      if (now !== sideBefore) asked.clear();
      for (const script of asked) if (!known.has(script)) asked.delete(script);
      const left = [...foundOf[which].value].filter(([script]) => asked.has(script));
      if (left.length !== foundOf[which].value.size) foundOf[which].value = new Map(left);
      sideBefore = now;
      if (now === null || !isOpen) return;
      for (const script of scripts) {
        if (asked.has(script)) continue;
        asked.add(script);
        void find(now, script);
      }
    });
  });
}

export function startApplied(): void {
  for (const which of BOTH) {
    startFilter(which);
    startActivities(which);
  }
}
