// SPDX-License-Identifier: Apache-2.0 OR MIT
import { thousands } from "../../logic/units.ts";
import * as scripts from "../../state/scripts.ts";
import * as store from "../../state/store.ts";
import { download } from "../picture.ts";
import { EditorBox } from "./EditorBox.tsx";

/** Editor for filters and activities in JavaScript, with their storage and execution. */
export function Scripts() {
  const { drafts, current } = scripts;
  const draft = drafts.value[current.value] ?? drafts.value[0];
  return (
    <div class="scripts">
      <div class="script-list" role="listbox" aria-label="Scripts">
        {drafts.value.map((one, index) => (
          <button
            key={index}
            role="option"
            aria-selected={index === current.value}
            onClick={() => choose(index)}
          >
            {one.name}
            <Badge name={one.name} />
          </button>
        ))}
        <div class="script-acts">
          <button class="text" onClick={() => scripts.add({ name: freeName(), text: "" })}>
            new
          </button>
          <label class="text">
            load
            <input type="file" accept=".js,text/javascript" hidden onChange={load} />
          </label>
          <button class="text" onClick={() => download(new Blob([draft.text]), `${draft.name}.js`)}>
            save
          </button>
          <button class="text" onClick={scripts.remove}>
            delete
          </button>
        </div>
      </div>
      <div class="with-bar">
        <div class="bar">
          <input
            aria-label="Name of the script"
            value={draft.name}
            onChange={(event) => scripts.edit({ name: event.currentTarget.value || "script" })}
          />
          <button class="primary" disabled={scripts.running.value} onClick={() => void scripts.run()}>
            {scripts.running.value ? "running…" : "run"}
          </button>
          <kbd>Ctrl+Enter</kbd>
          <Result name={draft.name} />
        </div>
        <EditorBox
          of={`${current.value}/${drafts.value.length}`}
          language="javascript"
          label={`Script ${draft.name}`}
          text={draft.text}
          error={scripts.error.value}
          changed={(text) => scripts.edit({ text })}
          run={() => void scripts.run()}
        />
      </div>
    </div>
  );
}

function choose(index: number): void {
  scripts.current.value = index;
  scripts.error.value = null;
  scripts.said.value = null;
}

function Badge({ name }: { name: string }) {
  const ran = store.scripts.value.find((one) => one.name === name);
  if (!ran) return null;
  return (
    <small class={`badge ${ran.how}`} title={ran.why}>
      {ran.how}
    </small>
  );
}

function Result({ name }: { name: string }) {
  if (scripts.said.value !== null)
    return (
      <span class="broken" role="alert">
        {scripts.said.value}
      </span>
    );
  const ran = store.scripts.value.find((one) => one.name === name);
  if (!ran) return null;
  if (ran.stopped !== null)
    return (
      <span class="broken" role="alert">
        {thousands(ran.count)} activities found until it was stopped: {ran.stopped}
      </span>
    );
  const what = ran.finds ? "activities found" : "events kept";
  return (
    <span role="status">
      {thousands(ran.count)} {what}, {ran.how}
      {ran.why ? `: ${ran.why}` : ""}
    </span>
  );
}

function freeName(): string {
  const names = new Set(scripts.drafts.value.map((one) => one.name));
  for (let number = 1; ; number++) if (!names.has(`script ${number}`)) return `script ${number}`;
}

function load(event: Event): void {
  const input = event.currentTarget as HTMLInputElement;
  const file = input.files?.[0];
  if (file) void file.text().then((text) => scripts.add({ name: file.name.replace(/\.js$/, ""), text }));
  input.value = "";
}
