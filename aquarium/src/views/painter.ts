// SPDX-License-Identifier: Apache-2.0 OR MIT
// Paints canvases at most once per frame, however many signals changed, and in the same frame as
// the rest of the page. `useSignalEffect` is not suitable: it runs in the next frame, so that
// canvases would be painted one frame later, and each change would cost two frames.

import { effect } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Paints the scene that `gather` reads from signals, in the next frame after any of them changed. */
export function usePainter<Scene>(gather: () => Scene, paint: (newest: Scene) => void): void {
  useEffect(() => {
    let frame: number | null = null;
    let newest: Scene;
    const stop = effect(() => {
      newest = gather();
      frame ??= requestAnimationFrame(() => {
        frame = null;
        paint(newest);
      });
    });
    return () => {
      stop();
      if (frame !== null) cancelAnimationFrame(frame);
    };
  }, []);
}
