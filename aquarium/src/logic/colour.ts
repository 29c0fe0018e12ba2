// SPDX-License-Identifier: Apache-2.0 OR MIT
// Colours that colour-blind users can distinguish: hues of the sets by Okabe and Ito and by Paul
// Tol, with varied lightness, so that neighbours also differ in grey. No meaning depends on colour
// alone: bars contain their names.

export type Rgb = readonly [number, number, number];

const DARK: Rgb[] = [
  [86, 163, 214],
  [230, 165, 60],
  [70, 178, 140],
  [214, 122, 164],
  [218, 208, 110],
  [122, 106, 200],
  [216, 112, 82],
  [120, 200, 205],
  [168, 184, 92],
  [186, 142, 196],
  [196, 160, 130],
  [100, 138, 170],
  [240, 190, 140],
  [88, 150, 108],
  [238, 160, 170],
  [160, 172, 190],
];
const LIGHT: Rgb[] = [
  [92, 158, 206],
  [236, 172, 74],
  [84, 178, 146],
  [216, 134, 172],
  [216, 200, 88],
  [132, 118, 206],
  [222, 124, 94],
  [116, 194, 202],
  [166, 184, 88],
  [188, 148, 200],
  [198, 164, 134],
  [110, 148, 182],
  [242, 196, 150],
  [104, 164, 122],
  [240, 168, 178],
  [168, 178, 194],
];

const IDLE_DARK: Rgb = [58, 66, 76];
const IDLE_LIGHT: Rgb = [216, 221, 227];

export interface Theme {
  name: "dark" | "light";
  canvas: Rgb;
  /** Background of a lane's rows. */
  lane: Rgb;
  text: string;
  faint: string;
  grid: string;
  gridFaint: string;
  accent: string;
  accentSoft: string;
  arrow: string;
  loss: string;
  damage: string;
  palette: Rgb[];
  idle: Rgb;
  /** Text on a bar. */
  barText: string;
  idleText: string;
}

export const DARK_THEME: Theme = {
  name: "dark",
  canvas: [19, 23, 28],
  lane: [25, 30, 36],
  text: "#dbe3ea",
  faint: "#8b98a5",
  grid: "rgba(255,255,255,.075)",
  gridFaint: "rgba(255,255,255,.03)",
  accent: "#4fd1d9",
  accentSoft: "rgba(79,209,217,.14)",
  arrow: "rgba(226,234,242,.62)",
  loss: "#ff7b72",
  damage: "#f0b35a",
  palette: DARK,
  idle: IDLE_DARK,
  barText: "#0c1116",
  idleText: "#9aa7b3",
};

export const LIGHT_THEME: Theme = {
  name: "light",
  canvas: [255, 255, 255],
  lane: [246, 248, 250],
  text: "#1c2731",
  faint: "#63707d",
  grid: "rgba(12,30,50,.10)",
  gridFaint: "rgba(12,30,50,.04)",
  accent: "#0b7a86",
  accentSoft: "rgba(11,122,134,.12)",
  arrow: "rgba(30,44,58,.55)",
  loss: "#c62828",
  damage: "#a86500",
  palette: LIGHT,
  idle: IDLE_LIGHT,
  barText: "#0c1116",
  idleText: "#63707d",
};

/** Names that mean that nothing runs: drawn in the colour of an empty area. */
export function isIdle(name: string): boolean {
  return /^(idle|swapper(\/\d+)?|<idle>|unknown|\(unknown\)|unknown application|ready)$/i.test(name.trim());
}

/** Colours of a list of names by index; the first sixteen colours all differ. */
export class Colours {
  protected readonly byIndex: Rgb[];

  constructor(
    readonly names: readonly string[],
    readonly theme: Theme,
    /** Colours that these names already have in another list. */
    known?: ReadonlyMap<string, Rgb>,
  ) {
    let next = 0;
    this.byIndex = names.map(
      (name) => known?.get(name) ?? (isIdle(name) ? theme.idle : shade(theme, next++)),
    );
  }

