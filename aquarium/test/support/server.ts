// SPDX-License-Identifier: Apache-2.0 OR MIT
// A server of spec/view.md over a made trace, by brute force: for tests of the page alone. Never part of dist/.

import { createReadStream, existsSync } from "node:fs";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { WebSocketServer, type WebSocket } from "ws";
import { encodeFrame } from "./encode.ts";
import { APPLICATIONS, CLASSES, type Event, NAMES, type Piece, type Trace } from "./trace.ts";

const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

interface Filter {
  lanes_off: number[];
  classes_off: number[];
  applications_off: number[];
}
type Parameters = Record<string, any>;

export class FakeServer {
  private filters: Filter[] = [{ lanes_off: [], classes_off: [], applications_off: [] }];
  private sockets = new Set<WebSocket>();
  private http: Server;
  /** Set it to be a recording that still runs; then push `grown`. */
  isLive = false;
  notes: unknown = ["no note", { begin: 1000, text: "here it began" }];
  readonly requests: { method: string; params: Parameters }[] = [];

  constructor(
    private readonly trace: Trace,
    dist: string,
  ) {
    this.http = createServer((request, response) => this.serve(dist, request, response));
    const sockets = new WebSocketServer({ server: this.http, path: "/ws" });
    sockets.on("connection", (socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
      socket.on("message", (data) => this.answer(socket, String(data)));
    });
  }

  listen(port = 0): Promise<number> {
    return new Promise((resolve) =>
      this.http.listen(port, "127.0.0.1", () => {
        const address = this.http.address();
        resolve(typeof address === "object" && address ? address.port : 0);
      }),
    );
  }

  /** Cuts all connections and refuses new ones, as a server that was killed. */
  async close(): Promise<void> {
    for (const socket of this.sockets) socket.terminate();
    this.http.closeAllConnections();
    await new Promise((resolve) => this.http.close(resolve));
  }

  push(message: object): void {
    for (const socket of this.sockets) socket.send(JSON.stringify(message));
  }

