// The Strata view: two bands over one cursor.
import { html, type PropertyValues } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import type { EventFacts } from "../api";
import { count, many, short } from "../format";
import { keep } from "../keep";
import type { Change, Model } from "../model";
import { letters, roleNames, roles } from "../palette";
import { css, Part } from "../parts/element";
import type { Keys } from "../parts/help";
import { complain } from "../parts/say";
import { layoutOf, legend, paint, type Layout, type Picture } from "../strata/paint";
import { flag, fromPx, moved, pan, rowHeight, toPx, zoom, clamp, type Scene, type Tile, type Window } from "../strata/scene";
import { Source } from "../strata/source";
import { stops, type Stop } from "../strata/tour";
import { gist } from "../text/plain";
import { onTheme, palette, reducedMotion } from "../theme";

export const strataKeys: Keys = [
  ["\u2190  \u2192", "in the tree: siblings; on the slider: the event before, after"],
  ["\u2191  \u2193", "in the tree: what covers it, what it covers"],
  ["Enter", "look at the event"],
  [",  .", "cursor to the event before, after"],
  ["<  >", "cursor to the edit before, after"],
  ["[  ]", "cursor to the turn before, after"],
  ["+  \u2212  0", "zoom in, out, fit"],
  ["c", "compare with here (then move), or end it"],
  ["e", "equal widths, or by tokens"],
  ["v", "view as table, or as picture"],
  ["wheel, drag", "zoom and move; Shift-drag on the log compares"],
];

const sinkTime = 160;

@customElement("oc-strata")
export class StrataView extends Part {
  @property({ attribute: false }) model!: Model;
  @property({ attribute: false }) start: number | null = null; // where the cursor begins
  @state() private at = -1;
  @state() private compare: number | null = null;
  @state() private widths: "tokens" | "equal" = keep.get("widths") === "equal" ? "equal" : "tokens";
  @state() private table = false;
  @state() private chosen: Tile | null = null;
  @state() private facts: EventFacts | null = null;
  @state() private card: { x: number; y: number } | null = null;
  @state() private focusSeq: number | null = null;
  @state() private tour: Stop[] | null = null;
  @state() private stop = 0;
  @state() private intro = keep.get("strata-seen") === null;
  @state() private noMarkers = false;
  @query("canvas.bands") private canvas!: HTMLCanvasElement | null;
  private source!: Source;
  private win: Window | null = null; // null: everything
  private px = 0;
  private shift = new Map<number, number>();
  private sinkFrom = 0;
  private frame = 0;
  private asked = 0;
  private drag: { kind: "cursor" | "pan" | "mini"; x: number; moved: boolean; tile: Tile | null } | null = null;
  private offs: (() => void)[] = [];
  private size: ResizeObserver | null = null;
  private liveTimer = 0;
  private readonly signs = new WeakMap<HTMLCanvasElement, unknown>(); // the colours that they are drawn in

  override connectedCallback(): void {
    super.connectedCallback();
    this.offs.push(onTheme(() => this.draw()));
    void document.fonts?.ready.then(() => this.draw());
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.offs.forEach((f) => f());
    this.offs = [];
    this.size?.disconnect();
    this.size = null;
    cancelAnimationFrame(this.frame);
    clearTimeout(this.liveTimer);
    clearTimeout(this.asked);
  }

