// SPDX-License-Identifier: Apache-2.0 OR MIT
import { packedText, packedTitle, screenY, visible } from "../../logic/layout.ts";
import type { PlacedLane } from "../../logic/layout.ts";
import { shortName, thousands } from "../../logic/units.ts";
import { summaries } from "./scene.ts";
import * as store from "../../state/store.ts";

const KIND_NAMES: Record<string, string> = {
  cpu: "CPU",
  process: "process",
  thread: "thread",
  component: "component",
  counter: "counter",
  packets: "packets",
};

/** Names of lanes: they stay at the left and, within the extent of their lane, at the top. */
export function Labels() {
  const layout = store.lanesLayout.value;
  const { height } = store.canvasSize.value;
  const scrollTop = store.scrollTop.value;
  const shown = visible(layout, scrollTop, height);
  return (
    <div class="labels">
      <div role="list" aria-label="Lanes">
        {[...shown]
          .sort((a, b) => Number(a.pinned) - Number(b.pinned))
          .map((lane) => (
            <Label
              key={lane.id}
              lane={lane}
              y={screenY(lane, lane.y, scrollTop)}
              top={lane.pinned ? 0 : layout.pinnedHeight}
            />
          ))}
      </div>
      <EmptyLanes count={layout.emptyLanes} />
    </div>
  );
}

/** Number of hidden empty lanes, always visible below the other lanes. */
function EmptyLanes({ count }: { count: number }) {
  if (count === 0) return null;
  return (
    <button
      class="empty-lanes"
      title="Lanes without anything in the shown time and filter. Show them   H"
      onClick={() => (store.hideEmpty.value = false)}
    >
      {thousands(count)} hidden
    </button>
  );
}

/** A name and, if there is room, its context. */
export function LaneName({
  lane,
  number,
  title,
}: {
  lane: PlacedLane;
  number?: number | null;
  title?: string;
}) {
  const kind = KIND_NAMES[lane.kind] ?? lane.kind;
  // `warehouse:QUEUE.waiting` is shown as `waiting`, of QUEUE: cut at its end, the name would not
  // identify the counter.
  const [, of, field] = shortName(lane.name).match(/^(.*)\.([^.]+)$/) ?? [];
  if (lane.kind === "counter" && field)
    return (
      <>
        <span class="lane-name" title={title}>
          {field}
        </span>
        <small>
          <span>{of}</span>
        </small>
      </>
    );
  // The name "CPU 0" already contains the kind.
  const isPlain = lane.kind === "cpu" || lane.name.toLowerCase().includes(kind.toLowerCase());
  return (
    <>
      <span class="lane-name" title={title}>
        {lane.kind === "counter" ? shortName(lane.name) : lane.name}
      </span>
      <small>
        {number != null && <span>{number}</span>}
        {!isPlain && <span>{kind}</span>}
      </small>
    </>
  );
}

function Label({ lane, y, top }: { lane: PlacedLane; y: number; top: number }) {
  const info = store.laneById.value.get(lane.id);
  // Keep the label at the end of a packed row visible.
  const last = lane.rows[lane.rows.length - 1];
  const room = (last?.packed > 1 ? last.y - lane.y : lane.height) - 22;
  const stuck = Math.min(Math.max(0, top - y), Math.max(0, room));
  const depth = lane.rows.filter((row) => row.kind === "spans").length;
  const kind = KIND_NAMES[lane.kind] ?? lane.kind;
  return (
    <div
      role="listitem"
      class={`label ${lane.pinned ? "pinned" : ""} ${store.selected.value?.lane === lane.id ? "chosen" : ""}`}
      style={{ top: `${y}px`, height: `${lane.height}px`, paddingLeft: `${6 + lane.level * 12}px` }}
    >
      <div class="label-line" style={{ transform: `translateY(${stuck}px)` }}>
        {lane.foldable ? (
          <button
            class="fold"
            aria-expanded={!lane.folded}
            aria-label={`${lane.folded ? "Unfold" : "Fold"} ${lane.name}`}
            onClick={() => store.toggleFold(lane.id)}
          >
            {lane.folded ? "▸" : "▾"}
          </button>
        ) : (
          <span class="fold" />
        )}
        <LaneName
          lane={lane}
          number={info?.tid ?? info?.pid}
          title={[
            `${lane.name} (${kind})`,
            depth > 1 && `${depth} levels of spans`,
            lane.kind === "process" && summaries.value(lane.id),
          ]
            .filter(Boolean)
            .join(", ")}
        />
        <button
          class="pin"
          aria-pressed={lane.pinned}
          aria-label={`Pin ${lane.name} to the top`}
          title="Pin to the top"
          onClick={() => store.togglePin(lane.id)}
        >
          <svg viewBox="0 0 12 12" width="10" height="10" aria-hidden="true">
            <path d="M4 1h4l-.6 4L9.5 7.2H6.5L6 11.4 5.5 7.2h-3L4.6 5z" fill="currentColor" />
          </svg>
        </button>
      </div>
      {lane.rows
        .filter((row) => row.packed > 1)
        .map((row) => (
          <small
            key={row.row}
            class="packed"
            style={{ top: `${row.y - lane.y}px`, height: `${row.height}px`, lineHeight: `${row.height}px` }}
            title={packedTitle(row)}
          >
            {packedText(row)}
          </small>
        ))}
    </div>
  );
}
