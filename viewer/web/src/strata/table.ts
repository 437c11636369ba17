// The surface as a table: the strata's top row in words.
import { html } from "lit";
import { customElement, property } from "lit/decorators.js";
import { get, session, type TableRow } from "../api";
import { count } from "../format";
import { Pages } from "../list/pages";
import { Virtual } from "../list/virtual";
import { css, Part } from "../parts/element";
import { letters, type Role } from "../palette";
import { gist } from "../text/plain";
import { flag } from "./scene";

const rowPx = 30;

@customElement("oc-strata-table")
export class StrataTable extends Part {
  @property() session = "";
  @property({ type: Number }) at = -1;
  private total = 0;
  private pages!: Pages<TableRow>;
  private readonly list = new Virtual(this, {
    scroller: () => this.querySelector<HTMLElement>(".scroll"),
    count: () => this.total,
    estimate: () => rowPx,
    fixed: true,
  });

  override willUpdate(changed: Map<string, unknown>): void {
    if (!changed.has("session") && !changed.has("at")) return;
    const at = this.at;
    this.pages = new Pages<TableRow>(
      async (from, limit, signal) => {
        const got = await get<{ total: number; rows: TableRow[] }>(`${session(this.session)}/strata/table`, { at, from, limit }, signal);
        this.total = got.total;
        return got.rows;
      },
      () => this.requestUpdate(),
    );
    this.pages.want(0, 0, 1);
  }

  protected override updated(): void {
    const [first, last] = this.list.range();
    this.pages.want(first, Math.max(last, 20), Math.max(1, this.total));
  }

  override render() {
    return html`<div class="scroll table" role="table" aria-label="The surface, one row a node" aria-rowcount=${this.total + 1}>
      <div class="table-head" role="row">
        ${["seq", "kind", "tokens", "covers", "under it", "first line"].map((h) => html`<span role="columnheader">${h}</span>`)}
      </div>
      <div class="rows" role="rowgroup" ${css({ height: `${this.list.total()}px` })}>
        ${this.list.items().map((v) => {
          const r = this.pages.at(v.index);
          return html`<div class="row table-row" role="row" aria-rowindex=${v.index + 2} data-index=${v.index} ${css({ transform: `translateY(${v.start}px)` })}>
            ${r
              ? html`<span role="cell"><button class="bare seq" @click=${() => this.dispatchEvent(new CustomEvent("go", { detail: r.seq, bubbles: true }))}>${r.seq}</button></span>
                  <span role="cell"><span class="chip ${r.kind}" aria-hidden="true">${letters[r.kind as Role] ?? ""}</span> ${r.flags & flag.rewind ? "rewind" : r.kind}${r.flags & flag.pinned ? ", pinned" : ""}</span>
                  <span role="cell" class="num">${count(r.tokens)}</span><span role="cell" class="num">${r.covers || ""}</span>
                  <span role="cell" class="num">${r.under || ""}</span><span role="cell" class="what">${gist(r.what, 160)}</span>`
              : html`<span role="cell" class="muted">${v.index}</span>`}
          </div>`;
        })}
      </div>
    </div>`;
  }
}
