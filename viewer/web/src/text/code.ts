// A block of code: plain at once, coloured as soon as the grammars are there.
// The text and so the size stay the same, nothing moves.
import { clip, visible } from "./plain";

const colourLimit = 30_000; // longer blocks stay plain

let grammars: Promise<typeof import("./grammars")> | undefined;

export function codeBlock(text: string, language: string): HTMLElement {
  const pre = document.createElement("pre");
  pre.className = "code";
  pre.tabIndex = 0;
  const code = document.createElement("code");
  code.textContent = visible(text);
  pre.appendChild(code);
  const name = clip(language.toLowerCase().replace(/[^\w+#-]/g, ""), 20);
  if (name) pre.setAttribute("aria-label", name + " code");
  if (name && text.length <= colourLimit) {
    grammars ??= import("./grammars");
    grammars
      .then(({ colour }) => {
        const coloured = colour(code.textContent ?? "", name);
        if (coloured) code.replaceChildren(coloured);
      })
      .catch(() => (grammars = undefined)); // without colours then; the next block tries again
  }
  return pre;
}

const endings: Record<string, string> = {
  go: "go", ts: "typescript", tsx: "typescript", js: "javascript", mjs: "javascript", jsx: "javascript", py: "python",
  rs: "rust", c: "c", h: "c", cc: "cpp", cpp: "cpp", hpp: "cpp", java: "java", json: "json", jsonl: "json", sh: "bash",
  bash: "bash", css: "css", html: "xml", xml: "xml", svg: "xml", sql: "sql", yaml: "yaml", yml: "yaml", toml: "ini",
  ini: "ini", diff: "diff", patch: "diff", mk: "makefile",
};

/** the language of a file by its name, "" when not known */
export function languageOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  if (name === "makefile") return "makefile";
  return endings[name.slice(name.lastIndexOf(".") + 1)] ?? "";
}
