// What it cost: tokens by source over time, the cache's share, cost, time of
// each call, tools. The chart library is loaded with this view.
import { html, type PropertyValues } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import type uPlot from "uplot";
import { aborted, get, say, session, type NumbersAnswer } from "../api";
import { cost, count, duration, percent, short } from "../format";
import type { Model } from "../model";
import { Part } from "../parts/element";
import type { Keys } from "../parts/help";
import { gist, oneLine } from "../text/plain";
import { onTheme, palette } from "../theme";

export const numberKeys: Keys = [["drag", "zoom a chart; double click shows all"]];

const sources = ["system", "tools", "user", "assistant", "tool", "context", "checkpoint"] as const;

@customElement("oc-numbers")
export class NumbersView extends Part {
  @property({ attribute: false }) model!: Model;
  @state() private facts: NumbersAnswer | null = null;
  @state() private error = "";
  private plots: uPlot[] = [];
  private offs: (() => void)[] = [];
  private stop: AbortController | null = null;
  private size: ResizeObserver | null = null;
  private timer = 0;
  private drawn: NumbersAnswer | null = null;
  private drawnWidth = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    this.offs.push(onTheme(() => ((this.drawn = null), void this.draw())));
    this.size = new ResizeObserver(() => void this.draw());
    this.size.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.offs.forEach((f) => f());
    this.offs = [];
    this.size?.disconnect();
    this.stop?.abort();
    clearTimeout(this.timer);
    this.plots.forEach((p) => p.destroy());
    this.plots = [];
    this.drawn = null;
  }

  override willUpdate(changed: PropertyValues<this>): void {
    if (!changed.has("model")) return;
    this.offs.push(
      this.model.on((c) => {
        if (c.what !== "reset" && c.what !== "batch" && !(c.what === "record" && c.record.type === "assistant/message")) return;
        clearTimeout(this.timer);
        this.timer = window.setTimeout(() => void this.load(), 800);
      }),
    );
    void this.load();
  }

  protected override updated(): void {
    void this.draw();
  }

  private async load(): Promise<void> {
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    try {
      this.facts = await get<NumbersAnswer>(`${session(this.model.id)}/numbers`, {}, stop.signal);
    } catch (err) {
      if (!aborted(err)) this.error = say(err);
    }
  }

  private async draw(): Promise<void> {
    const f = this.facts;
    const host = this.querySelector(".charts");
    if (!f || !host || f.calls.length === 0) return;
    const room = (id: string) => Math.floor(host.querySelector<HTMLElement>(`[data-chart=${id}]`)?.clientWidth ?? 0);
    const width = room("sources");
    if (width <= 0 || (this.drawn === f && width === this.drawnWidth)) return;
    if (this.drawn === f && this.plots.length > 0) {
      this.drawnWidth = width;
      for (const p of this.plots) p.setSize({ width: Math.floor(p.root.parentElement!.clientWidth), height: p.height });
      return;
    }
    this.drawn = f;
    this.drawnWidth = width;
    const { chart } = await import("./chart");
    if (this.drawn !== f || !this.isConnected) return;
    this.plots.forEach((p) => p.destroy());
    const p = palette();
    const column = (name: string) => f.calls.map((c) => c[f.fields.indexOf(name)] ?? null);
    const x = column("index") as number[];
    const inks = { system: p.muted, tools: p.edge, user: p.user, assistant: p.assistant, tool: p.tool, context: p.context, checkpoint: p.checkpoint };
    const sent = f.calls.map((_, i) => {
      const part = ["input", "cacheRead", "cacheWrite"].map((n) => column(n)[i] ?? null);
      return part.every((v) => v === null) ? null : part.reduce<number>((n, v) => n + (v ?? 0), 0);
    });
    const read = column("cacheRead");
    let sum = 0;
    const spent = column("costMicroUSD").map((v) => (sum += v ?? 0) / 1e6);
    const into = (name: string) => host.querySelector<HTMLElement>(`[data-chart=${name}]`)!;
    const priced = column("costMicroUSD").some((v) => v !== null);
    this.plots = [
      chart(into("sources"), { x, width, stacked: true, unit: short, series: sources.map((s) => ({ name: s, colour: inks[s], values: column(s) })), palette: p }),
      chart(into("cache"), { x, width: room("cache"), unit: (v) => percent(v), most: 1, series: [{ name: "cache share", colour: p.good, values: sent.map((s, i) => (s ? (read[i] ?? 0) / s : null)) }], palette: p }),
      ...(priced ? [chart(into("cost"), { x, width: room("cost"), unit: (v: number) => cost(v * 1e6), series: [{ name: "cost so far", colour: p.user, values: spent }], palette: p })] : []),
      chart(into("time"), { x, width: room("time"), unit: duration, bars: true, series: [{ name: "time of the call", colour: p.assistant, values: column("ms") }], palette: p }),
      chart(into("output"), { x, width: room("output"), unit: short, bars: true, series: [{ name: "output", colour: p.checkpoint, values: column("output") }], palette: p }),
    ];
  }

  override render() {
    if (this.error) return html`<p class="bad">${this.error}</p>`;
    const f = this.facts;
    if (!f) return html`<div class="scroll numbers"><p class="muted">Reading\u2026</p></div>`;
    const t = f.total;
    const figure = (name: string, value: string, more = "") => html`<div class="figure"><dt>${name}</dt><dd>${value}${more ? html` <span class="muted">${more}</span>` : ""}</dd></div>`;
    return html`<div class="scroll numbers" tabindex="0">
      <dl class="figures-row">
        ${figure("model calls", count(t.calls), t.failed > 0 ? `${t.failed} failed` : "")} ${figure("sent", short(t.input + t.cacheRead + t.cacheWrite), "tokens")}
        ${figure("from the cache", percent(f.cacheShare))} ${figure("written", short(t.output), t.reasoning > 0 ? `${short(t.reasoning)} reasoning` : "tokens")}
        ${figure("cost", cost(t.costMicroUSD), t.unpriced > 0 ? `${t.unpriced} unpriced` : "")} ${f.window !== null ? figure("window", short(f.window), "tokens") : ""}
      </dl>
      ${f.calls.length === 0
        ? html`<p class="empty">No model was called yet.</p>`
        : html`<div class="charts">
            ${[
              ["sources", "Tokens by source, in each request (estimated)"],
              ["cache", "Share read from the cache"],
              ["cost", "Cost so far"],
              ["time", "Time of each call"],
              ["output", "Tokens written"],
            ].map(([id, name]) => html`<figure class="chart-box ${id}"><figcaption>${name}</figcaption><div class="chart" data-chart=${id!}>${id === "cost" && f.calls.every((c) => c[f.fields.indexOf("costMicroUSD")] === null) ? html`<p class="muted">Not known: no price for this model.</p>` : ""}</div></figure>`)}
          </div>
          ${f.joined > 1 ? html`<p class="muted">${f.joined} calls in a row are one point.</p>` : ""}`}
      <div class="two">
        <section>
          <h3>Tools</h3>
          ${f.tools.length === 0
            ? html`<p class="muted">None was called.</p>`
            : html`<div class="table-scroll" tabindex="0"><table>
                <thead><tr><th scope="col">tool</th><th scope="col">calls</th><th scope="col">errors</th><th scope="col">median</th><th scope="col">95 %</th><th scope="col">most</th><th scope="col">total</th></tr></thead>
                <tbody>
                  ${f.tools.map((x) => html`<tr><th scope="row">${oneLine(x.name, 60)}</th><td>${count(x.calls)}</td><td>${x.errors || ""}</td><td>${duration(x.ms?.median)}</td><td>${duration(x.ms?.p95)}</td><td>${duration(x.ms?.most)}</td><td>${duration(x.ms?.total)}</td></tr>`)}
                </tbody>
              </table></div>`}
        </section>
        <section>
          <h3>Largest on the surface</h3>
          <ol class="largest">
            ${f.largest.map((x) => html`<li><button class="bare seq" @click=${() => this.dispatchEvent(new CustomEvent("go", { detail: x.seq, bubbles: true }))}>${x.seq}</button> <span class="chip ${x.kind}" aria-hidden="true"></span><span class="num">${short(x.tokens)}</span> <span class="what">${gist(x.what, 120)}</span></li>`)}
          </ol>
        </section>
      </div>
    </div>`;
  }
}
