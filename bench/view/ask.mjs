// SPDX-License-Identifier: Apache-2.0 OR MIT
// Asks a `lat view` for pictures as somebody does who pans and zooms, and prints what they cost: node ask.mjs URL

import { randomBytes } from "node:crypto";
import { connect } from "node:net";

/** A WebSocket's client, as far as it is needed here (RFC 6455): answers are whole frames. */
function open(url) {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  const key = randomBytes(16).toString("base64");
  socket.setNoDelay(true);
  socket.write(
    `GET /ws HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      `Sec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
  );
  let [pieces, size, isOpen, next] = [[], 0, false, 1];
  const waiting = new Map();
  socket.on("data", (data) => {
    pieces.push(data);
    size += data.length;
    for (;;) {
      if (size < 2) return;
      let bytes = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
      pieces = [bytes];
      if (!isOpen) {
        const end = bytes.indexOf("\r\n\r\n");
        if (end < 0) return;
        if (!bytes.toString("latin1", 0, 12).includes("101")) throw new Error(bytes.toString());
        isOpen = true;
        bytes = bytes.subarray(end + 4);
        [pieces, size] = [[bytes], bytes.length];
        continue;
      }
      let [length, at] = [bytes[1] & 127, 2];
      if (length === 126) [length, at] = [bytes.readUInt16BE(2), 4];
      else if (length === 127) [length, at] = [Number(bytes.readBigUInt64BE(2)), 10];
      if (bytes.length < at + length) return;
      const frame = bytes.subarray(at, at + length);
      const rest = bytes.subarray(at + length);
      [pieces, size] = [[rest], rest.length];
      const isText = (bytes[0] & 15) === 1;
      const answer = isText ? JSON.parse(frame.toString()) : null;
      const id = answer ? answer.id : frame.readUInt32LE(0);
      waiting.get(id)?.(answer ? (answer.result ?? answer) : frame);
      waiting.delete(id);
    }
  });
  return {
    ask(method, params) {
      const text = Buffer.from(JSON.stringify({ id: next, method, params }));
      const head =
        text.length < 126
          ? Buffer.from([0x81, 0x80 | text.length])
          : Buffer.from([0x81, 0x80 | 126, text.length >> 8, text.length & 255]);
      // Masked by zeros: nobody is between who could be confused.
      socket.write(Buffer.concat([head, Buffer.alloc(4), text]));
      return new Promise((resolve) => waiting.set(next++, resolve));
    },
    close: () => socket.destroy(),
  };
}

const server = open(process.argv[2]);
const session = await server.ask("open", {});
const lanes = session.lanes.filter((lane) => lane.kind === "cpu").map((lane) => lane.id);
const off = session.classes.filter((one) => one.name.startsWith("point")).map((one) => one.id);
const time = async (method, params) => {
  const begin = process.hrtime.bigint();
  const answer = await server.ask(method, params);
  return { ms: Number(process.hrtime.bigint() - begin) / 1e6, answer };
};
const made = await time("filter", { classes_off: off });
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
  }
  costs.sort((a, b) => a - b);
  const at = (share) => costs[Math.floor((costs.length - 1) * share)].toFixed(1);
  const bytes = Math.max(...sizes) / 1e6;
  console.log(
    `${what}: 300 views of ${lanes.length} processors at 1600 px: median ${at(0.5)} ms, p99 ${at(0.99)} ms, ` +
      `longest ${at(1)} ms, ${bytes.toFixed(2)} MB at most`,
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
console.log(`stats of everything: ${stats.ms.toFixed(0)} ms`);
server.close();
process.exit(seen === 1 ? 0 : 1);
