// SPDX-License-Identifier: Apache-2.0 OR MIT
// Applies a growth update together with its picture. Without that, each update would cost two
// frames: the old picture moved, and then the new one. Frames are most of the cost of a page that
// follows a recording.

/** Timeout after which growth is shown without its picture, so that a slow server does not delay it. */
const PATIENCE_MS = 150;

export class Coming<Word, Picture> {
  private asked: Word | null = null;
  /** Later updates, merged. */
  private newer: Word | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    /** Requests the picture of the session after an update; null if none is available. */
    private readonly ask: (word: Word) => Promise<Picture | null>,
    private readonly show: (word: Word, picture: Picture | null) => void,
    private readonly join: (before: Word, after: Word) => Word,
  ) {}

  come(word: Word): void {
    if (this.asked === null) this.go(word);
    else this.newer = this.newer === null ? word : this.join(this.newer, word);
  }

  /** Applies pending updates at once without a picture, because the session is about to change otherwise. */
  settle(): void {
    const words = this.waiting();
    this.forget();
    for (const word of words) this.show(word, null);
  }

  /** Updates that are not applied yet. */
  waiting(): Word[] {
    return [this.asked, this.newer].filter((word) => word !== null);
  }

  /** Drops pending updates, which are of a session that is not shown any more. */
  forget(): void {
    clearTimeout(this.timer);
    this.asked = null;
    this.newer = null;
  }

  private go(word: Word): void {
    this.asked = word;
    this.timer = setTimeout(() => this.settle(), PATIENCE_MS);
    const answered = (picture: Picture | null) => {
      if (this.asked !== word) return;
      clearTimeout(this.timer);
      const next = this.newer;
      this.asked = null;
      this.newer = null;
      this.show(word, picture);
      if (next !== null) this.go(next);
    };
    this.ask(word).then(answered, () => answered(null));
  }
}
