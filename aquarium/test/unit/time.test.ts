// SPDX-License-Identifier: Apache-2.0 OR MIT
import { describe, expect, test } from "vitest";
import { clockTicks, niceStep, tickLabel, ticks } from "../../src/logic/axis.ts";
import {
  brief,
  date,
  duration,
  fieldText,
  instant,
  qualified,
  thousands,
  timeText,
} from "../../src/logic/units.ts";
import * as V from "../../src/logic/viewport.ts";
import { random } from "../support/trace.ts";

const plain = (text: string) => text.replaceAll("\u202f", " ");
const session = { t0: 0, t1: 1e9 };

describe("axis", () => {
  test("steps are round", () => {
    expect([1, 1.1, 2, 3, 5, 7, 99, 0.3].map(niceStep)).toEqual([1, 2, 2, 5, 5, 10, 100, 0.5]);
  });
  test("labels have the unit of their step, and tell neighbours apart", () => {
    expect(plain(tickLabel(1_234_500_000, 500_000))).toBe("1 234 500 µs");
    expect(plain(tickLabel(12e9, 1e9))).toBe("12 s");
    expect(plain(tickLabel(1.5, 0.5))).toBe("1.5 ns");
    const next = random(5);
    for (let round = 0; round < 300; round++) {
      const t0 = next() * 1e12;
      const view = { t0, t1: t0 + 10 ** (1 + next() * 10) };
      const labels = ticks(view, 1200)
        .map((tick) => tick.label)
        .filter((label) => label !== null);
      expect(new Set(labels).size).toBe(labels.length);
      expect(labels.length).toBeGreaterThan(1);
      expect(labels.length).toBeLessThan(20);
    }
  });
  test("in ticks of a clock, steps are round in these", () => {
    const hz = 2_400_000_000;
    const found = ticks({ t0: 0, t1: 1000 }, 1200, hz).filter((tick) => tick.label !== null);
    expect(found.slice(0, 3).map((tick) => plain(tick.label!))).toEqual(["0 ticks", "500 ticks", "1 000 ticks"]);
    expect(found[1].t).toBeCloseTo(500 / 2.4, 9);
    expect(plain(clockTicks(1000, hz))).toBe("2 400 ticks");
    // A clock with ticks longer than a nanosecond.
    const slow = ticks({ t0: 0, t1: 1e9 }, 1200, 32_768).filter((tick) => tick.label !== null);
    expect(plain(slow[1].label!)).toBe("5 000 ticks");
    expect(slow[1].t).toBeCloseTo((5000 / 32_768) * 1e9, 3);
  });
});

describe("numbers", () => {
  test("durations", () => {
    expect([0, 484, 37_710, 1_650_000, 2.5e9, 999_960, 0.25].map(duration).map(plain)).toEqual([
      "0 ns",
      "484 ns",
      "37.71 µs",
      "1.650 ms",
      "2.500 s",
      "1.000 ms",
      "0.250 ns",
    ]);
    expect(duration(NaN)).toBe("unknown");
  });
  test("instants and dates keep every nanosecond", () => {
    expect(plain(instant(1_234_567_891))).toBe("1.234 567 891 s");
    expect(plain(instant(-5))).toBe("−0.000 000 005 s");
    const [origin, ns] = ["1700000000123456789", 2_000_000_211];
    expect(timeText("relative", origin, ns, true)).toBe(instant(ns));
    expect(plain(timeText("utc", origin, ns, true))).toBe("22:13:22.123 457 000");
    expect(timeText("raw", origin, ns, true)).toBe("1700000002123457000");
    const hours = new Date(1_700_000_002_123).getHours();
    expect(timeText("local", origin, ns, true).slice(0, 2)).toBe(String(hours).padStart(2, "0"));
    // A clock without dates only has times relative to the first event.
    expect(timeText("utc", origin, ns, false)).toBe(instant(ns));
    expect(timeText("raw", "no number", ns, true)).toBe(instant(ns));
    expect(date("1700000000123456789", 1)).toBe("2023-11-14 22:13:20.123456790");
    expect(date("no number", 1)).toBeNull();
  });
  test("counts, and how sure they are", () => {
    expect(plain(thousands(1234567))).toBe("1 234 567");
    expect([980, 12_345, 4_100_000].map(brief)).toEqual(["980", "12.3k", "4.10M"]);
    expect(plain(qualified("12", "lower_bound"))).toBe("≥ 12");
    expect(plain(qualified("12", "unknown"))).toBe("12 ?");
    expect(qualified("12", "exact")).toBe("12");
  });
  test("fields", () => {
    expect(plain(fieldText(1500, "ns"))).toBe("1.500 µs");
    expect(plain(fieldText(4096, "B"))).toBe("4 096 B");
    expect(fieldText(443210, null)).toBe("443210");
    expect(fieldText("0x7f", null)).toBe("0x7f");
    expect(fieldText(null)).toBe("unknown");
    expect(fieldText([1, 2, 300])).toBe("[1,2,300]");
    const packet = Array.from({ length: 300 }, (_, at) => at % 256);
    expect(fieldText(packet, null, 4)).toBe("00 01 02 03 … 300 in all");
    expect(fieldText(packet.slice(0, 16))).toBe("00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f");
    expect(fieldText([...packet, -1], null, 2)).toBe("[0,1] … 301 in all");
  });
});

