// What the API answers, as far as the page reads it. The API decides; this file only repeats.

export const STATES = [
  "queued",
  "running",
  "input_required",
  "succeeded",
  "failed",
  "canceled",
] as const;
export type State = (typeof STATES)[number];
export const KINDS = ["shell", "python", "tool", "agent"] as const;
export type Kind = (typeof KINDS)[number];
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Progress {
  current: number;
  total: number | null;
  unit: string | null;
  label: string | null;
}

export interface Question {
  id: string;
  text: string;
  asked_at: string;
  answered_at: string | null;
  withdrawn: boolean;
  schema: { enum?: Json[]; type?: string } | null;
  /** The session that wants to stop the task: then this is an approval. */
  asker: string | null;
}

export interface Artifact {
  name: string;
  bytes: number;
}

export interface Task {
  id: string;
  session: string;
  owner: string;
  kind: Kind;
  title: string;
  state: State;
  detail: string | null;
  progress: Progress | null;
  ready_at: string | null;
  parked_at: string | null;
  exit_code: number | null;
  error: { kind: string; message: string } | null;
  summary: string | null;
  result: Json;
  attempt: number;
  pid: number | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  max_runtime_s: number | null;
  output: { bytes: number; dropped_bytes: number; cursor: string };
  leftovers: number;
  signal: { state: string; delivered_at: string | null } | null;
  links: { parent: string | null; schedule: string | null };
  order?: { queue: string | null; after: string[]; retries_left: number; failures: number };
  wait?: { after: string[]; not_before: string | null; queue: string | null; paused: boolean; place: number | null; owner_limit?: number | null; unserved?: string | null } | null;
  question?: Question | null;
  artifacts?: Artifact[];
  usage?: Record<string, number> | null;
}

export interface TaskInput {
  text: string;
  command: string | string[] | null;
  call: string | null;
  tool: string | null;
  agent: string | null;
  prompt: string | null;
  arguments: { [key: string]: Json } | null;
  cwd: string | null;
  env: string[];
  takes_input: "none" | "stdin" | "pty";
  separate_stderr: boolean;
}

export interface Happening {
  /** Its place among all events. */
  seq: number;
  task: string;
  kind: string;
  at: string;
  data: { [key: string]: Json };
  state?: State;
}

export interface Output {
  text: string;
  stderr: string | null;
  cursor: string;
  dropped: number;
  total: number;
  complete: boolean;
}

export interface ProcessUse {
  pid: number;
  parent: number;
  command: string;
  cpu_percent: number;
  memory_bytes: number;
  runtime_s: number;
}

export interface Bar {
  task: string;
  session: string;
  title: string;
  kind: Kind;
  state: State;
  parent: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
}

export interface Waiting {
  task: string;
  session: string;
  title: string;
  question: string;
  text: string;
  approval: boolean;
  asked_at: string;
}

export interface Overview {
  now: string;
  since: string;
  counts: Partial<Record<State, number>>;
  bars: Bar[];
  more: boolean;
  waiting: Waiting[];
}

export interface Session {
  name: string;
  owner: string;
  parent: string | null;
  counts: Partial<Record<State, number>>;
  last_created_at: string;
}

export interface Schedule {
  schedule_id: string;
  session: string;
  owner: string;
  kind: Kind;
  title: string;
  status: string;
  schedule_type: "once" | "cron";
  cron_expression: string | null;
  scheduled_at: string | null;
  timezone: string;
  next_trigger_at: string | null;
  enabled: boolean;
  fired: number;
  last_task: string | null;
  detail: string | null;
  overlap: string;
  missed: string;
  created_at: string;
}

export interface Signal {
  id: string;
  key: string;
  task: string;
  session: string;
  kind: string;
  text: string;
  state: string;
  reason: string | null;
  channel: string;
  tries: number;
  created_at: string;
  delivered_at: string | null;
  retry_at?: string | null;
}

export interface Worker {
  id: string;
  kind: "keeper" | "application" | "worker";
  machine: string;
  pid: number | null;
  alive: boolean;
  draining: boolean;
  queues: string[];
  tools: string[];
  agents: string[];
  places: number | null;
  running: number;
  heard_at: string | null;
  tasks: string[];
}

export interface Queue {
  name: string | null;
  width: number | null;
  paused: boolean;
  waiting: number;
  running: number;
  workers: number | null;
}

export interface Tool {
  name: string;
  display_name: string;
  description: string;
  parameters: { properties?: Record<string, Json>; required?: string[] };
}

export interface Me {
  owner: string;
  role: "admin" | "user" | "viewer";
  session: string | null;
}

export interface Page<T> {
  items: T[];
  next?: string | null;
}

export function isOver(state: State): boolean {
  return state === "succeeded" || state === "failed" || state === "canceled";
}
