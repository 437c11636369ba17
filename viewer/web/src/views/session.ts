// One session: its head, its views, the event beside them, the foot.
import { html, type PropertyValues } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import * as act from "../actions";
import { aborted, say, secrets, type FindHit, type ServerFacts } from "../api";
import { bytes, cost, count, date, many, short } from "../format";
import { Model } from "../model";
import type { Dock } from "../parts/dock";
import { Part } from "../parts/element";
import { help } from "../parts/help";
import { link, number, views, type Route, type View } from "../route";
import { oneLine } from "../text/plain";
import { conversationKeys, type ConversationView } from "./conversation";
import { logKeys, type LogView } from "./log";
import { numberKeys } from "./numbers";
import { requestKeys, type RequestsView } from "./requests";
import { strataKeys, type StrataView } from "./strata";

const keysOf = { talk: conversationKeys, strata: strataKeys, log: logKeys, requests: requestKeys, numbers: numberKeys };

@customElement("oc-session")
export class SessionPage extends Part {
  @property({ attribute: false }) route!: Route;
  @property({ attribute: false }) server!: ServerFacts;
  @state() private model: Model | null = null;
  @state() private error = "";
  @state() private event: number | null = null;
  @state() private finding = false;
  private wanted = "";
  private stop: AbortController | null = null;

  override willUpdate(changed: PropertyValues<this>): void {
    if (!changed.has("route")) return;
    if (this.route.session !== this.wanted) void this.open(this.route.session ?? "");
    this.event = number(this.route.params, "event");
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stop?.abort();
    this.model?.close();
  }

  /** opens the session of the route anew */
  async open(id: string): Promise<void> {
    this.wanted = id;
    this.stop?.abort();
    this.model?.close();
    this.model = null;
    this.error = "";
    this.finding = false;
    const stop = (this.stop = new AbortController());
    try {
      const m = await Model.open(id, stop.signal);
      if (this.wanted !== id) return m.close();
      m.on((c) => c.what !== "draft" && this.requestUpdate());
      this.model = m;
    } catch (err) {
      if (!aborted(err)) this.error = say(err);
    }
  }

  private to(view: View, params: Record<string, string | number | null> = {}): string {
    return link(this.route.session, view, params);
  }

  private go(seq: number | null): void {
    const params = Object.fromEntries(this.route.params);
    delete params.event;
    location.replace(link(this.route.session, this.route.view, { ...params, event: seq }));
  }

  private keepAt(seq: number | null): void {
    const params = Object.fromEntries(this.route.params);
    delete params.at;
    const hash = link(this.route.session, this.route.view, { ...params, at: seq });
    history.replaceState(null, "", hash);
    this.route.params = new URLSearchParams(hash.split("?")[1] ?? "");
  }

  key(e: KeyboardEvent): boolean {
    const view = this.querySelector<ConversationView | StrataView | LogView | RequestsView>("oc-conversation, oc-strata, oc-log, oc-requests");
    if ((e.key === "f" && (e.ctrlKey || e.metaKey)) || (e.key === "/" && !e.ctrlKey)) {
      if (this.finding) this.querySelector<HTMLInputElement>(".find input")?.select();
      this.finding = true;
      return true;
    }
    if (e.ctrlKey || e.metaKey || e.altKey) return false;
    if (e.key === "?") {
      help(views.find((v) => v.id === this.route.view)!.name, keysOf[this.route.view]);
      return true;
    }
    if (e.key === "Escape") {
      if (this.event !== null) this.go(null);
      else if (this.finding) this.endFind();
      else return view?.key(e) ?? false;
      return true;
    }
    if (view?.key(e)) return true;
    const tab = views.find((v) => v.key === e.key);
    if (tab) {
      location.hash = this.to(tab.id);
      return true;
    }
    if (e.key === "w") {
      this.querySelector<Dock>("oc-dock")?.focusComposer();
      return true;
    }
    return false;
  }

  private endFind(): void {
    this.finding = false;
    this.querySelector<ConversationView>("oc-conversation")?.endFind();
  }

  private async found(hit: FindHit, q: string): Promise<void> {
    const talk = this.querySelector<ConversationView>("oc-conversation");
    if (talk) talk.showHit(hit, q);
    else location.hash = this.to(this.route.view, this.route.view === "strata" ? { at: this.route.params.get("at"), event: hit.seq } : { seq: hit.seq, event: hit.seq });
  }

  private async rename(): Promise<void> {
    const m = this.model!;
    await act.attempt(async () => {
      if ((await act.rename(m.id, m.facts.title)) !== null) await m.refresh();
    });
  }

