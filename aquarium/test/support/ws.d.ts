declare module "ws" {
  import type { Server } from "node:http";
  export class WebSocket {
    on(event: "message", act: (data: unknown) => void): void;
    on(event: "close", act: () => void): void;
    send(data: string | ArrayBuffer): void;
    terminate(): void;
  }
  export class WebSocketServer {
    constructor(options: { server: Server; path: string });
    on(event: "connection", act: (socket: WebSocket) => void): void;
  }
}
