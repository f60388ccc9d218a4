// Reads the output of one run: all that is kept, then what comes, from the cursor that each answer
// gives. A stream tells when there is more, so nothing is asked in vain.
import { get, isTransient, Problem, taskPath } from "./api";
import { Lines } from "./lines";
import { readStream } from "./stream";
import type { Output, Task } from "./types";

const ALL = 4 * 1024 * 1024;
const FIRST_BREATH = 300;
const LONGEST_BREATH = 5000;
/** Events of the run come by the one stream of the page: here only what comes from now on counts. */
const AFTER_ALL = "999999999999999999";

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
  private before: Promise<void> = Promise.resolve();

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
    let breath = FIRST_BREATH;
    while (!this.abort.signal.aborted) {
      try {
        await this.read();
        if (this.complete) return;
        await this.follow(() => (breath = FIRST_BREATH));
        await this.read();
        if (this.complete) return;
      } catch (error) {
        if (!(error instanceof Problem)) {
          if (this.abort.signal.aborted) return;
        } else {
          this.error = error;
          if (!isTransient(error)) return;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, breath));
      breath = Math.min(breath * 1.6, LONGEST_BREATH);
      await visible();
    }
  }

  /** What is there after the cursor. One after the other: two at once would read the same. */
  private read(): Promise<void> {
    const next = this.before.then(() => this.readNext());
    this.before = next.catch(() => undefined);
    return next;
  }

  private async readNext(): Promise<void> {
    const part = await get<Output>(
      `${taskPath(this.task.id)}/output`,
      { since: this.since, max: ALL, raw: true },
      this.abort.signal,
    );
    this.error = null;
    this.take(part);
  }

  /** Reads whenever the stream says that there is more, until the stream ends or nobody looks. */
  private async follow(opened: () => void): Promise<void> {
    const stream = new AbortController();
    const close = (): void => stream.abort();
    const look = (): void => {
      if (document.visibilityState === "hidden") close();
    };
    this.abort.signal.addEventListener("abort", close);
    document.addEventListener("visibilitychange", look);
    let news = false;
    let busy = false;
    const catchUp = async (): Promise<void> => {
      if (busy) return;
      busy = true;
      try {
        while (news && !this.complete) {
          news = false;
          await this.read();
        }
      } catch {
        close();
      } finally {
        busy = false;
      }
    };
    try {
      await readStream(`${taskPath(this.task.id)}/events?output=true`, {
        lastId: AFTER_ALL,
        signal: stream.signal,
        onOpen: opened,
        onMessage: ({ event, data }) => {
          if (event !== "output") return;
          news = (JSON.parse(data) as { cursor: string }).cursor !== this.since;
          void catchUp();
        },
      });
    } catch (error) {
      if (!stream.signal.aborted) throw error;
    } finally {
      this.abort.signal.removeEventListener("abort", close);
      document.removeEventListener("visibilitychange", look);
    }
  }

  private take(part: Output): void {
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
