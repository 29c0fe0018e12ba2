// SPDX-License-Identifier: Apache-2.0 OR MIT
// Builds dist/, the page that `lat` embeds. It loads nothing from other sites.
// With --check, builds in memory and compares with dist/: exit status 1 if they differ.
import { build, context } from "esbuild";
import { cp, mkdir, readFile, readdir, rm } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const watch = process.argv.includes("--watch");

const options = {
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: "dist",
  bundle: true,
  format: "esm",
  // Chunks that few sessions need (the editor) are loaded on demand.
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

if (process.argv.includes("--check")) {
  const { outputFiles } = await build({ ...options, write: false });
  const expected = new Map(outputFiles.map((file) => [basename(file.path), file.contents]));
  for (const name of ["index.html", "icon.svg"]) expected.set(name, await readFile(`${here}src/${name}`));
  const found = await readdir(`${here}dist`);
  const differs = (name) => readFile(`${here}dist/${name}`).then((bytes) => !bytes.equals(expected.get(name)));
  const wrong = found.filter((name) => !expected.has(name));
  for (const name of expected.keys()) if (!found.includes(name) || (await differs(name))) wrong.push(name);
  if (wrong.length > 0) console.error(`dist/ is not what the sources give: ${wrong.join(", ")}: run aquarium/build`);
  process.exit(wrong.length > 0 ? 1 : 0);
}

await rm(`${here}dist`, { recursive: true, force: true });
await mkdir(`${here}dist`, { recursive: true });
await cp(`${here}src/index.html`, `${here}dist/index.html`);
await cp(`${here}src/icon.svg`, `${here}dist/icon.svg`);
if (watch) await (await context(options)).watch();
else await build(options);
