// SPDX-License-Identifier: Apache-2.0 OR MIT
// A kind of request that a moving view repeats. The newest request wins, but a request in flight
// gets some time to complete: if each frame replaced the previous request, a steady movement would
// never get a response. The time doubles whenever it was too short, so that slow servers are
// supported as well.

import { Superseded } from "../protocol/connection.ts";

/** Time after which a request in flight is replaced by a newer one. */
const PATIENCE_MS = 150;
/** Maximum number of doublings, which gives some 5 s. */
const DOUBLED_MAX = 5;

export class Loader<Wish, Answer> {
  private pending: Wish | null = null;
  private sentAt = 0;
  private generation = 0;
  private inFlight = false;
  /** Number of requests since the last response that were replaced in flight. */
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

  /** Whether a request is in flight. */
  get isBusy(): boolean {
    return this.inFlight;
  }

  /** Drops the request in flight and its response. */
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
