// Find inside a session, in what is folded, pruned and rewound too: the server
// looks, the view opens what holds the hit. What is found is marked by the
// highlight registry, which changes no node.
import { html } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { aborted, get, session, type FindAnswer, type FindHit } from "../api";
import { count } from "../format";
import { marked } from "./text";
import { Part } from "./element";
import { complain } from "./say";

@customElement("oc-find")
export class Find extends Part {
  @property() session = "";
  @state() private q = "";
  @state() private hits: FindHit[] = [];
  @state() private next: number | null = null;
  @state() private at = -1;
  @state() private busy = false;
  private stop: AbortController | null = null;
  private timer = 0;

  override firstUpdated(): void {
    this.querySelector("input")?.focus();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.timer);
    this.stop?.abort();
    highlight(null, "");
  }

  private input(e: Event): void {
    this.q = (e.target as HTMLInputElement).value;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.look(), 160);
  }

  private async look(): Promise<void> {
    this.stop?.abort();
    this.hits = [];
    this.next = null;
    this.at = -1;
    if (!this.q) return;
    const stop = (this.stop = new AbortController());
    this.busy = true;
    try {
      const got = await get<FindAnswer>(`${session(this.session)}/find`, { q: this.q, limit: 200 }, stop.signal);
      this.hits = got.hits;
      this.next = got.next;
      this.step(1);
    } catch (err) {
      if (!aborted(err)) complain(err);
    } finally {
      if (this.stop === stop) this.busy = false;
    }
  }

  private async step(by: number): Promise<void> {
    if (this.hits.length === 0) return;
    if (this.at + by >= this.hits.length && this.next !== null) {
      const got = await get<FindAnswer>(`${session(this.session)}/find`, { q: this.q, limit: 200, from: this.next });
      this.hits = [...this.hits, ...got.hits];
      this.next = got.next;
    }
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    const hit = this.hits[this.at]!;
    this.dispatchEvent(new CustomEvent("found", { detail: { hit, q: this.q }, bubbles: true }));
  }

  private key(e: KeyboardEvent): void {
    if (e.key === "Enter") {
      e.preventDefault();
      this.step(e.shiftKey ? -1 : 1).catch(complain);
    } else if (e.key === "Escape") {
      e.preventDefault();
      this.dispatchEvent(new CustomEvent("close", { bubbles: true }));
    }
    e.stopPropagation();
  }

  override render() {
    const hit = this.hits[this.at];
    const more = this.next !== null ? "+" : "";
    return html`<div class="find" role="search">
      <input type="search" aria-label="Find in this session" placeholder="Find, also in what is folded or covered" .value=${this.q} @input=${(e: Event) => this.input(e)} @keydown=${(e: KeyboardEvent) => this.key(e)} />
      <span class="found" role="status">${this.q === "" ? "" : this.busy ? "\u2026" : this.hits.length === 0 ? "nothing" : `${this.at + 1} of ${count(this.hits.length)}${more}`}</span>
      <button class="bare" aria-label="Previous hit" @click=${() => void this.step(-1)}>\u2191</button>
      <button class="bare" aria-label="Next hit" @click=${() => void this.step(1)}>\u2193</button>
      <button class="bare" aria-label="Close find" @click=${() => this.dispatchEvent(new CustomEvent("close", { bubbles: true }))}>\u00d7</button>
      <div class="find-hit">${hit ? html`<span class="muted">${hit.seq} ${hit.kind}${hit.covered !== null ? `, covered by ${hit.covered}` : ""}${hit.rewound ? ", rewound" : ""}</span> ${marked(hit.text, hit.spans)}` : ""}</div>
    </div>`;
  }
}

/** marks q in an element's text; null clears */
export function highlight(root: Element | null, q: string): void {
  const registry = (CSS as unknown as { highlights?: Map<string, unknown> }).highlights;
  const Registry = (globalThis as unknown as { Highlight?: new (...r: Range[]) => unknown }).Highlight;
  if (!registry || !Registry) return;
  registry.delete("found");
  if (!root || !q) return;
  const ranges: Range[] = [];
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const want = q.toLowerCase();
  for (let n = walk.nextNode(); n && ranges.length < 500; n = walk.nextNode()) {
    const text = (n.textContent ?? "").toLowerCase();
    if (text.length !== (n.textContent ?? "").length) continue; // lower case has another length there
    for (let at = text.indexOf(want); at >= 0 && ranges.length < 500; at = text.indexOf(want, at + want.length)) {
      const r = document.createRange();
      r.setStart(n, at);
      r.setEnd(n, at + want.length);
      ranges.push(r);
    }
  }
  registry.set("found", new Registry(...ranges));
}
