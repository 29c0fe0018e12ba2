// SPDX-License-Identifier: Apache-2.0 OR MIT
import { useEffect, useState } from "preact/hooks";
import { RequestError } from "../../protocol/connection.ts";
import { request } from "../../state/server.ts";

/** The view moves at every frame; numbers follow when it rests. */
const REST_MS = 180;

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
  const key = JSON.stringify(parameters);
  useEffect(() => {
    if (parameters === null) return;
    let newest = true;
    const timer = setTimeout(() => {
      request<T>(method, parameters).then(
        (answer) => newest && hold({ answer, error: null, of: key }),
        (error: Error) =>
          newest && error instanceof RequestError && hold({ answer: null, error: error.message, of: key }),
      );
    }, REST_MS);
    return () => {
      newest = false;
      clearTimeout(timer);
    };
  }, [method, key]);
  return { answer: held.answer, error: held.error, waiting: held.of !== key };
}
