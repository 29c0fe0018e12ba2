// SPDX-License-Identifier: Apache-2.0 OR MIT
// Points with two values: fields of an event, or counters at the same time.

export interface Points {
  x: number[];
  y: number[];
  /** Time of each point, for navigation. */
  t: number[];
}

/** Points for which both values are known, sorted by x as a plot requires. */
export function points(t: ArrayLike<number>, x: ArrayLike<number>, y: ArrayLike<number>): Points {
  const kept: number[] = [];
  for (let index = 0; index < t.length; index++) {
    if (Number.isFinite(x[index]) && Number.isFinite(y[index])) kept.push(index);
  }
  kept.sort((a, b) => x[a] - x[b] || t[a] - t[b]);
  const of = (column: ArrayLike<number>) => kept.map((index) => column[index]);
  return { x: of(x), y: of(y), t: of(t) };
}

/** Correlation of two values, from -1 to 1; null if either is constant. */
export function correlation({ x, y }: Points): number | null {
  const count = x.length;
  if (count < 3) return null;
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / count;
  const [middleX, middleY] = [mean(x), mean(y)];
  let [xx, yy, xy] = [0, 0, 0];
  for (let index = 0; index < count; index++) {
    const [dx, dy] = [x[index] - middleX, y[index] - middleY];
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  return xx > 0 && yy > 0 ? xy / Math.sqrt(xx * yy) : null;
}
