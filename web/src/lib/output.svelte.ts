// Reads the output of one run: all that is kept, then what comes, from the cursor that each answer
// gives. The server answers when there is something, so nothing is asked in vain.
import { get, isTransient, Problem, taskPath } from "./api";
import { Lines } from "./lines";
import type { Output, Task } from "./types";

const ALL = 4 * 1024 * 1024;
const WAIT_S = 20;
const BREATH = 100;
const LONGEST_BREATH = 1000;

export class OutputReader {
  lines: Lines;
  /** Changes with every change of the lines. */
  version = $state(0);
  apart = $state(false);
  loaded = $state(false);
  complete = $state(false);
  dropped = $state(0);
  error = $state.raw<Problem | null>(null);

  private since: string | null = null;
  private abort = new AbortController();
  private running = false;

  constructor(private readonly task: Pick<Task, "id" | "kind">) {
    this.lines = this.fresh();
  }

  /** Begins, or goes on after an end that was none: a further attempt writes a further output. */
  start(): void {
    if (this.running || this.abort.signal.aborted) return;
    this.running = true;
    void this.loop().finally(() => (this.running = false));
  }

  close(): void {
    this.abort.abort();
  }

  private fresh(): Lines {
    return new Lines(this.task.kind === "tool" || this.task.kind === "agent");
  }

  private async loop(): Promise<void> {
    let breath = BREATH;
    while (!this.abort.signal.aborted) {
      const asked = performance.now();
      try {
        const part = await get<Output>(
          `${taskPath(this.task.id)}/output`,
          { since: this.since, max: ALL, raw: true, wait: this.since ? WAIT_S : null },
          this.abort.signal,
        );
        const grew = this.take(part);
        this.error = null;
        if (part.complete) return;
        // An answer without news that came at once: this server does not wait, so we do.
        breath = grew || performance.now() - asked > 1000 ? BREATH : Math.min(breath * 1.5, LONGEST_BREATH);
      } catch (error) {
        if (!(error instanceof Problem)) return;
        this.error = error;
        if (!isTransient(error)) return;
        breath = LONGEST_BREATH;
      }
      await new Promise((resolve) => setTimeout(resolve, breath));
      await visible();
    }
  }

  private take(part: Output): boolean {
    const first = this.since === null;
    if (!first && attempt(part.cursor) !== attempt(this.since)) {
      this.lines = this.fresh();
      this.lines.note(`… attempt ${attempt(part.cursor)} …`);
    }
    this.since = part.cursor;
    this.apart = part.stderr !== null;
    this.dropped += part.dropped;
    const err = part.stderr ?? "";
    this.lines.add(part.text, "out");
    if (first && err && part.text) this.lines.note("… standard error was kept apart: its lines follow …");
    this.lines.add(err, "err");
    const grew = part.text !== "" || err !== "";
    if (grew || !this.loaded || part.complete) this.version += 1;
    this.loaded = true;
    this.complete = part.complete;
    return grew;
  }
}

const attempt = (cursor: string | null): string => cursor?.split(".", 1)[0] ?? "";

function visible(): Promise<void> {
  if (document.visibilityState === "visible") return Promise.resolve();
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.visibilityState !== "visible") return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
  });
}
