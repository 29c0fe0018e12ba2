// SPDX-License-Identifier: Apache-2.0 OR MIT
import { useEffect, useRef, useState } from "preact/hooks";
import { RequestError } from "../../protocol/connection.ts";
import { request } from "../../state/server.ts";
import { begun } from "../../state/pending.ts";
import * as store from "../../state/store.ts";

/** Requests are sent when the view has rested for this time. */
const REST_MS = 180;
/** Interval of requests while the view never rests, as in a followed recording. */
const LATEST_MS = 900;

/**
 * The response of a method for the newest parameters; the previous response stays until the next
 * one arrives.
 */
export function useAnswer<T>(
  method: string,
  parameters: object | null,
): { answer: T | null; error: string | null; waiting: boolean } {
  const [held, hold] = useState<{ answer: T | null; error: string | null; of: string }>({
    answer: null,
    error: null,
    of: "",
  });
  // The same range is requested again if a live session has grown into it.
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
      // Responses arrive in the order of the requests; even an outdated response is newer than the
      // shown one.
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
