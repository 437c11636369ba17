// Light and dark: the reader's choice, else the system's. The palette goes to
// the style sheet as custom properties of a constructed sheet, which a strict
// content policy allows.
import { keep } from "./keep";
import { dark, light, type Palette } from "./palette";

export type Theme = "auto" | "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const sheet = new CSSStyleSheet();
const listeners = new Set<() => void>();
let chosen: Theme = read();

function read(): Theme {
  const kept = keep.get("theme");
  return kept === "light" || kept === "dark" ? kept : "auto";
}

function apply(): void {
  const p = palette();
  const rules = Object.entries(p).map(([name, value]) => `--${name.replace(/[A-Z]/g, (c) => "-" + c.toLowerCase())}:${value}`);
  sheet.replaceSync(`:root{color-scheme:${isDark() ? "dark" : "light"};${rules.join(";")}}`);
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  for (const f of listeners) f();
}

export const isDark = (): boolean => chosen === "dark" || (chosen === "auto" && system.matches);
export const palette = (): Palette => (isDark() ? dark : light);
export const theme = (): Theme => chosen;
export const reducedMotion = (): boolean => calm.matches;

export function setTheme(t: Theme): void {
  chosen = t;
  keep.set("theme", t);
  apply();
}

/** calls f when the palette changes; gives a function that ends it */
export function onTheme(f: () => void): () => void {
  listeners.add(f);
  return () => listeners.delete(f);
}

export function startTheme(): void {
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  system.addEventListener("change", apply);
  apply();
}
