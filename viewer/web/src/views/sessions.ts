// All sessions: a list that can be searched and filtered, the tree of forks and
// children, hits in what was said.
import { html } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import * as act from "../actions";
import { aborted, get, say, type SearchAnswer, type ServerFacts, type SessionList, type SessionRow } from "../api";
import { age, bytes, cost, count, date, many, short } from "../format";
import { Virtual } from "../list/virtual";
import { css, Part } from "../parts/element";
import type { Keys } from "../parts/help";
import { note } from "../parts/say";
import { marked } from "../parts/text";
import { link, type Shelf } from "../route";
import { whileSeen } from "../seen";
import { oneLine, visible } from "../text/plain";
import { family, type Placed } from "../list/family";

export const sessionKeys: Keys = [
  ["/", "search"],
  ["j  k", "next, previous session"],
  ["Enter", "open it"],
  ["f", "fork it"],
  ["r", "rename it"],
  ["s", "star it, or not"],
  ["e", "export it"],
  ["A", "archive it"],
  ["D", "delete it: into the trash"],
  ["T", "as a tree, or newest first"],
];

const states = ["", "ok", "open-turn", "here", "locked", "damaged", "newer"] as const;
const stateNames: Record<string, string> = { "": "all", ok: "ok", "open-turn": "turn left open", here: "running here", locked: "written elsewhere", damaged: "damaged", newer: "newer format" };

@customElement("oc-sessions")
export class SessionsView extends Part {
  @property({ attribute: false }) server!: ServerFacts;
  @state() private q = "";
  @state() private filter: (typeof states)[number] = "";
  @state() private tree = false;
  @state() private rows: SessionRow[] = [];
  @state() private total = 0;
  @state() private loaded = false;
  @state() private error = "";
  @state() private hits: SearchAnswer | null = null;
  @state() private chosen = 0;
  private cursor: string | null = null;
  private stop: AbortController | null = null;
  private timer = 0;
  private more = false;
  private stream: EventSource | null = null;
  private unsee: () => void = () => {};
  private shown: Placed[] = [];
  private readonly list = new Virtual(this, {
    scroller: () => this.querySelector<HTMLElement>(".scroll"),
    count: () => this.shown.length,
    estimate: () => 62,
    overscan: 10,
  });

  override connectedCallback(): void {
    super.connectedCallback();
    void this.load();
    this.listen();
    this.unsee = whileSeen(
      () => {
        this.listen();
        this.soon(0);
      },
      () => this.stream?.close(),
    );
  }

  private listen(): void {
    this.stream?.close();
    const s = (this.stream = new EventSource("/api/v1/live"));
    s.addEventListener("sessions", () => this.soon(150));
    // What changed while there was no stream is not told again.
    let lost = false;
    s.addEventListener("hello", () => {
      if (lost) this.soon(0);
      lost = false;
    });
    s.onerror = () => {
      lost = true;
      // The browser gives up for good on an answer that is not a stream.
      if (s.readyState === EventSource.CLOSED && s === this.stream) setTimeout(() => this.isConnected && s === this.stream && this.listenAgain(), 2000);
    };
  }

  private listenAgain(): void {
    this.listen();
    this.soon(0);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.unsee();
    this.stream?.close();
    this.stop?.abort();
    clearTimeout(this.timer);
  }

  protected override updated(): void {
    const [, last] = this.list.range();
    if (this.cursor !== null && !this.more && last >= this.shown.length - 30) void this.next();
  }

