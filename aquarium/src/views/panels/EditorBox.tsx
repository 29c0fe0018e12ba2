// SPDX-License-Identifier: Apache-2.0 OR MIT
import { useEffect, useRef } from "preact/hooks";
import type { Editor, EditorOptions } from "./editor.ts";

interface Props extends EditorOptions {
  /** Key of the document; a different key means another document. */
  of: string;
  error: { line: number; column: number; text: string } | null;
}

export function EditorBox(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const newest = useRef(props);
  newest.current = props;
  useEffect(() => {
    let gone = false;
    void import("./editor.ts").then(({ createEditor }) => {
      if (gone) return;
      editor.current = createEditor(box.current!, {
        ...newest.current,
        changed: (text) => newest.current.changed(text),
        run: () => newest.current.run(),
      });
    });
    return () => {
      gone = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, [props.of, props.language, props.tables]);
  useEffect(() => editor.current?.mark(props.error), [props.error]);
  return <div class="editor" ref={box} />;
}
