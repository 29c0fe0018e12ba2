// SPDX-License-Identifier: Apache-2.0 OR MIT
// Tests of a page in Chromium: what they all begin and end with.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Opened, chromiumPath, launch, open } from "./browser.ts";
import type { FakeServer } from "./server.ts";

export interface Served {
  /** Of the page, with a `/` at its end. */
  url: string;
  close(): unknown;
}

/** What tests are of, and what is special about them. */
interface Of {
  serve(): Promise<Served>;
  /** Why these tests cannot be run here, beside for a browser that is missing. */
  missing?: string | null;
  /** Complaints of the page are no failure. */
  complains?: boolean;
}

export const made = (server: FakeServer): Of => ({
  serve: async () => ({
    url: `http://127.0.0.1:${await server.listen()}/`,
    close: () => server.close(),
  }),
});

/** For tests that serve something each. */
export const nothing: Of = { serve: async () => ({ url: "about:blank", close: () => {} }) };

/** Opens the page of what is served, or that of a server which ends when the page is closed. */
export type Start = (of?: string | FakeServer) => Promise<Page>;

/**
 * Tests of a page in Chromium. What is served is there for all of them; pages are closed behind each, and what one
 * complained of fails the test. Why they cannot be run is told.
 */
export function inChromium(
  name: string,
  { serve, missing = null, complains = false }: Of,
  tests: (start: Start, served: () => Served) => void,
): void {
  const why = chromiumPath() === null ? "no chromium here: apt-get install chromium" : missing;
  if (why !== null) return test(name, ({ skip }) => skip(why));
  describe(name, () => {
    let [browser, served]: [Browser | null, Served | null] = [null, null];
    let [opened, ends]: [Opened[], Served[]] = [[], []];
    beforeAll(async () => {
      served = await serve();
      browser = await launch();
    });
    afterAll(async () => {
      await browser?.close();
      await served?.close();
    });
    afterEach(async () => {
      for (const { page } of opened) await page.context().close();
      for (const one of ends) await one.close();
      const complaints = opened.flatMap((one) => one.complaints);
      [opened, ends] = [[], []];
      if (!complains) expect(complaints).toEqual([]);
    });
    const start: Start = async (of = "") => {
      const own = typeof of === "string" ? null : await made(of).serve();
      if (own) ends.push(own);
      const now = await open(browser!, own?.url ?? served!.url + of);
      opened.push(now);
      return now.page;
    };
    tests(start, () => served!);
  });
}
