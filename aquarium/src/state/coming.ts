// SPDX-License-Identifier: Apache-2.0 OR MIT
// Growth that is shown together with its picture. Shown as soon as it is told, each word of it would be two frames, the
// old picture moved and then the new one, and frames are most of what a page costs that follows a recording.

/** After this long growth is shown without its picture: a slow server does not hold up the rest. */
const PATIENCE_MS = 150;

export class Coming<Word, Picture> {
  private asked: Word | null = null;
  /** What came since, as one word. */
  private newer: Word | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    /** The picture of the session as it is after a word; null where none is to be had. */
    private readonly ask: (word: Word) => Promise<Picture | null>,
    private readonly show: (word: Word, picture: Picture | null) => void,
    private readonly join: (before: Word, after: Word) => Word,
  ) {}

  come(word: Word): void {
    if (this.asked === null) this.go(word);
    else this.newer = this.newer === null ? word : this.join(this.newer, word);
  }

  /** Shows at once what came, without a picture: something else is about to change what it is of. */
  settle(): void {
    const words = this.waiting();
    this.forget();
    for (const word of words) this.show(word, null);
  }

  /** What is not shown yet. */
  waiting(): Word[] {
    return [this.asked, this.newer].filter((word) => word !== null);
  }

  /** What came is of a session that is not shown any more. */
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
