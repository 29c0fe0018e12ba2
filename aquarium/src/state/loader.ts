// SPDX-License-Identifier: Apache-2.0 OR MIT
// One kind of request that a moving view makes again and again. The newest wish wins, but a wish in flight is given
// a moment: were every frame's wish to replace the one before, a steady movement would never see an answer. The
// moment doubles each time that it was too short, so that a slow server answers, too.

import { Superseded } from "../protocol/connection.ts";

/** After this long, whoever waits for an older answer is better served by a newer one. */
const PATIENCE_MS = 150;
/** Times that it doubles at most: to some 5 s. */
const DOUBLED_MAX = 5;

export class Loader<Wish, Answer> {
  private pending: Wish | null = null;
  private sentAt = 0;
  private generation = 0;
  private inFlight = false;
  /** Wishes since the last answer that were replaced while they were in flight. */
  private replaced = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly send: (wish: Wish) => Promise<Answer>,
    private readonly got: (answer: Answer, wish: Wish) => void,
    private readonly failed: (error: Error) => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  want(wish: Wish): void {
    this.pending = wish;
    const waited = this.now() - this.sentAt;
    const patience = PATIENCE_MS * 2 ** Math.min(this.replaced, DOUBLED_MAX);
    if (!this.inFlight || waited >= patience) this.go();
    else if (this.timer === undefined) this.timer = setTimeout(() => this.go(), patience - waited);
  }

  /** Whether an answer is waited for. */
  get isBusy(): boolean {
    return this.inFlight;
  }

  /** What was asked for is of no use any more. */
  forget(): void {
    this.pending = null;
    this.generation++;
    this.inFlight = false;
  }

  private go(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const wish = this.pending;
    if (wish === null) return;
    this.pending = null;
    const generation = ++this.generation;
    if (this.inFlight) this.replaced++;
    this.inFlight = true;
    this.sentAt = this.now();
    this.send(wish).then(
      (answer) => this.settle(generation, () => this.got(answer, wish)),
      (error: Error) => this.settle(generation, () => error instanceof Superseded || this.failed(error)),
    );
  }

  private settle(generation: number, act: () => void): void {
    if (generation !== this.generation) return;
    this.inFlight = false;
    this.replaced = 0;
    act();
    if (this.pending !== null) this.go();
  }
}
