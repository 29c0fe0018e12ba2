// SPDX-License-Identifier: Apache-2.0 OR MIT
// Rows of a picture as one image with one pixel per pixel of the response, which is stretched to the
// screen. A response is wider than the screen: columns are converted to pixels tile by tile when they are
// first drawn. Otherwise, a new picture would cost a frame three times the visible part.

import type { Theme } from "../../logic/colour.ts";
import { isDense } from "../../logic/layout.ts";
import { type Picture, rowKey } from "../../logic/picture.ts";
import { type RasterLines, type RasterRow, rasterLines, rasterPart } from "../../logic/raster.ts";
import { placed } from "../../logic/viewport.ts";
import { type Scene, coloursOf } from "./paint.ts";

const TILE_PX = 256;
/** Row of a lane that is not shown any more. */
const UNKNOWN = { kind: "spans", script: null, packed: 1 } as const;

/** The visible columns of a picture: [first, end). */
interface Shown {
  first: number;
  end: number;
}

export class RowImages {
  private readonly canvas = document.createElement("canvas");
  private of: Picture | null = null;
  private theme: Theme | null = null;
  private rows: RasterRow[] = [];
  private lines: RasterLines = { rows: [], height: 1 };
  private isDrawn: boolean[] = [];
  /** A tile, reused for all. */
  private tile = new ImageData(TILE_PX, 1);

  /**
   * Rasterizes the visible part of the scene's picture. Tiles are kept until the picture or the
   * theme changes.
   */
  update(scene: Scene): void {
    const { picture, theme } = scene;
    if (picture === null) return;
    if (picture !== this.of || theme !== this.theme) this.begin(scene, picture);
    const { first, end } = shown(scene, picture);
    for (let index = Math.floor(first / TILE_PX); index * TILE_PX < end; index++) {
      if (!this.isDrawn[index]) this.drawTile(index, picture.window.px);
    }
  }

  private begin(scene: Scene, picture: Picture): void {
    this.of = picture;
    this.theme = scene.theme;
    const known = new Map(
      scene.lanes.flatMap((lane) => lane.rows.map((row) => [rowKey(row.lane, row.row), row])),
    );
    this.rows = picture.rows.map((row) => {
      const of = known.get(rowKey(row.lane, row.row)) ?? UNKNOWN;
      const colours = coloursOf(scene, of);
      const palette = { background: scene.theme.lane, rgb: (id: number) => colours.rgb(id) };
      return { dense: isDense(of), columns: row.columns, exact: row.exact, palette };
    });
    this.lines = rasterLines(this.rows);
    this.isDrawn = [];
    // Only drawn tiles are shown: remains of an earlier picture are never visible, and need not be cleared.
    if (this.canvas.width < picture.window.px) this.canvas.width = picture.window.px;
    if (this.canvas.height < this.lines.height) this.canvas.height = this.lines.height;
    if (this.tile.height < this.lines.height) this.tile = new ImageData(TILE_PX, this.lines.height);
  }

  private drawTile(index: number, px: number): void {
    const from = index * TILE_PX;
    const to = Math.min(from + TILE_PX, px);
    const out = new Uint32Array(this.tile.data.buffer);
    const context = this.canvas.getContext("2d");
    rasterPart(this.rows, this.lines, { from, to, out, wide: TILE_PX });
    context?.putImageData(this.tile, from, 0, 0, 0, to - from, this.lines.height);
    this.isDrawn[index] = true;
  }

  draw(context: CanvasRenderingContext2D, scene: Scene, index: number, y: number, height: number): void {
    const line = this.lines.rows[index];
    if (!line || !this.of) return;
    // Draws only the visible part: software takes time proportional to the stretched width, even
    // outside of the screen.
    const { window } = this.of;
    const { first, end } = shown(scene, this.of);
    if (end <= first) return;
    const part = { t0: window.t0 + first * window.nsPerPx, t1: window.t0 + end * window.nsPerPx };
    const at = placed(part, scene.view, scene.width);
    context.drawImage(this.canvas, first, line.y, end - first, line.height, at.x, y, at.width, height);
  }
}

function shown({ view }: Scene, { window }: Picture): Shown {
  return {
    first: Math.max(0, Math.floor((view.t0 - window.t0) / window.nsPerPx)),
    end: Math.min(window.px, Math.ceil((view.t1 - window.t0) / window.nsPerPx) + 1),
  };
}
