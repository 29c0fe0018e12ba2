// SPDX-License-Identifier: Apache-2.0 OR MIT
// The visible time range, and the range to request from the server.

/** Nanoseconds since the session's origin. */
export interface Interval {
  t0: number;
  t1: number;
}

/** Shortest useful view: clocks count nanoseconds. */
export const SHORTEST_NS = 20;
/** How far a view can extend beyond the session, as a share of the session. */
const MARGIN = 0.05;

/** Whether two intervals look equal in a picture of `px` pixels. */
export function isWithinPixel(a: Interval, b: Interval, px: number): boolean {
  return Math.max(Math.abs(a.t0 - b.t0), Math.abs(a.t1 - b.t1)) * px < width(b);
}

export function width(view: Interval): number {
  return view.t1 - view.t0;
}

/** Keeps a view within the session and its margin, by moving rather than shrinking it. */
export function clamp(view: Interval, session: Interval): Interval {
  const whole = Math.max(width(session), SHORTEST_NS);
  const low = session.t0 - whole * MARGIN;
  const high = session.t0 + whole * (1 + MARGIN);
  const span = Math.min(Math.max(width(view), SHORTEST_NS), high - low);
  // A view that is widened or narrowed keeps its centre.
  let t0 = (view.t0 + view.t1) / 2 - span / 2;
  if (!Number.isFinite(t0)) t0 = low;
  t0 = Math.min(Math.max(t0, low), high - span);
  return { t0, t1: t0 + span };
}

/** The whole session with a margin on both sides, so that the first and last event are not on the edge. */
export function fit(session: Interval): Interval {
  const pad = Math.max(width(session), SHORTEST_NS) * 0.01;
  return clamp({ t0: session.t0 - pad, t1: session.t1 + pad }, session);
}

/** Zooms by a factor (below 1: in); the time under the pointer stays there. */
export function zoom(view: Interval, at: number, factor: number, session: Interval): Interval {
  const span = Math.max(width(view) * factor, SHORTEST_NS);
  const share = (at - view.t0) / width(view);
  const t0 = at - share * span;
  return clamp({ t0, t1: t0 + span }, session);
}

export function pan(view: Interval, by: number, session: Interval): Interval {
  return clamp({ t0: view.t0 + by, t1: view.t1 + by }, session);
}

/**
 * Shows an item: the view is unchanged if it contains the item; otherwise it is centred on the
 * item, and zoomed out if the item does not fit.
 */
export function reveal(view: Interval, thing: Interval, session: Interval): Interval {
  const span = width(view);
  const inside = thing.t0 >= view.t0 + span * 0.02 && thing.t1 <= view.t1 - span * 0.02;
  if (inside) return view;
  const middle = (thing.t0 + thing.t1) / 2;
  const wanted = Math.max(span, width(thing) * 1.5);
  return clamp({ t0: middle - wanted / 2, t1: middle + wanted / 2 }, session);
}

/** Zooms so that an item fills most of the screen. */
export function focus(thing: Interval, session: Interval): Interval {
  const span = Math.max(width(thing) * 1.25, SHORTEST_NS * 5);
  const middle = (thing.t0 + thing.t1) / 2;
  return clamp({ t0: middle - span / 2, t1: middle + span / 2 }, session);
}

export function toPixel(view: Interval, t: number, widthPx: number): number {
  return ((t - view.t0) / width(view)) * widthPx;
}

export function toTime(view: Interval, x: number, widthPx: number): number {
  return view.t0 + (x / widthPx) * width(view);
}

/** A requested range: its pixels are a power of two of nanoseconds wide, and aligned to that. */
export interface Window extends Interval {
  px: number;
  nsPerPx: number;
}

const BYTES_PER_PIXEL_ROW = 5;
/** A response above this size takes longer to send than it saves by avoiding requests. */
const ANSWER_BYTES = 512 * 1024;
const WIDEST_PX = 16_384;

/** Times are integer nanoseconds: finer pixels would show nothing more. */
function resolution(view: Interval, devicePx: number): number {
  return Math.max(1, 2 ** Math.ceil(Math.log2(width(view) / Math.max(devicePx, 1))));
}

/**
 * The range to request for a view. Its pixels are never narrower than those of the screen: the
 * picture is only ever stretched, because shrinking would drop columns and rare events in them. It
 * is three screens wide if the number of rows permits, so that the picture is available while
 * panning. A view that follows a recording requests one screen, because each growth update brings
 * another picture.
 */
export function planWindow(view: Interval, devicePx: number, rows: number, screens = 3): Window {
  const nsPerPx = resolution(view, devicePx);
  const needed = Math.ceil(width(view) / nsPerPx) + 2;
  const affordable = Math.floor(ANSWER_BYTES / (BYTES_PER_PIXEL_ROW * Math.max(rows, 1)));
  const px = Math.min(Math.max(Math.min(needed * screens, affordable), needed), WIDEST_PX);
  const middle = (view.t0 + view.t1) / 2;
  const t0 = Math.floor((middle - (px * nsPerPx) / 2) / nsPerPx) * nsPerPx;
  return { t0, t1: t0 + px * nsPerPx, px, nsPerPx };
}

/** Whether a window covers a view at the view's resolution. */
export function serves(window: Window, view: Interval, devicePx: number): boolean {
  return window.nsPerPx === resolution(view, devicePx) && window.t0 <= view.t0 && window.t1 >= view.t1;
}

/** Position of a window's picture on the screen, in pixels: it is stretched until a sharper one arrives. */
export function placed(window: Interval, view: Interval, widthPx: number): { x: number; width: number } {
  const x = toPixel(view, window.t0, widthPx);
  return { x, width: toPixel(view, window.t1, widthPx) - x };
}
