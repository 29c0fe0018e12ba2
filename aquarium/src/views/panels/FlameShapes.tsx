// SPDX-License-Identifier: Apache-2.0 OR MIT
// A tree of spans as rows of boxes, or as rings. The keyboard works in the same way for both:
// arrows move, Enter zooms.

import { arc } from "d3-shape";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Box, type Placed, boxes, neighbour } from "../../logic/flame.ts";
import { shortName } from "../../logic/units.ts";

export interface ShapeProps {
  root: Placed;
  zoomed: Placed;
  /** Node under the pointer or with the keyboard focus. */
  at: Placed | null;
  colour: (node: Placed) => string;
  text: (node: Placed) => string;
  hover: (node: Placed | null) => void;
  zoom: (node: Placed) => void;
  label: string;
}

const ROW_PX = 19;
const LETTER_PX = 6.4;
/** Padding of the graph, as in the style sheet. */
const PAD_PX = 7;

function useSize(): [{ current: HTMLDivElement | null }, { width: number; height: number }] {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 600, height: 200 });
  useLayoutEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() =>
      setSize({ width: element.clientWidth - 2 * PAD_PX, height: element.clientHeight - 2 * PAD_PX }),
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [box, size];
}

function keys(props: ShapeProps) {
  return (event: KeyboardEvent) => {
    const from = props.at ?? props.zoomed;
    if (event.key === "Enter" || event.key === " ") props.zoom(from);
    else if (event.key === "Escape" && props.zoomed !== props.root) props.zoom(props.root);
    else {
      const next = neighbour(from, event.key);
      if (next) props.hover(next);
      if (!event.key.startsWith("Arrow")) return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
}

function shapeAttributes(props: ShapeProps) {
  return {
    tabIndex: 0,
    role: "application" as const,
    "aria-roledescription": "graph of spans inside spans",
    "aria-label": `${props.label}: arrows go in, out and to neighbours; Enter zooms; Escape shows all`,
    onKeyDown: keys(props),
    onPointerLeave: () => props.hover(null),
  };
}

/** Time to the right, children below. */
export function FlameGraph(props: ShapeProps) {
  const [box, { width }] = useSize();
  const shown = boxes(props.root, props.zoomed, 0.7 / Math.max(width, 1));
  const rows = shown.reduce((most, one) => Math.max(most, one.row), 0) + 1;
  return (
    <div class="flame" ref={box} {...shapeAttributes(props)}>
      <svg width={width} height={rows * ROW_PX} role="presentation">
        {shown.map((one) => (
          <FlameBox key={one.node.data.key} box={one} width={width} props={props} />
        ))}
      </svg>
    </div>
  );
}

function FlameBox({ box, width, props }: { box: Box; width: number; props: ShapeProps }) {
  const { node, row } = box;
  const x0 = Math.max(0, box.x0) * width;
  const wide = Math.min(1, box.x1) * width - x0;
  const letters = Math.floor((wide - 8) / LETTER_PX);
  const text = props.text(node);
  const name = shortName(text);
  const shown = letters < 2 ? "" : name.length <= letters ? name : `${name.slice(0, letters - 1)}…`;
  const isHolder = node !== props.zoomed && props.zoomed.ancestors().includes(node);
  return (
    <g
      class={`flame-box ${props.at === node ? "at" : ""} ${isHolder ? "holder" : ""} ${
        node.data.kind === null ? "plain" : ""
      }`}
      data-name={text}
      data-total={node.data.total}
      onPointerEnter={() => props.hover(node)}
      onClick={() => props.zoom(node)}
    >
      <rect
        x={x0}
        y={row * ROW_PX}
        width={Math.max(wide - 0.8, 0.6)}
        height={ROW_PX - 1.5}
        rx={2}
        fill={props.colour(node)}
      />
      {shown !== "" && (
        <text x={x0 + 5} y={row * ROW_PX + 12.5}>
          {shown}
        </text>
      )}
    </g>
  );
}

const RING_MIN_PX = 14;

/** The zoomed node in the centre, its descendants around it. */
export function Sunburst(props: ShapeProps) {
  const [box, { width, height }] = useSize();
  const { zoomed } = props;
  const radius = Math.max(60, Math.min(width, height) / 2 - 4);
  const rings = Math.min(zoomed.height + 1, Math.max(2, Math.floor(radius / RING_MIN_PX)));
  const ring = radius / rings;
  const wide = zoomed.x1 - zoomed.x0 || 1;
  const angle = (x: number) => ((x - zoomed.x0) / wide) * 2 * Math.PI;
  const path = arc<Placed>()
    .startAngle((node) => angle(node.x0))
    .endAngle((node) => angle(node.x1))
    .innerRadius((node) => (node.depth - zoomed.depth) * ring)
    .outerRadius((node) => (node.depth - zoomed.depth + 1) * ring - 1)
    .padAngle(0.004)
    .padRadius(radius / 2);
  const shown = zoomed
    .descendants()
    .filter((node) => node !== zoomed && node.depth - zoomed.depth < rings)
    .filter((node) => (angle(node.x1) - angle(node.x0)) * radius > 0.7);
  const middle = shortName(props.text(zoomed));
  return (
    <div class="sunburst" ref={box} {...shapeAttributes(props)}>
      <svg width={2 * radius + 4} height={2 * radius + 4} role="presentation">
        <g transform={`translate(${radius + 2} ${radius + 2})`}>
          <g
            class="flame-box middle"
            data-name={props.text(zoomed)}
            onPointerEnter={() => props.hover(zoomed)}
            onClick={() => props.zoom(zoomed.parent ?? zoomed)}
          >
            <circle r={ring - 1} fill="var(--raised)" />
            <text text-anchor="middle" y={4}>
              {middle.length > ring / 4 ? `${middle.slice(0, Math.max(2, Math.floor(ring / 4)))}…` : middle}
            </text>
          </g>
          {shown.map((node) => (
            <g
              key={node.data.key}
              class={`flame-box ${props.at === node ? "at" : ""}`}
              data-name={props.text(node)}
              data-total={node.data.total}
              onPointerEnter={() => props.hover(node)}
              onClick={() => props.zoom(node)}
            >
              <path d={path(node) ?? ""} fill={props.colour(node)} />
              <RingName node={node} text={shortName(props.text(node))} />
            </g>
          ))}
        </g>
      </svg>
    </div>
  );

  function RingName({ node, text }: { node: Placed; text: string }) {
    const [from, to] = [angle(node.x0), angle(node.x1)];
    const at = (node.depth - zoomed.depth + 0.5) * ring;
    const room = Math.min((to - from) * at, 200);
    // Along the radius, the room is the width of the ring.
    if (room < 12 || ring < 26) return null;
    const letters = Math.floor((ring - 6) / LETTER_PX);
    if (letters < 3) return null;
    const turn = ((from + to) / 2) * (180 / Math.PI) - 90;
    const flip = turn > 90 ? 180 : 0;
    return (
      <text text-anchor="middle" y={4} transform={`rotate(${turn}) translate(${at} 0) rotate(${flip})`}>
        {text.length <= letters ? text : `${text.slice(0, letters - 1)}…`}
      </text>
    );
  }
}
