// SPDX-License-Identifier: Apache-2.0 OR MIT
// What paints canvases: once a frame at most, however many signals changed, and in the frame in which the rest of the
// page shows the same. `useSignalEffect` would not do: it runs in the next frame, and whatever asks for a frame there
// is painted one later, so that each change would be two frames, and seen late.

import { effect } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Paints what is gathered from signals, in the next frame after any of them changed. */
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