  override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("model")) {
      this.source = new Source(this.model.id, {
        scene: (before, now, a) => {
          this.noMarkers = a.noMarkers;
          this.sink(before, now);
          this.rechoose();
          this.requestUpdate();
        },
        other: () => {
          this.draw();
          this.requestUpdate();
        },
        failed: complain,
      });
      this.offs.push(this.model.on((c) => this.news(c)));
      this.at = this.start ?? this.model.facts.lastSeq;
      this.win = null;
      this.compare = null;
    } else if (changed.has("start") && this.start !== null && this.start !== this.at) {
      this.moveTo(this.start);
    }
  }

  protected override updated(): void {
    const c = this.canvas;
    if (c && !this.size) {
      this.size = new ResizeObserver(() => this.resized());
      this.size.observe(c.parentElement!);
      this.resized();
    }
    if (!c && this.size) {
      this.size.disconnect();
      this.size = null;
      this.px = 0;
    }
    const colours = palette();
    for (const el of this.querySelectorAll<HTMLCanvasElement>("canvas.sign")) {
      if (this.signs.get(el) === colours) continue;
      legend(el, el.dataset.role as (typeof roles)[number], colours);
      this.signs.set(el, colours);
    }
  }

  private resized(): void {
    const c = this.canvas;
    if (!c) return;
    const px = Math.floor(c.parentElement!.clientWidth);
    if (px <= 0 || px === this.px) return;
    this.px = px;
    const scale = window.devicePixelRatio || 1;
    c.width = Math.round(px * scale);
    c.height = Math.round(this.layout.height * scale);
    this.load(true);
    this.draw();
  }

  /** the canvas gets its size with what is drawn on it, so that it is never empty */
  private fit(c: HTMLCanvasElement): void {
    const want = Math.round(this.layout.height * (window.devicePixelRatio || 1));
    if (c.height !== want) c.height = want;
  }

  // ---- what is shown

  private get layout(): Layout {
    return layoutOf(Math.max(this.source.whole?.rows ?? 0, this.source.answer?.rows ?? 0));
  }

  private get total(): number {
    return this.source.whole?.widthTotal ?? this.source.answer?.widthTotal ?? 0;
  }

  private get view(): Window {
    return this.win ?? { from: 0, to: Math.max(this.total, 1e-9) };
  }

  private get rows(): Window {
    if (!this.win) return { from: 0, to: Math.max(1, this.source.band?.rows ?? this.model.facts.rows) };
    const { map, rowMap } = this.source;
    const from = rowMap.at(map.back(this.win.from));
    return { from, to: Math.max(rowMap.at(map.back(this.win.to)), from + 4) };
  }

  private get queryPx(): number {
    return Math.min(8192, Math.max(16, Math.round(this.px * Math.min(2, window.devicePixelRatio || 1))));
  }

  private load(all = false): void {
    if (this.px === 0) return;
    this.source.look({ at: this.at, window: this.win, px: this.queryPx, widths: this.widths });
    if (all) {
      this.source.lookAtAll(this.model.facts.lastSeq, Math.min(this.queryPx, 1600), this.widths);
      this.source.lookAtLog(this.win ? this.rows : null, this.queryPx);
    }
  }

  private moveTo(seq: number): void {
    const to = Math.min(Math.max(-1, Math.round(seq)), this.model.facts.lastSeq);
    if (to === this.at) return;
    this.at = to;
    this.load();
    if (this.compare !== null) this.source.compare(this.compare, this.at);
    this.draw();
    this.dispatchEvent(new CustomEvent("at", { detail: to === this.model.facts.lastSeq ? null : to, bubbles: true }));
  }

  private setWindow(w: Window | null): void {
    const total = this.total;
    this.win = w && w.to - w.from < total * 0.9999 ? w : null;
    this.draw();
    clearTimeout(this.asked);
    this.asked = window.setTimeout(() => {
      this.source.look({ at: this.at, window: this.win, px: this.queryPx, widths: this.widths });
      this.source.lookAtLog(this.win ? this.rows : null, this.queryPx);
    }, 40);
  }

  private news(c: Change): void {
    if (c.what === "reset") {
      this.at = this.model.facts.lastSeq;
      this.win = null;
      this.source.forgetEvents();
      this.load(true);
    }
    if (c.what !== "record" && c.what !== "batch") return;
    this.source.forgetEvents();
    const following = this.at >= (c.what === "record" ? c.record.seq : c.batch.first) - 1 || this.at === this.lastKnown;
    this.lastKnown = this.model.facts.lastSeq;
    if (following && this.tour === null) this.at = this.model.facts.lastSeq;
    if (this.liveTimer) return;
    this.liveTimer = window.setTimeout(() => {
      this.liveTimer = 0;
      this.load(true);
    }, 120);
  }
  private lastKnown = -1;

  private sink(before: Scene, now: Scene): void {
    this.shift = reducedMotion() ? new Map() : moved(before, now);
    this.sinkFrom = performance.now();
    this.draw();
  }

  private draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    const c = this.canvas;
    const ctx = c?.getContext("2d");
    if (!c || !ctx || this.px === 0) return;
    this.fit(c);
    const scale = c.width / this.px;
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    const progress = this.shift.size === 0 ? 1 : Math.min(1, (performance.now() - this.sinkFrom) / sinkTime);
    const s = this.source;
    const facts = this.facts && this.chosen && this.facts.seq === this.chosen.seq ? this.facts : null;
    const pic: Picture = {
      layout: this.layout,
      width: this.px,
      palette: palette(),
      scene: s.scene,
      shift: this.shift,
      progress: progress * (2 - progress),
      window: this.view,
      until: s.answer?.width ?? 0,
      map: s.map,
      band: s.band,
      rows: this.rows,
      rowAt: s.rowMap.at(this.at),
      rowCompare: this.compare === null ? null : s.rowMap.at(this.compare),
      added: s.added,
      removed: s.removed,
      chosen: this.chosen,
      sources: facts?.sources?.slice(0, 200).map((n) => s.rowMap.at(n)) ?? [],
      cover: facts && facts.coveredBy.length > 0 ? (s.scene.showing(facts.coveredBy[0]!) ?? null) : null,
      mini: s.mini,
      total: this.total,
    };
    paint(ctx, pic);
    if (progress < 1) this.draw();
  }

  // ---- one tile in focus

  private choose(t: Tile | null, x = 0, y = 0): void {
    if (t === this.chosen && t !== null) {
      this.card = { x, y };
      return;
    }
    this.chosen = t;
    this.card = t ? { x, y } : null;
    this.facts = null;
    if (t && t.count === 1) {
      const seq = t.seq;
      this.source.event(seq).then(
        (f) => {
          if (this.chosen?.seq !== seq) return;
          this.facts = f;
          this.draw();
        },
        () => {},
      );
    }
    this.draw();
  }

  private rechoose(): void {
    const seq = this.focusSeq ?? this.chosen?.seq ?? null;
    if (seq === null) return;
    const t = this.source.scene.showing(seq) ?? null;
    if (t) this.choose(t, toPx(t.x + t.w / 2, this.view, this.px), t.row * rowHeight);
    else if (this.chosen) this.choose(null);
  }

  private pick(seq: number | null): void {
    this.focusSeq = seq;
    if (seq === null) return this.choose(null);
    const t = this.source.scene.showing(seq);
    if (!t) return;
    const mid = t.x + t.w / 2;
    if (mid < this.view.from || mid > this.view.to) this.setWindow(clamp({ from: mid - (this.view.to - this.view.from) / 2, to: mid + (this.view.to - this.view.from) / 2 }, this.total, 1));
    this.choose(t, toPx(mid, this.view, this.px), t.row * rowHeight);
  }

  private open(seq: number): void {
    this.dispatchEvent(new CustomEvent("go", { detail: seq, bubbles: true }));
  }

  // ---- pointer

  private place(e: PointerEvent | WheelEvent | MouseEvent): { x: number; y: number } {
    const r = this.canvas!.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top };
  }

  private seqAt(x: number): number {
    return Math.floor(this.source.rowMap.back(fromPx(x, this.rows, this.px)) + 1e-6);
  }

  private tileAt(x: number, y: number): Tile | null {
    const slack = ((this.view.to - this.view.from) / Math.max(1, this.px)) * 2;
    return this.source.scene.hit(fromPx(x, this.view, this.px), y, slack);
  }

  private down(e: PointerEvent): void {
    if (e.button !== 0) return;
    const { x, y } = this.place(e);
    this.canvas!.setPointerCapture(e.pointerId);
    if (y >= this.layout.mini.top) {
      this.drag = { kind: "mini", x, moved: false, tile: null };
      this.miniTo(x);
    } else if (y >= this.layout.strata.height) {
      this.drag = { kind: "cursor", x, moved: false, tile: null };
      const seq = this.seqAt(x);
      if (e.shiftKey) this.compare = seq;
      this.moveTo(seq);
    } else this.drag = { kind: "pan", x, moved: false, tile: this.tileAt(x, y) };
  }

  private move(e: PointerEvent): void {
    const { x, y } = this.place(e);
    const d = this.drag;
    if (!d) {
      this.choose(y < this.layout.strata.height ? this.tileAt(x, y) : null, x, y);
      return;
    }
    if (Math.abs(x - d.x) > 3) d.moved = true;
    if (d.kind === "cursor") this.moveTo(this.seqAt(x));
    if (d.kind === "mini") this.miniTo(x);
    if (d.kind === "pan" && d.moved && this.win) {
      this.setWindow(pan(this.win, ((d.x - x) / this.px) * (this.win.to - this.win.from), this.total));
      d.x = x;
    }
  }

  private up(e: PointerEvent): void {
    const d = this.drag;
    this.drag = null;
    if (d?.kind !== "pan" || d.moved) return;
    const { x, y } = this.place(e);
    const t = this.tileAt(x, y);
    if (!t || t !== d.tile) return;
    if (t.count > 1) this.setWindow(clamp({ from: t.x - t.w, to: t.x + 2 * t.w }, this.total, 4));
    else {
      this.focusSeq = t.seq;
      this.open(t.seq);
    }
  }

  private miniTo(x: number): void {
    if (!this.win) return;
    const mid = fromPx(x, { from: 0, to: this.total }, this.px);
    const half = (this.win.to - this.win.from) / 2;
    this.setWindow(clamp({ from: mid - half, to: mid + half }, this.total, 1));
  }

  private wheel(e: WheelEvent): void {
    e.preventDefault();
    const { x } = this.place(e);
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      if (this.win) this.setWindow(pan(this.win, (e.deltaX / this.px) * (this.win.to - this.win.from), this.total));
      return;
    }
    this.zoomAbout(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 240))), fromPx(x, this.view, this.px));
  }

  private zoomAbout(factor: number, about: number): void {
    this.setWindow(zoom(this.view, factor, about, this.total, Math.min(24, this.total)));
  }

  // ---- keys

  key(e: KeyboardEvent): boolean {
    const middle = () => this.source.answer?.width ?? this.total;
    switch (e.key) {
      case ",":
      case ".":
        this.moveTo(this.at + (e.key === "." ? 1 : -1));
        return true;
      case "<":
      case ">":
        this.moveToEdit(e.key === ">" ? 1 : -1);
        return true;
      case "[":
      case "]":
        this.moveToTurn(e.key === "]" ? 1 : -1);
        return true;
      case "+":
      case "=":
        this.zoomAbout(1 / 1.6, Math.min(Math.max(middle(), this.view.from), this.view.to));
        return true;
      case "-":
        this.zoomAbout(1.6, Math.min(Math.max(middle(), this.view.from), this.view.to));
        return true;
      case "0":
        this.setWindow(null);
        return true;
      case "c":
        this.setCompare(this.compare === null ? this.at : null);
        return true;
      case "e":
        this.setWidths(this.widths === "tokens" ? "equal" : "tokens");
        return true;
      case "v":
        this.table = !this.table;
        return true;
      case "Escape":
        if (this.tour) this.endTour();
        else if (this.compare !== null) this.setCompare(null);
        else return false;
        return true;
      default:
        return false;
    }
  }

  private setCompare(seq: number | null): void {
    this.compare = seq;
    this.source.compare(seq, this.at);
    this.draw();
  }

  private setWidths(w: "tokens" | "equal"): void {
    this.widths = w;
    keep.set("widths", w);
    this.win = null;
    this.load(true);
  }

  private covering(): { seq: number; kind: string }[] {
    return (this.source.mini?.tiles ?? []).filter((t) => t.count === 1 && t.flags & (flag.covers | flag.rewind)).map((t) => ({ seq: t.seq, kind: t.role }));
  }

  private moveToEdit(by: number): void {
    const seqs = this.covering().map((c) => c.seq).sort((a, b) => a - b);
    const to = by > 0 ? seqs.find((s) => s > this.at) : seqs.findLast((s) => s < this.at);
    if (to !== undefined) this.moveTo(to);
  }

  private moveToTurn(by: number): void {
    const ends = (this.source.band?.turns ?? []).flatMap((t) => (t.endSeq === null ? [] : [t.endSeq]));
    const to = by > 0 ? (ends.find((s) => s > this.at) ?? this.model.facts.lastSeq) : ends.findLast((s) => s < this.at);
    if (to !== undefined) this.moveTo(to);
  }

  // ---- the tour

  private startTour(): void {
    this.tour = stops(this.covering(), this.model.facts.lastSeq);
    this.goStop(0);
  }

  private goStop(n: number): void {
    const s = this.tour?.[n];
    if (!s) return this.endTour();
    this.stop = n;
    this.win = null;
    this.focusSeq = s.look;
    if (s.look === null) this.choose(null);
    this.moveTo(s.at);
    this.rechoose();
  }

  private endTour(): void {
    this.tour = null;
    this.focusSeq = null;
    this.choose(null);
    this.moveTo(this.model.facts.lastSeq);
    this.seen();
  }

  private seen(): void {
    this.intro = false;
    keep.set("strata-seen", "1");
  }

  // ---- the page

  private top() {
    if (this.tour) {
      const s = this.tour[this.stop]!;
      return html`<p class="intro" role="status">
        <span>${s.text}</span>
        <button class="primary" @click=${() => this.goStop(this.stop + 1)}>${this.stop + 1 < this.tour.length ? "Next" : "Done"}</button>
        <button class="bare" aria-label="End the tour" @click=${() => this.endTour()}>\u00d7</button>
      </p>`;
    }
    if (!this.intro) return html``;
    return html`<p class="intro">
      <span>Top row: what the model sees now. Below: what each summary or edit covers. Nothing is deleted.</span>
      <button @click=${() => this.startTour()}>show me</button>
      <button class="bare" aria-label="Do not show this again" @click=${() => this.seen()}>\u00d7</button>
    </p>`;
  }

  override render() {
    const f = this.model.facts;
    const a = this.source.answer;
    const surface = this.source.scene.row(0);
    const nodes = surface.reduce((n, t) => n + t.count, 0);
    const d = this.source.diff;
    return html`<div class="strata ${a ? "" : "unread"}">
      ${this.top()}
      <div class="bar">
        <span class="legend" aria-label="Key">${roles.map((r) => html`<span><canvas class="sign" data-role=${r} role="img" aria-label="${letters[r]}"></canvas>${roleNames[r]}</span>`)}</span>
        <span class="grow"></span>
        <button aria-pressed=${this.widths === "equal"} title="Equal widths (e)" @click=${() => this.setWidths(this.widths === "tokens" ? "equal" : "tokens")}>Equal widths</button>
        <button aria-pressed=${this.compare !== null} title="Compare (c)" @click=${() => this.setCompare(this.compare === null ? this.at : null)}>Compare</button>
        <button aria-pressed=${this.table} title="Table (v)" @click=${() => (this.table = !this.table)}>View as table</button>
      </div>
      ${this.noMarkers ? html`<p class="empty">This log has no surface markers: an older program wrote it. Its events can be read in Log.</p>` : ""}
      ${this.table
        ? html`<oc-strata-table .session=${this.model.id} .at=${this.at}></oc-strata-table>`
        : html`<div class="picture" ${css({ height: `${this.layout.height}px` })}>
            <canvas
              class="bands"
              aria-hidden="true"
              ${css({ height: `${this.layout.height}px` })}
              @pointerdown=${(e: PointerEvent) => this.down(e)}
              @pointermove=${(e: PointerEvent) => this.move(e)}
              @pointerup=${(e: PointerEvent) => this.up(e)}
              @pointerleave=${() => !this.drag && this.choose(null)}
              @wheel=${{ handleEvent: (e: WheelEvent) => this.wheel(e), passive: false }}
            ></canvas>
            ${this.cardView()}
          </div>`}
      <div class="cursor">
        <button class="bare" aria-label="The event before" @click=${() => this.moveTo(this.at - 1)}>\u2039</button>
        <input
          type="range"
          min="-1"
          max=${f.lastSeq}
          .value=${String(this.at)}
          aria-label="Cursor: the state after this event"
          aria-valuetext="after event ${this.at} of ${f.lastSeq}, ${many(nodes, "node")} on the surface"
          @input=${(e: Event) => this.moveTo(Number((e.target as HTMLInputElement).value))}
        />
        <button class="bare" aria-label="The event after" @click=${() => this.moveTo(this.at + 1)}>\u203a</button>
        <output class="at">after event <b>${count(this.at)}</b> of ${count(f.lastSeq)}</output>
      </div>
      <p class="muted summary">
        ${many(nodes, "node")} on the surface, about ${short(surface.reduce((n, t) => n + t.tokens, 0))} tokens${this.win ? " in sight" : ""}; ${many(a?.columns ?? 0, "message")} appended, ${many(a?.generation ?? 0, "replace")}.
        ${this.compare !== null && d ? html`<b>From ${d.a} to ${d.b}: ${count(d.addedTotal)} added, ${count(d.removedTotal)} removed, ${count(d.same)} the same.</b>` : ""}
      </p>
      <details class="tree-box" open>
        <summary>As a tree</summary>
        <oc-strata-tree
          .session=${this.model.id}
          .at=${this.at}
          .first=${surface.length > 0 ? surface[surface.length - 1]!.last : null}
          .focusSeq=${this.focusSeq}
          @pick=${(e: CustomEvent<number | null>) => this.pick(e.detail)}
        ></oc-strata-tree>
      </details>
    </div>`;
  }

  private cardView() {
    const t = this.chosen;
    if (!t || !this.card) return html``;
    const f = this.facts;
    const left = Math.max(4, Math.min(this.card.x + 14, this.px - 316));
    const top = this.card.y + rowHeight + 12;
    return html`<div class="card" role="presentation" ${css({ transform: `translate(${left}px, ${top}px)` })}>
      <div><b>${t.count > 1 ? `${count(t.count)} nodes, ${t.seq} to ${t.last}` : t.seq}</b> ${t.flags & flag.rewind ? "rewind" : t.role}, ${count(t.tokens)} tokens</div>
      <div class="first-line">${t.count > 1 ? "Click to see them one by one." : f ? gist(f.what, 140) : "\u2026"}</div>
      ${f && f.coveredBy.length > 0 ? html`<div>covered by ${f.coveredBy[0]}</div>` : ""}
      ${f && f.coversTotal > 0 ? html`<div>covers ${many(f.coversTotal, "node")}</div>` : ""}
    </div>`;
  }
}
