// SPDX-License-Identifier: Apache-2.0 OR MIT
// One of two compared recordings: its lanes in the common time.

import { useEffect, useRef } from "preact/hooks";
import { type Line, linesOn } from "../../logic/arrows.ts";
import { toOwn } from "../../logic/compare.ts";
import { rowAt, screenY, visible } from "../../logic/layout.ts";
import { qualified, thousands } from "../../logic/units.ts";
import { focus, pan, toTime, width } from "../../logic/viewport.ts";
import { zoomBy, thingOf } from "../../state/actions.ts";
import {
  type Which,
  align,
  applied,
  arrowsOf,
  colours,
  halfSize,
  halves,
  layouts,
  levelsOf,
  lookingAt,
  picked,
  pictures,
  scrolled,
  setHalf,
} from "../../state/compare.ts";
import { ask } from "../../state/server.ts";
import * as store from "../../state/store.ts";
import { usePainter } from "../painter.ts";
import { LaneName } from "../timeline/Labels.tsx";
import { paintMarks } from "../timeline/marks.ts";
import { RowImages } from "../timeline/images.ts";
import { type Scene, paint } from "../timeline/paint.ts";
import { NEAR_PX } from "../timeline/pointer.ts";
import { counterOf } from "../timeline/scene.ts";

function sceneOf(which: Which): Scene | null {
  const half = halves.value?.[which];
  const { applications, names, classes } = colours;
  if (!half || !applications.value || !names.value || !classes.value) return null;
  const { width, height } = halfSize[which].value;
  // If the filter failed, the available data is that of an older filter and is not shown.
  const isKnown = applied[which].value.problem === null;
  const levels = isKnown ? levelsOf[which].value : null;
  return {
    view: toOwn(store.view.value, half.anchor),
    axisHz: store.axisHz.value,
    width,
    height,
    pinnedHeight: 0,
    scrollTop: scrolled[which].value,
    lanes: visible(layouts[which].value, scrolled[which].value, height),
    theme: store.theme.value,
    picture: isKnown ? pictures[which].value : null,
    applications: applications.value[which],
    names: names.value[which],
    classes: classes.value[which],
    scripts: store.scriptColours.value,
    losses: half.session.losses,
    levels: {
      window: levels?.window ?? { t0: 0, t1: 1 },
      of: (row, lane) => levels?.byCounter.get(counterOf(half.session.counters, row, lane) ?? -1) ?? null,
    },
    summaries: () => "",
    selectedLane: picked.value?.which === which ? picked.value.lane : null,
  };
}

function arrowLines(which: Which, { view, width, height, scrollTop }: Scene): readonly Line[] {
  const data = arrowsOf[which].value;
  if (!data || !store.arrowsOn.value || data.filter !== applied[which].value.filter) return [];
  return linesOn(data.arrows, layouts[which].value, view, { width, height }, scrollTop);
}

const DRAG_PX = 4;

