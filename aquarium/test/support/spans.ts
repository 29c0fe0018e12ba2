// SPDX-License-Identifier: Apache-2.0 OR MIT
// Responses of the fake server about spans, computed by examining each span.

import { NAMES, type Piece, type Trace } from "./trace.ts";

/** Lanes with spans follow the cores and their process. */
export function spansOf(trace: Trace): Piece[] {
  return trace.pieces.filter((one) => one.lane > trace.cores);
}

export function kindsOf(trace: Trace): { id: number; name: string; count: number }[] {
  const spans = spansOf(trace);
  return NAMES.map((name, id) => ({ id, name, count: spans.filter((one) => one.name === id).length }));
}

/** Spans in a range of durations, of one kind or all. */
export function matching(
  trace: Trace,
  { kind, least = 0, most = Infinity }: { kind?: number; least?: number; most?: number },
): Piece[] {
  return spansOf(trace).filter(
    (one) =>
      (kind === undefined || one.name === kind) &&
      one.end - one.begin >= least &&
      one.end - one.begin <= most,
  );
}

export function histogram(trace: Trace, kind: number, t0: number, t1: number, bins: number): object {
  const nanos = matching(trace, { kind })
    .filter((one) => one.begin >= t0 && one.begin < t1)
    .map((one) => one.end - one.begin);
  if (nanos.length === 0) return { edges: [], counts: [], quality: "exact" };
  const low = Math.min(...nanos);
  const step = Math.ceil((Math.max(...nanos) + 1 - low) / bins);
  const edges = Array.from({ length: bins + 1 }, (_, index) => low + index * step);
  const counts = Array.from(
    { length: bins },
    (_, bin) => nanos.filter((one) => one >= edges[bin] && one < edges[bin + 1]).length,
  );
  return { edges, counts, quality: "exact" };
}

/** Histograms of one kind in several traces, with equal bins. */
export function histograms(traces: Trace[], kind: number, bins: number): object {
  const nanos = traces.map((trace) => matching(trace, { kind }).map((one) => one.end - one.begin));
  const low = Math.min(...nanos.flat());
  const step = Math.ceil((Math.max(...nanos.flat()) + 1 - low) / bins);
  const edges = Array.from({ length: bins + 1 }, (_, index) => low + index * step);
  const sides = nanos.map((all, side) => ({
    side,
    counts: edges.slice(1).map((edge, bin) => all.filter((one) => one >= edges[bin] && one < edge).length),
    count: all.length,
    median: all[0],
    quality: "exact",
  }));
  return { edges, sides };
}

interface Node {
  parent: number | null;
  name: string;
  kind: number;
  count: number;
  total: number;
  own: number;
}

/** Spans in row 1 are inside of spans in row 0 by construction. */
export function flame(trace: Trace, t0: number, t1: number): object {
  const nodes: Node[] = [];
  const node = (parent: number | null, kind: number): number => {
    let found = nodes.findIndex((one) => one.parent === parent && one.kind === kind);
    if (found < 0) {
      found = nodes.length;
      nodes.push({ parent, name: NAMES[kind], kind, count: 0, total: 0, own: 0 });
    }
    return found;
  };
  const add = (at: number, piece: Piece): number => {
    const time = Math.min(piece.end, t1) - Math.max(piece.begin, t0);
    nodes[at].count++;
    nodes[at].total += time;
    nodes[at].own += time;
    return time;
  };
  const all = spansOf(trace).filter((one) => one.end > t0 && one.begin < t1);
  for (const outer of all.filter((one) => one.row === 0)) {
    const at = node(null, outer.name);
    add(at, outer);
    const inside = all.filter(
      (one) => one.lane === outer.lane && one.row === 1 && one.begin >= outer.begin && one.end <= outer.end,
    );
    for (const inner of inside) nodes[at].own -= add(node(at, inner.name), inner);
  }
  return { nodes, quality: "exact", unfinished: 0, is_cut: false };
}
