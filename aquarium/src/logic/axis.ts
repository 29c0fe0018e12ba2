// SPDX-License-Identifier: Apache-2.0 OR MIT
// Ticks of the time axis.

import { thousands, unitFor } from "./units.ts";
import { type Interval, toPixel, width } from "./viewport.ts";

export interface Tick {
  t: number;
  x: number;
  /** Text of the tick; null for ticks between the labelled ones. */
  label: string | null;
}

/** The smallest step that is at least `atLeast`, of 1, 2 or 5 times a power of ten. */
export function niceStep(atLeast: number): number {
  const power = 10 ** Math.floor(Math.log10(atLeast));
  for (const factor of [1, 2, 5]) if (power * factor >= atLeast * 0.999999) return power * factor;
  return power * 10;
}

/** A time in the unit of the step, with enough decimals to distinguish successive ticks. */
export function tickLabel(t: number, step: number): string {
  const unit = unitFor(step);
  const decimals = Math.max(0, -Math.floor(Math.log10(step / unit.ns) + 1e-9));
  return `${thousands(t / unit.ns, Math.min(decimals, 6))} ${unit.name}`;
}

function countLabel(count: number, step: number): string {
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return `${thousands(count, Math.min(decimals, 3))} ticks`;
}

const NS_PER_S = 1e9;

/** A time or duration in ticks of a clock. */
export function clockTicks(ns: number, hz: number): string {
  return `${thousands((ns * hz) / NS_PER_S)} ticks`;
}

const TICK_PX = 130;
const MOST_TICKS = 400;

let last: { view: Interval; widthPx: number; hz: number | null; found: readonly Tick[] } | null = null;

/**
 * Cached, because the axis and the grid request the same ticks in each frame. `hz`: in ticks of a
 * clock, not in seconds.
 */
export function ticks(view: Interval, widthPx: number, hz: number | null = null): readonly Tick[] {
  if (last?.view !== view || last.widthPx !== widthPx || last.hz !== hz)
    last = { view, widthPx, hz, found: made(view, widthPx, hz) };
  return last.found;
}

function made(view: Interval, widthPx: number, hz: number | null): Tick[] {
  if (widthPx <= 0 || !(width(view) > 0)) return [];
  // Steps are round numbers of the unit of the labels.
  const scale = hz === null ? 1 : NS_PER_S / hz;
  const step = niceStep((width(view) * TICK_PX) / widthPx / scale);
  // Steps of 2 are divided by 4, those of 1 and 5 by 5, so that the parts are round numbers as well.
  const leading = Math.round(step / 10 ** Math.floor(Math.log10(step) + 1e-9));
  const parts = leading === 2 ? 4 : 5;
  const small = step / parts;
  const found: Tick[] = [];
  const first = Math.ceil(view.t0 / scale / small - 1e-9);
  for (let index = first; found.length < MOST_TICKS; index++) {
    const count = index * small;
    const t = count * scale;
    if (t > view.t1) break;
    const label = index % parts === 0 ? (hz === null ? tickLabel(t, step) : countLabel(count, step)) : null;
    found.push({ t, x: toPixel(view, t, widthPx), label });
  }
  return found;
}
