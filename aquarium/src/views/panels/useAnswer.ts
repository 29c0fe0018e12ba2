// SPDX-License-Identifier: Apache-2.0 OR MIT
import { useEffect, useRef, useState } from "preact/hooks";
import { RequestError } from "../../protocol/connection.ts";
import { request } from "../../state/server.ts";
import { begun } from "../../state/pending.ts";
import * as store from "../../state/store.ts";

/** The view moves at every frame; numbers follow when it rests. */
const REST_MS = 180;
/** One that never rests, as that of a recording that is followed, has its numbers so often. */
const LATEST_MS = 900;

/** A method's answer for the newest parameters; the last one stays until the next is here. */
export function useAnswer<T>(
  method: string,
  parameters: object | null,
): { answer: T | null; error: string | null; waiting: boolean } {
  const [held, hold] = useState<{ answer: T | null; error: string | null; of: string }>({
    answer: null,
    error: null,
    of: "",
  });
  // The same time of a session that has grown into it is asked for again.
  const { t1 } = (parameters ?? {}) as { t1?: number };
  const session = store.session.value;
  const end = session !== null && session.is_live && (t1 ?? Infinity) >= session.end ? session.end : 0;
  const key = JSON.stringify([parameters, end]);
  const askedAt = useRef(0);
  const asked = useRef(0);
  const shown = useRef(0);
  useEffect(() => {
    if (parameters === null) return;
    const told = begun();
    const wait = Math.max(0, Math.min(REST_MS, askedAt.current + LATEST_MS - performance.now()));
    const timer = setTimeout(() => {
      askedAt.current = performance.now();
      const number = ++asked.current;
      // Answers come in the order of their requests; one that is late still tells more than what is there.
      const isNews = () => number > shown.current && (shown.current = number) > 0;
      request<T>(method, parameters)
        .then(
          (answer) => isNews() && hold({ answer, error: null, of: key }),
          (error: Error) =>
            error instanceof RequestError &&
            isNews() &&
            hold({ answer: null, error: error.message, of: key }),
        )
        .finally(told);
    }, wait);
    return () => {
      clearTimeout(timer);
      told();
    };
  }, [method, key]);
  useEffect(() => () => void (shown.current = Infinity), []);
  return { answer: held.answer, error: held.error, waiting: held.of !== key };
}
