// Elements for text of a log: markdown, and long plain text with a way to see
// all of it.
import { html } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { codeBlock } from "../text/code";
import { diffLines, hunks, isPatch, patchLines, type DiffLine } from "../text/diff";
import { markdown } from "../text/markdown";
import { clip, visible } from "../text/plain";
import { count } from "../format";
import { Part } from "./element";

/** markdown of a message; built as nodes, never as HTML text */
@customElement("oc-markdown")
export class Markdown extends HTMLElement {
  private shown: string | null = null;
  private wanted = "";

  set text(value: string) {
    this.wanted = value;
    if (this.isConnected) this.build();
  }

  connectedCallback(): void {
    this.dir = "auto";
    this.build();
  }

  private build(): void {
    if (this.shown === this.wanted) return;
    this.shown = this.wanted;
    this.replaceChildren(markdown(this.wanted, codeBlock));
  }
}

/** a block of code; its nodes stay while its text stays */
@customElement("oc-code")
export class Code extends HTMLElement {
  text = "";
  language = "";
  private shown: string | null = null;

  /** text and language together, so that one change builds once */
  set code(value: readonly [string, string]) {
    [this.text, this.language] = value;
    if (this.isConnected) this.build();
  }

  connectedCallback(): void {
    this.build();
  }

  private build(): void {
    const key = this.language + "\n" + this.text;
    if (this.shown === key) return;
    this.shown = key;
    this.replaceChildren(codeBlock(this.text, this.language));
  }
}

const foldedLines = 24;
const foldedChars = 4_000;
const slice = 100_000;

/** plain text: its head, more of it on demand, a diff as a diff */
@customElement("oc-long")
export class Long extends Part {
  @property({ attribute: false }) text = "";
  @property({ attribute: false }) open = false;
  @state() private shown = slice;

  override render() {
    const whole = this.text;
    if (!this.open && this.cutAt(whole) < whole.length) {
      const head = whole.slice(0, this.cutAt(whole));
      return html`${this.piece(head)}<button class="more" @click=${() => this.unfold()}>
          Show all ${count(whole.length)} characters
        </button>`;
    }
    if (whole.length > this.shown) {
      return html`${this.piece(clip(whole, this.shown))}<button class="more" @click=${() => (this.shown += 4 * slice)}>
          Show more: ${count(whole.length - this.shown)} characters are left
        </button>`;
    }
    return this.piece(whole);
  }

  private unfold(): void {
    this.open = true;
    this.dispatchEvent(new CustomEvent("unfold", { bubbles: true }));
  }

  private cutAt(text: string): number {
    let at = -1;
    for (let n = 0; n < foldedLines; n++) {
      at = text.indexOf("\n", at + 1);
      if (at < 0 || at > foldedChars) break;
    }
    const cut = at < 0 || at > foldedChars ? foldedChars : at;
    // Folding a few lines away would save nothing.
    return text.length <= cut * 1.25 ? text.length : clip(text, cut).length;
  }

  private piece(text: string) {
    if (isPatch(text)) return diffTable(patchLines(text).map((l) => (l.kind === "same" ? l : { ...l, text: l.text.slice(1) })));
    return html`<pre class="plain" dir="auto" tabindex="0">${visible(text)}</pre>`;
  }
}

function diffTable(lines: DiffLine[]) {
  const sign = { same: " ", added: "+", removed: "\u2212" };
  return html`<div class="diff" role="group" aria-label="Difference" tabindex="0">
    ${lines.map(
      (l) =>
        html`<div class="line ${l.kind}"><span class="sign">${sign[l.kind]}</span><span>${visible(l.text)}</span></div>`,
    )}
  </div>`;
}

/** what changed between two texts, with a little around it */
export function difference(before: string, after: string) {
  const { hunks: parts, after: rest } = hunks(diffLines(before, after));
  if (parts.length === 0) return html`<p class="muted">No difference.</p>`;
  return html`${parts.map(
    (h) => html`${h.skipped > 0 ? html`<div class="skipped">${count(h.skipped)} lines unchanged</div>` : ""}${diffTable(h.lines)}`,
  )}${rest > 0 ? html`<div class="skipped">${count(rest)} lines unchanged</div>` : ""}`;
}

/** text with the parts that were found marked */
export function marked(text: string, spans: readonly (readonly [number, number])[]) {
  const out = [];
  let at = 0;
  for (const [from, to] of spans) {
    if (from < at || to <= from) continue;
    out.push(visible(text.slice(at, from)), html`<mark>${visible(text.slice(from, to))}</mark>`);
    at = to;
  }
  out.push(visible(text.slice(at)));
  return out;
}
