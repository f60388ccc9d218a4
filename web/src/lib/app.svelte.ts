// What the whole page shares: who looks, how it is shown, and what lies over it.
import { get, Problem, send, whenUnauthorized } from "./api";
import { live } from "./live.svelte";
import { takeLoginCode } from "./router.svelte";
import type { Kind, Me } from "./types";

export type Theme = "auto" | "light" | "dark";

export interface Confirmation {
  title: string;
  text: string;
  action: string;
  /** What the other button says. */
  keep: string;
  answer: (yes: boolean) => void;
}

export interface Toast {
  id: number;
  text: string;
  tone: "good" | "bad";
  href: string | null;
}

class App {
  me = $state<Me | null>(null);
  /** "login" shows the form; "starting" is the moment before the server has answered. */
  phase = $state<"starting" | "login" | "ready">("starting");
  trouble = $state<Problem | null>(null);
  theme = $state<Theme>(storedTheme());
  starting = $state<{ kind: Kind; session: string; when: "now" | "cron" } | null>(null);
  help = $state(false);
  confirmation = $state<Confirmation | null>(null);
  toasts = $state<Toast[]>([]);

  get mayAct(): boolean {
    return this.me !== null && this.me.role !== "viewer";
  }
}

export const app = new App();

function storedTheme(): Theme {
  const stored = localStorage.getItem("theme");
  return stored === "light" || stored === "dark" ? stored : "auto";
}

export function setTheme(theme: Theme): void {
  app.theme = theme;
  localStorage.setItem("theme", theme);
  applyTheme();
}

export function applyTheme(): void {
  if (app.theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = app.theme;
}

export function isDark(): boolean {
  if (app.theme !== "auto") return app.theme === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

let lastToast = 0;

export function toast(text: string, tone: Toast["tone"] = "good", href: string | null = null): void {
  const id = (lastToast += 1);
  app.toasts = [...app.toasts.slice(-3), { id, text, tone, href }];
  setTimeout(() => dismiss(id), tone === "bad" ? 12_000 : 6_000);
}

export function dismiss(id: number): void {
  app.toasts = app.toasts.filter((each) => each.id !== id);
}

/** Says what went wrong where nothing on the page can show it in its place. */
export function complain(error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  if (error instanceof Problem) toast([error.message, error.remedy].filter(Boolean).join(" "), "bad");
  else toast("Something went wrong on this page. Reload it, please.", "bad");
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} is on the clipboard.`);
  } catch {
    toast("The browser does not let this page copy. Select the text instead.", "bad");
  }
}

export function confirm(question: Omit<Confirmation, "answer">): Promise<boolean> {
  return new Promise((resolve) => {
    app.confirmation = {
      ...question,
      answer: (yes) => {
        app.confirmation = null;
        resolve(yes);
      },
    };
  });
}

whenUnauthorized(() => {
  live.stop();
  app.me = null;
  app.phase = "login";
});

/** Log in with the code of a link, or as whoever this browser is already. */
export async function enter(): Promise<void> {
  const code = takeLoginCode();
  if (code) {
    try {
      await send("POST", "/v1/login", { code });
    } catch (error) {
      if (error instanceof Problem) app.trouble = error;
      if (!(error instanceof Problem) || error.status !== 401) return failed(error);
    }
  }
  try {
    app.me = await get<Me>("/v1/me");
    app.phase = "ready";
    app.trouble = null;
    live.start();
  } catch (error) {
    failed(error);
  }
}

function failed(error: unknown): void {
  if (app.phase === "starting" || !(error instanceof Problem) || error.status !== 401) {
    app.phase = "login";
    if (error instanceof Problem && error.status !== 401) app.trouble = error;
  }
}

export async function leave(): Promise<void> {
  try {
    await send("POST", "/v1/logout");
  } catch (error) {
    complain(error);
    return;
  }
  live.stop();
  app.me = null;
  app.phase = "login";
}
