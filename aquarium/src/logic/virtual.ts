// SPDX-License-Identifier: Apache-2.0 OR MIT
// A list of up to 1e9 rows with a native scrollbar.
//
// Chromium caps the height of an element at 33,554,428 px: 1.7 million rows of 20 px. For longer
// lists, the position of the scrollbar is a fraction of the rows, and small movements (wheel, arrow
// keys) move by rows instead.

/** Below Chromium's cap, with room for content above and below the rows. */
export const TALLEST_PX = 16_000_000;

export interface ListShape {
  rows: number;
  rowPx: number;
  /** Height of the visible part. */
  viewPx: number;
}

/** Height of the scrolled element. */
export function contentPx(shape: ListShape): number {
  return Math.min(shape.rows * shape.rowPx, TALLEST_PX);
}

export function isMapped(shape: ListShape): boolean {
  return shape.rows * shape.rowPx > TALLEST_PX;
}

/** The largest row at the top of the view, with a fraction. */
export function lastTop(shape: ListShape): number {
  return Math.max(0, shape.rows - shape.viewPx / shape.rowPx);
}

/** The row at the top, with a fraction, for a scrollbar position. */
export function topRow(shape: ListShape, scrollTop: number): number {
  const range = contentPx(shape) - shape.viewPx;
  if (range <= 0) return 0;
  if (!isMapped(shape)) return Math.min(scrollTop / shape.rowPx, lastTop(shape));
  return Math.min(Math.max(scrollTop / range, 0), 1) * lastTop(shape);
}

/** The scrollbar position for a row at the top. */
export function scrollFor(shape: ListShape, row: number): number {
  const range = contentPx(shape) - shape.viewPx;
  if (range <= 0) return 0;
  const top = Math.min(Math.max(row, 0), lastTop(shape));
  if (!isMapped(shape)) return top * shape.rowPx;
  return (top / lastTop(shape)) * range;
}

/** The rows to draw: integers, end exclusive. */
export function shownRows(shape: ListShape, top: number): { first: number; end: number } {
  const first = Math.max(0, Math.floor(top));
  const end = Math.min(shape.rows, Math.ceil(top + shape.viewPx / shape.rowPx) + 1);
  return { first, end: Math.max(first, end) };
}

/** The top row that makes a row visible: unchanged if the row is visible; otherwise the row is centred. */
export function topToShow(shape: ListShape, top: number, row: number): number {
  const seen = shape.viewPx / shape.rowPx;
  if (row >= top && row + 1 <= top + seen) return top;
  return Math.min(Math.max(row - Math.floor(seen / 2), 0), lastTop(shape));
}

/** Rows per page; pages are requested and cached. */
export const PAGE_ROWS = 200;

export function pagesFor(first: number, end: number): number[] {
  const pages: number[] = [];
  for (let page = Math.floor(first / PAGE_ROWS); page * PAGE_ROWS < end; page++) pages.push(page);
  return pages;
}
