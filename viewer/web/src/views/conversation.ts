// The conversation as people read it: every message that was appended, also what
// the model does not see any more, live while an agent works.
import { html, type PropertyValues } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import * as act from "../actions";
import { get, session, type Conversation, type FindHit, type Item } from "../api";
import type { RecordNews } from "../live";
import { Pages } from "../list/pages";
import { Virtual } from "../list/virtual";
import type { Change, Model } from "../model";
import { css, Part } from "../parts/element";
import { highlight } from "../parts/find";
import type { Keys } from "../parts/help";
import { draftView, guess, itemView, type Around } from "../parts/item";
import { complain } from "../parts/say";

export const conversationKeys: Keys = [
  ["n  p", "next, previous prompt"],
  ["j  k", "next, previous item"],
  ["Home  End", "first, last item"],
  ["o", "open or fold what stands at the top of the screen"],
  ["O", "open all calls and reasoning, or fold them"],
  ["a", "show what was rewound, or hide it"],
  ["w", "write a prompt"],
];

@customElement("oc-conversation")
export class ConversationView extends Part {
  @property({ attribute: false }) model!: Model;
  @property({ attribute: false }) writable = false;
  @property({ attribute: false }) target: number | null = null; // a seq to go to
  @state() private all = false;
  @state() private flash: number | null = null;
  private total = 0;
  private opened = new Set<string>();
  private folded = new Set<string>(); // against openAll
  @state() private openAll = false;
  private uncut = new Map<number, Item>();
  private pages!: Pages<Item>;
  private follow = true; // the end stays in sight
  private begun = false;
  private found = "";
  private pins = ""; // that the items here show
  private off: (() => void) | null = null;
  private readonly list = new Virtual(this, {
    scroller: () => this.querySelector<HTMLElement>(".scroll"),
    count: () => this.total + (this.drafting ? 1 : 0),
    estimate: (i) => guess(this.pages?.at(i)),
    overscan: 8,
  });

  private get drafting(): boolean {
    return this.model.draft.length > 0;
  }