  private soon(ms: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.load(), ms);
  }

  /** reads the list anew, as far as it was read before */
  private async load(): Promise<void> {
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    try {
      const want = Math.max(100, this.rows.length);
      let got: SessionRow[] = [];
      let cursor: string | null = null;
      let a: SessionList;
      do {
        a = await get<SessionList>("/sessions", { q: this.q, state: this.filter, limit: 200, cursor }, stop.signal);
        got = got.concat(a.sessions);
        cursor = a.cursor;
      } while (cursor !== null && (got.length < want || this.tree) && got.length < 20_000);
      this.rows = got;
      this.cursor = cursor;
      this.total = a.total;
      this.loaded = true;
      this.error = "";
      if (a.pending > 0) this.soon(1000);
    } catch (err) {
      if (!aborted(err)) this.error = say(err);
    }
    if (this.q.trim().length >= 2 && this.server.search) await this.search(stop.signal);
    else this.hits = null;
  }

  private async next(): Promise<void> {
    this.more = true;
    try {
      const a = await get<SessionList>("/sessions", { q: this.q, state: this.filter, limit: 200, cursor: this.cursor }, this.stop?.signal);
      this.rows = this.rows.concat(a.sessions);
      this.cursor = a.cursor;
    } catch (err) {
      if (!aborted(err)) this.cursor = null;
    } finally {
      this.more = false;
    }
  }

  private async search(signal: AbortSignal): Promise<void> {
    try {
      this.hits = await get<SearchAnswer>("/search", { q: this.q, limit: 20 }, signal);
    } catch (err) {
      if (!aborted(err)) this.hits = null;
    }
  }

  private async moreHits(): Promise<void> {
    if (!this.hits) return;
    const got = await get<SearchAnswer>("/search", { q: this.q, limit: 20, from: this.hits.from + this.hits.hits.length });
    this.hits = { ...got, from: this.hits.from, hits: [...this.hits.hits, ...got.hits] };
  }

  key(e: KeyboardEvent): boolean {
    const row = this.shown[this.chosen]?.row;
    switch (e.key) {
      case "/":
        this.focusSearch();
        return true;
      case "j":
      case "ArrowDown":
        this.choose(this.chosen + 1);
        return true;
      case "k":
      case "ArrowUp":
        this.choose(this.chosen - 1);
        return true;
      case "Enter":
        if (!row || (e.target instanceof HTMLElement && e.target.closest("a,button"))) return false;
        location.hash = link(row.id);
        return true;
      case "f":
        if (row) void act.attempt(() => act.fork(row, null));
        return true;
      case "r":
        if (row) void this.rename(row);
        return true;
      case "s":
        if (row) void this.star(row);
        return true;
      case "e":
        if (row && this.server.exports.length > 0) void act.attempt(() => act.exportIt(this.server, row.id));
        return true;
      case "A":
      case "D":
        if (row && this.server.shelves) void act.attempt(() => this.putAway(row, e.key === "A" ? "archive" : "trash"));
        return true;
      case "T":
        this.setTree(!this.tree);
        return true;
      default:
        return false;
    }
  }

  focusSearch(): void {
    this.querySelector<HTMLInputElement>("input[type=search]")?.focus();
  }

  private choose(n: number): void {
    this.chosen = Math.max(0, Math.min(n, this.shown.length - 1));
    this.list.show(this.chosen, "auto");
  }

  private setTree(on: boolean): void {
    this.tree = on;
    this.list.measure();
    if (on && this.cursor !== null) void this.load();
  }

  private async rename(row: SessionRow): Promise<void> {
    await act.attempt(async () => {
      const title = await act.rename(row.id, row.title);
      if (title !== null) this.change(row.id, { title });
    });
  }

  private change(id: string, part: Partial<SessionRow>): void {
    this.rows = this.rows.map((r) => (r.id === id ? { ...r, ...part } : r));
  }

  private async star(row: SessionRow): Promise<void> {
    await act.attempt(async () => {
      await act.star(row.id, !row.starred);
      this.change(row.id, { starred: !row.starred });
    });
  }

  private async tag(row: SessionRow): Promise<void> {
    await act.attempt(async () => {
      const tags = await act.tag(row.id, row.tags);
      if (tags) this.change(row.id, { tags });
    });
  }

  private async putAway(row: SessionRow, shelf: Shelf): Promise<void> {
    if (await act.putAway(row.id, row.title, shelf)) await this.load();
  }

  private async moreOf(row: SessionRow): Promise<void> {
    if (await act.more(this.server, row.id, row.title, row.here)) await this.load();
  }

  override render() {
    this.shown = this.tree ? family(this.rows) : this.rows.map((row) => ({ row, depth: 0 }));
    const now = Date.now();
    return html`<div class="sessions">
      <div class="bar search-bar">
        <input
          type="search"
          aria-label="Search sessions and what was said"
          placeholder="Search titles, folders, models, and all that was said"
          .value=${this.q}
          @input=${(e: Event) => {
            this.q = (e.target as HTMLInputElement).value;
            this.soon(180);
          }}
          @keydown=${(e: KeyboardEvent) => {
            if (e.key === "Escape") (e.target as HTMLElement).blur();
            if (e.key === "Enter") void this.load();
          }}
        />
        <label class="inline">state <select
          @change=${(e: Event) => {
            this.filter = (e.target as HTMLSelectElement).value as (typeof states)[number];
            void this.load();
          }}
        >
          ${states.map((s) => html`<option value=${s} ?selected=${s === this.filter}>${stateNames[s]}</option>`)}
        </select></label>
        <button aria-pressed=${this.tree} @click=${() => this.setTree(!this.tree)}>Tree</button>
        ${this.server.shelves ? html`<a href="#/archive">Archive</a><a href="#/trash">Trash</a>` : ""}
        <span class="muted found">${this.loaded ? many(this.total, "session") : ""}</span>
      </div>
      ${this.error ? html`<p class="bad">${this.error}</p>` : ""}
      <div class="scroll" tabindex="0">
        ${this.hits && (this.hits.hits.length > 0 || this.hits.indexing) ? this.hitList() : ""}
        ${this.loaded && this.rows.length === 0 ? this.nothing() : ""}
        <div class="rows" role="list" aria-label="Sessions" ${css({ height: `${this.list.total()}px` })}>
          ${this.list.items().map((v) => {
            const s = this.shown[v.index];
            return s
              ? html`<div class="row" role="listitem" data-index=${v.index} ${css({ transform: `translateY(${v.start}px)` })}>${this.row(s, v.index, now)}</div>`
              : "";
          })}
        </div>
      </div>
    </div>`;
  }

  private row({ row: s, depth }: Placed, index: number, now: number) {
    const broken = s.state === "damaged" || s.state === "newer";
    const sum = s.tokens ? (s.tokens.input ?? 0) + (s.tokens.cacheRead ?? 0) + (s.tokens.cacheWrite ?? 0) + (s.tokens.output ?? 0) : null;
    return html`<div class="session depth-${Math.min(depth, 8)} ${index === this.chosen ? "chosen" : ""} ${broken ? "broken" : ""}" @mouseenter=${() => (this.chosen = index)}>
      <div class="session-main">
        ${depth > 0 ? html`<span class="branch" aria-label="from ${s.parent ?? ""}">\u2514</span>` : ""}
        <a class="session-title" href=${link(s.id)}>${s.title ? oneLine(s.title, 120) : html`<span class="muted">${oneLine(s.id, 60)}</span>`}</a>
        ${s.state !== "ok" ? html`<span class="badge ${broken ? "bad" : s.here ? "live" : ""}">${s.here ? "running here" : (stateNames[s.state] ?? oneLine(s.state, 20))}</span>` : s.here ? html`<span class="badge live">running here</span>` : ""}
        ${s.starred ? html`<span aria-label="starred">\u2605</span>` : ""}${s.tags.map((t) => html`<span class="badge">${oneLine(t, 30)}</span>`)}
        <span class="grow"></span>
        <span class="acts">
          <button class="bare" title="Fork" @click=${() => void act.attempt(() => act.fork(s, null))} ?disabled=${broken || !this.server.writable}>fork</button>
          <button class="bare" aria-pressed=${s.starred} title="Star" @click=${() => void this.star(s)} ?disabled=${broken || !this.server.writable}>star</button>
          <button class="bare" title="Tag" @click=${() => void this.tag(s)} ?disabled=${broken || !this.server.writable}>tag</button>
          <button class="bare" title="Rename" @click=${() => void this.rename(s)} ?disabled=${broken || !this.server.writable}>rename</button>
          <button class="bare" title="Export, archive, delete" @click=${() => void act.attempt(() => this.moreOf(s))}>more\u2026</button>
        </span>
        <time title=${date(s.updatedAt)}>${age(s.updatedAt, now)}</time>
      </div>
      <div class="session-more">
        ${broken
          ? html`<span class="bad">${oneLine(s.reason ?? "", 240)}</span>`
          : html`<span class="path">${s.cwd ? oneLine(s.cwd, 120) : ""}</span><span>${s.model ? oneLine(s.model, 50) : ""}</span>
              <span class="num">${s.turns === null ? "\u2013" : many(s.turns, "turn")}</span><span class="num">${s.events === null ? "\u2013" : many(s.events, "event")}</span>
              <span class="num">${short(sum)} tokens</span><span class="num">${cost(s.costMicroUSD)}</span><span class="num">${bytes(s.bytes)}</span>${s.reason ? html`<span>${oneLine(s.reason, 160)}</span>` : ""}`}
      </div>
    </div>`;
  }

  private hitList() {
    const h = this.hits!;
    return html`<section class="hits" aria-label="Found in what was said">
      <h2>Found in what was said ${h.indexing ? html`<span class="muted">(indexing: ${count(h.indexing.done)} of ${count(h.indexing.all)})</span>` : ""}</h2>
      ${h.hits.map(
        (x) => html`<a class="hit" href=${link(x.session, "talk", { seq: x.seq })}>
          <span class="hit-head"><b>${oneLine(x.title ?? x.session, 80)}</b> <span class="muted">${x.seq} ${oneLine(x.role, 20)}, ${date(x.time)}</span></span>
          <span class="hit-text">${marked(x.text, x.spans)}</span>
        </a>`,
      )}
      ${h.more ? html`<button class="more" @click=${() => void this.moreHits()}>More hits</button>` : ""}
    </section>`;
  }

  private nothing() {
    if (this.q || this.filter) return html`<p class="empty">No session fits.</p>`;
    return html`<div class="empty first">
      <p>No sessions in <code>${visible(this.server.store)}</code>. Try:</p>
      <p>
        <code class="command">${visible(this.server.demo)}</code>
        <button
          @click=${async () => {
            await navigator.clipboard.writeText(this.server.demo);
            note("Copied.");
          }}
        >
          Copy
        </button>
      </p>
    </div>`;
  }
}