describe("view", () => {
  test("zooming keeps the time under the pointer", () => {
    const view = V.zoom({ t0: 2e8, t1: 4e8 }, 2.5e8, 0.5, session);
    expect(V.toPixel(view, 2.5e8, 1000)).toBeCloseTo(250, 6);
    expect(V.width(view)).toBeCloseTo(1e8, 3);
  });
  test("whatever is done, a view stays within the session and is never empty", () => {
    const next = random(9);
    let view = V.fit(session);
    for (let round = 0; round < 3000; round++) {
      const at = view.t0 + next() * V.width(view);
      view =
        next() < 0.5
          ? V.zoom(view, at, 10 ** (next() * 6 - 3.2), session)
          : V.pan(view, (next() - 0.5) * 3e9, session);
      expect(V.width(view)).toBeGreaterThanOrEqual(V.SHORTEST_NS * 0.999);
      expect(view.t0).toBeGreaterThanOrEqual(-0.051e9);
      expect(view.t1).toBeLessThanOrEqual(1.051e9);
    }
  });
  test("a window covers the view, in aligned pixels no narrower than the screen's, within the answer's limit", () => {
    const next = random(21);
    for (let round = 0; round < 500; round++) {
      const t0 = next() * 1e9;
      const view = { t0, t1: t0 + 10 ** (1.5 + next() * 8) };
      const devicePx = 200 + Math.floor(next() * 3000);
      const rows = 1 + Math.floor(next() * 200);
      const window = V.planWindow(view, devicePx, rows);
      expect(window.t0).toBeLessThanOrEqual(view.t0);
      expect(window.t1).toBeGreaterThanOrEqual(view.t1);
      expect(window.nsPerPx).toBeGreaterThanOrEqual((V.width(view) / devicePx) * 0.9999);
      expect(Math.abs(Math.log2(window.nsPerPx) % 1)).toBe(0);
      expect(Math.abs((window.t0 / window.nsPerPx) % 1)).toBe(0);
      const least = Math.ceil(V.width(view) / window.nsPerPx) + 2;
      expect(window.px <= least || window.px * rows * 5 <= 512 * 1024).toBe(true);
      expect(window.nsPerPx).toBeGreaterThanOrEqual(1);
      expect(V.serves(window, view, devicePx)).toBe(true);
    }
  });
  test("a stretched picture stands where its times are", () => {
    expect(V.placed({ t0: 0, t1: 100 }, { t0: 50, t1: 100 }, 800)).toEqual({ x: -800, width: 1600 });
  });
  test("what can be seen is not moved; what cannot is brought to the middle", () => {
    const view = { t0: 4e8, t1: 5e8 };
    expect(V.reveal(view, { t0: 4.5e8, t1: 4.5e8 }, session)).toBe(view);
    const moved = V.reveal(view, { t0: 8e8, t1: 8e8 }, session);
    expect((moved.t0 + moved.t1) / 2).toBeCloseTo(8e8, 0);
    expect(V.width(moved)).toBeCloseTo(1e8, 0);
  });
});
