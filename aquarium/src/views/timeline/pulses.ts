// SPDX-License-Identifier: Apache-2.0 OR MIT
// Marks of brushed spans. The canvas is painted once; the style sheet makes it pulse.

import type { Stretches } from "../../logic/brush.ts";
import { screenY } from "../../logic/layout.ts";
import { rowKey } from "../../logic/picture.ts";
import { toPixel } from "../../logic/viewport.ts";
import type { Scene } from "./paint.ts";

/** Minimum width, so that a single short span is visible among thousands of pixels. */
const NARROWEST_PX = 3;

/** Paints marks; returns their number. */
export function paintPulses(
  context: CanvasRenderingContext2D,
  scene: Scene,
  stretches: Stretches | null,
): number {
  const ratio = globalThis.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, scene.width, scene.height);
  if (stretches === null || stretches.size === 0) return 0;
  let painted = 0;
  // Contrasts with every bar colour, because it is as light or dark as text.
  context.strokeStyle = scene.theme.text;
  context.lineWidth = 2;
  for (const lane of scene.lanes) {
    for (const row of lane.rows) {
      const of = stretches.get(rowKey(row.lane, row.row));
      if (!of) continue;
      const y = screenY(lane, row.y, scene.scrollTop);
      if (!lane.pinned && y < scene.pinnedHeight) continue;
      for (let index = 0; index < of.begin.length; index++) {
        const [x0, x1] = [of.begin[index], of.end[index]].map((t) => toPixel(scene.view, t, scene.width));
        if (x1 < 0 || x0 > scene.width) continue;
        painted++;
        const wide = x1 - x0;
        context.fillStyle = scene.theme.text;
        if (wide < NARROWEST_PX) {
          context.fillRect((x0 + x1 - NARROWEST_PX) / 2, y - 2, NARROWEST_PX, row.height + 4);
          continue;
        }
        context.globalAlpha = 0.3;
        context.fillRect(x0, y, wide, row.height);
        context.globalAlpha = 1;
        context.strokeRect(x0, y, wide, row.height);
      }
    }
  }
  return painted;
}
