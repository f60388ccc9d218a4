// What a person can do to runs, each asked once more where it cannot be undone.
import { send, taskPath } from "./api";
import { complain, confirm, toast } from "./app.svelte";
import { go, runLink } from "./router.svelte";
import { isOver, type Task } from "./types";
import { plural } from "./words";

export async function stop(task: Pick<Task, "id" | "title">, force: boolean): Promise<void> {
  const yes = await confirm({
    title: force ? "Force this run to stop?" : "Stop this run?",
    text: force
      ? `“${task.title}” and everything it started are killed at once. It cannot save anything.`
      : `“${task.title}” and everything it started are asked to end, and killed after five seconds.`,
    action: force ? "Force stop" : "Stop",
    keep: "Keep it running",
  });
  if (!yes) return;
  try {
    const now = await send<Task>("POST", `${taskPath(task.id)}/stop`, { force });
    toast(isOver(now.state) ? `Stopped: ${task.title}` : `Asked to stop, and still at it: ${task.title}`);
  } catch (error) {
    complain(error);
  }
}

/** All at once; those that could not be stopped are told of. */
export async function stopMany(tasks: Pick<Task, "id" | "title">[]): Promise<boolean> {
  const [only] = tasks;
  if (tasks.length === 1 && only) {
    await stop(only, false);
    return true;
  }
  const yes = await confirm({
    title: `Stop ${plural(tasks.length, "run")}?`,
    text: "Each of them and everything it started are asked to end, and killed after five seconds.",
    action: `Stop ${plural(tasks.length, "run")}`,
    keep: "Keep them running",
  });
  if (!yes) return false;
  const ends = await Promise.allSettled(
    tasks.map((task) => send("POST", `${taskPath(task.id)}/stop`, { force: false })),
  );
  const failed = ends.filter((end) => end.status === "rejected");
  if (ends.length > failed.length) toast(`Stopped ${plural(ends.length - failed.length, "run")}.`);
  for (const end of failed.slice(0, 2)) complain(end.reason);
  return true;
}

export async function rerun(task: Pick<Task, "id" | "title">): Promise<void> {
  try {
    const again = await send<Task>("POST", `${taskPath(task.id)}/rerun`, {});
    toast(`Started again: ${task.title}`);
    go(runLink(again.id));
  } catch (error) {
    complain(error);
  }
}
