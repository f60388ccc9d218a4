// Numbers, times and states in words.
import type { Happening, Json, Progress, State, Task } from "./types";

export const STATE_WORDS: Record<State, string> = {
  queued: "Queued",
  running: "Running",
  input_required: "Needs you",
  succeeded: "Succeeded",
  failed: "Failed",
  canceled: "Stopped",
};

export const KIND_WORDS: Record<string, string> = {
  shell: "Command",
  python: "Python",
  tool: "Tool",
  agent: "Agent",
};

export function duration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  if (seconds < 60) return `${Math.floor(seconds)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${String(Math.floor(seconds % 60)).padStart(2, "0")}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}h ${String(minutes % 60).padStart(2, "0")}m`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

export function runtime(task: Pick<Task, "started_at" | "finished_at">, now: number): string {
  if (!task.started_at) return "–";
  const end = task.finished_at ? Date.parse(task.finished_at) : now;
  const passed = Math.max(0, end - Date.parse(task.started_at));
  return task.finished_at ? duration(passed) : duration(Math.floor(passed / 1000) * 1000).replace(".0s", "s");
}

export function ago(at: string, now: number): string {
  const seconds = Math.round((now - Date.parse(at)) / 1000);
  if (seconds < 5 && seconds > -5) return "just now";
  const words = coarse(Math.abs(seconds));
  return seconds < 0 ? `in ${words}` : `${words} ago`;
}

function coarse(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});

export const clockTime = (at: string | number): string => CLOCK.format(new Date(at));
export const moment = (at: string): string => MOMENT.format(new Date(at));
export const dayTime = (at: string): string => DAY.format(new Date(at));

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  let size = count;
  let unit = "B";
  for (const larger of ["kB", "MB", "GB", "TB"]) {
    if (size < 1000) break;
    size /= 1000;
    unit = larger;
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString()} ${count === 1 ? one : many}`;

export function progressWords(progress: Progress): string {
  const unit = progress.unit ? ` ${progress.unit}` : "";
  const amount = progress.total === null ? `${short(progress.current)}${unit}` : `${short(progress.current)} of ${short(progress.total)}${unit}`;
  return progress.label ? `${progress.label} · ${amount}` : amount;
}

function short(value: number): string {
  return Number.isInteger(value) ? value.toLocaleString() : value.toFixed(1);
}

/** Why a run is where it is, in one line; empty where its state says it all. */
export function reason(task: Task): string {
  if (task.error) return task.error.message;
  if (task.state === "input_required") return task.question?.text ?? "It waits for an answer.";
  if (task.state === "queued") return waiting(task);
  return task.detail ?? (task.state === "succeeded" ? (task.summary ?? "") : "");
}

function waiting(task: Task): string {
  const wait = task.wait;
  if (!wait) return task.detail ?? "";
  if (wait.after.length) return `waits for ${wait.after.join(", ")}`;
  if (wait.paused) return `its queue ${wait.queue} is paused`;
  if (wait.queue) return wait.place ? `number ${wait.place} in the queue ${wait.queue}` : `in the queue ${wait.queue}`;
  if (wait.unserved) {
    const queue = wait.unserved === "default" ? "" : ` of queue ${wait.unserved}`;
    return `waits for a worker${queue}, and there is none`;
  }
  if (wait.owner_limit) return `${wait.owner_limit} of its owner run, and no more may`;
  if (wait.not_before) return `tries again ${clockTime(wait.not_before)}`;
  return task.detail ?? "";
}

const HAPPENINGS: Record<string, string> = {
  created: "Created",
  started: "Started",
  parked: "Outlived its time budget and goes on",
  adopted: "Taken over by a new keeper",
  requeued: "Queued again",
  failed_try: "Attempt failed",
  stop_requested: "Stop requested",
  ending: "Being ended",
  detail: "Status",
  progress: "Progress",
  ready: "Ready",
  match: "Output matched",
  silent: "Silent",
  asked: "Asked",
  answered: "Answered",
  withdrawn: "Question withdrawn",
  sent: "Message sent",
  message: "Told its session",
  artifact: "Artifact added",
  result: "Result written",
  leftovers: "Processes left behind",
  finished: "Finished",
};

export const happening = (kind: string): string => HAPPENINGS[kind] ?? kind;

export function happeningDetail({ kind, data }: Happening): string {
  const text = (name: string): string => (typeof data[name] === "string" ? data[name] : "");
  switch (kind) {
    case "finished": {
      const why = messageOf(data["error"]) || text("summary");
      const state = STATE_WORDS[text("state") as State] ?? text("state");
      return why ? `${state}: ${why}` : state;
    }
    case "failed_try":
      return `attempt ${String(data["attempt"] ?? "")}: ${messageOf(data["error"])}`;
    case "stop_requested":
      return data["grace_s"] ? `with a grace of ${String(data["grace_s"])} s` : "by force";
    case "ending":
      return data["reason"] === "timeout" ? "past its maximum run time" : "on request";
    case "progress":
      return data["progress"] ? progressWords(data["progress"] as unknown as Progress) : "";
    case "artifact":
      return `${text("name")}${typeof data["bytes"] === "number" ? `, ${bytes(data["bytes"])}` : ""}`;
    case "result":
      return typeof data["bytes"] === "number" ? bytes(data["bytes"]) : "";
    case "leftovers":
      return data["leftovers"] ? `${String(data["leftovers"])} left` : text("reason") || "all ended";
    default:
      return text("text") || text("detail") || text("reason");
  }
}

function messageOf(error: Json | undefined): string {
  if (error && typeof error === "object" && !Array.isArray(error)) {
    return typeof error["message"] === "string" ? error["message"] : "";
  }
  return "";
}