  private serve(dist: string, request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname === "/export") {
      response.setHeader("content-type", "text/csv");
      response.end(this.csv(Number(url.searchParams.get("filter"))));
      return;
    }
    const path = join(dist, normalize(url.pathname === "/" ? "/index.html" : url.pathname));
    if (!path.startsWith(dist) || !existsSync(path)) {
      response.writeHead(404).end();
      return;
    }
    response.setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream");
    createReadStream(path).pipe(response);
  }

  private csv(filter: number): string {
    const rows = this.events(filter).map((one) =>
      [one.t, one.core, CLASSES[one.class].name, APPLICATIONS[one.application]].join(","),
    );
    return ["time,core,event,application", ...rows].join("\n");
  }

  events(filter: number): Event[] {
    const f = this.filters[filter];
    return this.trace.events.filter(
      (one) =>
        !f.lanes_off.includes(one.core) &&
        !f.classes_off.includes(one.class) &&
        !f.applications_off.includes(one.application),
    );
  }

  private answer(socket: WebSocket, data: string): void {
    const { id, method, params } = JSON.parse(data);
    this.requests.push({ method, params });
    try {
      const handler = this.methods[method];
      if (!handler) throw new Error(`no method ${method}`);
      const result = handler(params, id);
      socket.send(result instanceof ArrayBuffer ? result : JSON.stringify({ id, result }));
    } catch (error) {
      socket.send(
        JSON.stringify({
          id,
          error: { what: (error as Error).message, where: method, do: "ask for something else" },
        }),
      );
    }
  }

  private readonly methods: Record<string, (params: Parameters, id: number) => unknown> = {
    open: () => this.open(),
    filter: (params) => {
      this.filters.push(params as Filter);
      return {
        filter: this.filters.length - 1,
        count: this.events(this.filters.length - 1).length,
        quality: "exact",
      };
    },
    view: (params, id) => this.view(params, id),
    overview: ({ px, filter }, id) => {
      const count = new Uint32Array(px);
      const flags = new Uint8Array(px);
      for (const one of this.events(filter))
        count[Math.min(px - 1, Math.floor((one.t / this.trace.end) * px))]++;
      return encodeFrame(id, {}, { count, flags });
    },
    arrows: (params, id) => this.arrows(params, id),
    at: (params) => ({ thing: this.at(params) }),
    events: ({ filter, from, count }) => ({
      rows: this.events(filter)
        .slice(from, from + count)
        .map((one, index) => ({
          number: from + index,
          ts: one.t,
          lane: one.core,
          class: one.class,
          application: one.application,
          fields: one.fields,
        })),
    }),
    find: ({ filter, t }) => ({ from: this.events(filter).filter((one) => one.t < t).length }),
    step: ({ filter, t, forward, class: kind }) => {
      const list = this.events(filter).filter((one) => kind === undefined || one.class === kind);
      const found = forward ? list.find((one) => one.t > t) : list.filter((one) => one.t < t).pop();
      return { thing: found ? thing(found) : null };
    },
    activities: ({ from, count, order, descending }) => {
      const rows = this.trace.pieces
        .filter((one) => one.lane > this.trace.cores)
        .map((one) => ({
          begin: one.begin,
          end: one.end,
          name: NAMES[one.name],
          key: null,
          lane: one.lane,
          duration: one.end - one.begin,
          quality: "exact",
          row: one.row,
        }));
      const value = (row: (typeof rows)[number]) => (order === "duration" ? row.duration : row.begin);
      rows.sort((a, b) => (value(a) - value(b)) * (descending ? -1 : 1));
      return { total: rows.length, rows: rows.slice(from, from + count) };
    },
    notes: () => ({ notes: this.notes }),
    note: ({ notes }) => {
      this.notes = notes;
      return {};
    },
    stats: ({ filter, t0, t1 }) => {
      const events = this.events(filter).filter((one) => one.t >= t0 && one.t < t1);
      const classes = CLASSES.map((_, id) => ({
        class: id,
        count: events.filter((one) => one.class === id).length,
      }));
      return { events: { count: events.length, quality: "exact" }, classes, spans: [] };
    },
  };

  private open(): object {
    const lane = (
      id: number,
      parent: number | null,
      kind: string,
      name: string,
      rows: object[],
      more = {},
    ) => ({ id, parent, kind, name, rows, ...more });
    const cores = Array.from({ length: this.trace.cores }, (_, core) =>
      lane(
        core,
        null,
        "cpu",
        `core ${core}`,
        [
          { row: 0, kind: "running" },
          { row: 1, kind: "events" },
        ],
        { cpu: core },
      ),
    );
    const process = this.trace.cores;
    const workers = [0, 1, 2].map((worker) =>
      lane(
        process + 1 + worker,
        process,
        "thread",
        `worker ${worker}`,
        [
          { row: 0, kind: "spans", depth: 0 },
          { row: 1, kind: "spans", depth: 1 },
        ],
        { tid: 4711 + worker },
      ),
    );
    const events = this.trace.events;
    return {
      version: 1,
      origin: "1700000000000000000",
      is_date: true,
      begin: 0,
      end: this.trace.end,
      is_live: this.isLive,
      recordings: [{ path: "/made/by/a/generator", format: "made", events: events.length, quality: "exact" }],
      lanes: [...cores, lane(process, null, "process", "warehouse", [], { pid: 4710 }), ...workers],
      classes: CLASSES.map((one, id) => ({
        id,
        ...one,
        count: events.filter((event) => event.class === id).length,
        quality: "exact",
      })),
      applications: APPLICATIONS.map((name, id) => ({
        id,
        name,
        events: events.filter((one) => one.application === id).length,
        quality: "exact",
      })),
      names: NAMES,
      span_kinds: [{ id: 0, name: "request", count: 9 }],
      channels: [{ id: 0, name: "ipc", count: this.trace.messages.length }],
      counters: [],
      damage: [],
      losses: [
        {
          lane: 2,
          begin: this.trace.end * 0.72,
          end: this.trace.end * 0.76,
          count: 120,
          cause: "the ring was full",
        },
      ],
      methods: Object.keys(this.methods),
    };
  }

  private piecesOf(lane: number, row: number, filter: number): Piece[] {
    if (lane < this.trace.cores && row === 1) {
      return this.events(filter)
        .filter((one) => one.core === lane)
        .map((one) => ({ lane, row, begin: one.t, end: one.t, name: one.class }));
    }
    return this.trace.pieces.filter(
      (one) =>
        one.lane === lane &&
        one.row === row &&
        !(lane < this.trace.cores && this.filters[filter].applications_off.includes(one.name)),
    );
  }

  private view({ lanes, t0, t1, px, filter }: Parameters, id: number): ArrayBuffer {
    const open = this.open() as { lanes: { id: number; rows: { row: number }[] }[] };
    const rows = (lanes as number[]).flatMap((lane) =>
      open.lanes[lane].rows.map((row) => ({ lane, row: row.row })),
    );
    const colour = new Uint16Array(rows.length * px);
    const cover = new Uint8Array(rows.length * px);
    const count = new Uint8Array(rows.length * px);
    const flags = new Uint8Array(rows.length * px);
    const items: { row: number; piece: Piece }[] = [];
    const result = rows.map(({ lane, row }, index) => {
      const pieces = this.piecesOf(lane, row, filter).filter((one) => one.end >= t0 && one.begin <= t1);
      const exact = fill(
        pieces,
        { t0, step: (t1 - t0) / px, px, at: index * px },
        colour,
        cover,
        count,
        flags,
      );
      if (exact) for (const piece of pieces) items.push({ row: index, piece });
      return { lane, row, exact };
    });
    return encodeFrame(
      id,
      { rows: result },
      {
        colour,
        cover,
        count,
        flags,
        item_row: Uint32Array.from(items, (one) => one.row),
        item_begin: Float64Array.from(items, (one) => one.piece.begin),
        item_end: Float64Array.from(items, (one) => one.piece.end),
        item_name: Uint32Array.from(items, (one) => one.piece.name),
        item_event: Float64Array.from(items, (_, index) => index),
      },
    );
  }

  private arrows({ lanes, t0, t1, px, filter }: Parameters, id: number): ArrayBuffer {
    const f = this.filters[filter];
    const gone = (message: Trace["messages"][number]) =>
      f.classes_off.includes(2) ||
      f.applications_off.includes(message.application) ||
      f.lanes_off.includes(message.fromLane) ||
      f.lanes_off.includes(message.toLane);
    const bundles = new Map<string, { message: Trace["messages"][number]; count: number }>();
    const step = (t1 - t0) / px;
    for (const message of this.trace.messages) {
      if (message.to < t0 || message.from > t1 || gone(message)) continue;
      if (!lanes.includes(message.fromLane) || !lanes.includes(message.toLane)) continue;
      const key = [
        message.fromLane,
        message.toLane,
        Math.floor(message.from / step),
        Math.floor(message.to / step),
      ].join();
      const bundle = bundles.get(key);
      if (bundle) bundle.count++;
      else bundles.set(key, { message, count: 1 });
    }
    const all = [...bundles.values()].slice(0, 2000);
    return encodeFrame(
      id,
      {},
      {
        from_lane: Uint32Array.from(all, (one) => one.message.fromLane),
        to_lane: Uint32Array.from(all, (one) => one.message.toLane),
        from: Float64Array.from(all, (one) => one.message.from),
        to: Float64Array.from(all, (one) => one.message.to),
        count: Uint32Array.from(all, (one) => one.count),
        channel: new Uint32Array(all.length),
      },
    );
  }

  private at({ lane, row, t, within, filter }: Parameters): object | null {
    if (lane < this.trace.cores && row === 1) {
      const near = this.events(filter).filter((one) => one.core === lane && Math.abs(one.t - t) <= within);
      near.sort((a, b) => Math.abs(a.t - t) - Math.abs(b.t - t));
      return near[0] ? thing(near[0]) : null;
    }
    const found = this.piecesOf(lane, row, filter).find((one) => one.begin <= t && one.end >= t);
    if (!found) return null;
    const names = lane < this.trace.cores ? APPLICATIONS : NAMES;
    return {
      kind: lane < this.trace.cores ? "running" : "span",
      begin: found.begin,
      end: found.end,
      name: names[found.name],
      fields: [],
      lane,
      row,
    };
  }
}

