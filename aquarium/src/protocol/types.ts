// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the server sends: spec/view.md, section 4.

/** How sure a number is after losses. */
export type Quality = "exact" | "lower_bound" | "unknown";

export type RowKind =
  | "running"
  | "seen"
  | "thread_states"
  | "spans"
  | "states"
  | "events"
  | "level"
  /** Samples of call stacks, and the functions on them. */
  | "samples"
  | "stacks"
  /** Calls, decoded from instructions that were recorded. */
  | "calls";

export interface RowInfo {
  row: number;
  kind: RowKind;
  name?: string;
  depth?: number;
  /** How many rows it stands for, where they are too many to be drawn each. */
  packed?: number;
  /** How many things had room on none of those: they are counted, and neither drawn nor listed. */
  left_out?: number;
  /** Of activities that a script found: their names are the script's own. */
  script?: number;
}

export interface Lane {
  id: number;
  parent: number | null;
  kind: string;
  name: string;
  cpu?: number;
  pid?: number;
  tid?: number;
  rows: RowInfo[];
}

export interface EventClass {
  id: number;
  subsystem: string;
  name: string;
  count: number;
  quality: Quality;
  first?: number | null;
  last?: number | null;
  sends?: boolean;
  receives?: boolean;
}

export interface Application {
  id: number;
  name: string;
  pid?: number;
  events: number;
  quality: Quality;
}

export interface Loss {
  lane: number | null;
  begin: number;
  end: number;
  count: number | null;
  cause: string;
}

export interface Damage {
  file: string;
  begin_bytes: number;
  end_bytes: number;
  reason: string;
  begin?: number;
  end?: number;
}

export interface Recording {
  path: string;
  format: string;
  events: number;
  quality: Quality;
  /** Ticks per second of its clock, where it has one. */
  ticks_hz?: number | null;
}

export interface Session {
  version: number;
  origin: string;
  is_date: boolean;
  begin: number;
  end: number;
  is_live: boolean;
  /** Of a session that grows: changes when any list does. */
  lists?: number;
  /** What was forgotten to bound memory. */
  gone?: { events: number };
  /** All events now, where more came since the recordings were listed. */
  events?: number;
  recordings: Recording[];
  lanes: Lane[];
  classes: EventClass[];
  applications: Application[];
  names: string[];
  span_kinds: { id: number; name: string; count: number; budgets?: string[] }[];
  channels: { id: number; name: string; count: number }[];
  counters: { id: number; name: string; unit?: string | null; lane?: number }[];
  /** What scripts have found by now that look for activities. */
  scripts?: { script: number; count: number; until: number | null; stopped: Failure | null }[];
  losses: Loss[];
  damage: Damage[];
  /** What this server can do. */
  methods: string[];
}

export interface Field {
  name: string;
  value: string | number | boolean | null;
  unit?: string | null;
  /** Of enumerations. */
  label?: string | null;
}

/** One event, span or state, with all that is known of it. */
export interface Thing {
  kind: string;
  begin: number;
  end?: number | null;
  name: string;
  class?: number | null;
  lane?: number | null;
  row?: number | null;
  fields?: Field[];
  thread?: string | null;
  process?: string | null;
  application?: number | string | null;
  cpu?: number | null;
  quality?: Quality;
  number?: number | null;
  /** Of an activity. */
  key?: string | null;
  tid?: number | null;
  pid?: number | null;
  /** Of a state of a thread: the thread exited at its end. */
  has_ended?: boolean;
  /** Of a state of a thread: the wake-up that it began with, followed, or ended with. */
  woken_by?: WokenBy;
  /** Of a thread that ran: the threads that it woke meanwhile, the first of them listed. */
  wakes?: { count: number; is_cut: boolean; threads: Woken[] };
  /** Of a call: which instructions of the thread were executed in it. */
  instructions?: { first: number; count: number };
}

/** A thread at the time of a wake-up. */
export interface Woken {
  at: number;
  thread?: string;
  tid?: number | null;
  pid?: number | null;
  lane?: number | null;
}

/** What woke a thread; of a thread, which one. */
export interface WokenBy extends Woken {
  kind: "thread" | "interrupt" | "unknown";
}

/** An instruction that was executed. */
export interface Instruction {
  /** Which of its thread it is. */
  number: number;
  ts: number | null;
  address: string;
  assembly: string;
  function: string | null;
  /** The function that was inlined there, of several the innermost. */
  inlined: string | null;
  /** `FILE:LINE` */
  line: string | null;
}

export interface EventRow {
  number: number;
  ts: number;
  lane: number;
  class: number;
  application: number | null;
  thread?: string | number | null;
  pid?: number | null;
  tid?: number | null;
  /** Null of an event whose bytes were forgotten since it was listed. */
  fields: Field[] | null;
}

export interface Activity {
  begin: number;
  end: number | null;
  name: string;
  key: string | number | null;
  lane: number;
  thread?: string | null;
  process?: string | null;
  duration: number | null;
  quality: Quality;
  row: number;
}

export interface SpanStats {
  name: string;
  count: number;
  total: number;
  min: number;
  mean: number;
  max: number;
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  quality: Quality;
  /** What its schema promises, and whether that is kept; null where nothing was measured. */
  budgets?: { text: string; measured: number | null; kept: boolean | null; quality: Quality }[];
}

export interface Stats {
  events: { count: number; quality: Quality };
  classes: { id?: number; class?: number; count: number; quality?: Quality }[];
  spans: SpanStats[];
}

/** How the cells of a column are written. */
export type Unit =
  | "text"
  | "flag"
  | "id"
  | "count"
  | "number"
  | "ns"
  | "time"
  | "bytes"
  | "share"
  | "per_second";

export type CellValue = string | number | boolean | null;

/** A column of a section. */
export interface SectionColumn {
  name: string;
  title: string;
  unit: Unit;
  values: CellValue[];
  /** By row; a single one holds for all rows. */
  quality: Quality[];
}

/** A section of `lat stats` for a range of time. */
export interface SectionAnswer {
  name: string;
  title: string;
  columns: SectionColumn[];
  /** Rows in the answer, rows of the section, and rows among which it was sorted. */
  count: number;
  total: number;
  kept: number;
  remarks: string[];
  sections: { name: string; title: string; count: number }[];
  events: { count: number; quality: Quality };
  over_ns: number;
  quality: { sums: Quality; values: Quality };
  /** Nanoseconds on the clock of the recording, both ends included; null: from its begin, to its end. */
  from_ns: string | null;
  until_ns: string | null;
}

export interface ScriptAnswer {
  script: number;
  kind: "filter" | "activity";
  how: string;
  why?: string;
  count: number;
  has_filter?: boolean;
  rows?: (RowInfo & { lane: number })[];
  names?: string[] | null;
}

export interface Failure {
  what: string;
  where?: string;
  do?: string;
}
