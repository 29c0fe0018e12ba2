// SPDX-License-Identifier: Apache-2.0 OR MIT
// Makes a CTF 1.8 trace of eight processors, always the same one: node make.mjs FOLDER EVENTS
// Threads make system calls, one inside of another at times, and are switched; in the midst there is one event of a
// class of its own, which has to be seen at every zoom.

import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

const [folder, wanted] = [process.argv[2], Number(process.argv[3])];
const CPUS = 8;
const CALLS = 20;
const PACKET = 1 << 16;
const HEAD = 44;
const RECORD = 22;
const RECORDS = Math.floor((PACKET - HEAD) / RECORD);
const SWITCH = 2 * CALLS;
const POINT = SWITCH + 1;
const RARE = POINT + 8;

const number = (bits) => `integer { size = ${bits}; align = 8; signed = false; }`;
let metadata = `/* CTF 1.8 */
typealias ${number(16)} := u16; typealias ${number(32)} := u32; typealias ${number(64)} := u64;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };
clock { name = monotonic; freq = 1000000000; offset_s = 1700000000; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := stamp;
stream { id = 0;
  packet.context := struct { stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size; u32 cpu_id; };
  event.header := struct { u16 id; stamp timestamp; };
  event.context := struct { u32 tid; }; };
`;
for (let id = 0; id <= RARE; id++) {
  const name =
    id < CALLS
      ? `syscall_entry_call${id}`
      : id < SWITCH
        ? `syscall_exit_call${id - CALLS}`
        : id === SWITCH
          ? "sched_switch"
          : id === RARE
            ? "app:rare"
            : `app:point${id - POINT}`;
  const fields = id === SWITCH ? "u32 prev_tid; u32 next_tid;" : "u64 arg;";
  metadata += `event { name = "${name}"; id = ${id}; stream_id = 0; fields := struct { ${fields} }; };\n`;
}

// xorshift32: every run has the same events.
let state = 0x2545f491;
function below(limit) {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % limit;
}

mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "metadata"), metadata);
const packet = Buffer.alloc(PACKET);
for (let cpu = 0; cpu < CPUS; cpu++) {
  const file = openSync(join(folder, `cpu${cpu}`), "w");
  const events = Math.floor(wanted / CPUS);
  let [time, tid, turn] = [1000 + cpu, 100 * cpu + 1, 0];
  const open = new Map();
  for (let done = 0; done < events; ) {
    const count = Math.min(RECORDS, events - done);
    let [first, at] = [0, HEAD];
    for (let index = 0; index < count; index++, done++) {
      time += 100 + below(800);
      if (index === 0) first = time;
      let [id, arg, high] = [POINT + below(8), below(1 << 20), 0];
      const stack = open.get(tid) ?? [];
      if (cpu === 3 && done === events >> 1) id = RARE;
      else if (++turn > 200) {
        const next = 100 * cpu + 1 + below(16);
        [id, arg, high, turn] = [SWITCH, tid, next, 0];
      } else if (turn % 2 === 0) {
        if (stack.length > 0 && (stack.length > 1 || below(3) > 0)) id = CALLS + stack.pop();
        else stack.push((id = below(CALLS)));
        open.set(tid, stack);
      }
      packet.writeUInt16LE(id, at);
      packet.writeUInt32LE(time % 2 ** 32, at + 2);
      packet.writeUInt32LE(Math.floor(time / 2 ** 32), at + 6);
      packet.writeUInt32LE(tid, at + 10);
      packet.writeUInt32LE(arg, at + 14);
      packet.writeUInt32LE(high, at + 18);
      if (id === SWITCH) tid = high;
      at += RECORD;
    }
    packet.fill(0, at);
    packet.writeUInt32LE(0xc1fc1fc1, 0);
    packet.writeUInt32LE(0, 4);
    packet.writeBigUInt64LE(BigInt(first), 8);
    packet.writeBigUInt64LE(BigInt(time), 16);
    packet.writeBigUInt64LE(BigInt(at * 8), 24);
    packet.writeBigUInt64LE(BigInt(PACKET * 8), 32);
    packet.writeUInt32LE(cpu, 40);
    writeSync(file, packet);
  }
  closeSync(file);
}