interface Columns {
  t0: number;
  step: number;
  px: number;
  at: number;
}

/** Every piece into every pixel that it touches. True if no pixel has more than one. */
function fill(
  pieces: Piece[],
  { t0, step, px, at }: Columns,
  colour: Uint16Array,
  cover: Uint8Array,
  count: Uint8Array,
  flags: Uint8Array,
): boolean {
  const number = new Uint32Array(px);
  const covered = new Float64Array(px);
  const most = new Float64Array(px);
  for (const piece of pieces) {
    const first = Math.max(0, Math.floor((piece.begin - t0) / step));
    const last = Math.min(px - 1, Math.max(first, Math.ceil((piece.end - t0) / step) - 1));
    for (let x = first; x <= last; x++) {
      const share =
        Math.max(0, Math.min(piece.end, t0 + (x + 1) * step) - Math.max(piece.begin, t0 + x * step)) / step;
      number[x]++;
      covered[x] += share;
      if (colour[at + x] === 0 || share > most[x]) {
        colour[at + x] = piece.name + 1;
        most[x] = share;
      }
    }
  }
  let exact = true;
  for (let x = 0; x < px; x++) {
    if (number[x] === 0) continue;
    cover[at + x] = Math.max(1, Math.min(255, Math.round(covered[x] * 255)));
    count[at + x] = Math.min(255, Math.round(16 * Math.log2(1 + number[x])));
    if (number[x] > 1) {
      flags[at + x] |= 1;
      exact = false;
    }
  }
  return exact;
}

function thing(event: Event): object {
  return {
    kind: "event",
    begin: event.t,
    end: null,
    name: CLASSES[event.class].name,
    class: event.class,
    lane: event.core,
    cpu: event.core,
    fields: event.fields,
    application: event.application,
    quality: "exact",
    process: APPLICATIONS[event.application],
  };
}
