// What was put away, in the archive or in the trash, and the way back.
import { html, type PropertyValues } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import * as act from "../actions";
import { aborted, get, say, type ShelfList, type ShelvedRow } from "../api";
import { age, bytes, date, many } from "../format";
import { Virtual } from "../list/virtual";
import { css, Part } from "../parts/element";
import type { Keys } from "../parts/help";
import { note } from "../parts/say";
import { link, type Shelf } from "../route";
import { oneLine } from "../text/plain";

export const shelfKeys: Keys = [
  ["j  k", "next, previous session"],
  ["u", "put it back"],
  ["g", "all sessions"],
];

@customElement("oc-shelf")
export class ShelfView extends Part {
  @property({ attribute: false }) shelf: Shelf = "archive";
  @state() private rows: ShelvedRow[] = [];
  @state() private loaded = false;
  @state() private error = "";
  @state() private chosen = 0;
  @state() private moving: string | null = null; // the one that is put back just then
  private stop: AbortController | null = null;
  private readonly list = new Virtual(this, {
    scroller: () => this.querySelector<HTMLElement>(".scroll"),
    count: () => this.rows.length,
    estimate: () => 62,
    overscan: 10,
  });

  override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("shelf")) void this.load();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stop?.abort();
  }

  private async load(): Promise<void> {
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    try {
      this.rows = (await get<ShelfList>("/shelves/" + this.shelf, {}, stop.signal)).sessions;
      this.loaded = true;
      this.error = "";
      this.chosen = Math.min(this.chosen, Math.max(0, this.rows.length - 1));
    } catch (err) {
      if (!aborted(err)) this.error = say(err);
    }
  }

  private async back(row: ShelvedRow): Promise<void> {
    if (this.moving !== null) return;
    this.moving = row.id;
    await act.attempt(async () => {
      await act.restore(this.shelf, row.id);
      note(`${oneLine(row.title ?? row.id, 60)} is back.`);
    });
    this.moving = null;
    await this.load();
  }

  key(e: KeyboardEvent): boolean {
    const row = this.rows[this.chosen];
    switch (e.key) {
      case "j":
      case "ArrowDown":
        this.choose(this.chosen + 1);
        return true;
      case "k":
      case "ArrowUp":
        this.choose(this.chosen - 1);
        return true;
      case "u":
        if (row) void this.back(row);
        return true;
      default:
        return false;
    }
  }

  private choose(n: number): void {
    this.chosen = Math.max(0, Math.min(n, this.rows.length - 1));
    this.list.show(this.chosen, "auto");
  }

  override render() {
    const now = Date.now();
    const other: Shelf = this.shelf === "archive" ? "trash" : "archive";
    return html`<div class="sessions">
      <div class="bar search-bar">
        <h1>${this.shelf === "archive" ? "Archive" : "Trash"}</h1>
        <span class="muted found">${this.loaded ? many(this.rows.length, "session") : ""}</span>
        <span class="grow"></span>
        <a href=${link(null)}>All sessions</a><a href="#/${other}">${other === "archive" ? "Archive" : "Trash"}</a>
      </div>
      ${this.error ? html`<p class="bad">${this.error}</p>` : ""}
      <div class="scroll" tabindex="0">
        ${this.loaded && this.rows.length === 0 ? html`<p class="empty">${this.shelf === "archive" ? "Nothing was put into the archive." : "The trash is empty."}</p>` : ""}
        <div class="rows" role="list" aria-label=${this.shelf === "archive" ? "Archived sessions" : "Sessions in the trash"} ${css({ height: `${this.list.total()}px` })}>
          ${this.list.items().map((v) => {
            const r = this.rows[v.index];
            return r ? html`<div class="row" role="listitem" data-index=${v.index} ${css({ transform: `translateY(${v.start}px)` })}>${this.row(r, v.index, now)}</div>` : "";
          })}
        </div>
      </div>
    </div>`;
  }

  private row(r: ShelvedRow, index: number, now: number) {
    return html`<div class="session shelved ${index === this.chosen ? "chosen" : ""}" @mouseenter=${() => (this.chosen = index)}>
      <div class="session-main">
        <span class="session-title">${r.title ? oneLine(r.title, 120) : html`<span class="muted">${oneLine(r.id, 60)}</span>`}</span>
        ${r.unfinished ? html`<span class="badge bad" title="A move was interrupted; the next one finishes it or takes it back">half moved</span>` : ""}${r.starred ? html`<span aria-label="starred">\u2605</span>` : ""}
        <span class="grow"></span>
        <button @click=${() => void this.back(r)} ?disabled=${this.moving !== null}>${this.moving === r.id ? "Putting back\u2026" : "Put back"}</button>
        <time title="put here ${date(r.at)}">${age(r.at, now)}</time>
      </div>
      <div class="session-more">
        <span class="path">${r.cwd ? oneLine(r.cwd, 120) : ""}</span><span>${oneLine(r.id, 60)}</span>
        <span class="num">${many(r.turns, "turn")}</span><span class="num">${many(r.events, "event")}</span><span class="num">${bytes(r.bytes)}</span>
      </div>
    </div>`;
  }
}
