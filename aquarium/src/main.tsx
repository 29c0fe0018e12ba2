// SPDX-License-Identifier: Apache-2.0 OR MIT
import { effect } from "@preact/signals";
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./app.css";
import { key } from "./state/actions.ts";
import { keepActivity } from "./state/activity.ts";
import { startBrush } from "./state/brush.ts";
import { startFind } from "./state/find.ts";
import { compareIfApart } from "./state/compare.ts";
import { startHalves } from "./state/halves.ts";
import { startNotes } from "./state/notes.ts";
import { start } from "./state/server.ts";
import * as store from "./state/store.ts";
import { restore, keepUrl } from "./state/url.ts";
import { App } from "./views/App.tsx";

effect(() => {
  document.documentElement.dataset.theme = store.themeName.value;
});
effect(() => {
  const paths = store.session.value?.recordings.map((one) => one.path.split("/").pop()).join(", ");
  document.title = paths ? `${paths} – Aquarium` : "Aquarium";
});
window.addEventListener("keydown", (event) => {
  if (key(event)) event.preventDefault();
});

restore();
start();
startNotes();
startBrush();
startFind();
startHalves();
compareIfApart();
keepUrl();
keepActivity();
render(<App />, document.getElementById("app")!);
