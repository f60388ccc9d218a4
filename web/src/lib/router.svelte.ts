// Where the page is: the fragment of the address, such as #/runs?state=failed. A fragment never
// reaches the server, so neither its log nor a proxy's learns what somebody looked for.

class Place {
  path = $state("/");
  query = $state(new URLSearchParams());
}

export const place = new Place();

function read(): void {
  const text = location.hash.startsWith("#/") ? location.hash.slice(1) : "/";
  const [path = "/", query = ""] = text.split("?", 2);
  place.path = path.replace(/\/+$/, "") || "/";
  place.query = new URLSearchParams(query);
}

window.addEventListener("hashchange", read);
read();

export function link(path: string, query: Record<string, string | string[]> = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each) words.append(name, each);
  }
  const text = words.toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

/** A word of the path as it was before it was made fit for one; an address may be broken. */
export function wordOf(text: string | null): string | null {
  try {
    return text === null ? null : decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const runLink = (id: string): string => link(`/runs/${encodeURIComponent(id)}`);

export function go(to: string): void {
  location.hash = to;
}

/** Change words of the address without a new step in the history: filters, a chosen line. */
export function amend(changes: Record<string, string | string[] | null>): void {
  const query = new URLSearchParams(place.query);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const each of Array.isArray(value) ? value : [value]) if (each) query.append(name, each);
  }
  const text = query.toString();
  history.replaceState(null, "", `#${place.path}${text ? `?${text}` : ""}`);
  read();
}

/** The code of a login link, taken out of the address so that it is in no history. */
export function takeLoginCode(): string | null {
  const found = /^#login=([\w.~-]+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", location.pathname);
  read();
  return found[1] ?? null;
}
