// SPDX-License-Identifier: Apache-2.0 OR MIT
// A brute-force server of spec/view.md for a generated trace: for tests of the page alone. Never a
// part of dist/.

import { createReadStream, existsSync } from "node:fs";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer, type WebSocket } from "ws";
import { encodeFrame } from "./encode.ts";
import { flame, histogram, histograms, kindsOf, matching } from "./spans.ts";
import { fill } from "./pixels.ts";
import { APPLICATIONS, CLASSES, type Event, NAMES, type Piece, type Trace } from "./trace.ts";

/** The built page. */
const DIST = fileURLToPath(new URL("../../dist", import.meta.url));

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
  /** Set it to simulate a live recording; then push `grown`. */
  isLive = false;
  /** Losses that were pushed. */
  private readonly losses: object[] = [];
  /** Losses keep their place when the trace grows. */
  private readonly endAtFirst: number;
  /** Change it together with the lists in the response of `open`; then push `grown`. */
  lists = 1;
  /** Additional lanes. */
  more: object[] = [];
  /** Counters of lanes in `more`; each falls from 1 to 0 over the requested range. */
  counters: { id: number; name: string; lane: number }[] = [];
  /** Servers of the single recordings, for comparisons. */
  sides: FakeServer[] = [];
  /** Response of `compare`. */
  compared: object = {};
  /** Sends no responses, like a server that is still reading the trace. */
  isSilent = false;
  notes: unknown = ["no note", { begin: 1000, text: "here it began" }];
  readonly requests: { method: string; params: Parameters }[] = [];

  constructor(private readonly trace: Trace) {
    this.endAtFirst = trace.end;
    this.http = createServer((request, response) => this.serve(request, response));
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

  /** Closes all connections and refuses new ones, like a server that was killed. */
  async close(): Promise<void> {
    if (!this.http.listening) return;
    for (const socket of this.sockets) socket.terminate();
    this.http.closeAllConnections();
    await new Promise((resolve) => this.http.close(resolve));
  }

  /** Drops all filters. */
  forget(): void {
    this.filters.length = 1;
  }

  push(message: object): void {
    if ("losses" in message) this.losses.push(...(message.losses as object[]));
    for (const socket of this.sockets) socket.send(JSON.stringify(message));
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname === "/export") {
      response.setHeader("content-type", "text/csv");
      response.end(this.csv(Number(url.searchParams.get("filter"))));
      return;
    }
    const path = join(DIST, normalize(url.pathname === "/" ? "/index.html" : url.pathname));
    if (!path.startsWith(DIST) || !existsSync(path)) {
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
    if (this.isSilent) return;
    try {
      const side = params?.side === undefined ? this : this.sides[params.side];
      // Lanes, classes and applications have equal ids in all generated traces.
      side.filters = this.filters;
      const handler = side.methods[method];
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

  private can(method: string): boolean {
    if (method === "control") return this.isLive;
    return !["sides", "compare", "histograms"].includes(method) || this.sides.length > 1;
  }

  private readonly methods: Record<string, (params: Parameters, id: number) => unknown> = {
    open: () => this.open(),
    filter: (params) => {
      if (params.filter !== undefined)
        return { ...params, count: this.events(params.filter).length, quality: "exact", running: [] };
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
    levels: ({ counters, px }, id) => {
      const values = Float64Array.from({ length: counters.length * px }, (_, at) => 1 - (at % px) / px);
      return encodeFrame(id, {}, { low: values, high: values, last: values });
    },
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
          thread: "worker",
          pid: 4710,
          tid: 4711 + (one.core % 3),
          fields: one.fields,
        })),
    }),
    find: ({ filter, t }) => ({ from: this.events(filter).filter((one) => one.t < t).length }),
    step: ({ filter, t, forward, class: kind }) => {
      const list = this.events(filter).filter((one) => kind === undefined || one.class === kind);
      const found = forward ? list.find((one) => one.t > t) : list.filter((one) => one.t < t).pop();
      return { thing: found ? thing(found) : null };
    },
    flame: ({ t0 = 0, t1 = Infinity }) => flame(this.trace, t0, t1),
    histogram: ({ span, t0, t1, bins }) => histogram(this.trace, span, t0, t1, bins),
    brushed: (params, id) => {
      const pieces = matching(this.trace, params).filter(
        (one) => params.lanes.includes(one.lane) && one.end > params.t0 && one.begin < params.t1,
      );
      const rows = [...new Set(pieces.map((one) => `${one.lane}/${one.row}`))].sort();
      const place = (one: Piece) => rows.indexOf(`${one.lane}/${one.row}`);
      pieces.sort((a, b) => place(a) - place(b) || a.begin - b.begin);
      const told = rows.map((row) => ({ lane: Number(row.split("/")[0]), row: Number(row.split("/")[1]) }));
      return encodeFrame(
        id,
        { rows: told, count: pieces.length },
        {
          row: Uint32Array.from(pieces, place),
          begin: Float64Array.from(pieces, (one) => one.begin),
          end: Float64Array.from(pieces, (one) => one.end),
        },
      );
    },
    sides: () => ({
      sides: this.sides.map((one, side) => ({
        side,
        path: `/made/${side}`,
        origin: `${1700000000 + side * 1000}000000000`,
        begin: 0,
        end: one.trace.end,
        events: one.trace.events.length,
        quality: "exact",
      })),
    }),
    compare: () => this.compared,
    histograms: ({ good, bad, span, bins }) =>
      histograms([this.sides[good[0]].trace, this.sides[bad[0]].trace], NAMES.indexOf(span), bins),
    control: ({ action, events }) => ({ done: [{ action, events: (events ?? []).join(" ") }] }),
    activities: (params) => {
      const { from, count, order, descending } = params;
      const rows = matching(this.trace, params).map((one) => ({
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
      recordings: [
        {
          path: "/made/by/a/generator",
          format: "made",
          events: events.length,
          quality: "exact",
          ticks_hz: 2_500_000_000,
        },
      ],
      lanes: [
        ...cores,
        lane(process, null, "process", "warehouse", [], { pid: 4710 }),
        ...workers,
        ...this.more,
      ],
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
      span_kinds: kindsOf(this.trace),
      channels: [{ id: 0, name: "ipc", count: this.trace.messages.length }],
      counters: this.counters,
      damage: [],
      losses: [
        {
          lane: 2,
          begin: this.endAtFirst * 0.72,
          end: this.endAtFirst * 0.76,
          count: 120,
          cause: "the ring was full",
        },
        ...this.losses,
      ],
      methods: Object.keys(this.methods).filter((name) => this.can(name)),
      lists: this.lists,
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
    const open = this.open() as { lanes: { id: number; rows: { row: number; kind: string }[] }[] };
    const rowsOf = new Map(open.lanes.map((lane) => [lane.id, lane.rows]));
    const rows = (lanes as number[]).flatMap((lane) =>
      rowsOf
        .get(lane)!
        .filter((row) => row.kind !== "level")
        .map((row) => ({ lane, row: row.row })),
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
