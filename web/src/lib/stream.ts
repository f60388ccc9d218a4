// Server-sent events over fetch. EventSource cannot say why it failed, and forgets its place when
// it is closed; this one goes on from an id that the caller keeps.
import { request } from "./api";

export interface Message {
  id: string | null;
  event: string;
  data: string;
}

/** Reads until the stream ends or is aborted; throws a Problem where it cannot be opened. */
export async function readStream(
  path: string,
  options: {
    lastId: string | null;
    signal: AbortSignal;
    onOpen: () => void;
    onMessage: (message: Message) => void;
  },
): Promise<void> {
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (options.lastId) headers["last-event-id"] = options.lastId;
  const response = await request("GET", path, { signal: options.signal, headers });
  if (!response.body) return;
  options.onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new Parser(options.onMessage);
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    parser.take(value);
  }
}

class Parser {
  private rest = "";
  private id: string | null = null;
  private event = "";
  private data: string[] = [];

  constructor(private readonly tell: (message: Message) => void) {}

  take(text: string): void {
    const lines = (this.rest + text).split(/\r\n|\n|\r/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line);
  }

  private line(line: string): void {
    if (line === "") {
      if (this.data.length) {
        this.tell({ id: this.id, event: this.event || "message", data: this.data.join("\n") });
      }
      this.event = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment, which keeps the connection alive
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") this.id = value;
    else if (name === "event") this.event = value;
    else if (name === "data") this.data.push(value);
  }
}