  rgb(index: number): Rgb {
    return this.byIndex[index] ?? shade(this.theme, index);
  }

  css(index: number): string {
    return css(this.rgb(index));
  }

  idle(index: number): boolean {
    return this.byIndex[index] === this.theme.idle;
  }
}

/**
 * What a thread does: it runs, it waits for a processor, it waits for something else. Sleep is most of the time of
 * most threads, so it is the faintest.
 */
const THREAD_STATES: Record<Theme["name"], ReadonlyMap<string, Rgb>> = {
  dark: new Map<string, Rgb>([
    ["running", [70, 178, 140]],
    ["runnable", [230, 165, 60]],
    ["preempted", [216, 112, 82]],
    ["sleeping", [66, 78, 92]],
    ["blocked", [122, 106, 200]],
    ["stopped", [160, 172, 190]],
  ]),
  light: new Map<string, Rgb>([
    ["running", [84, 178, 146]],
    ["runnable", [236, 172, 74]],
    ["preempted", [222, 124, 94]],
    ["sleeping", [203, 213, 224]],
    ["blocked", [132, 118, 206]],
    ["stopped", [168, 178, 194]],
  ]),
};

/** Name of a thread's state while a context switch is missing: drawn hatched, not as a bar. */
export const UNKNOWN_STATE = "unknown";

/** Colour of a thread state, in rows and in the legend. */
export function threadStateColour(name: string, theme: Theme): Rgb {
  return THREAD_STATES[theme.name].get(name) ?? theme.idle;
}

const ofThreadStates = new WeakMap<Colours, Colours>();

/** Colours of a list of names used as thread states. */
export function threadStateColours(names: Colours): Colours {
  let colours = ofThreadStates.get(names);
  if (!colours) {
    colours = new Colours(names.names, names.theme, THREAD_STATES[names.theme.name]);
    ofThreadStates.set(names, colours);
  }
  return colours;
}

/** Colours of functions, by name, because their numbers depend on the order of discovery. */
class FunctionColours extends Colours {
  override rgb(index: number): Rgb {
    return (this.byIndex[index] ??= functionColour(this.names[index] ?? "", this.theme));
  }

  override css(index: number): string {
    return css(this.rgb(index));
  }

  override idle(): boolean {
    return false;
  }
}

const ofFunctions = new WeakMap<ReadonlyMap<number, string>, FunctionColours>();
const NONE: ReadonlyMap<number, string> = new Map();

export function functionColours(functions: ReadonlyMap<number, string> | undefined, theme: Theme): Colours {
  const of = functions ?? NONE;
  let colours = ofFunctions.get(of);
  if (!colours || colours.theme !== theme) {
    colours = new FunctionColours([], theme);
    const names = colours.names as string[];
    for (const [id, name] of of) names[id] = name;
    ofFunctions.set(of, colours);
  }
  return colours;
}

/** The colour of a function, by its name. */
export function functionColour(name: string, theme: Theme): Rgb {
  return shade(theme, hash(name));
}

/** FNV-1a: a name has the same colour everywhere. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 16777619) >>> 0;
  return value;
}

/** Beyond the palette, hues repeat, slightly darker or lighter in each cycle. */
function shade(theme: Theme, index: number): Rgb {
  const base = theme.palette[index % theme.palette.length];
  const round = Math.floor(index / theme.palette.length) % 4;
  const by = [1, 0.82, 1.12, 0.7][round];
  return [by * base[0], by * base[1], by * base[2]].map((part) =>
    Math.min(255, Math.round(part)),
  ) as unknown as Rgb;
}

export function css(rgb: Rgb, alpha = 1): string {
  return alpha === 1 ? `rgb(${rgb[0]},${rgb[1]},${rgb[2]})` : `rgba(${rgb[0]},${rgb[1]},${rgb[2]},${alpha})`;
}

export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  return [
    Math.round(from[0] + (to[0] - from[0]) * share),
    Math.round(from[1] + (to[1] - from[1]) * share),
    Math.round(from[2] + (to[2] - from[2]) * share),
  ];
}