  override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("model")) {
      this.off?.();
      this.off = this.model.on((c) => this.news(c));
      this.total = this.model.facts.items;
      this.pages = new Pages<Item>(
        async (from, limit, signal) => {
          const got = await get<Conversation>(`${session(this.model.id)}/conversation`, { from, limit, all: this.all }, signal);
          if (this.all || got.total > this.total) this.total = Math.max(this.total, got.total);
          return got.items;
        },
        () => this.requestUpdate(),
        50,
      );
      this.pins = this.model.facts.pins.join();
      this.opened.clear();
      this.begun = false;
      this.follow = true;
    }
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.off?.();
    highlight(null, "");
  }

  protected override updated(changed: PropertyValues<this>): void {
    const [first, last] = this.list.range();
    this.pages.want(first, last, this.total);
    if (changed.has("target") && this.target !== null) {
      this.begun = true;
      void this.goTo(this.target);
    } else if (!this.begun && this.total > 0) {
      this.begun = true;
      this.toEnd();
    }
    if (this.follow && this.begun) {
      if (!this.list.atEnd(2)) this.toEnd();
      this.list.settle(); // what became shorter may have moved it
    }
    if (this.found) highlight(this.querySelector(".scroll"), this.found);
  }

  private toEnd(): void {
    const n = this.total + (this.drafting ? 1 : 0);
    if (n > 0) this.list.show(n - 1, "end");
  }

  private scrolled(): void {
    // Rows that get their height move the end away, and the browser says so late;
    // only the reader lets go of it.
    if (this.list.untouched) return;
    this.leave();
    this.follow = this.list.atEnd(60);
  }

  private news(c: Change): void {
    if (c.what === "record") this.record(c.record);
    if (c.what === "batch") {
      this.pages.forget(this.all ? 0 : c.batch.foldsFrom);
      this.total = this.all ? Math.max(this.total, c.batch.items) : c.batch.items;
    }
    if (c.what === "reset") {
      this.pages.forget();
      this.uncut.clear();
      this.total = this.model.facts.items;
    }
    if (c.what === "facts" && this.model.facts.pins.join() !== this.pins) {
      this.pins = this.model.facts.pins.join();
      const pinned = new Set(this.model.facts.pins);
      this.pages.change((item) => {
        item.pinned = pinned.has(item.seq);
      });
    }
    this.requestUpdate();
  }

  private record(r: RecordNews): void {
    if (r.shadowed) {
      const gone = new Set(r.shadowed);
      this.pages.change((item) => {
        if (gone.has(item.seq)) item.covered = r.seq;
      });
    }
    if (r.foldsFrom !== null) {
      this.pages.forget(this.all ? 0 : r.foldsFrom);
      if (this.all) this.total++;
      else this.total = r.items;
      return;
    }
    if (!r.item) {
      if (!this.all) this.total = r.items;
      return;
    }
    const result = r.item;
    if (result.kind === "result") {
      this.pages.change((item) => {
        const call = item.seq === result.callSeq ? item.blocks?.find((b) => b.id === result.callId) : undefined;
        if (call) Object.assign(call, { result: r.seq, state: result.isError ? "error" : "ok" });
      });
    }
    const index = this.all ? this.total : r.item.index;
    this.total = this.all ? this.total + 1 : r.items;
    this.pages.put(index, r.item);
  }

  private heading: { seq: number } | null = null; // where the list is going just then

  /** the reader goes elsewhere: what is still on its way does not pull back */
  private leave(): void {
    this.heading = null;
  }

  /** scrolls to the item of an event and marks it for a moment */
  async goTo(seq: number, open?: string): Promise<void> {
    const heading = (this.heading = { seq });
    try {
      const path = `${session(this.model.id)}/conversation/${seq}`;
      let { item } = await get<{ item: Item }>(path, { all: this.all });
      if (this.heading !== heading) return;
      if (item.rewound && !this.all) {
        this.setAll(true);
        ({ item } = await get<{ item: Item }>(path, { all: true }));
        this.total = Math.max(this.total, item.index + 1);
      }
      if (this.heading !== heading) return;
      if (open) this.opened.add(open);
      this.follow = false;
      await this.updateComplete;
      if (this.heading !== heading) return;
      this.heading = null;
      this.list.show(item.index, "center");
      this.flash = seq;
      setTimeout(() => this.flash === seq && (this.flash = null), 1600);
      this.requestUpdate();
    } catch (err) {
      if (this.heading === heading) complain(err);
    }
  }

  /** shows a hit of find: what holds it is opened */
  showHit(hit: FindHit, q: string): void {
    this.found = q;
    if (hit.part !== "text" || hit.kind === "context") {
      this.opened.add(`${hit.seq}:all`);
      this.opened.add(`${hit.seq}:result`);
      for (let i = 0; i < 40; i++) this.opened.add(`${hit.seq}:${i}`);
    }
    void this.goTo(hit.seq);
  }

  endFind(): void {
    this.found = "";
    highlight(null, "");
  }

  private setAll(on: boolean): void {
    this.all = on;
    this.pages.forget();
    this.total = this.model.facts.items;
    this.list.measure();
  }

  /** answers a key; false when it means nothing here */
  key(e: KeyboardEvent): boolean {
    const [first] = this.list.range();
    switch (e.key) {
      case "n":
      case "p":
        void this.prompt(e.key === "n" ? 1 : -1);
        return true;
      case "j":
      case "k":
        this.leave();
        this.follow = false;
        this.list.show(Math.min(this.total - 1, Math.max(0, first + (e.key === "j" ? 1 : -1))), "start");
        return true;
      case "Home":
        this.leave();
        this.follow = false;
        this.list.show(0, "start");
        return true;
      case "End":
        this.leave();
        this.follow = true;
        this.toEnd();
        return true;
      case "o": {
        const item = this.pages.at(first);
        if (item) for (const k of this.keysOf(item)) this.toggle(k);
        return true;
      }
      case "O":
        this.openAll = !this.openAll;
        this.opened.clear();
        this.folded.clear();
        return true;
      case "a":
        this.setAll(!this.all);
        return true;
      default:
        return false;
    }
  }

  private keysOf(item: Item): string[] {
    if (item.kind === "result") return [`${item.seq}:result`];
    if (item.kind === "context") return [`${item.seq}:all`];
    return (item.blocks ?? []).flatMap((b, i) => (b.type === "call" || b.type === "reasoning" ? [`${item.seq}:${i}`] : []));
  }

  private last = -1;

  private async prompt(by: number): Promise<void> {
    const prompts = this.model.facts.prompts;
    if (prompts.length === 0) return;
    const [first] = this.list.range();
    // From the prompt that the list goes to, or went to last, while it is in
    // sight; else from the screen.
    const here = this.heading && prompts.includes(this.heading.seq) ? this.heading.seq : this.flash !== null && prompts.includes(this.flash) ? this.flash : (this.pages.at(first)?.seq ?? this.last);
    const next = by > 0 ? prompts.find((s) => s > here) : prompts.findLast((s) => s < here);
    if (next === undefined) return;
    this.last = next;
    await this.goTo(next);
  }

  private isOpen(key: string): boolean {
    return this.openAll ? !this.folded.has(key) : this.opened.has(key);
  }

  private toggle(key: string): void {
    const set = this.openAll ? this.folded : this.opened;
    if (set.has(key)) set.delete(key);
    else set.add(key);
    this.follow = false;
    this.requestUpdate();
  }

  private async whole(item: Item): Promise<void> {
    try {
      const got = await get<{ item: Item }>(`${session(this.model.id)}/conversation/${item.seq}`);
      this.uncut.set(item.seq, got.item);
      if (this.uncut.size > 8) this.uncut.delete(this.uncut.keys().next().value!);
      this.requestUpdate();
    } catch (err) {
      complain(err);
    }
  }

  private readonly around: Around = {
    isOpen: (k) => this.isOpen(k),
    toggle: (k) => this.toggle(k),
    whole: (item) => void this.whole(item),
    actions: (item) => this.actions(item),
    version: (item, by) => {
      const v = item.versions;
      const seq = v?.seqs[v.n - 1 + by];
      if (seq !== undefined) void this.goTo(seq);
    },
    go: (seq) => this.dispatchEvent(new CustomEvent("go", { detail: seq, bubbles: true })),
    unfold: (item) => {
      this.setAll(true);
      void this.goTo(item.first ?? item.seq);
    },
    durable: Infinity,
    live: false,
  };

  private actions(item: Item) {
    if (!this.writable) return html``;
    const m = this.model;
    const closed = m.facts.writer.where === "elsewhere";
    const do_ = (f: () => Promise<void>) => () => void act.attempt(f);
    const isPrompt = item.kind === "user" && (item.source?.kind ?? "user") === "user";
    const onSurface = item.covered === null && !item.rewound;
    return html`<span class="acts" role="group" aria-label="Actions for ${item.seq}">
      ${isPrompt && !closed && !item.rewound
        ? html`<button class="bare" ?disabled=${m.busy} @click=${do_(() => act.retry(m, item, true))}>edit</button>
            <button class="bare" ?disabled=${m.busy} @click=${do_(() => act.retry(m, item, false))}>retry</button>
            <button class="bare" ?disabled=${m.busy} @click=${do_(() => act.rewind(m, item.seq))}>rewind</button>`
        : ""}
      ${onSurface && !closed && item.kind !== "prune" ? html`<button class="bare" @click=${do_(async () => {
                await act.pin(m, item.seq, !item.pinned);
              })}>${item.pinned ? "unpin" : "pin"}</button>` : ""}
      ${item.kind === "result" && onSurface && !closed && item.pruned === null ? html`<button class="bare" ?disabled=${m.busy} @click=${do_(() => act.edit(m, "prune", { nodes: [item.seq] }))}>prune</button>` : ""}
      ${isPrompt || item.kind === "assistant" ? html`<button class="bare" @click=${do_(() => act.fork(m, item.seq))}>fork</button>` : ""}
    </span>`;
  }

  override render() {
    const m = this.model;
    this.around.durable = m.facts.writer.where === "here" ? m.facts.durable : Infinity;
    const rows = this.list.items();
    return html`<div class="scroll conversation" tabindex="0" role="feed" aria-label="Conversation" aria-busy=${this.drafting} @scroll=${() => this.scrolled()}>
      ${this.total === 0 && !this.drafting ? html`<p class="empty">Nothing was said yet.</p>` : ""}
      <div class="rows" ${css({ height: `${this.list.total()}px` })}>
        ${rows.map((v) => {
          const item = this.pages.at(v.index);
          const shown = item && (this.uncut.get(item.seq) ? { ...item, blocks: this.uncut.get(item.seq)!.blocks ?? [] } : item);
          return html`<div class="row ${item && item.seq === this.flash ? "flash" : ""}" data-index=${v.index} data-seq=${item?.seq ?? ""} ${css({ transform: `translateY(${v.start}px)` })}>
            ${v.index >= this.total ? draftView(m.draft) : shown ? itemView(shown, this.around) : html`<div class="item waiting" aria-hidden="true"><span class="muted">item ${v.index}</span></div>`}
          </div>`;
        })}
      </div>
    </div>
    <div class="under">
      <span class="muted">${this.total} items${this.all ? ", rewound ones too" : ""}</span>
      ${!this.follow ? html`<button class="bare" @click=${() => (this.leave(), (this.follow = true), this.toEnd())}>to the end \u2193</button>` : ""}
    </div>`;
  }
}
