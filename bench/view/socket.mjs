// SPDX-License-Identifier: Apache-2.0 OR MIT
// What a page needs of a WebSocket, without a browser.

import { randomBytes } from "node:crypto";
import { connect } from "node:net";

/** A WebSocket's client, as far as it is needed here (RFC 6455): answers are whole frames. */
export function open(url, pushed = () => {}) {
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
      if (answer?.event) {
        pushed(answer);
        continue;
      }
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
