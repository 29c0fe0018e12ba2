// SPDX-License-Identifier: Apache-2.0 OR MIT
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // A browser on a busy machine is slow. No result depends on these times; they only end tests
    // that would never end.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 120_000, interval: 100 } },
    maxWorkers: 2,
  },
});
