// Something that is read from the server and kept up to date: read again when a happening says so,
// not more often than its pace, and when the connection is back. What was read stays in view while
// it cannot be read.
import { Problem } from "./api";
import { live } from "./live.svelte";
import type { Happening } from "./types";

export class Resource<T> {
  data = $state.raw<T | null>(null);
  error = $state.raw<Problem | null>(null);

  private reading = false;
  private again = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;
  private turn = 0;

  constructor(
    private fetcher: () => Promise<T>,
    private readonly pace = 1000,
  ) {}

  /** Another question: what is on its way for the old one is not shown. */
  ask(fetcher: () => Promise<T>): void {
    this.fetcher = fetcher;
    this.turn += 1;
    this.reading = false;
    void this.read();
  }

  async read(): Promise<void> {
    if (this.closed) return;
    if (this.reading) {
      this.again = true;
      return;
    }
    this.reading = true;
    const turn = this.turn;
    try {
      const data = await this.fetcher();
      if (turn === this.turn) {
        this.data = data;
        this.error = null;
      }
    } catch (error) {
      if (turn === this.turn && error instanceof Problem) this.error = error;
    } finally {
      if (turn === this.turn) {
        this.reading = false;
        if (this.again) {
          this.again = false;
          this.soon();
        }
      }
    }
  }

  /** Soon, and once for all who say so meanwhile. */
  soon(): void {
    if (this.timer !== undefined || this.closed) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.read();
    }, this.pace);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }
}

/** For a component: reads now, again on each happening that matters, and after each return. */
export function keep<T>(
  resource: Resource<T>,
  matters: (happening: Happening) => boolean = () => true,
): void {
  $effect(() => {
    void live.returns;
    void resource.read();
  });
  $effect(() => {
    const off = live.listen((happening) => {
      if (matters(happening)) resource.soon();
    });
    return () => {
      off();
      resource.close();
    };
  });
}
