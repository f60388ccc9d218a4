// A line of terminal output as runs of text with a style. Nothing of it ever becomes markup: a run is
// a text and a few names of classes. Escape sequences that are no colours are left out.

export interface Style {
  fg: string;
  bg: string;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
}

export interface Run {
  text: string;
  style: Style | null;
}

export const PLAIN: Style = {
  fg: "",
  bg: "",
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
};

// CSI, then OSC and the other strings up to their end, then two-character sequences.
const SEQUENCE =
  /\x1b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g;
// Controls a browser would hide, and marks that turn the direction of what follows.
const HIDDEN = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function isPlain(style: Style): boolean {
  return style === PLAIN;
}

/** The style after a line that begins with this one. */
export function styleAfter(line: string, start: Style): Style {
  if (!line.includes("\x1b")) return start;
  let style = start;
  for (const found of line.matchAll(SEQUENCE)) {
    if (found[2] === "m") style = changed(style, found[1] ?? "");
  }
  return style;
}

export function runsOf(line: string, start: Style): Run[] {
  const runs: Run[] = [];
  let style = start;
  let at = 0;
  const add = (text: string): void => {
    if (text) runs.push({ text: visible(text), style: isPlain(style) ? null : style });
  };
  if (line.includes("\x1b")) {
    for (const found of line.matchAll(SEQUENCE)) {
      add(line.slice(at, found.index));
      at = found.index + found[0].length;
      if (found[2] === "m") style = changed(style, found[1] ?? "");
    }
  }
  add(line.slice(at));
  return runs;
}

/** What a person sees of a line: for search, copying and measuring. */
export function textOf(line: string): string {
  return visible(line.includes("\x1b") ? line.replace(SEQUENCE, "") : line);
}

/** A progress bar that draws over itself shows what it drew last. */
export function lastDrawn(line: string): string {
  if (!line.includes("\r")) return line;
  const drawn = line.split("\r").filter((part) => textOf(part) !== "");
  return drawn.at(-1) ?? "";
}

function visible(text: string): string {
  return text.replace(HIDDEN, (character) => {
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : "\ufffd";
  });
}

function changed(style: Style, parameters: string): Style {
  if (parameters === "" || parameters === "0") return PLAIN;
  let next: Style = { ...style };
  const codes = parameters.split(/[;:]/).map((word) => Number(word || "0"));
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) next = { ...PLAIN };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 9) next.strike = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.inverse = false;
    else if (code === 29) next.strike = false;
    else if (code >= 30 && code <= 37) next.fg = String(code - 30);
    else if (code >= 90 && code <= 97) next.fg = String(code - 90 + 8);
    else if (code >= 40 && code <= 47) next.bg = String(code - 40);
    else if (code >= 100 && code <= 107) next.bg = String(code - 100 + 8);
    else if (code === 39) next.fg = "";
    else if (code === 49) next.bg = "";
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(at + 1));
      if (code === 38) next.fg = colour;
      else next.bg = colour;
      at += used;
    }
  }
  return Object.entries(PLAIN).every(([name, value]) => next[name as keyof Style] === value) ? PLAIN : next;
}

/** "0" to "15" are named by the theme; anything else is a colour of its own. */
function extended(codes: number[]): [string, number] {
  if (codes[0] === 5) {
    const index = Math.min(255, Math.max(0, codes[1] ?? 0));
    return [index < 16 ? String(index) : cube(index), 2];
  }
  if (codes[0] === 2) {
    const [red = 0, green = 0, blue = 0] = codes.slice(1, 4).map((part) => Math.min(255, part));
    return [`rgb(${red} ${green} ${blue})`, 4];
  }
  return ["", 1];
}

function cube(index: number): string {
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const level = (part: number): number => (part === 0 ? 0 : 55 + part * 40);
  const base = index - 16;
  return `rgb(${level(Math.floor(base / 36))} ${level(Math.floor(base / 6) % 6)} ${level(base % 6)})`;
}

const NAMED = /^\d+$/;

export function classesOf(style: Style | null): string {
  if (!style) return "";
  const [fg, bg] = style.inverse ? [style.bg || "base", style.fg || "text"] : [style.fg, style.bg];
  const names: string[] = [];
  if (fg && (NAMED.test(fg) || fg === "base")) names.push(`fg-${fg}`);
  if (bg && (NAMED.test(bg) || bg === "text")) names.push(`bg-${bg}`);
  for (const name of ["bold", "dim", "italic", "underline", "strike"] as const) {
    if (style[name]) names.push(`t-${name}`);
  }
  return names.join(" ");
}

/** Colours that the theme has no name for, to be set as properties of the element. */
export function ownColours(style: Style | null): { fg?: string; bg?: string } {
  if (!style) return {};
  const [fg, bg] = style.inverse ? [style.bg, style.fg] : [style.fg, style.bg];
  return {
    ...(fg.startsWith("rgb") ? { fg } : {}),
    ...(bg.startsWith("rgb") ? { bg } : {}),
  };
}
