// Each request, rebuilt from the log: what it was, what it had that the one
// before had not, where the provider's cache broke, and its digest, computed
// again in this browser.
import { html, type PropertyValues } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { aborted, get, say, secrets, session, type RequestFacts, type RequestList, type RequestMessage, type RequestRow } from "../api";
import { first as firstLink, next } from "../digest";
import { cost, count, date, duration, many, short } from "../format";
import { Pages } from "../list/pages";
import { Virtual } from "../list/virtual";
import type { Model } from "../model";
import { letters, roles, type Role } from "../palette";
import { css, Part } from "../parts/element";
import type { Keys } from "../parts/help";
import { clip, gist, oneLine, pretty, visible } from "../text/plain";

export const requestKeys: Keys = [
  ["j  k", "next, previous request"],
  ["x", "check the digest in this browser"],
  ["d", "only what is new against the request before, or all"],
];

interface Check {
  state: "running" | "same" | "differs" | "none" | "failed";
  digest: string;
  done: number;
  note: string;
}

const page = 200;

@customElement("oc-requests")
export class RequestsView extends Part {
  @property({ attribute: false }) model!: Model;
  @property({ attribute: false }) target: string | null = null; // an id T.N.K
  @state() private which: string | null = null;
  @state() private facts: RequestFacts | null = null;
  @state() private error = "";
  @state() private onlyNew = true;
  @state() private check: Check | null = null;
  @state() private shown: number | null = null; // message whose text is open
  @state() private texts = new Map<number, string>();
  private total = 0;
  private counted = false;
  private pages!: Pages<RequestRow>;
  private stop: AbortController | null = null;
  private off: (() => void) | null = null;
  private at = -1;
  private readonly list = new Virtual(this, {
    scroller: () => this.querySelector<HTMLElement>(".request-list"),
    count: () => this.total,
    estimate: () => 52,
    fixed: true,
    overscan: 10,
  });

