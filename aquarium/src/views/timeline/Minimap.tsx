// SPDX-License-Identifier: Apache-2.0 OR MIT
// The whole session with its density, and the window shown by the timeline, which can be dragged,
// resized, or moved by a click.

import { useRef } from "preact/hooks";
import { css } from "../../logic/colour.ts";
import { instant } from "../../logic/units.ts";
import { type Interval, fit, isWithinPixel, toPixel, toTime, width } from "../../logic/viewport.ts";
import { found } from "../../state/find.ts";
import * as store from "../../state/store.ts";
import { zoomBy, panBy } from "../../state/actions.ts";
import { usePainter } from "../painter.ts";
import { hatch } from "./paint.ts";

const HEIGHT_PX = 40;
const GRIP_PX = 6;
/** Height of the mark of a hit. */
const HIT_PX = 5;

export function Minimap() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const drag = useRef<{ part: "left" | "right" | "move" | "new"; at: number } | null>(null);

  const gather = () => {
    for (const of of [store.canvasSize, store.theme, store.view, store.overview, store.whole, found]) of.value;
  };
  usePainter(gather, () => paintMinimap(canvas.current, box.current?.clientWidth ?? 0));

  const time = (event: PointerEvent | WheelEvent | MouseEvent) => {
    const edge = box.current!.getBoundingClientRect();
    return toTime(fit(store.whole.value), event.clientX - edge.left, edge.width);
  };
  const down = (event: PointerEvent) => {
    const edge = box.current!.getBoundingClientRect();
    const x = event.clientX - edge.left;
    const full = fit(store.whole.value);
    const [x0, x1] = [store.view.value.t0, store.view.value.t1].map((t) => toPixel(full, t, edge.width));
    const part =
      Math.abs(x - x0) < GRIP_PX
        ? "left"
        : Math.abs(x - x1) < GRIP_PX
          ? "right"
          : x > x0 && x < x1 && x1 - x0 < edge.width * 0.98
            ? "move"
            : "new";
    drag.current = { part, at: time(event) };
    box.current!.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent) => {
    if (!drag.current) return;
    const { part, at } = drag.current;
    const t = time(event);
    const { t0, t1 } = store.view.value;
    store.follow.value = false;
    if (part === "move") {
      store.show({ t0: t0 + t - at, t1: t1 + t - at });
      drag.current.at = t;
    } else if (part === "new" && t !== at) store.show({ t0: Math.min(at, t), t1: Math.max(at, t) });
    else if (part === "left" && t < t1) store.show({ t0: t, t1 });
    else if (part === "right" && t > t0) store.show({ t0, t1: t });
  };
  const up = (event: PointerEvent) => {
    // A click outside of the window moves it there.
    if (drag.current?.part === "new" && drag.current.at === time(event)) {
      const half = width(store.view.value) / 2;
      store.show({ t0: drag.current.at - half, t1: drag.current.at + half });
    }
    drag.current = null;
  };
  const { t0, t1 } = store.view.value;
  return (
    <div
      class="minimap"
      ref={box}
      tabIndex={0}
      role="slider"
      aria-label="The whole recording; the frame is what the timeline shows"
      aria-valuemin={store.whole.value.t0}
      aria-valuemax={store.whole.value.t1}
      aria-valuenow={Math.round((t0 + t1) / 2)}
      aria-valuetext={`${instant(t0)} to ${instant(t1)}`}
      onPointerDown={down}
      onPointerMove={move}
      onPointerUp={up}
      onDblClick={store.showAll}
      onWheel={(event) => {
        event.preventDefault();
        zoomBy(Math.exp(event.deltaY * 0.0015), time(event));
      }}
      onKeyDown={(event) => {
        if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
        panBy(event.key === "ArrowLeft" ? -0.2 : 0.2);
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <canvas ref={canvas} aria-hidden="true" />
    </div>
  );
}

/** Time range of the mini-map: in a live session that of the density, until the difference is visible. */
function mapped(): Interval {
  const whole = store.whole.value;
  const overview = store.overview.value;
  return overview && isWithinPixel(overview.of, whole, overview.count.length) ? overview.of : whole;
}

/** Image of the density, cached until it changes: only the frame over it moves with the view. */
let density: { of: unknown[]; canvas: HTMLCanvasElement } | null = null;

function densityOf(wide: number, ratio: number): HTMLCanvasElement {
  const overview = store.overview.value;
  const theme = store.theme.value;
  const whole = mapped();
  const of = [overview, theme, whole.t0, whole.t1, wide, ratio];
  if (density?.of.every((one, index) => one === of[index])) return density.canvas;
  const canvas = density?.canvas ?? document.createElement("canvas");
  density = { of, canvas };
  canvas.width = Math.round(wide * ratio);
  canvas.height = Math.round(HEIGHT_PX * ratio);
  const context = canvas.getContext("2d")!;
  context.scale(ratio, ratio);
  context.fillStyle = css(theme.lane);
  context.fillRect(0, 0, wide, HEIGHT_PX);
  if (!overview || overview.count.length === 0) return canvas;
  const full = fit(whole);
  const step = width(whole) / overview.count.length;
  const px = (index: number) => Math.round(toPixel(full, whole.t0 + index * step, wide) * ratio) / ratio;
  const most = overview.count.reduce((a, b) => Math.max(a, b), 1);
  // Separate rectangles on whole pixels: filling one path of them all takes the software rasteriser 50 ms.
  context.fillStyle = css(theme.palette[0], 0.75);
  for (let index = 0; index < overview.count.length; index++) {
    if (overview.count[index] === 0) continue;
    // The square root keeps rare events visible next to frequent ones, and preserves the order.
    const high = Math.max(2, Math.sqrt(overview.count[index] / most) * (HEIGHT_PX - 6));
    context.fillRect(px(index), HEIGHT_PX - high, Math.max(1 / ratio, px(index + 1) - px(index)), high);
  }
  for (let index = 0; index < overview.flags.length; index++) {
    if ((overview.flags[index] & 6) === 0) continue;
    const colour = overview.flags[index] & 2 ? theme.loss : theme.damage;
    hatch(context, px(index), 0, Math.max(2, px(index + 1) - px(index)), HEIGHT_PX, colour);
  }
  return canvas;
}

function paintMinimap(canvas: HTMLCanvasElement | null, wide: number): void {
  const theme = store.theme.value;
  const view = store.view.value;
  const context = canvas?.getContext("2d");
  if (!canvas || !context || wide === 0) return;
  const ratio = devicePixelRatio || 1;
  const below = densityOf(wide, ratio);
  if (canvas.width !== below.width) canvas.width = below.width;
  if (canvas.height !== below.height) canvas.height = below.height;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.drawImage(below, 0, 0, wide, HEIGHT_PX);
  const full = fit(mapped());
  const [x0, x1] = [toPixel(full, view.t0, wide), toPixel(full, view.t1, wide)];
  context.fillStyle = theme.name === "dark" ? "rgba(10,13,16,.62)" : "rgba(90,105,120,.28)";
  context.fillRect(0, 0, Math.max(0, x0), HEIGHT_PX);
  context.fillRect(x1, 0, Math.max(0, wide - x1), HEIGHT_PX);
  paintHits(context, full, wide, ratio);
  context.strokeStyle = theme.accent;
  context.lineWidth = 1.5;
  context.strokeRect(
    Math.max(0.75, x0),
    0.75,
    Math.max(3, Math.min(wide - 0.75, x1) - Math.max(0.75, x0)),
    HEIGHT_PX - 1.5,
  );
}

/** Above the density and the shade a mark for each pixel that has hits. */
function paintHits(context: CanvasRenderingContext2D, full: Interval, wide: number, ratio: number): void {
  const hits = found.value;
  if (hits === null || hits.pixels.length === 0) return;
  const step = width(hits.of) / hits.pixels.length;
  context.fillStyle = css(store.theme.value.palette[1]);
  for (let index = 0; index < hits.pixels.length; index++) {
    if (hits.pixels[index] === 0) continue;
    const [from, to] = [index, index + 1].map((at) => toPixel(full, hits.of.t0 + at * step, wide));
    context.fillRect(Math.round(from * ratio) / ratio, 0, Math.max(1.5, to - from), HIT_PX);
  }
}
