// SPDX-License-Identifier: Apache-2.0 OR MIT
// The one WebSocket of the page: numbered requests, newer ones replacing older, reconnecting.

import { BadFrame, decodeFrame, type Frame } from "./frame.ts";
import type { Failure } from "./types.ts";

export type Status = "connecting" | "open" | "lost";

/** An error that the server answered, or what stands in for an answer that never came. */
export class RequestError extends Error {
  constructor(readonly failure: Failure) {
    super([failure.what, failure.where, failure.do].filter(Boolean).join(": "));
  }
}

/** A request that a newer one replaced, or that the connection lost: nobody need be told. */
export class Superseded extends Error {}

interface Waiting {
  method: string;
  /** Pictures of two recordings are two: one replaces none of the other's. */
  side: unknown;
  resolve: (answer: unknown) => void;
  reject: (error: Error) => void;
}

/** Methods of which the server answers only the newest (spec/view.md, section 3). */
const NEWEST_ONLY = new Set(["view", "arrows", "levels", "overview", "brushed", "section", "search"]);

const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 5000;

export interface Handlers {
  status(status: Status, attempt: number): void;
  pushed(message: { event: string; [key: string]: unknown }): void;
  /** Bytes that follow no rule of the protocol. */
  nonsense(text: string): void;
}

export class Connection {
  private socket: WebSocket | null = null;
  private nextId = 1;
  private waiting = new Map<number, Waiting>();
  private attempt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  constructor(
    private readonly url: string,
    private readonly handlers: Handlers,
  ) {}

  connect(): void {
    this.handlers.status(this.attempt === 0 ? "connecting" : "lost", this.attempt);
    const socket = new WebSocket(this.url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => {
      this.attempt = 0;
      this.handlers.status("open", 0);
    };
    socket.onmessage = (message) => this.receive(message.data as string | ArrayBuffer);
    socket.onclose = () => this.lost();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  /** The answer: JSON's `result`, or the whole frame of a binary answer. */
  request<T = unknown>(method: string, params: object = {}): Promise<T> {
    const id = this.nextId++;
    if (this.socket?.readyState !== WebSocket.OPEN) {
      return Promise.reject(new Superseded(`${method}: not connected`));
    }
    const side = (params as { side?: unknown }).side;
    if (NEWEST_ONLY.has(method)) this.supersede(method, side);
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { method, side, resolve: resolve as (answer: unknown) => void, reject });
      this.socket?.send(JSON.stringify({ id, method, params }));
    });
  }

  private supersede(method: string, side: unknown): void {
    for (const [id, waiting] of this.waiting) {
      if (waiting.method !== method || waiting.side !== side) continue;
      this.waiting.delete(id);
      waiting.reject(new Superseded(method));
    }
  }

  private receive(data: string | ArrayBuffer): void {
    try {
      if (typeof data === "string") this.text(data);
      else this.binary(decodeFrame(data));
    } catch (error) {
      if (error instanceof BadFrame || error instanceof SyntaxError) this.handlers.nonsense(error.message);
      else throw error;
    }
  }

  private text(data: string): void {
    const message = JSON.parse(data);
    if (typeof message?.event === "string") this.handlers.pushed(message);
    else if (message?.error) this.take(message.id)?.reject(new RequestError(message.error));
    else this.take(message?.id)?.resolve(message?.result);
  }

  private binary(frame: Frame): void {
    this.take(frame.id)?.resolve(frame);
  }

  private take(id: number): Waiting | undefined {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    return waiting;
  }

  private lost(): void {
    for (const waiting of this.waiting.values()) waiting.reject(new Superseded("connection lost"));
    this.waiting.clear();
    if (this.closed) return;
    this.attempt += 1;
    this.handlers.status("lost", this.attempt);
    const wait = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (this.attempt - 1));
    this.timer = setTimeout(() => this.connect(), wait);
  }
}
