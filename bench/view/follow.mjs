// SPDX-License-Identifier: Apache-2.0 OR MIT
// Follows a recording that grows as a page does: node follow.mjs URL. Prints a line of JSON when it has ended.
//
// Lag: how old the newest event was when the server sent that it is there, and until that was here: both on this
// machine, by its clock. Each word is followed by a picture of the last ten seconds, as the page asks for it.

import { open } from "./socket.mjs";

const WINDOW_NS = 10e9;
const [lags, pictures] = [[], []];
let [lost, words, events, gone, session, asking] = [0, 0, 0, 0, null, false];
let tellEnd;
const ended = new Promise((resolve) => (tellEnd = resolve));
const server = open(process.argv[2], pushed);

async function picture(end) {
  if (asking || !session) return;
  asking = true;
  const lanes = session.lanes.filter((lane) => lane.kind === "cpu").map((lane) => lane.id);
  const begin = process.hrtime.bigint();
  await server.ask("view", { lanes, t0: end - WINDOW_NS, t1: end, px: 1600, filter: 0 });
  pictures.push(Number(process.hrtime.bigint() - begin) / 1e6);
  asking = false;
}

function pushed(word) {
  if (word.event === "ended") tellEnd(word);
  if (word.event !== "grown") return;
  words++;
  events = word.events + word.gone.events;
  gone = word.gone.events;
  for (const loss of word.losses) lost += loss.count ?? 0;
  if (session && word.age_ns !== null) {
    const now = BigInt(Date.now()) * 1000000n;
    const newest = BigInt(session.origin) + BigInt(Math.floor(word.end));
    // Whichever says more: the server's own clock is finer, ours includes the way.
    lags.push(Math.max(Number(now - newest), word.age_ns) / 1e6);
  }
  if (session && word.lists !== session.lists) void server.ask("open", {}).then((again) => (session = again));
  void picture(word.end);
}

session = await server.ask("open", {});
const end = await ended;
const at = (all, share) => {
  all.sort((a, b) => a - b);
  return all.length ? Number(all[Math.floor((all.length - 1) * share)].toFixed(1)) : null;
};
const of = (all) => ({ count: all.length, median: at(all, 0.5), p99: at(all, 0.99), longest: at(all, 1) });
console.log(
  JSON.stringify({ complete: end.complete, words, events, gone, lost, lag_ms: of(lags), picture_ms: of(pictures) }),
);
server.close();
process.exit(0);
