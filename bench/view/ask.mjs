// SPDX-License-Identifier: Apache-2.0 OR MIT
// Asks a `lat view` for pictures as somebody does who pans and zooms, and prints what they cost:
// node ask.mjs URL [ROWS.csv], to which each figure is added; node ask.mjs URL open waits for lists alone.

import { appendFileSync } from "node:fs";
import { open } from "./socket.mjs";

const table = process.argv[3] === "open" ? null : process.argv[3];
const keep = (what, number, value) => table && appendFileSync(table, `${what},${number},${value}\n`);

const server = open(process.argv[2]);
const begun = process.hrtime.bigint();
const session = await server.ask("open", {});
console.log(`lists there after ${(Number(process.hrtime.bigint() - begun) / 1e9).toFixed(2)} s`);
if (process.argv[3] === "open") process.exit(0);
const lanes = session.lanes.filter((lane) => lane.kind === "cpu").map((lane) => lane.id);
const off = session.classes.filter((one) => one.name.startsWith("point")).map((one) => one.id);
const time = async (method, params) => {
  const begin = process.hrtime.bigint();
  const answer = await server.ask(method, params);
  return { ms: Number(process.hrtime.bigint() - begin) / 1e6, answer };
};
const made = await time("filter", { classes_off: off });
keep("filter_ms", 0, made.ms.toFixed(3));
console.log(`filter made: ${made.ms.toFixed(0)} ms, ${made.answer.count} events left`);
for (const [what, filter] of [
  ["everything", 0],
  ["filtered", made.answer.filter],
]) {
  const [costs, sizes] = [[], []];
  // In to a millionth and out again, from left to right on the way.
  for (let frame = 0; frame < 300; frame++) {
    const zoom = 1e6 ** (1 - Math.abs(frame - 150) / 150);
    const width = session.end / zoom;
    const t0 = (session.end - width) * (frame / 300);
    const { ms, answer } = await time("view", { lanes, t0, t1: t0 + width, px: 1600, filter });
    costs.push(ms);
    sizes.push(answer.length);
    keep(`view_${what}_ms`, frame, ms.toFixed(3));
    keep(`view_${what}_bytes`, frame, answer.length);
  }
  const densities = [];
  for (let number = 0; number < 30; number++) {
    const { ms } = await time("overview", { px: 1600, filter });
    densities.push(ms);
    keep(`overview_${what}_ms`, number, ms.toFixed(3));
  }
  densities.sort((a, b) => a - b);
  costs.sort((a, b) => a - b);
  const at = (share) => costs[Math.floor((costs.length - 1) * share)].toFixed(1);
  const bytes = Math.max(...sizes) / 1e6;
  console.log(
    `${what}: 300 views of ${lanes.length} processors at 1600 px: median ${at(0.5)} ms, p99 ${at(0.99)} ms, ` +
      `longest ${at(1)} ms, ${bytes.toFixed(2)} MB at most; density of the whole: median ` +
      `${densities[densities.length >> 1].toFixed(1)} ms`,
  );
}
// One event of its class among all: it is in the picture of everything.
const rare = session.classes.find((one) => one.name === "rare");
const rest = session.classes.filter((one) => one !== rare).map((one) => one.id);
const { filter } = await server.ask("filter", { classes_off: rest });
const whole = await server.ask("view", { lanes, t0: 0, t1: session.end, px: 1600, filter });
const json = JSON.parse(whole.subarray(8, 8 + whole.readUInt32LE(4)).toString());
const column = json.columns.find((one) => one.name === "count");
const rows = json.result.rows.map((row) => session.lanes[row.lane].rows[row.row].kind);
let seen = 0;
for (let index = 0; index < column.length; index++) {
  if (whole[column.offset + index] > 0 && rows[Math.floor(index / 1600)] === "events") seen++;
}
console.log(`one event of ${session.recordings[0].events}: seen in ${seen} pixel of the whole`);
const stats = await time("stats", { filter: 0 });
keep("stats_ms", 0, stats.ms.toFixed(3));
console.log(`stats of everything: ${stats.ms.toFixed(0)} ms`);
server.close();
process.exit(seen === 1 ? 0 : 1);
