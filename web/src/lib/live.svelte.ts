// The one stream of everything that happens. It comes back by itself, from where it was; a page
// that nobody looks at gives up its connection, because a browser has only six for a server.
import { isTransient } from "./api";
import { readStream } from "./stream";
import type { Happening } from "./types";

const FIRST_WAIT = 300;
const LONGEST_WAIT = 5000;
const HIDDEN_FOR = 20_000;

type Listener = (happening: Happening) => void;

class Live {
  /** "lost" is shown to the person; "connecting" is the first time only. */
  state = $state<"off" | "connecting" | "live" | "lost">("off");
  /** Counts returns after a loss: what was read before may have missed something. */
  returns = $state(0);

  private listeners = new Set<Listener>();
  private lastId: string | null = null;
  private abort: AbortController | null = null;
  private wanted = false;
  private hide: ReturnType<typeof setTimeout> | undefined;
  private wake: (() => void) | null = null;

  constructor() {
    document.addEventListener("visibilitychange", () => this.seen());
    window.addEventListener("online", () => this.wake?.());
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  start(): void {
    if (this.wanted) return;
    this.wanted = true;
    this.state = "connecting";
    void this.run();
  }

  stop(): void {
    this.wanted = false;
    this.abort?.abort();
    this.wake?.();
    this.state = "off";
  }

  private seen(): void {
    clearTimeout(this.hide);
    if (document.visibilityState === "hidden") {
      this.hide = setTimeout(() => this.abort?.abort(), HIDDEN_FOR);
    } else {
      this.wake?.();
    }
  }

  private async run(): Promise<void> {
    let wait = FIRST_WAIT;
    let lost = false;
    while (this.wanted) {
      this.abort = new AbortController();
      try {
        await readStream("/v1/events", {
          lastId: this.lastId,
          signal: this.abort.signal,
          onOpen: () => {
            this.state = "live";
            wait = FIRST_WAIT;
            if (lost) this.returns += 1;
            lost = false;
          },
          onMessage: ({ id, event, data }) => this.tell(id, event, data),
        });
      } catch (error) {
        if (!isTransient(error) && !(error instanceof DOMException) && !(error instanceof TypeError)) {
          this.lastId = null; // the server does not know this place any more: begin anew
        }
      }
      if (!this.wanted) return;
      lost = true;
      if (document.visibilityState === "visible") this.state = "lost";
      await this.pause(document.visibilityState === "hidden" ? 86_400_000 : wait);
      wait = Math.min(wait * 1.6, LONGEST_WAIT);
    }
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private tell(id: string | null, event: string, data: string): void {
    if (id) this.lastId = id;
    if (event === "stream") {
      if (data.includes('"reset"')) this.returns += 1;
      return;
    }
    let happening: Happening;
    try {
      happening = { kind: event, ...JSON.parse(data), seq: Number(id) };
    } catch {
      return;
    }
    if (!happening.task) return;
    for (const listener of this.listeners) listener(happening);
  }
}

export const live = new Live();
