// SPDX-License-Identifier: Apache-2.0 OR MIT
// The newest answer of `section`. A change by the user cancels the question before; the growth of a recording does not,
// otherwise no question about a long one would ever be answered.

import { useEffect, useRef, useState } from "preact/hooks";
import { RequestError } from "../../protocol/connection.ts";
import type { SectionAnswer } from "../../protocol/types.ts";
import { begun } from "../../state/pending.ts";
import { request } from "../../state/server.ts";
import * as store from "../../state/store.ts";

/** The view moves at every frame; tables follow when it rests. */
const REST_MS = 180;
/** From an answer about a growing recording to the next question about it, at least. */
const GROWN_MS = 900;

export interface SectionQuery {
  name: string;
  filter: number;
  order?: string;
  descending?: boolean;
  most: number;
}

interface Held {
  answer: SectionAnswer | null;
  error: string | null;
  of: string;
}

export function useSection(query: SectionQuery): Held & { waiting: boolean } {
  const [held, hold] = useState<Held>({ answer: null, error: null, of: "" });
  const { t0, t1 } = store.chosen.value;
  const session = store.session.value;
  const isGrowing = session !== null && session.is_live;
  // The time of a view that follows changes with the recording.
  const follows = isGrowing && store.follow.value && store.range.value === null;
  const range = { t0: Math.floor(t0), t1: Math.ceil(t1) + (store.range.value ? 0 : 1) };
  const wish = { ...query, ...range };
  const newest = useRef(wish);
  newest.current = wish;
  const asked = JSON.stringify([query, follows ? null : range]);
  const end = isGrowing && (follows || t1 >= session.end) ? session.end : 0;
  const state = useRef({ number: 0, isWaiting: false, isOld: false, at: 0, of: "" });

  const ask = () => {
    const now = state.current;
    const number = ++now.number;
    const of = asked;
    [now.isWaiting, now.isOld, now.at, now.of] = [true, false, performance.now(), of];
    const done = begun();
    const isNewest = () => number === now.number;
    request<SectionAnswer>("section", newest.current)
      .then(
        (answer) => isNewest() && hold({ answer, error: null, of }),
        (error: Error) =>
          error instanceof RequestError && isNewest() && hold({ answer: null, error: error.message, of }),
      )
      .finally(() => {
        if (isNewest()) now.isWaiting = false;
        done();
      });
  };

  useEffect(() => {
    const done = begun();
    const timer = setTimeout(() => {
      ask();
      done();
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      done();
    };
  }, [asked]);

  useEffect(() => {
    const now = state.current;
    if (end === 0 || now.number === 0) return;
    const timer = setTimeout(
      () => (now.isWaiting ? (now.isOld = true) : ask()),
      Math.max(0, now.at + GROWN_MS - performance.now()),
    );
    return () => clearTimeout(timer);
  }, [end]);

  useEffect(() => {
    // What has grown while its question was answered is asked for again.
    const now = state.current;
    if (!now.isOld || now.isWaiting) return;
    const timer = setTimeout(ask, GROWN_MS);
    return () => clearTimeout(timer);
  }, [held]);

  useEffect(() => () => void (state.current.number = -1), []);
  return { ...held, waiting: held.of !== asked };
}
