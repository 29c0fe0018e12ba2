// SPDX-License-Identifier: Apache-2.0 OR MIT
// The interval of time on the screen, and which interval to ask the server for.

/** Nanoseconds since the session's origin. */
export interface Interval {
  t0: number;
  t1: number;
}

/** Less than this is nothing but empty pixels: clocks tick in nanoseconds. */
export const SHORTEST_NS = 20;
/** How far a view may stand out beyond the session, as a share of the session. */
const MARGIN = 0.05;

/** Whether two intervals look the same in a picture of so many pixels. */
export function isWithinPixel(a: Interval, b: Interval, px: number): boolean {
  return Math.max(Math.abs(a.t0 - b.t0), Math.abs(a.t1 - b.t1)) * px < width(b);
}

export function width(view: Interval): number {
  return view.t1 - view.t0;
}

/** Keeps a view within the session (and a little beyond), moving rather than shrinking it. */
export function clamp(view: Interval, session: Interval): Interval {
  const whole = Math.max(width(session), SHORTEST_NS);
  const low = session.t0 - whole * MARGIN;
  const high = session.t0 + whole * (1 + MARGIN);
  const span = Math.min(Math.max(width(view), SHORTEST_NS), high - low);
  // A view that is widened or narrowed to fit keeps its middle.
  let t0 = (view.t0 + view.t1) / 2 - span / 2;
  if (!Number.isFinite(t0)) t0 = low;
  t0 = Math.min(Math.max(t0, low), high - span);
  return { t0, t1: t0 + span };
}

/** The whole session with a margin to both sides, so that the first and last event are not on the edge. */
export function fit(session: Interval): Interval {
  const pad = Math.max(width(session), SHORTEST_NS) * 0.01;
  return clamp({ t0: session.t0 - pad, t1: session.t1 + pad }, session);
}

/** Zooms by a factor (below 1: in) so that the time under the pointer stays there. */
export function zoom(view: Interval, at: number, factor: number, session: Interval): Interval {
  const span = Math.max(width(view) * factor, SHORTEST_NS);
  const share = (at - view.t0) / width(view);
  const t0 = at - share * span;
  return clamp({ t0, t1: t0 + span }, session);
}

export function pan(view: Interval, by: number, session: Interval): Interval {
  return clamp({ t0: view.t0 + by, t1: view.t1 + by }, session);
}

/** Shows a thing: what fits on the screen is only brought into view, what does not is fitted. */
export function reveal(view: Interval, thing: Interval, session: Interval): Interval {
  const span = width(view);
  const inside = thing.t0 >= view.t0 + span * 0.02 && thing.t1 <= view.t1 - span * 0.02;
  if (inside) return view;
  const middle = (thing.t0 + thing.t1) / 2;
  const wanted = Math.max(span, width(thing) * 1.5);
  return clamp({ t0: middle - wanted / 2, t1: middle + wanted / 2 }, session);
}

/** Fits a thing so that it fills most of the screen. */
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

/** What to ask the server for: pixels of a power of two nanoseconds, aligned to it. */
export interface Window extends Interval {
  px: number;
  nsPerPx: number;
}

const BYTES_PER_PIXEL_ROW = 5;
/** An answer beyond this takes longer to send than the view that it spares. */
const ANSWER_BYTES = 512 * 1024;
const WIDEST_PX = 16_384;

/** Times are whole nanoseconds: finer pixels would show nothing more. */
function resolution(view: Interval, devicePx: number): number {
  return Math.max(1, 2 ** Math.ceil(Math.log2(width(view) / Math.max(devicePx, 1))));
}

/**
 * The window around a view. A pixel of it is never narrower than one on the screen: it is only ever stretched,
 * because shrinking would drop columns, and with them rare events. Three screens wide where the rows allow it,
 * so that panning finds its picture ready; a view that follows a recording does without, as each word of growth
 * brings another picture.
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

/** Does a window still serve a view: same resolution, and with some of the margin left? */
export function serves(window: Window, view: Interval, devicePx: number): boolean {
  return window.nsPerPx === resolution(view, devicePx) && window.t0 <= view.t0 && window.t1 >= view.t1;
}

/** Where on the screen a window's picture belongs, in pixels: it is stretched there until a sharper one arrives. */
export function placed(window: Interval, view: Interval, widthPx: number): { x: number; width: number } {
  const x = toPixel(view, window.t0, widthPx);
  return { x, width: toPixel(view, window.t1, widthPx) - x };
}
