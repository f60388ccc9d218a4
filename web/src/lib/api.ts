// Every request of the page. An answer is data; anything else is thrown as a Problem, with the words
// of the server and what to do about it.
import { observeServerTime } from "./clock.svelte";

export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly remedy: string;

  constructor(status: number, code: string, message: string, remedy: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.remedy = remedy;
  }
}

const TRANSIENT = new Set([0, 429, 502, 503, 504]);

/** Whether to try again is a matter of waiting, and not of changing something. */
export function isTransient(error: unknown): boolean {
  return error instanceof Problem && TRANSIENT.has(error.status);
}

let onUnauthorized: () => void = () => undefined;

export function whenUnauthorized(then: () => void): void {
  onUnauthorized = then;
}

type Query = Record<string, string | number | boolean | string[] | null | undefined>;

export function address(path: string, query: Query = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    if (Array.isArray(value)) for (const each of value) words.append(name, each);
    else words.set(name, String(value));
  }
  const text = words.toString();
  return text ? `${path}?${text}` : path;
}

export async function request(
  method: string,
  path: string,
  options: { body?: unknown; signal?: AbortSignal; headers?: Record<string, string> } = {},
): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json", ...options.headers };
  if (method !== "GET") headers["x-backburner"] = "1";
  if (options.body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers,
      credentials: "same-origin",
      cache: "no-store",
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      ...(options.signal ? { signal: options.signal } : {}),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(
      0,
      "unreachable",
      "The server cannot be reached.",
      "Is `backburner serve` still running? The page goes on by itself when it is back.",
    );
  }
  observeServerTime(response.headers.get("date"));
  if (response.ok) return response;
  if (response.status === 401) onUnauthorized();
  throw await problemOf(response);
}

async function problemOf(response: Response): Promise<Problem> {
  let said: { detail?: unknown; title?: unknown; code?: unknown; remedy?: unknown } = {};
  try {
    said = await response.json();
  } catch {
    // Somebody between us and the server answered, in words of their own.
  }
  const message = said.detail ?? said.title ?? `The server answered ${response.status}.`;
  return new Problem(
    response.status,
    String(said.code ?? response.status),
    String(message),
    String(said.remedy ?? ""),
  );
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await request("GET", address(path, query), signal ? { signal } : {});
  return (await response.json()) as T;
}

export async function send<T>(
  method: "POST" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<T> {
  const response = await request(method, path, { body, ...(headers ? { headers } : {}) });
  return (response.status === 204 ? null : await response.json()) as T;
}

export const taskPath = (id: string): string => `/v1/tasks/${encodeURIComponent(id)}`;
export const sessionPath = (name: string): string => `/v1/sessions/${encodeURIComponent(name)}`;
