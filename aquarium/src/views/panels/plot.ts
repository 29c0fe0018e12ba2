// SPDX-License-Identifier: Apache-2.0 OR MIT
// Common parts of plots: colours of the page, and resizing.

import uPlot from "uplot";
import type { Theme } from "../../logic/colour.ts";

export function axisIn(theme: Theme) {
  return {
    stroke: theme.faint,
    grid: { stroke: theme.grid, width: 1 },
    ticks: { stroke: theme.grid, width: 1 },
    font: "11px system-ui",
  };
}

/** A plot without a legend that follows the size of its element until `end` is called. */
export function fitted(
  element: HTMLElement,
  options: Omit<uPlot.Options, "width" | "height" | "legend">,
  data: uPlot.AlignedData,
): { plot: uPlot; end: () => void } {
  const size = () => ({
    width: Math.max(element.clientWidth, 100),
    height: Math.max(element.clientHeight - 4, 60),
  });
  const plot = new uPlot({ ...options, ...size(), legend: { show: false } }, data, element);
  const observer = new ResizeObserver(() => plot.setSize(size()));
  observer.observe(element);
  const end = () => {
    observer.disconnect();
    plot.destroy();
  };
  return { plot, end };
}
