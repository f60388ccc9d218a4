// The lines of a run's output, as they come. Only strings are kept: a style is worked out for what is
// in view, from the style that its line begins with, of which few are not plain.
import { lastDrawn, PLAIN, styleAfter, type Style, textOf } from "./ansi";

export type Stream = "out" | "err" | "note";

/** Browsers place nothing beyond some 17 million pixels; this many lines stay far below. */
export const LINES_MAX = 500_000;

const NOTE = /^… (?:.* of output (?:dropped|left out) here|the job emptied its own log here).* …$/;
const MARKED = /^\[(stdout|stderr)\] /;

export class Lines {
  private texts: string[] = [];
  private streams: Stream[] = [];
  private widths: number[] = [];
  private starts = new Map<number, Style>();
  private style: Record<"out" | "err", Style> = { out: PLAIN, err: PLAIN };
  private open: Stream | null = null;
  /** Lines that were let go of at the beginning. */
  forgotten = 0;

  /** With `marked`, each line says its stream itself, as the logs of tools do. */
  constructor(private readonly marked: boolean) {}

  get count(): number {
    return this.texts.length;
  }

  stream(at: number): Stream {
    return this.streams[at] ?? "out";
  }

  raw(at: number): string {
    return lastDrawn(this.texts[at] ?? "");
  }

  /** Characters that a person sees of it. */
  width(at: number): number {
    return this.widths[at] ?? 0;
  }

  start(at: number): Style {
    return this.starts.get(at) ?? PLAIN;
  }

  text(at: number): string {
    return textOf(this.raw(at));
  }

  /** How many new lines there are. A line that is not whole yet is one. */
  add(text: string, stream: "out" | "err"): number {
    if (!text) return 0;
    const before = this.count;
    const parts = text.replaceAll("\r\n", "\n").split("\n");
    const last = parts.pop() ?? "";
    for (const part of parts) {
      this.put(part, stream);
      this.open = null;
    }
    if (last) {
      this.put(last, stream);
      this.open = stream;
    }
    this.forget();
    return this.count - before;
  }

  note(text: string): void {
    this.open = null;
    this.texts.push(text);
    this.streams.push("note");
    this.widths.push(text.length);
  }

  private put(part: string, stream: "out" | "err"): void {
    const at = this.count - 1;
    if (this.open === stream && at >= 0) {
      const whole = (this.texts[at] ?? "") + part;
      this.texts[at] = whole;
      this.widths[at] = widthOf(whole);
      this.style[stream] = styleAfter(whole, this.start(at));
      return;
    }
    if (NOTE.test(part)) {
      this.note(part);
      return;
    }
    let from = stream;
    let line = part;
    const mark = this.marked ? MARKED.exec(part) : null;
    if (mark) {
      from = mark[1] === "stderr" ? "err" : "out";
      line = part.slice(mark[0].length);
    }
    const style = this.style[from];
    if (style !== PLAIN) this.starts.set(this.count, style);
    this.texts.push(line);
    this.streams.push(from);
    this.widths.push(widthOf(line));
    this.style[from] = styleAfter(line, style);
  }

  private forget(): void {
    const over = this.count - LINES_MAX;
    if (over <= LINES_MAX / 10) return; // seldom, and then many
    this.texts.splice(0, over);
    this.streams.splice(0, over);
    this.widths.splice(0, over);
    const starts = new Map<number, Style>();
    for (const [at, style] of this.starts) if (at >= over) starts.set(at - over, style);
    this.starts = starts;
    this.forgotten += over;
  }

  /** Lines that hold this text, upper and lower case alike. */
  search(wanted: string): number[] {
    const needle = wanted.toLowerCase();
    if (!needle) return [];
    const hits: number[] = [];
    for (let at = 0; at < this.count; at += 1) {
      const raw = this.texts[at] ?? "";
      const text = raw.includes("\x1b") || raw.includes("\r") ? this.text(at) : raw;
      if (text.toLowerCase().includes(needle)) hits.push(at);
    }
    return hits;
  }

  /** The last line that says something. */
  last(): string {
    for (let at = this.count - 1; at >= 0 && at > this.count - 20; at -= 1) {
      const text = this.stream(at) === "note" ? "" : this.text(at).trim();
      if (text) return text.length > 300 ? `${text.slice(0, 300)}…` : text;
    }
    return "";
  }

  all(): string {
    const lines: string[] = [];
    for (let at = 0; at < this.count; at += 1) lines.push(this.text(at));
    return lines.join("\n");
  }
}

function widthOf(line: string): number {
  const simple = !line.includes("\x1b") && !line.includes("\r");
  return simple ? line.length : textOf(lastDrawn(line)).length;
}
