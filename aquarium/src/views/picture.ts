// SPDX-License-Identifier: Apache-2.0 OR MIT
// Export of the timeline: as pixels, as shown on the screen, or as SVG.

import * as store from "../state/store.ts";
import { arrowLines, scene } from "./timeline/scene.ts";
import { svg } from "./timeline/svg.ts";

export function saveSvg(): void {
  const text = svg(scene.value, arrowLines.value);
  download(new Blob([text], { type: "image/svg+xml" }), "aquarium.svg");
}

/** Saves both canvases, one over the other, with the names of the lanes, as shown on the screen. */
export function savePng(): void {
  const area = document.querySelector(".canvas-area");
  const canvases = [...(area?.querySelectorAll("canvas") ?? [])];
  const labels = document.querySelector(".labels");
  if (!area || !labels || canvases.length === 0) return;
  const ratio = devicePixelRatio || 1;
  const axis = 26;
  const wide = labels.clientWidth;
  const out = document.createElement("canvas");
  out.width = canvases[0].width + Math.round(wide * ratio);
  out.height = canvases[0].height + Math.round(axis * ratio);
  const context = out.getContext("2d")!;
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, out.width, out.height);
  for (const canvas of canvases)
    context.drawImage(canvas, Math.round(wide * ratio), Math.round(axis * ratio));
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = store.theme.value.text;
  const top = area.getBoundingClientRect();
  for (const label of labels.querySelectorAll<HTMLElement>(".lane-name, .packed")) {
    const at = label.getBoundingClientRect();
    context.fillText(
      label.textContent ?? "",
      at.left - top.left + wide,
      at.top - top.top + at.height / 2 + axis,
      wide - 8,
    );
  }
  for (const tick of document.querySelectorAll<HTMLElement>(".axis span.tick")) {
    const at = tick.getBoundingClientRect();
    context.fillText(tick.textContent ?? "", wide + at.left - top.left + 4, axis / 2);
  }
  out.toBlob((blob) => blob && download(blob, "aquarium.png"), "image/png");
}

export function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
