// Every event of the log, in order; a run of chunks is one entry.
import { html, type PropertyValues } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { get, session, type Place, type Row, type Rows } from "../api";
import { count, many, time } from "../format";
import { Pages } from "../list/pages";
import { Virtual } from "../list/virtual";
import type { Change, Model } from "../model";
import { css, Part } from "../parts/element";
import type { Keys } from "../parts/help";
import { complain } from "../parts/say";
import { oneLine } from "../text/plain";

export const logKeys: Keys = [
  ["j  k", "next, previous entry"],
  ["Enter", "look at the event"],
  ["Home  End", "first, last entry"],
  ["PgUp  PgDn", "a screen up, down"],
];

export const rowPx = 26;

@customElement("oc-log")
export class LogView extends Part {
  @property({ attribute: false }) model!: Model;
  @property({ attribute: false }) target: number | null = null;
  @state() private chosen = 0;
  private total = 0;
  private follow = true;
  private begun = false;
  private pages!: Pages<Row>;
  private off: (() => void) | null = null;
  private readonly list = new Virtual(this, {
    scroller: () => this.querySelector<HTMLElement>(".scroll"),
    count: () => this.total,
    estimate: () => rowPx,
    overscan: 20,
    fixed: true,
  });

  override willUpdate(changed: PropertyValues<this>): void {
    if (!changed.has("model")) return;
    this.off?.();
    this.off = this.model.on((c) => this.news(c));
    this.total = this.model.facts.rows;
    this.begun = false;
    this.follow = true;
    this.pages = new Pages<Row>(
      async (from, limit, signal) => (await get<Rows>(`${session(this.model.id)}/events`, { row: from, limit }, signal)).events,
      () => this.requestUpdate(),
      200,
      30,
    );
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.off?.();
  }

  protected override updated(changed: PropertyValues<this>): void {
    const [first, last] = this.list.range();
    this.pages.want(first, last, this.total);
    if (changed.has("target") && this.target !== null) {
      this.begun = true;
      this.follow = false;
      void this.goTo(this.target);
    } else if (!this.begun && this.total > 0) {
      this.begun = true;
      this.chosen = this.total - 1;
      this.toEnd();
    } else if (this.follow) {
      if (!this.list.atEnd(2)) this.toEnd();
      this.list.settle();
    }
  }

  private scrolled(): void {
    // What came meanwhile moves the end away; only the reader lets go of it.
    if (this.list.untouched) return;
    this.heading = null;
    this.follow = this.list.atEnd(40);
  }

  private toEnd(): void {
    this.list.show(this.total - 1, "end");
  }

  private news(c: Change): void {
    if (c.what === "record") {
      this.pages.put(c.record.row, c.record);
      this.total = Math.max(this.total, c.record.row + 1);
    } else if (c.what === "batch") {
      this.pages.forget(Math.max(0, this.total - 1)); // the last run may have grown
      this.total = c.batch.rows;
    } else if (c.what === "reset") {
      this.pages.forget();
      this.total = this.model.facts.rows;
    }
    this.requestUpdate();
  }

  private heading: number | null = null; // the event that the list is going to just then

  private async goTo(seq: number): Promise<void> {
    this.heading = seq;
    try {
      const at = await get<Place>(`${session(this.model.id)}/band/at`, { seq });
      // Who went elsewhere meanwhile is not pulled back.
      if (this.heading === seq) this.choose(at.row);
    } catch (err) {
      complain(err);
    }
  }

  private choose(row: number): void {
    this.heading = null;
    this.chosen = Math.min(Math.max(0, row), this.total - 1);
    this.list.show(this.chosen, "auto");
  }

  key(e: KeyboardEvent): boolean {
    switch (e.key) {
      case "j":
      case "ArrowDown":
        this.follow = false;
        this.choose(this.chosen + 1);
        return true;
      case "k":
      case "ArrowUp":
        this.follow = false;
        this.choose(this.chosen - 1);
        return true;
      case "Home":
        this.follow = false;
        this.choose(0);
        return true;
      case "End":
        this.follow = true;
        this.choose(this.total - 1);
        return true;
      case "Enter": {
        const r = this.pages.at(this.chosen);
        if (r) this.open(r.seq);
        return true;
      }
      default:
        return false;
    }
  }

  private open(seq: number): void {
    this.dispatchEvent(new CustomEvent("go", { detail: seq, bubbles: true }));
  }

  override render() {
    return html`<div
        class="scroll log"
        tabindex="0"
        role="grid"
        aria-label="Events"
        aria-rowcount=${this.total}
        @scroll=${() => this.scrolled()}
      >
        <div class="rows" role="rowgroup" ${css({ height: `${this.list.total()}px` })}>
          ${this.list.items().map((v) => {
            const r = this.pages.at(v.index);
            return html`<div
              class="row log-row ${r?.lane ?? "waiting"} ${v.index === this.chosen ? "chosen" : ""}"
              role="row"
              aria-rowindex=${v.index + 1}
              aria-selected=${v.index === this.chosen}
              data-index=${v.index}
              ${css({ transform: `translateY(${v.start}px)` })}
              @click=${() => {
                this.chosen = v.index;
                if (r) this.open(r.seq);
              }}
            >
              ${r
                ? html`<span role="gridcell" class="num seq">${r.count > 1 ? `${r.seq}\u2013${r.last}` : r.seq}</span><time role="gridcell">${time(r.time)}</time
                    ><span role="gridcell" class="type">${oneLine(r.type, 60)}${r.count > 1 ? html` <span class="muted">\u00d7${count(r.count)}</span>` : ""}</span
                    ><span role="gridcell" class="op">${r.op === "append" ? "append" : r.op ? `replace ${r.op.replace[0]}\u2026${r.op.replace[1]}` : ""}</span
                    ><span role="gridcell" class="what">${oneLine(r.what, 200)}</span>`
                : html`<span role="gridcell" class="num seq muted">row ${v.index}</span>`}
            </div>`;
          })}
        </div>
      </div>
      <div class="under"><span class="muted">${many(this.model.facts.events, "event")} in ${many(this.total, "entry", "entries")}</span></div>`;
  }
}
