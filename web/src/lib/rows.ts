// The rows of a log view: each line is one, or, where long lines are wrapped, as many as it needs.
// All rows are of one height, so that any place in 200,000 lines is found by counting.
import type { Lines, Stream } from "./lines";

export interface Row {
  line: number;
  /** Of the characters of the line: where the row begins. */
  from: number;
}

export class Rows {
  readonly count: number;
  private readonly picks: number[] | null;
  private readonly ends: Uint32Array | null;

  constructor(
    lines: Lines,
    stream: "all" | Stream,
    private readonly columns: number | null,
  ) {
    this.picks = stream === "all" ? null : picked(lines, stream);
    const shown = this.picks?.length ?? lines.count;
    if (columns === null) {
      this.ends = null;
      this.count = shown;
      return;
    }
    const ends = new Uint32Array(shown);
    let total = 0;
    for (let index = 0; index < shown; index += 1) {
      const width = lines.width(this.picks ? (this.picks[index] ?? 0) : index);
      total += Math.max(1, Math.ceil(width / columns));
      ends[index] = total;
    }
    this.ends = ends;
    this.count = total;
  }

  at(row: number): Row {
    if (!this.ends || this.columns === null) return { line: this.lineOf(row), from: 0 };
    const index = firstAbove(this.ends, row);
    const before = index ? (this.ends[index - 1] ?? 0) : 0;
    return { line: this.lineOf(index), from: (row - before) * this.columns };
  }

  /** The first row of a line, or of the next one that is shown. */
  of(line: number): number {
    let index = line;
    if (this.picks) {
      const found = this.picks.findIndex((each) => each >= line);
      index = found < 0 ? this.picks.length - 1 : found;
    }
    if (!this.ends) return index;
    return index > 0 ? (this.ends[index - 1] ?? 0) : 0;
  }

  private lineOf(index: number): number {
    return this.picks ? (this.picks[index] ?? 0) : index;
  }
}

function picked(lines: Lines, stream: Stream): number[] {
  const found: number[] = [];
  for (let at = 0; at < lines.count; at += 1) if (lines.stream(at) === stream) found.push(at);
  return found;
}

function firstAbove(ends: Uint32Array, row: number): number {
  let low = 0;
  let high = ends.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 0) > row) high = middle;
    else low = middle + 1;
  }
  return low;
}
