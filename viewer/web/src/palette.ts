// The colours, in one place: the style sheet takes them as custom properties,
// the canvas takes them as they are, and a test computes their contrast.
//
// Light is limestone under daylight, dark is basalt. Each role has a colour, a
// letter and a pattern of the kind that geological sections use, so that colour
// is never the only sign.

export type Role = "user" | "assistant" | "tool" | "context" | "checkpoint";

export const roles: readonly Role[] = ["user", "assistant", "tool", "context", "checkpoint"];

export const letters: Record<Role, string> = {
  user: "U",
  assistant: "A",
  tool: "T",
  context: "C",
  checkpoint: "K",
};

export const roleNames: Record<Role, string> = {
  user: "user",
  assistant: "assistant",
  tool: "tool",
  context: "context",
  checkpoint: "checkpoint",
};

export interface Palette {
  ground: string; // the page
  sheet: string; // what lies on it
  well: string; // code, canvas
  ink: string;
  muted: string;
  rule: string; // lines that only divide
  edge: string; // borders of controls, 3:1
  link: string;
  focus: string;
  good: string;
  bad: string;
  warn: string;
  addWash: string;
  removeWash: string;
  hit: string; // found text
  user: string;
  assistant: string;
  tool: string;
  context: string;
  checkpoint: string;
  letter: string; // text on a role's colour
}

export const light: Palette = {
  ground: "#f3eee4",
  sheet: "#fbf8f1",
  well: "#efe9dc",
  ink: "#221f1a",
  muted: "#5c5548",
  rule: "#d8cfbd",
  edge: "#857a67",
  link: "#83380f",
  focus: "#1d4f91",
  good: "#2a6b3a",
  bad: "#a12d28",
  warn: "#7d4f00",
  addWash: "#dcebd8",
  removeWash: "#f5dcd6",
  hit: "#ffd978",
  user: "#a8431c",
  assistant: "#2b6476",
  tool: "#7b5d10",
  context: "#486a3b",
  checkpoint: "#65467f",
  letter: "#fffdf8",
};

export const dark: Palette = {
  ground: "#171614",
  sheet: "#1f1d1a",
  well: "#131210",
  ink: "#ebe4d7",
  muted: "#aca292",
  rule: "#38342e",
  edge: "#81776a",
  link: "#f0a47a",
  focus: "#8fbcff",
  good: "#86c293",
  bad: "#f2938a",
  warn: "#e2b45c",
  addWash: "#1f3324",
  removeWash: "#40231f",
  hit: "#6b5414",
  user: "#e0875a",
  assistant: "#6cb0c3",
  tool: "#d0a848",
  context: "#8fb37b",
  checkpoint: "#b394d4",
  letter: "#171614",
};

/** relative luminance of "#rrggbb", as WCAG 2 defines it */
export function luminance(hex: string): number {
  const part = (at: number) => {
    const v = parseInt(hex.slice(at, at + 2), 16) / 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

/** contrast of two colours, 1 to 21 */
export function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