  private async moreOf(m: Model): Promise<void> {
    await act.attempt(async () => {
      if (await act.more(this.server, m.id, m.facts.title, m.facts.writer.where !== "none")) location.hash = link(null);
    });
  }

  private secrets(): void {
    secrets.show(!secrets.shown);
    void this.open(this.wanted);
  }

  override render() {
    if (this.error)
      return html`<div class="scroll"><p class="empty bad">${this.error}</p><p class="empty"><a href="#/">All sessions</a></p></div>`;
    const m = this.model;
    if (!m) return html`<div class="scroll"><p class="empty muted">Reading the log\u2026</p></div>`;
    const f = m.facts;
    return html`<div class="session-page">
      <div class="session-head">
        <div class="session-name">
          <h1>${f.title ? oneLine(f.title, 160) : oneLine(f.id, 80)}</h1>
          ${this.server.writable && f.writer.where !== "elsewhere" && f.state !== "damaged" && f.state !== "newer" ? html`<button class="bare" title="Rename" @click=${() => void this.rename()}>rename</button>` : ""}
          <span class="grow"></span>
          <button class="bare" title="Export, archive, delete" @click=${() => void this.moreOf(m)}>more\u2026</button>
          <button class="bare" aria-pressed=${secrets.shown} title="Keys and passwords are masked unless asked for" @click=${() => this.secrets()}>${secrets.shown ? "mask secrets" : "show secrets"}</button>
        </div>
        <p class="session-facts muted">
          <code title="Session id">${oneLine(f.id, 80)}</code>${f.cwd ? html`<span class="path">${oneLine(f.cwd, 120)}</span>` : ""}
          ${f.parent ? html`<span>from <a href=${link(f.parent)}>${oneLine(f.parent, 40)}</a></span>` : ""}
          <span title=${date(f.updatedAt)}>${many(f.events, "event")}</span><span>${many(f.turns, "turn")}</span
          ><span>${short(f.contextTokens)}${f.window ? ` of ${short(f.window)}` : ""} tokens</span><span>${cost(f.costMicroUSD)}</span><span>${bytes(f.bytes)}</span>
        </p>
        ${f.format > 0 ? html`<p class="muted">This log is in format ${f.format} of dsh. It is shown as format 0, and so are its seqs; it is never written, and goes on in a new session.</p>` : ""}
        ${f.reason && (f.state === "damaged" || f.state === "newer") ? html`<p class="bad">${oneLine(f.state, 30)}: ${oneLine(f.reason, 300)}${f.lastSeq >= 0 ? `. What is shown ends at event ${count(f.lastSeq)}.` : ""}</p>` : ""}
        ${f.lostPins.length > 0 ? html`<p class="bad">Pins that another program covered: ${f.lostPins.join(", ")}</p>` : ""}
        <nav class="tabs" aria-label="Views">
          ${views.map((v) => html`<a href=${this.to(v.id)} aria-current=${v.id === this.route.view ? "page" : "false"}><kbd>${v.key}</kbd>${v.name}</a>`)}
        </nav>
      </div>
      ${this.finding
        ? html`<oc-find
            .session=${m.id}
            @close=${() => this.endFind()}
            @found=${(e: CustomEvent<{ hit: FindHit; q: string }>) => void this.found(e.detail.hit, e.detail.q)}
          ></oc-find>`
        : ""}
      <div class="session-body ${this.event !== null ? "with-event" : ""}" @go=${(e: CustomEvent<number | null>) => this.go(e.detail)} @at=${(e: CustomEvent<number | null>) => this.keepAt(e.detail)}>
        <main class="view" id="view">${this.view(m)}</main>
        ${this.event !== null ? html`<oc-event .session=${m.id} .seq=${this.event}></oc-event>` : ""}
      </div>
      <oc-dock .model=${m} .writable=${this.server.writable}></oc-dock>
    </div>`;
  }

  private view(m: Model) {
    const p = this.route.params;
    switch (this.route.view) {
      case "talk":
        return html`<oc-conversation .model=${m} .writable=${this.server.writable} .target=${number(p, "seq")}></oc-conversation>`;
      case "strata":
        return html`<oc-strata .model=${m} .start=${number(p, "at")}></oc-strata>`;
      case "log":
        return html`<oc-log .model=${m} .target=${number(p, "seq")}></oc-log>`;
      case "requests":
        return html`<oc-requests .model=${m} .target=${p.get("id")}></oc-requests>`;
      case "numbers":
        return html`<oc-numbers .model=${m}></oc-numbers>`;
    }
  }
}
