// SPDX-License-Identifier: Apache-2.0 OR MIT
// A table of any length: only visible rows exist as elements, and their pages are requested on demand.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import {
  type ListShape,
  PAGE_ROWS,
  contentPx,
  isMapped,
  lastTop,
  pagesFor,
  scrollFor,
  shownRows,
  topRow,
  topToShow,
} from "../../logic/virtual.ts";

export const ROW_PX = 20;
/** Number of cached pages: some 10,000 rows. */
const MOST_PAGES = 50;

export interface Column<Row> {
  name: string;
  width: string;
  align?: "right";
  cell: (row: Row) => ComponentChildren;
  sort?: { on: boolean; descending: boolean; by: () => void };
}

interface Props<Row> {
  label: string;
  rows: number;
  /** A different key means different rows: all pages are dropped. */
  of: string;
  /** Another version of the same rows: old pages stay until their replacements arrive. */
  version?: string;
  columns: Column<Row>[];
  load: (from: number, count: number) => Promise<Row[] | null>;
  chosen: (row: Row) => boolean;
  choose: (row: Row, index: number) => void;
  /** A row to scroll to; a new stamp repeats the request. */
  show?: { row: number; stamp: number } | null;
  empty: string;
}

export function VirtualList<Row>(props: Props<Row>) {
  const { rows, of } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [viewPx, setViewPx] = useState(200);
  const [top, setTop] = useState(0);
  const [, redraw] = useState(0);
  const pages = useRef(new Map<number, Row[] | "asked">());
  const expected = useRef<number | null>(null);
  const shape: ListShape = { rows, rowPx: ROW_PX, viewPx };

  useEffect(() => {
    const element = scroller.current!;
    const observer = new ResizeObserver(() => setViewPx(element.clientHeight - ROW_PX));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const older = useRef(new Map<number, Row[] | "asked">());
  useLayoutEffect(() => {
    pages.current = new Map();
    older.current = new Map();
    redraw((n) => n + 1);
  }, [of]);
  useLayoutEffect(() => {
    for (const [page, held] of pages.current) if (held !== "asked") older.current.set(page, held);
    for (const page of older.current.keys()) if (older.current.size > MOST_PAGES) older.current.delete(page);
    pages.current = new Map();
    redraw((n) => n + 1);
  }, [props.version]);

  // When a list grows, its last page may have been incomplete.
  useLayoutEffect(() => {
    for (const [page, held] of pages.current) {
      if (held !== "asked" && held.length < PAGE_ROWS && page * PAGE_ROWS + held.length < rows) {
        pages.current.delete(page);
      }
    }
  }, [rows]);

  const moveTo = (row: number) => {
    const next = Math.min(Math.max(row, 0), lastTop(shape));
    setTop(next);
    const at = scrollFor(shape, next);
    expected.current = at;
    if (scroller.current) scroller.current.scrollTop = at;
  };

  useEffect(() => {
    if (props.show) moveTo(topToShow(shape, top, props.show.row));
  }, [props.show?.stamp]);

  const { first, end } = shownRows(shape, Math.min(top, lastTop(shape)));
  const wanted = pagesFor(first, end).join(",");
  useEffect(() => {
    const map = pages.current;
    for (const page of pagesFor(first, end)) {
      if (map.has(page)) continue;
      map.set(page, "asked");
      void props.load(page * PAGE_ROWS, PAGE_ROWS).then((loaded) => {
        if (pages.current !== map) return;
        if (loaded) map.set(page, loaded);
        else map.delete(page);
        older.current.delete(page);
        for (const key of map.keys()) if (map.size > MOST_PAGES && key !== page) map.delete(key);
        redraw((n) => n + 1);
      });
    }
  }, [wanted, of, rows, props.version]);

  const rowOf = (index: number): Row | null => {
    const number = Math.floor(index / PAGE_ROWS);
    const page = pages.current.get(number);
    const held = page === undefined || page === "asked" ? older.current.get(number) : page;
    return held === undefined || held === "asked" ? null : (held[index % PAGE_ROWS] ?? null);
  };
  const onScroll = (event: Event) => {
    const at = (event.currentTarget as HTMLElement).scrollTop;
    // The browser rounds the position that we set: the exact row is known.
    if (expected.current !== null && Math.abs(expected.current - at) < 1.5) {
      expected.current = null;
      return;
    }
    expected.current = null;
    setTop(topRow(shape, at));
  };
  // If the position of the scrollbar is a fraction of the list, the wheel moves by rows.
  const onWheel = (event: WheelEvent) => {
    if (!isMapped(shape)) return;
    event.preventDefault();
    moveTo(top + event.deltaY / ROW_PX);
  };
  const chosenIndex = () => {
    for (let index = first; index < end; index++) {
      const row = rowOf(index);
      if (row && props.chosen(row)) return index;
    }
    return -1;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const seen = Math.floor(viewPx / ROW_PX);
    const moves: Record<string, number> = { PageDown: top + seen, PageUp: top - seen, Home: 0, End: rows };
    if (event.key in moves) moveTo(moves[event.key]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const from = chosenIndex();
      const next = from < 0 ? first : from + (event.key === "ArrowDown" ? 1 : -1);
      const row = next >= 0 && next < rows ? rowOf(next) : null;
      if (row) {
        moveTo(topToShow(shape, top, next));
        props.choose(row, next);
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const template = props.columns.map((column) => column.width).join(" ");
  const indices = Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
  return (
    <div
      class="list"
      role="grid"
      aria-label={props.label}
      aria-rowcount={rows}
      tabIndex={0}
      ref={scroller}
      onScroll={onScroll}
      onWheel={onWheel}
      onKeyDown={onKeyDown}
    >
      <div class="list-head" role="row" style={{ gridTemplateColumns: template, height: `${ROW_PX}px` }}>
        {props.columns.map((column) => (
          <Head key={column.name} column={column} />
        ))}
      </div>
      <div class="list-body" style={{ height: `${contentPx(shape)}px` }}>
        <div class="list-window" style={{ height: `${Math.max(viewPx, 0)}px` }}>
          {indices.map((index) => {
            const row = rowOf(index);
            return (
              <div
                key={index}
                role="row"
                aria-rowindex={index + 1}
                data-row={index}
                class={`list-row ${row && props.chosen(row) ? "chosen" : ""}`}
                aria-selected={row ? props.chosen(row) : false}
                onClick={() => row && props.choose(row, index)}
                style={{
                  gridTemplateColumns: template,
                  top: `${(index - top) * ROW_PX}px`,
                  height: `${ROW_PX}px`,
                }}
              >
                {row ? (
                  props.columns.map((column) => (
                    <span role="gridcell" class={column.align} key={column.name}>
                      {column.cell(row)}
                    </span>
                  ))
                ) : (
                  <span class="loading" role="gridcell">
                    …
                  </span>
                )}
              </div>
            );
          })}
          {rows === 0 && <p class="empty">{props.empty}</p>}
        </div>
      </div>
    </div>
  );
}

function Head<Row>({ column }: { column: Column<Row> }) {
  const { sort } = column;
  const order = sort?.on ? (sort.descending ? "descending" : "ascending") : undefined;
  return (
    <span role="columnheader" class={column.align} aria-sort={order}>
      {sort ? (
        <button class="text" onClick={sort.by}>
          {column.name}
          {order ? (sort.descending ? " ▾" : " ▴") : ""}
        </button>
      ) : (
        column.name
      )}
    </span>
  );
}
