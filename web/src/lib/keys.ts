// Keyboard shortcuts: one table, which the help page shows. Not while somebody types.

export interface Shortcut {
  keys: string;
  does: string;
  where: string;
}

export const SHORTCUTS: Shortcut[] = [
  { keys: "g o", does: "Overview", where: "Go to" },
  { keys: "g r", does: "Runs", where: "Go to" },
  { keys: "g s", does: "Sessions", where: "Go to" },
  { keys: "g c", does: "Schedules", where: "Go to" },
  { keys: "g n", does: "Signals", where: "Go to" },
  { keys: "g w", does: "Workers", where: "Go to" },
  { keys: "n", does: "Start something new", where: "Anywhere" },
  { keys: "/", does: "Search", where: "Anywhere" },
  { keys: "t", does: "Light or dark", where: "Anywhere" },
  { keys: "?", does: "This page", where: "Anywhere" },
  { keys: "j", does: "Next run", where: "Runs" },
  { keys: "k", does: "Previous run", where: "Runs" },
  { keys: "x", does: "Select the run", where: "Runs" },
  { keys: "Enter", does: "Open the run", where: "Runs" },
  { keys: "s", does: "Stop it", where: "A run" },
  { keys: "r", does: "Run it again", where: "A run" },
  { keys: "f", does: "Follow the output", where: "A run" },
  { keys: "w", does: "Wrap long lines", where: "A run" },
];

type Action = (event: KeyboardEvent) => void;
const handlers: Map<string, Action>[] = [];
let prefix = "";
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

/** For a component: these keys, before those of whoever was there earlier. */
export function shortcuts(actions: Record<string, Action>): () => void {
  const map = new Map(Object.entries(actions));
  handlers.unshift(map);
  return () => {
    const at = handlers.indexOf(map);
    if (at >= 0) handlers.splice(at, 1);
  };
}

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

window.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  // A button or link that has the focus keeps its own keys.
  if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.closest("a, button")) return;
  const pressed = prefix ? `${prefix} ${event.key}` : event.key;
  clearTimeout(prefixTimer);
  prefix = "";
  if (event.key === "g" && pressed === "g") {
    prefix = "g";
    prefixTimer = setTimeout(() => (prefix = ""), 1200);
    return;
  }
  for (const map of handlers) {
    const action = map.get(pressed);
    if (action) {
      event.preventDefault();
      action(event);
      return;
    }
  }
});
