// SPDX-License-Identifier: Apache-2.0 OR MIT
// The editor of scripts and statements: a separate chunk that is loaded when it is first used.

import { javascript } from "@codemirror/lang-javascript";
import { sql } from "@codemirror/lang-sql";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { Prec } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { EditorView, basicSetup } from "codemirror";

/** Colours of the page, dark or light. */
const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.bool, tags.null], color: "var(--code-word)" },
  { tag: [tags.string, tags.regexp], color: "var(--code-text)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: [tags.function(tags.variableName), tags.propertyName, tags.typeName], color: "var(--code-name)" },
  { tag: tags.comment, color: "var(--faint)" },
]);

export interface Editor {
  text(): string;
  set(text: string): void;
  /** Marks a position, by line and column from 1, and scrolls to it; null removes the mark. */
  mark(error: { line: number; column: number; text: string } | null): void;
  focus(): void;
  destroy(): void;
}

export interface EditorOptions {
  text: string;
  language: "javascript" | "sql";
  label: string;
  changed: (text: string) => void;
  run: () => void;
  /** For statements: tables with their columns, for completion. */
  tables?: Record<string, string[]>;
}

export function createEditor(parent: HTMLElement, options: EditorOptions): Editor {
  const view = new EditorView({
    parent,
    doc: options.text,
    extensions: [
      Prec.highest(keymap.of([{ key: "Ctrl-Enter", mac: "Cmd-Enter", run: () => (options.run(), true) }])),
      basicSetup,
      syntaxHighlighting(COLOURS),
      options.language === "sql"
        ? sql({ schema: options.tables ?? {}, upperCaseKeywords: true })
        : javascript(),
      EditorView.contentAttributes.of({ "aria-label": options.label }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) options.changed(update.state.doc.toString());
      }),
    ],
  });
  return {
    text: () => view.state.doc.toString(),
    set: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    mark: (error) => {
      if (error === null) {
        view.dispatch(setDiagnostics(view.state, []));
        return;
      }
      const line = view.state.doc.line(Math.min(Math.max(error.line, 1), view.state.doc.lines));
      const from = Math.min(line.from + Math.max(error.column - 1, 0), line.to);
      const to = Math.max(from, line.to);
      const diagnostic = { from, to, severity: "error" as const, message: error.text };
      view.dispatch(setDiagnostics(view.state, [diagnostic]));
      view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
