// SPDX-License-Identifier: Apache-2.0 OR MIT
// Common set-up and clean-up of tests of a page in Chromium.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Opened, chromiumPath, launch, open } from "./browser.ts";
import type { FakeServer } from "./server.ts";

export interface Served {
  /** URL of the page, with a trailing `/`. */
  url: string;
  close(): unknown;
}

/** What a group of tests serves, and its exceptions. */
interface Of {
  serve(): Promise<Served>;
  /** Reason why these tests cannot run here, other than a missing browser. */
  missing?: string | null;
  /** Complaints of the page are expected. */
  complains?: boolean;
}

export const made = (server: FakeServer): Of => ({
  serve: async () => ({
    url: `http://127.0.0.1:${await server.listen()}/`,
    close: () => server.close(),
  }),
});

/** For tests that each serve something of their own. */
export const nothing: Of = { serve: async () => ({ url: "about:blank", close: () => {} }) };

/** Opens the served page, or that of a server which is closed together with the page. */
export type Start = (of?: string | FakeServer) => Promise<Page>;

/**
 * Tests of a page in Chromium. What is served is shared by all of them; pages are closed after each
 * test, and complaints of a page fail the test. If the tests cannot run, the reason is printed.
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
