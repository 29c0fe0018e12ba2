// SPDX-License-Identifier: Apache-2.0 OR MIT
import { useEffect, useRef, useState } from "preact/hooks";
import { search } from "../logic/fuzzy.ts";
import { available, onlyNode, showLane } from "../state/actions.ts";
import * as store from "../state/store.ts";

interface Entry {
  name: string;
  keys: string;
  run: () => void;
}

/** Finds commands, lanes, tabs and filters by some of their letters. */
export function Palette() {
  const [letters, setLetters] = useState("");
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const before = useRef(document.activeElement as HTMLElement | null);
  useEffect(() => {
    input.current?.focus();
    return () => before.current?.focus();
  }, []);
  const found = search(entries(), (entry) => entry.name, letters, 14);
  const close = () => (store.paletteOpen.value = false);
  const run = (entry: Entry | undefined) => {
    close();
    entry?.run();
  };
  return (
    <div class="veil" onClick={close}>
      <div
        class="palette"
        role="dialog"
        aria-label="Command palette"
        aria-modal="true"
        onClick={(event) => event.stopPropagation()}
      >
        <input
          ref={input}
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-label="Command"
          value={letters}
          placeholder="Command, lane, event or process"
          aria-activedescendant={`palette-${at}`}
          onInput={(event) => {
            setLetters(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={(event) => {
            if (event.key === "Escape") close();
            else if (event.key === "Enter") run(found[at]);
            else if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
            else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
            else return;
            event.preventDefault();
            event.stopPropagation();
          }}
        />
        <ul id="palette-list" role="listbox">
          {found.map((entry, index) => (
            <li
              key={entry.name}
              id={`palette-${index}`}
              role="option"
              aria-selected={index === at}
              onClick={() => run(entry)}
            >
              <span>{entry.name}</span>
              {entry.keys && <kbd>{entry.keys}</kbd>}
            </li>
          ))}
          {found.length === 0 && <li class="none">nothing has these letters</li>}
        </ul>
      </div>
    </div>
  );
}

function entries(): Entry[] {
  const lanes = store.session.value?.lanes ?? [];
  const nodes = store.filterTree.value.flatMap((group) => [
    group,
    ...group.children,
    ...group.children.flatMap((one) => one.children),
  ]);
  return [
    ...available().map((one) => ({ name: one.name, keys: one.keys, run: one.run })),
    ...lanes.map((lane) => ({
      name: `Go to ${lane.name} (${lane.kind})`,
      keys: "",
      run: () => showLane(lane.id),
    })),
    ...nodes.map((node) => ({ name: `Only ${node.label}`, keys: "", run: () => onlyNode(node) })),
  ];
}
