// SPDX-License-Identifier: Apache-2.0 OR MIT
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // A browser on a busy machine is slow; nothing is decided by time.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
  },
});
