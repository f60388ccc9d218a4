// Bars of a time line, put into as few lanes as they need, session by session.
import type { Bar } from "./types";

export interface Placed {
  bar: Bar;
  /** Shares of the width, from 0 to 1. */
  left: number;
  width: number;
}

export interface Band {
  session: string;
  /** Of the run that it is the session of, where it is a sub-agent's. */
  agent: string | null;
  lanes: Placed[][];
  more: number;
}

const LANES_MAX = 8;
/** Of the width: between two bars of a lane, so that they can be told apart. */
const GAP = 0.004;
const LEAST = 0.004;

export function bands(bars: Bar[], from: number, to: number): Band[] {
  const sessions = new Map<string, Bar[]>();
  for (const bar of bars) {
    const those = sessions.get(bar.session);
    if (those) those.push(bar);
    else sessions.set(bar.session, [bar]);
  }
  const span = Math.max(1, to - from);
  const agents = new Map(bars.map((bar) => [bar.task, bar]));
  const found = [...sessions].map(([session, those]) => {
    const band: Band = { session, agent: agents.get(session)?.title ?? null, lanes: [], more: 0 };
    for (const bar of those.sort((one, other) => begin(one) - begin(other))) {
      const left = Math.max(0, (begin(bar) - from) / span);
      const end = Math.min(1, ((bar.finished_at ? Date.parse(bar.finished_at) : to) - from) / span);
      if (end < 0 || left > 1) continue;
      const width = Math.max(LEAST, end - left);
      const placed = { bar, left: Math.min(left, 1 - LEAST), width };
      const lane = band.lanes.find((each) => {
        const last = each.at(-1);
        return last !== undefined && last.left + last.width + GAP <= left;
      });
      if (lane) lane.push(placed);
      else if (band.lanes.length < LANES_MAX) band.lanes.push([placed]);
      else band.more += 1;
    }
    return band;
  });
  // What a sub-agent has started stands below the session that asked it.
  const own = found.filter((band) => !band.agent);
  for (const band of found.filter((each) => each.agent)) {
    const above = own.findLastIndex((each) => each.session === agents.get(band.session)?.session);
    own.splice(above < 0 ? own.length : above + 1, 0, band);
  }
  return own;
}

const begin = (bar: Bar): number => Date.parse(bar.started_at ?? bar.created_at);

const STEPS = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * 60_000);

/** Round times of the local clock, some seven of them. */
export function ticks(from: number, to: number, most: number): number[] {
  const step = STEPS.find((each) => (to - from) / each <= most) ?? 86_400_000;
  const offset = new Date(from).getTimezoneOffset() * 60_000;
  const found: number[] = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at < to; at += step) found.push(at);
  return found;
}
