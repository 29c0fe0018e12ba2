// SPDX-License-Identifier: Apache-2.0 OR MIT
// The Trace Server Protocol of `lat view`, tested with the client library of the trace viewers of
// VS Code and Theia, and compared with the output of `lat print` for the same trace.

import { HttpTspClient } from "tsp-typescript-client/lib/protocol/http-tsp-client.js";
import type { Experiment } from "tsp-typescript-client/lib/models/experiment.js";
import { QueryHelper } from "tsp-typescript-client/lib/models/query/query-helper.js";
import { Query } from "tsp-typescript-client/lib/models/query/query.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Printed, type Served, demo, nanos, print, serve, whyNot } from "../support/lat.ts";

const skipped = whyNot();

/** Returns the model of a response; fails if there is none. */
function model<T>(response: { isOk(): boolean; getText(): string; getModel(): T | undefined }): T {
  expect(response.isOk(), response.getText().slice(0, 500)).toBe(true);
  const model = response.getModel();
  expect(model, "an answer that the client cannot read").toBeDefined();
  return model!;
}

const count = <T>(all: readonly T[], by: (one: T) => string): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(by(one), (counts.get(by(one)) ?? 0) + 1);
  return counts;
};

describe.skipIf(skipped !== null)(`the trace server protocol${skipped === null ? "" : `: ${skipped}`}`, () => {
  let served: Served;
  let events: Printed[];
  let client: HttpTspClient;
  let experiment: Experiment;
  let trace: string;
  /** Time of the first event. */
  let origin: bigint;

  beforeAll(async () => {
    trace = demo();
    events = print(trace);
    served = await serve(trace, ["--no-page", "--allow-origin", "vscode-webview://*"]);
    client = new HttpTspClient(served.traceServerUrl);
    experiment = model(await client.fetchExperiments())[0];
    origin = nanos(events[0].time);
  });
  afterAll(() => served?.close());

  const all = (points: number, items?: number[]) =>
    items === undefined
      ? QueryHelper.timeRangeQuery(experiment.start, experiment.end, points)
      : QueryHelper.selectionTimeRangeQuery(experiment.start, experiment.end, points, items);

  test("there is a server, with one experiment of the trace", async () => {
    expect(model(await client.checkHealth()).status).toBe("UP");
    expect(model(await client.fetchExperiments()).length).toBe(1);
    expect(experiment.nbEvents).toBe(events.length);
    // It begins with the first packet, before the first event: by some seconds on a slow machine.
    expect(experiment.start <= origin && origin - experiment.start < 600_000_000_000n).toBe(true);
    expect(experiment.end >= origin + BigInt(events.at(-1)!.since)).toBe(true);
    expect(experiment.indexingStatus).toBe("COMPLETED");
    const [opened] = model(await client.fetchTraces());
    // As a viewer does: opens the trace by its path, and then an experiment.
    const again = model(await client.openTrace(new Query({ name: "demo", uri: trace })));
    expect(again.UUID).toBe(opened.UUID);
    const made = model(await client.createExperiment(new Query({ name: "demo", traces: [opened.UUID] })));
    expect(made.UUID).toBe(experiment.UUID);
    expect(model(await client.fetchExperiment(made.UUID)).traces[0].path).toBe(opened.path);
  });

  test("no other trace can be opened", async () => {
    const refused = await client.openTrace(new Query({ name: "x", uri: "/etc/passwd" }));
    expect(refused.getStatusCode()).toBe(403);
    expect(refused.getErrorResponse()?.title).toContain("not served");
    expect((await client.fetchExperiment("00000000-0000-8000-8000-000000000000")).getStatusCode()).toBe(404);
  });

  test("outputs are those that there is something for", async () => {
    const outputs = model(await client.experimentOutputs(experiment.UUID));
    const kinds = new Map(outputs.map((output) => [output.id, output.type]));
    expect(kinds.get("timeline")).toBe("TIME_GRAPH");
    expect(kinds.get("histogram")).toBe("TREE_TIME_XY");
    expect(kinds.get("events")).toBe("TABLE");
    // Viewers find the output for their overview by this name.
    expect(outputs.find((output) => output.id === "histogram")?.name).toBe("Histogram");
    expect(outputs.every((output) => output.start === experiment.start)).toBe(true);
  });

  test("every event stands once as a state of its processor's lane", async () => {
    const tree = model(await client.fetchTimeGraphTree(experiment.UUID, "timeline", all(2))).model;
    const ids = new Set(tree.entries.map((entry) => entry.id));
    expect(ids.size).toBe(tree.entries.length);
    for (const entry of tree.entries) {
      expect(entry.parentId === -1 || ids.has(entry.parentId!), `parent of ${entry.labels}`).toBe(true);
      expect(entry.start).toBe(experiment.start);
    }
    const lanes = tree.entries.filter((entry) => /^(cpu|core) ?\d+$/i.test(entry.labels[0]));
    expect(lanes.length).toBeGreaterThan(0);
    // Around one event, with samples of less than a nanosecond: each event is returned separately.
    const middle = events[Math.floor(events.length / 2)];
    const [from, to] = [middle.since - 5_000, middle.since + 5_000];
    const inside = events.filter((event) => event.since >= from && event.since <= to);
    const rows = tree.entries.filter((e) => e.labels[0] === "events" || lanes.includes(e)).map((e) => e.id);
    const query = QueryHelper.selectionTimeRangeQuery(origin + BigInt(from), origin + BigInt(to), 16_000, rows);
    const states = model(await client.fetchTimeGraphStates(experiment.UUID, "timeline", query)).model;
    const points = states.rows.flatMap((row) => row.states).filter((state) => state.end - state.start === 1n);
    const told = count(points, (state) => `${state.label} ${state.start - origin}`);
    // Simultaneous events of one CPU, as a fast machine writes them, are one state without a name.
    const alone = count(inside, (event) => `${event.cpu} ${event.since}`);
    const name = (event: Printed) => (alone.get(`${event.cpu} ${event.since}`) === 1 ? event.name : undefined);
    const places = new Map(inside.map((event) => [`${event.cpu} ${event.since} ${name(event)}`, event]));
    expect(told).toEqual(count([...places.values()], (event) => `${name(event)} ${event.since}`));
  });

  test("from far away states are few, in order, and nothing is missing", async () => {
    const tree = model(await client.fetchTimeGraphTree(experiment.UUID, "timeline", all(2))).model;
    const ids = tree.entries.map((entry) => entry.id);
    const states = model(await client.fetchTimeGraphStates(experiment.UUID, "timeline", all(50, ids))).model;
    const styles = model(await client.fetchStyles(experiment.UUID, "timeline", new Query({}))).model.styles;
    expect(states.rows.some((row) => row.states.length > 0)).toBe(true);
    for (const row of states.rows) {
      let last = 0n;
      for (const state of row.states) {
        expect(state.start >= last && state.end >= state.start, `row ${row.entryId}`).toBe(true);
        last = state.end;
        expect(Object.keys(styles)).toContain(state.style?.parentKey);
      }
    }
    const seen = states.rows.find((row) => row.entryId === tree.entries[0].id);
    expect(seen).toBeDefined();
  });

  test("a state has a tooltip with its fields", async () => {
    const tree = model(await client.fetchTimeGraphTree(experiment.UUID, "timeline", all(2))).model;
    const ids = tree.entries.map((entry) => entry.id);
    const event = events.find((one) => Object.keys(one.fields).length > 0)!;
    const near = QueryHelper.selectionTimeRangeQuery(
      origin + BigInt(event.since), origin + BigInt(event.since + 1), 2, ids);
    const states = model(await client.fetchTimeGraphStates(experiment.UUID, "timeline", near)).model;
    const row = states.rows.find((one) => one.states.some((state) => state.label === event.name))!;
    const time = origin + BigInt(event.since);
    const query = QueryHelper.selectionTimeQuery([time], [row.entryId], {
      requested_element: { elementType: "state", time, duration: 1n },
    });
    const tooltip = model(await client.fetchTimeGraphTooltip(experiment.UUID, "timeline", query)).model;
    expect(tooltip.Name).toBe(event.name);
    expect(Object.keys(tooltip)).toEqual(expect.arrayContaining(Object.keys(event.fields).slice(0, 1)));
  });

  test("messages are arrows between lanes that there are", async () => {
    const tree = model(await client.fetchTimeGraphTree(experiment.UUID, "timeline", all(2))).model;
    const ids = new Set(tree.entries.map((entry) => entry.id));
    const arrows = model(await client.fetchTimeGraphArrows(experiment.UUID, "timeline", all(1000))).model;
    expect(arrows.length).toBeGreaterThan(0);
    for (const arrow of arrows) {
      expect(ids.has(arrow.sourceId) && ids.has(arrow.targetId)).toBe(true);
      expect(arrow.start >= experiment.start && arrow.end <= experiment.end).toBe(true);
    }
  });

  test("the histogram counts every event once", async () => {
    const entries = model(await client.fetchXYTree(experiment.UUID, "histogram", all(100))).model.entries;
    const ids = entries.map((entry) => entry.id);
    const { series } = model(await client.fetchXY(experiment.UUID, "histogram", all(100, ids))).model;
    expect(series.length).toBe(1);
    expect(series[0].xValues?.length).toBe(100);
    expect(series[0].yValues.reduce((sum, value) => sum + value, 0)).toBe(events.length);
    expect(series[0].xValuesDescription.dataType).toBe("TIMESTAMP");
  });

  test("the table has every event in its line", async () => {
    const columns = model(await client.fetchTableColumns(experiment.UUID, "events", new Query({}))).model;
    const id = (name: string) => columns.find((column) => column.name === name)!.id;
    const from = events.length - 40;
    const asked = QueryHelper.tableQuery([id("Event"), id("Timestamp ns"), id("CPU")], from, 40);
    const lines = model(await client.fetchTableLines(experiment.UUID, "events", asked)).model;
    expect(lines.size).toBe(events.length);
    expect(lines.lowIndex).toBe(from);
    const told = lines.lines.map((line) => line.cells.map((cell) => cell.content));
    const expected = events.slice(from).map((event) =>
      [event.name, String(origin + BigInt(event.since)), String(event.cpu)]);
    // Simultaneous events on different CPUs have no order.
    expect(told.map(String).sort()).toEqual(expected.map(String).sort());
    const time = origin + BigInt(events[100].since);
    const at = model(await client.fetchTableLines(experiment.UUID, "events",
      QueryHelper.timeQuery([time], { requested_table_count: 1 }))).model;
    expect(at.lines[0].index).toBe(events.findIndex((event) => event.since === events[100].since));
  });

  test("the table is searched forwards and backwards", async () => {
    const rare = [...count(events, (event) => event.name)].sort((a, b) => a[1] - b[1])[0][0];
    const first = events.findIndex((event) => event.name === rare);
    const find = (index: number, direction: string) => QueryHelper.tableQuery([1], index, 1, {
      table_search_expressions: { 1: `^${rare}$` },
      table_search_direction: direction,
    });
    const next = model(await client.fetchTableLines(experiment.UUID, "events", find(0, "NEXT"))).model;
    expect([next.lines[0].cells[0].content, next.lines[0].tags]).toEqual([rare, 8]);
    expect(Math.abs(next.lines[0].index - first)).toBeLessThan(3);
    const end = events.length - 1;
    const last = model(await client.fetchTableLines(experiment.UUID, "events", find(end, "PREVIOUS"))).model;
    expect(last.lines[0].cells[0].content).toBe(rare);
    const none = QueryHelper.tableQuery([1], 0, 1, {
      table_search_expressions: { 1: "no such event" }, table_search_direction: "NEXT" });
    expect(model(await client.fetchTableLines(experiment.UUID, "events", none)).model.lines).toEqual([]);
    const wrong = QueryHelper.tableQuery([1], 0, 1, { table_search_expressions: { 1: "(" } });
    expect((await client.fetchTableLines(experiment.UUID, "events", wrong)).getStatusCode()).toBe(400);
  });

  test("statistics are tables", async () => {
    const tree = model(await client.fetchDataTree(experiment.UUID, "event-statistics", new Query({}))).model;
    const told = new Map(tree.entries.map((entry) => [entry.labels[0], Number(entry.labels[1])]));
    expect(told).toEqual(count(events, (event) => event.name));
    const spans = model(await client.fetchDataTree(experiment.UUID, "span-statistics", new Query({}))).model;
    expect(spans.entries.length).toBeGreaterThan(0);
    expect(spans.entries.every((entry) => entry.labels.length === spans.headers.length)).toBe(true);
  });

  test("annotations are asked for by category", async () => {
    const known = model(await client.fetchAnnotationsCategories(experiment.UUID, "timeline")).model;
    expect(known.annotationCategories).toContain("Lost events");
    const query = QueryHelper.timeRangeQuery(experiment.start, experiment.end, 100, {
      requested_marker_categories: ["Lost events"] });
    const told = model(await client.fetchAnnotations(experiment.UUID, "timeline", query)).model;
    expect(Object.keys(told.annotations)).toEqual(["Lost events"]);
  });

  test("pages elsewhere may ask only where they are named", async () => {
    const ask = (origin: string, method = "GET") =>
      fetch(`${served.traceServerUrl}/health`, { method, headers: { Origin: origin } });
    const friend = await ask("vscode-webview://abc");
    expect([friend.status, friend.headers.get("access-control-allow-origin")]).toEqual([200, "vscode-webview://abc"]);
    expect((await ask("vscode-webview://abc", "OPTIONS")).status).toBe(204);
    expect((await ask("http://evil.example")).status).toBe(403);
    expect((await fetch(`${served.traceServerUrl}/nothing`)).status).toBe(404);
    const posted = await fetch(`${served.traceServerUrl}/traces`, { method: "POST", body: "{" });
    expect(posted.status).toBe(400);
  });
});
