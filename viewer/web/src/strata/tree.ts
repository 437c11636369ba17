// The strata without a picture: a tree for arrow keys and screen readers. It
// holds the way from the surface down to the node in focus, its neighbours and
// what it covers; the rest is a key away, so a million nodes cost nothing.
import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { aborted, get, session, type NodeFacts } from "../api";
import { count, many } from "../format";
import { gist } from "../text/plain";
import { Part } from "../parts/element";
import { complain } from "../parts/say";
import { flag } from "./scene";

const restTime = 120; // ms

@customElement("oc-strata-tree")
export class StrataTree extends Part {
  @property() session = "";
  @property({ type: Number }) at = -1;
  @property({ type: Number }) first: number | null = null; // the leftmost node of the surface
  @property({ type: Number }) focusSeq: number | null = null;
  @state() private node: NodeFacts | null = null;
  @state() private beside: (NodeFacts | null)[] = [null, null];
  @state() private ups: NodeFacts[] = [];
  @state() private downs: NodeFacts[] = [];
  private stop: AbortController | null = null;
  private rest = 0; // timer
  private focusNext = false;

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("session") || changed.has("focusSeq")) {
      clearTimeout(this.rest);
      void this.load();
    } else if (changed.has("at") || changed.has("first")) {
      // The picture follows each step of the cursor; the tree, which asks for
      // each of its nodes, follows when it rests.
      clearTimeout(this.rest);
      this.rest = window.setTimeout(() => void this.load(), this.node ? restTime : 0);
    }
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.rest);
    this.stop?.abort();
  }

  private facts(seq: number, signal: AbortSignal): Promise<NodeFacts> {
    return get<NodeFacts>(`${session(this.session)}/strata/node/${seq}`, { at: this.at }, signal);
  }

  private async load(): Promise<void> {
    const seq = this.focusSeq ?? this.first;
    this.stop?.abort();
    if (seq === null) {
      this.node = null;
      return;
    }
    const stop = (this.stop = new AbortController());
    try {
      const node = await this.facts(seq, stop.signal);
      const ups: NodeFacts[] = [];
      for (let up = node.up; up !== null && ups.length < 12; up = ups[0]!.up) ups.unshift(await this.facts(up, stop.signal));
      const [beside, downs] = await Promise.all([
        Promise.all([node.left, node.right].map((n) => (n === null ? null : this.facts(n, stop.signal)))),
        Promise.all(node.down.slice(0, 6).map((n) => this.facts(n, stop.signal))),
      ]);
      this.ups = ups;
      this.beside = beside;
      this.downs = downs;
      this.node = node;
      await this.updateComplete;
      if (this.focusNext) this.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
      this.focusNext = false;
    } catch (err) {
      if (!aborted(err)) {
        this.node = null;
        if (this.focusSeq !== null) this.pick(null);
        else complain(err);
      }
    }
  }

  private pick(seq: number | null): void {
    this.dispatchEvent(new CustomEvent("pick", { detail: seq, bubbles: true }));
  }

  private key(e: KeyboardEvent): void {
    const n = this.node;
    if (!n || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
    const to: Record<string, number | null | undefined> = {
      ArrowLeft: n.left,
      ArrowRight: n.right,
      ArrowUp: n.up,
      ArrowDown: n.down[0],
    };
    if (e.key === "Enter" || e.key === " ") {
      this.dispatchEvent(new CustomEvent("go", { detail: n.seq, bubbles: true }));
    } else if (e.key in to) {
      const next = to[e.key];
      if (next !== null && next !== undefined) {
        this.focusNext = true;
        this.pick(next);
      }
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }

  private item(n: NodeFacts, selected: boolean, level: number) {
    const words = [
      `${n.seq} ${n.kind}`,
      n.flags & flag.rewind ? "rewind" : "",
      `${count(n.tokens)} tokens`,
      n.flags & flag.pinned ? "pinned" : "",
      n.up !== null ? `covered by ${n.up}` : "",
      n.downTotal > 0 ? `covers ${many(n.downTotal, "node")}` : "",
    ].filter(Boolean);
    return html`<div
      role="treeitem"
      class="tree-item ${n.kind} ${selected ? "selected" : ""} level-${Math.min(level, 8)}"
      aria-level=${level}
      aria-selected=${selected}
      aria-expanded=${n.downTotal > 0 ? String(selected) : nothing}
      tabindex=${selected ? 0 : -1}
      @click=${() => {
        this.focusNext = true;
        this.pick(n.seq);
      }}
      @dblclick=${() => this.dispatchEvent(new CustomEvent("go", { detail: n.seq, bubbles: true }))}
    >
      <span class="tree-words">${words.join(", ")}</span> <span class="muted tree-what">${gist(n.what, 100)}</span>
    </div>`;
  }

  override render() {
    const n = this.node;
    if (!n) return html`<div role="tree" class="tree" aria-label="Strata" tabindex="0"></div>`;
    const level = this.ups.length + 1;
    const [left, right] = this.beside;
    return html`<div role="tree" class="tree" aria-label="Strata: the surface and what lies under it" @keydown=${(e: KeyboardEvent) => this.key(e)}>
      ${this.ups.map((u, i) => this.item(u, false, i + 1))} ${left ? this.item(left, false, level) : ""} ${this.item(n, true, level)}
      ${this.downs.map((d) => this.item(d, false, level + 1))}
      ${n.downTotal > this.downs.length ? html`<div class="muted level-${Math.min(level + 1, 8)}">and ${count(n.downTotal - this.downs.length)} more below</div>` : ""}
      ${right ? this.item(right, false, level) : ""}
    </div>`;
  }
}
