// One event beside the picture or the conversation: raw and rendered, where it
// came from and what became of it.
import { html } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { aborted, address, get, say, session, type EventFacts, type Item } from "../api";
import { bytes, count, date, many } from "../format";
import { clip, oneLine, pretty } from "../text/plain";
import { Part } from "./element";
import { itemView, type Around } from "./item";

@customElement("oc-event")
export class EventPanel extends Part {
  @property() session = "";
  @property({ type: Number }) seq: number | null = null;
  @state() private facts: EventFacts | null = null;
  @state() private error = "";
  @state() private raw = false;
  private stop: AbortController | null = null;

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("seq") || changed.has("session")) void this.load();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stop?.abort();
  }

  private async load(): Promise<void> {
    this.stop?.abort();
    this.error = "";
    if (this.seq === null) {
      this.facts = null;
      return;
    }
    const stop = (this.stop = new AbortController());
    try {
      this.facts = await get<EventFacts>(`${session(this.session)}/events/${this.seq}`, {}, stop.signal);
    } catch (err) {
      if (!aborted(err)) this.error = say(err);
    }
  }

  private go(seq: number): void {
    this.dispatchEvent(new CustomEvent("go", { detail: seq, bubbles: true }));
  }

  private close(): void {
    this.dispatchEvent(new CustomEvent("go", { detail: null, bubbles: true }));
  }

  private readonly around: Around = {
    isOpen: () => true,
    toggle: () => {},
    whole: (item: Item) => void this.whole(item),
    actions: () => html``,
    version: () => {},
    go: (seq) => this.go(seq),
    unfold: () => {},
    durable: Infinity,
    live: false,
  };

  private async whole(item: Item): Promise<void> {
    try {
      const got = await get<{ item: Item }>(`${session(this.session)}/conversation/${item.seq}`);
      if (this.facts?.seq === item.seq) this.facts = { ...this.facts, item: got.item };
    } catch (err) {
      this.error = say(err);
    }
  }

  private seqs(list: readonly number[], total: number) {
    return html`${list.slice(0, 60).map((n) => html`<button class="bare seq" @click=${() => this.go(n)}>${n}</button> `)}${total > 60
      ? html`<span class="muted">and ${count(total - 60)} more</span>`
      : ""}`;
  }

  override render() {
    if (this.seq === null) return html``;
    const f = this.facts;
    return html`<aside class="event" aria-label="Event ${this.seq}">
      <header>
        <h2>Event ${this.seq}</h2>
        ${f ? html`<code>${oneLine(f.type, 60)}</code>` : ""}<span class="grow"></span>
        <button class="bare close" aria-label="Close event" @click=${() => this.close()}>\u00d7</button>
      </header>
      ${this.error ? html`<p class="bad">${this.error}</p>` : ""}
      ${f && f.seq === this.seq
        ? html`<dl class="facts">
              <dt>time</dt>
              <dd>${date(f.time)}</dd>
              <dt>state</dt>
              <dd>${f.state === "surface" ? "on the surface: the model sees it" : f.state === "shadowed" ? "shadowed: still in the log" : "log only"}</dd>
              ${f.turn !== null ? html`<dt>turn</dt><dd>${f.turn}${f.step !== null ? `, step ${f.step}` : ""}</dd>` : ""}
              ${f.tokens !== null ? html`<dt>tokens</dt><dd>${count(f.tokens)} <span class="muted">estimated</span></dd>` : ""}
              <dt>size</dt>
              <dd>${bytes(f.bytes)}</dd>
              ${f.coveredBy.length > 0 ? html`<dt>covered by</dt><dd>${this.seqs(f.coveredBy, f.coveredBy.length)}</dd>` : ""}
              ${f.coversTotal > 0 ? html`<dt>covers</dt><dd>${this.seqs(f.covers, f.coversTotal)}</dd>` : ""}
              ${f.sources && f.sources.length > 0 ? html`<dt>sources</dt><dd>${this.seqs(f.sources, f.sourcesTotal)}</dd>` : ""}
            </dl>
            <div class="tabs small" role="tablist" aria-label="How to show it">
              <button role="tab" aria-selected=${!this.raw} @click=${() => (this.raw = false)}>As read</button>
              <button role="tab" aria-selected=${this.raw} @click=${() => (this.raw = true)}>Raw</button>
              <span class="grow"></span>
              <a href=${address(`${session(this.session)}/events/${f.seq}/raw`)} download>Download</a>
            </div>
            ${this.raw || !f.item
              ? html`${f.exact ? "" : html`<p class="muted">${f.masked > 0 ? many(f.masked, "secret") + " masked. " : ""}${f.cut ? "Cut at 8 MiB. " : ""}Not byte for byte as stored.</p>`}
                <oc-code .code=${[pretty(clip(f.raw, 300_000)), "json"]}></oc-code>
                ${f.raw.length > 300_000 ? html`<p class="muted">The first ${count(300_000)} of ${count(f.raw.length)} characters; download it to see all.</p>` : ""}`
              : itemView(f.item, this.around)}
            ${f.origins.length > 1
              ? html`<details class="origins"><summary>Where it came from</summary>
                  <ol>
                    ${f.origins.slice(0, 200).map(
                      (o) => html`<li class="depth-${Math.min(o.depth, 6)}"><button class="bare seq" @click=${() => this.go(o.first)}>${o.first}${o.last > o.first ? `\u2013${o.last}` : ""}</button> <code>${oneLine(o.type, 50)}</code></li>`,
                    )}
                  </ol></details>`
              : ""}`
        : this.error
          ? ""
          : html`<p class="muted">Reading\u2026</p>`}
    </aside>`;
  }
}
