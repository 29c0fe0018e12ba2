// SPDX-License-Identifier: Apache-2.0 OR MIT
// Makes dist/: the page as `lat` embeds it. Nothing in it is fetched from anywhere else.
import { build, context } from "esbuild";
import { cp, mkdir, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const watch = process.argv.includes("--watch");

const options = {
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: "dist",
  bundle: true,
  format: "esm",
  // Chunks that few sessions need (the editor) are loaded when they are.
  splitting: true,
  chunkNames: "chunk-[name]-[hash]",
  minify: !watch,
  sourcemap: watch ? "inline" : false,
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof",
  logLevel: "warning",
};

await rm(`${here}dist`, { recursive: true, force: true });
await mkdir(`${here}dist`, { recursive: true });
await cp(`${here}src/index.html`, `${here}dist/index.html`);
await cp(`${here}src/icon.svg`, `${here}dist/icon.svg`);
if (watch) await (await context(options)).watch();
else await build(options);