export function HalfTimeline({ which }: { which: Which }) {
  const area = useRef<HTMLDivElement>(null);
  const canvases = [useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null)];
  const images = useRef(new RowImages());
  const drag = useRef<{ x: number; y: number; moved: boolean } | null>(null);
  const half = halves.value?.[which];

  useEffect(() => {
    const element = area.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      const size = { width: element.clientWidth, height: element.clientHeight };
      for (const { current: canvas } of canvases) {
        if (!canvas) return;
        canvas.width = Math.round(size.width * devicePixelRatio);
        canvas.height = Math.round(size.height * devicePixelRatio);
      }
      halfSize[which].value = size;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [half === undefined]);

  const gather = () => {
    const now = sceneOf(which);
    const own = picked.value?.which === which ? picked.value : null;
    return now && { now, own, arrows: arrowLines(which, now) };
  };
  usePainter(gather, (newest) => {
    if (!newest) return;
    const { now, own, arrows } = newest;
    const [lower, upper] = canvases.map((canvas) => canvas.current?.getContext("2d"));
    if (!lower || !upper) return;
    paint(lower, now, images.current);
    const { lane = 0, row = 0, thing } = own ?? {};
    const selected = thing ? { lane, row, begin: thing.begin, end: thing.end ?? null, thing } : null;
    paintMarks(upper, now, { selected, range: null, arrows, wakes: [] });
    upper.canvas.dataset.arrows = String(arrows.length);
    upper.canvas.dataset.rows = String(now.picture?.rows.length ?? 0);
  });

  if (!half) return null;
  const timeAt = (x: number) => toTime(store.view.value, x, halfSize[which].value.width);
  const place = (event: MouseEvent) => {
    const edge = area.current!.getBoundingClientRect();
    return { x: event.clientX - edge.left, y: event.clientY - edge.top };
  };
  const pick = async (x: number, y: number) => {
    const found = rowAt(layouts[which].value, y, scrolled[which].value);
    if (!found?.row || found.row.kind === "level") return null;
    const within = Math.ceil((width(store.view.value) / halfSize[which].value.width) * NEAR_PX);
    const { lane, row } = found.row;
    const { filter } = applied[which].value;
    if (filter === null) return null;
    const asked = { lane, row, t: Math.round(timeAt(x) + half.anchor), within };
    const answer = await ask("at", { side: half.info.side, filter, ...asked });
    const thing = thingOf(answer);
    picked.value = thing ? { which, lane, row, thing } : null;
    return thing;
  };
  const own = picked.value?.which === which ? picked.value.thing : null;
  const { width: wide, height } = halfSize[which].value;
  const shown = visible(layouts[which].value, scrolled[which].value, height);
  return (
    <section class={`half ${which}`} aria-label={`The ${which} recording`}>
      <header>
        <b>{which}</b>
        <span title={half.info.path}>{half.info.path.split("/").filter(Boolean).pop()}</span>
        <Left which={which} events={half.info.events} />
        {own && (
          <button
            class="text"
            title="Puts the begin of what is selected here at 0"
            onClick={() => align({ [which]: own.begin }, `${own.name} of ${which}`)}
          >
            align at {own.name}
          </button>
        )}
      </header>
      <div class="labels" role="list" aria-label={`Lanes of the ${which} recording`}>
        {shown.map((lane) => (
          <div
            key={lane.id}
            role="listitem"
            class="label"
            style={{
              top: `${screenY(lane, lane.y, scrolled[which].value)}px`,
              height: `${lane.height}px`,
              paddingLeft: `${6 + lane.level * 12}px`,
            }}
          >
            <div class="label-line">
              {lane.foldable ? (
                <button
                  class="fold"
                  aria-expanded={!lane.folded}
                  aria-label={`${lane.folded ? "Unfold" : "Fold"} ${lane.name}`}
                  onClick={() => {
                    const folded = new Set(half.folded);
                    if (!folded.delete(lane.id)) folded.add(lane.id);
                    setHalf(which, { folded });
                  }}
                >
                  {lane.folded ? "▸" : "▾"}
                </button>
              ) : (
                <span class="fold" />
              )}
              <LaneName lane={lane} />
            </div>
          </div>
        ))}
      </div>
      <div
        class="canvas-area"
        ref={area}
        tabIndex={0}
        role="application"
        aria-label={`Lanes of the ${which} recording over time; W, A, S, D move and zoom both`}
        onPointerDown={(event) => {
          drag.current = { ...place(event), moved: false };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          const at = drag.current;
          if (!at) return;
          const { x, y } = place(event);
          if (!at.moved && Math.hypot(x - at.x, y - at.y) < DRAG_PX) return;
          const by = ((at.x - x) / wide) * width(store.view.value);
          store.view.value = pan(store.view.value, by, store.whole.value);
          scrollBy(which, at.y - y);
          drag.current = { x, y, moved: true };
        }}
        onPointerUp={(event) => {
          const clicked = drag.current !== null && !drag.current.moved;
          drag.current = null;
          const { x, y } = place(event);
          if (clicked) void pick(x, y);
        }}
        onDblClick={(event) => {
          const { x, y } = place(event);
          void pick(x, y).then((thing) => {
            if (thing?.end != null && thing.end > thing.begin) {
              const common = { t0: thing.begin - half.anchor, t1: thing.end - half.anchor };
              store.view.value = focus(common, store.whole.value);
            } else store.showAll();
          });
        }}
        onWheel={(event) => {
          event.preventDefault();
          if (event.ctrlKey) scrollBy(which, event.deltaY);
          else if (event.shiftKey) {
            const by = (event.deltaY / wide) * width(store.view.value);
            store.view.value = pan(store.view.value, by, store.whole.value);
          } else
            zoomBy(Math.exp(Math.min(Math.max(event.deltaY, -400), 400) * 0.0015), timeAt(place(event).x));
        }}
      >
        <canvas ref={canvases[0]} aria-hidden="true" />
        <canvas ref={canvases[1]} aria-hidden="true" />
      </div>
    </section>
  );
}

/** Number of events that the filter keeps, or the reason why it is unknown. */
function Left({ which, events }: { which: Which; events: number }) {
  const { count, quality, problem } = applied[which].value;
  const looking = [...lookingAt[which].value].map(([id, { looked, events }]) => {
    const name = store.scripts.value.find((one) => one.id === id)?.name ?? "a script";
    return `${name} has looked at ${thousands(looked)} of ${thousands(events)} events`;
  });
  const left = count === null ? "" : `${qualified(thousands(count), quality ?? "exact")} of `;
  return (
    <>
      <small>
        {left}
        {thousands(events)} events
      </small>
      {looking.length > 0 && <small role="status">{looking.join(", ")}…</small>}
      {problem !== null && (
        <span class="broken" role="alert" title={problem}>
          {problem}
        </span>
      )}
    </>
  );
}

function scrollBy(which: Which, px: number): void {
  const most = Math.max(0, layouts[which].value.height - halfSize[which].value.height);
  scrolled[which].value = Math.min(most, Math.max(0, scrolled[which].value + px));
}