  override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("model")) {
      this.off?.();
      this.off = this.model.on((c) => {
        if (c.what === "reset" || c.what === "batch" || (c.what === "record" && /^(outcrop\/request|assistant\/message|step\/end)$/.test(c.record.type))) void this.count();
      });
      this.pages = new Pages<RequestRow>(
        async (from, limit, signal) => (await get<RequestList>(`${session(this.model.id)}/requests`, { from, limit }, signal)).requests,
        () => this.requestUpdate(),
      );
      this.which = null;
      this.counted = false;
      void this.count();
    }
    if (changed.has("target") && this.target && this.target !== this.which) void this.choose(this.target, -1);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.off?.();
    this.stop?.abort();
  }

  protected override updated(): void {
    const [first, last] = this.list.range();
    this.pages.want(first, last, this.total);
  }

  private async count(): Promise<void> {
    try {
      const got = await get<RequestList>(`${session(this.model.id)}/requests`, { from: -1, limit: 1 });
      this.total = got.total;
      this.counted = true;
      this.pages.forget(Math.max(0, this.total - 2));
      const last = got.requests[0];
      if (this.which === null && last) {
        await this.choose(this.target ?? last.id, this.target ? -1 : last.index);
        this.list.show(this.total - 1, "end");
      }
      this.requestUpdate();
    } catch (err) {
      this.error = say(err);
    }
  }

  private async choose(id: string, index: number): Promise<void> {
    this.stop?.abort();
    this.which = id;
    this.at = index;
    this.check = null;
    this.shown = null;
    this.texts = new Map();
    this.error = "";
    const stop = (this.stop = new AbortController());
    try {
      const facts = await get<RequestFacts>(`${session(this.model.id)}/requests/${encodeURIComponent(id)}`, { from: 0, limit: page }, stop.signal);
      // What is new stands behind what both have.
      if (facts.same > page / 2 && facts.before) {
        const rest = await get<RequestFacts>(`${session(this.model.id)}/requests/${encodeURIComponent(id)}`, { from: Math.max(0, facts.same - 2), limit: page }, stop.signal);
        facts.messages = rest.messages;
        facts.from = rest.from;
      }
      this.facts = facts;
      if (this.at < 0) this.at = facts.request?.index ?? -1;
    } catch (err) {
      if (!aborted(err)) {
        this.facts = null;
        this.error = say(err);
      }
    }
  }

  private async page(from: number): Promise<void> {
    const f = this.facts;
    if (!f || !this.which) return;
    try {
      const got = await get<RequestFacts>(`${session(this.model.id)}/requests/${encodeURIComponent(this.which)}`, { from, limit: page });
      if (this.facts === f) this.facts = { ...f, messages: got.messages, from: got.from };
      this.onlyNew = false;
    } catch (err) {
      this.error = say(err);
    }
  }

  key(e: KeyboardEvent): boolean {
    switch (e.key) {
      case "j":
      case "k": {
        const to = Math.min(this.total - 1, Math.max(0, this.at + (e.key === "j" ? 1 : -1)));
        const r = this.pages.at(to);
        if (r) void this.choose(r.id, to);
        this.list.show(to, "auto");
        return true;
      }
      case "x":
        void this.verify();
        return true;
      case "d":
        this.onlyNew = !this.onlyNew;
        return true;
      default:
        return false;
    }
  }

  /** the chain again, from the bytes in the log, by this browser's own SHA-256 */
  private async verify(): Promise<void> {
    const id = this.which;
    if (!id || this.check?.state === "running") return;
    const set = (c: Check) => id === this.which && (this.check = c);
    if (!crypto.subtle) {
      set({ state: "failed", digest: "", done: 0, note: "this browser hashes only on https or a loopback address" });
      return;
    }
    set({ state: "running", digest: "", done: 0, note: "" });
    const ask = (from: number) => get<RequestFacts>(`${session(this.model.id)}/requests/${encodeURIComponent(id)}`, { raw: true, from, limit: 100, secrets: "show" });
    try {
      const enc = new TextEncoder();
      const first = await ask(0);
      if (!first.exact) {
        set({ state: "failed", digest: "", done: 0, note: "the request header cannot be given byte for byte" });
        return;
      }
      let last = await firstLink(enc.encode(first.header));
      let wrong = last === first.h0 ? -1 : -2;
      let given = 0;
      let done = 0;
      for (let part = first; done < first.total; ) {
        for (const m of part.messages) {
          if (m.exact && m.raw !== undefined) last = await next(last, enc.encode(m.raw));
          else {
            last = m.hash;
            given++;
          }
          if (wrong === -1 && last !== m.hash) wrong = m.i;
          done++;
        }
        set({ state: "running", digest: "", done, note: "" });
        if (done < first.total) part = await ask(done);
        if (part.messages.length === 0) break;
      }
      const digest = "v1:" + last;
      const notes = [
        given > 0 ? `${many(given, "message")} that are no text were taken as the server gave them` : "",
        wrong === -2 ? "the header differs" : wrong >= 0 ? `first differs at message ${wrong}` : "",
      ].filter(Boolean);
      set({ state: first.recorded === null ? "none" : digest === first.recorded ? "same" : "differs", digest, done, note: notes.join("; ") });
    } catch (err) {
      set({ state: "failed", digest: "", done: 0, note: say(err) });
    }
  }

  private async text(m: RequestMessage): Promise<void> {
    this.shown = this.shown === m.i ? null : m.i;
    if (this.shown === null || this.texts.has(m.i) || !this.which) return;
    try {
      const got = await get<RequestFacts>(`${session(this.model.id)}/requests/${encodeURIComponent(this.which)}`, { raw: true, from: m.i, limit: 1 });
      this.texts = new Map(this.texts).set(m.i, got.messages[0]?.raw ?? "");
    } catch (err) {
      this.error = say(err);
    }
  }

  private row(index: number) {
    const r = this.pages.at(index);
    if (!r) return html`<span class="muted">request ${index}</span>`;
    const sent = r.usage ? (r.usage.input ?? 0) + (r.usage.cacheRead ?? 0) + (r.usage.cacheWrite ?? 0) : null;
    return html`<button class="request-row" aria-current=${r.id === this.which} @click=${() => void this.choose(r.id, index)}>
      <span><b>turn ${r.turn}, step ${r.step}</b>${r.attempt > 1 ? ` attempt ${r.attempt}` : ""}</span>
      <span class="muted figures">${short(sent)} \u2192 ${short(r.usage?.output)}</span>
      <span class="muted">${r.ok ? duration(r.ms) : html`<span class="badge bad">${oneLine(r.outcome, 30)}</span>`}${r.inherited ? " inherited" : ""}</span>
      ${r.break ? html`<span class="badge bad" title="The provider's cache was broken">cache break</span>` : html`<span class="muted">${r.usage?.cacheRead ? short(r.usage.cacheRead) + " cached" : ""}</span>`}
    </button>`;
  }

  override render() {
    return html`<div class="requests">
      <div class="scroll request-list" role="list" aria-label="Requests" tabindex="0">
        ${this.counted && this.total === 0 ? html`<p class="empty">No request was made yet.</p>` : ""}
        <div class="rows" ${css({ height: `${this.list.total()}px` })}>
          ${this.list.items().map((v) => html`<div class="row" role="listitem" data-index=${v.index} ${css({ transform: `translateY(${v.start}px)` })}>${this.row(v.index)}</div>`)}
        </div>
      </div>
      <div class="scroll request" tabindex="0">
        ${this.error ? html`<p class="bad">${this.error}</p>` : ""}${this.facts ? this.detail(this.facts) : ""}
      </div>
    </div>`;
  }

  private detail(f: RequestFacts) {
    const r = f.request;
    return html`<h2>${r ? html`Turn ${r.turn}, step ${r.step}${r.attempt > 1 ? `, attempt ${r.attempt}` : ""}` : "The next request"}</h2>
      ${r
        ? html`<p class="muted">${oneLine(r.model ?? "", 80)} \u00b7 ${date(r.time)} \u00b7 built from the log up to <button class="bare seq" @click=${() => this.go(r.prefix)}>${r.prefix}</button>${r.costMicroUSD !== null ? ` \u00b7 ${cost(r.costMicroUSD)}` : ""}</p>`
        : ""}
      ${this.digest(f)} ${r?.break ? this.broken(r) : ""} ${this.shares(f)}
      <h3>Against the request before ${f.before ? html`<span class="muted">(${f.before})</span>` : ""}</h3>
      ${f.before
        ? html`<p>
            ${f.headerChanged ? html`<b>The header changed</b>: nothing could come from the cache. ` : ""}The first ${many(f.same, "message")} are the same; ${count(f.removedTotal)} left, ${count(f.added)} came.
          </p>`
        : html`<p class="muted">This is the first one.</p>`}
      ${f.removed.map((m) => html`<div class="message removed"><span class="sign" aria-label="left">\u2212</span><button class="bare seq" @click=${() => this.go(m.seq)}>${m.seq}</button> <span class="chip ${m.kind}" aria-hidden="true">${letters[m.kind as Role] ?? "?"}</span><span class="what">${gist(m.what, 160)}</span><span class="grow"></span><span class="muted figures">${short(m.tokens)}</span></div>`)}
      <div class="bar">
        <h3>Messages</h3>
        <span class="grow"></span>
        ${f.before ? html`<button aria-pressed=${this.onlyNew} @click=${() => (this.onlyNew = !this.onlyNew)}>Only what is new</button>` : ""}
      </div>
      ${f.messages.filter((m) => !this.onlyNew || !f.before || m.i >= f.same).map((m) => this.message(m, f))}
      ${f.from > 0 && !this.onlyNew ? html`<button class="more" @click=${() => void this.page(Math.max(0, f.from - page))}>Messages before ${f.from}</button>` : ""}
      ${f.from + f.messages.length < f.total ? html`<button class="more" @click=${() => void this.page(f.from + f.messages.length)}>Messages from ${f.from + f.messages.length} of ${count(f.total)}</button>` : ""}
      <h3>Header</h3>
      <details><summary>System prompt ${f.system ? html`<span class="muted">${count(f.system.length)} characters</span>` : html`<span class="muted">none</span>`}</summary><oc-long .text=${f.system ?? ""} .open=${true}></oc-long></details>
      <details>
        <summary>${many(f.tools.length, "tool")}</summary>
        ${f.tools.map((t) => html`<details class="tool"><summary><code>${oneLine(t.name, 80)}</code></summary><oc-code .code=${[pretty(clip(t.raw, 100_000)), "json"]}></oc-code></details>`)}
      </details>
      <details><summary>Configuration</summary><oc-code .code=${[pretty(clip(f.config, 100_000)), "json"]}></oc-code></details>`;
  }

  private digest(f: RequestFacts) {
    const c = this.check;
    const recorded = f.recorded ?? "the log holds none (dsh records no digests)";
    return html`<section class="digest" aria-label="Digest">
      <dl class="facts">
        <dt>recorded</dt>
        <dd><code>${recorded}</code></dd>
        <dt>rebuilt</dt>
        <dd><code>${f.digest}</code> ${f.match === true ? html`<span class="badge good">same</span>` : f.match === false ? html`<span class="badge bad">differs</span>` : ""}</dd>
        <dt>this browser</dt>
        <dd>
          ${c?.digest ? html`<code class="checked">${c.digest}</code>` : ""}
          ${!c
            ? html`<button @click=${() => void this.verify()}>Check here</button> <span class="muted">hashes the header and ${many(f.total, "message")} with this browser's SHA-256</span>`
            : c.state === "running"
              ? html`<span class="muted">${c.done} of ${f.total}\u2026</span>`
              : c.state === "same"
                ? html`<span class="badge good">same as recorded</span>`
                : c.state === "differs"
                  ? html`<span class="badge bad">differs from what is recorded</span>`
                  : c.state === "none"
                    ? html`<span class="badge">${c.digest === f.digest ? "same as rebuilt" : "differs from rebuilt"}</span>`
                    : html`<span class="badge bad">not checked</span>`}
          ${c?.note ? html`<span class="muted">${c.note}</span>` : ""}
        </dd>
      </dl>
    </section>`;
  }

  private broken(r: RequestRow) {
    const b = r.break!;
    return html`<section class="cache-broken">
      <b>The provider's cache broke here</b>: ${b.why === "edit" ? html`an edit changed what the request begins with${b.edits?.length ? html` (${b.edits.map((s) => html`<button class="bare seq" @click=${() => this.go(s)}>${s}</button> `)})` : ""}` : b.why === "header" ? "the request header changed" : oneLine(b.why, 80)}.
      <span class="muted">Before it held ${short(b.held)} tokens, after it ${short(b.read)} were read from it; ${short(b.lost)} lost${b.foretold !== null ? `, ${short(b.foretold)} foretold` : ""}${b.costMicroUSD !== null ? `, ${cost(b.costMicroUSD)} more` : ""}.</span>
    </section>`;
  }

  private shares(f: RequestFacts) {
    const parts = ["system", "tools", ...roles].map((name) => [name, f.tokens[name] ?? 0] as const).filter(([, n]) => n > 0);
    const sum = parts.reduce((n, [, v]) => n + v, 0);
    if (sum === 0) return html``;
    return html`<div class="shares" role="img" aria-label=${parts.map(([n, v]) => `${n} ${v} tokens`).join(", ")}>
      ${parts.map(([name, v]) => html`<span class="share ${name}" title="${name}: ${count(v)} tokens" ${css({ "flex-grow": String(v) })}><span>${letters[name as Role] ?? name} ${short(v)}</span></span>`)}
    </div>`;
  }

  private message(m: RequestMessage, f: RequestFacts) {
    const added = f.before !== null && m.i >= f.same;
    const text = this.texts.get(m.i);
    return html`<div class="message ${added ? "added" : ""}">
      ${added ? html`<span class="sign" aria-label="came">+</span>` : html`<span class="sign"></span>`}<span class="num muted">${m.i}</span>
      <button class="bare seq" @click=${() => this.go(m.seq)}>${m.seq}</button>
      <span class="chip ${m.kind}" aria-hidden="true">${letters[m.kind as Role] ?? "?"}</span>
      <button class="fold" aria-expanded=${this.shown === m.i} @click=${() => void this.text(m)}><span class="fold-text">${gist(m.what, 160)}</span></button>
      <span class="muted figures">${short(m.tokens)}</span>
      <code class="hash" title="h(${m.i + 1})">${m.hash.slice(0, 8)}</code>
      ${this.shown === m.i ? html`<div class="raw">${text === undefined ? html`<p class="muted">Reading\u2026</p>` : html`<oc-code .code=${[visible(pretty(clip(text, 200_000))), "json"]}></oc-code>`}${m.exact || secrets.shown ? "" : html`<p class="muted">Secrets are masked here; the digest is over the bytes in the log.</p>`}</div>` : ""}
    </div>`;
  }

  private go(seq: number): void {
    this.dispatchEvent(new CustomEvent("go", { detail: seq, bubbles: true }));
  }
}
