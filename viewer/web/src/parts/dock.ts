// The foot of a session: who writes it, and what can be done. Read-only while
// somebody else holds the lock; "Continue here" when nobody does; composer,
// approvals and history operations when this process writes it.
import { html } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import * as act from "../actions";
import { upload } from "../api";
import { cost, short } from "../format";
import type { Model } from "../model";
import { clip, oneLine, visible } from "../text/plain";
import { isPatch } from "../text/diff";
import { css, Part } from "./element";
import { ask } from "./dialog";
import { complain } from "./say";

@customElement("oc-dock")
export class Dock extends Part {
  @property({ attribute: false }) model!: Model;
  @property({ attribute: false }) writable = false;
  @state() private text = "";
  @state() private with = ""; // model
  @state() private images: { id: string; name: string }[] = [];
  @state() private working = false;
  private off: (() => void) | null = null;

  override willUpdate(changed: Map<string, unknown>): void {
    if (!changed.has("model")) return;
    this.off?.();
    this.off = this.model.on((c) => {
      if (c.what === "facts" || c.what === "reset" || c.what === "gone") this.requestUpdate();
    });
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.off?.();
  }

  focusComposer(): void {
    this.querySelector<HTMLTextAreaElement>(".composer textarea")?.focus();
  }

  private last: Promise<void> = Promise.resolve();
  private waiting = 0;

  /** one thing after the other: nothing that was asked for is dropped */
  private run(f: () => Promise<unknown>): Promise<void> {
    this.waiting++;
    this.working = true;
    this.last = this.last.then(async () => {
      try {
        await f();
      } catch (err) {
        complain(err);
      } finally {
        this.working = --this.waiting > 0;
      }
    });
    return this.last;
  }

  private submit(asSteer: boolean): void {
    const text = this.text.trim();
    if (!text && this.images.length === 0) return;
    const images = this.images;
    this.text = "";
    this.images = [];
    void this.run(async () => {
      try {
        if (asSteer) await act.steer(this.model, text);
        else await act.send(this.model, text, images.map((i) => i.id));
      } catch (err) {
        // What was written is not lost, unless something else was written since.
        if (this.text === "") [this.text, this.images] = [text, images];
        throw err;
      }
    });
  }

  private key(e: KeyboardEvent): void {
    if (e.isComposing) return;
    if (e.key === "Escape") {
      // Keys belong to the view again.
      e.preventDefault();
      document.querySelector<HTMLElement>("#view .scroll, #view .strata")?.focus();
      (e.target as HTMLElement).blur();
      return;
    }
    if (e.key !== "Enter") return;
    if (e.shiftKey) return;
    e.preventDefault();
    this.submit(this.model.busy && !(e.ctrlKey || e.metaKey));
  }

  private async add(files: Iterable<File>): Promise<void> {
    for (const f of files) {
      if (!/^image\/(png|jpeg|gif|webp)$/.test(f.type)) continue;
      try {
        const id = await upload(f);
        this.images = [...this.images, { id, name: f.name || "picture" }];
      } catch (err) {
        complain(err);
      }
    }
  }

  override render() {
    const m = this.model;
    if (!m) return html``;
    return html`<section class="dock" aria-label="Live">${m.facts.questions.map((q) => this.question(q))}${this.state()}</section>`;
  }

  private question(q: Model["facts"]["questions"][number]) {
    const answer = (v: "once" | "same" | "reject", reason = "") => void this.run(() => act.approve(this.model, q.id, v, reason));
    return html`<div class="question" role="alertdialog" aria-label="Approval of ${q.tool}">
      <div class="question-head">May <b>${oneLine(q.tool, 60)}</b> run${q.dir ? html` in <code>${oneLine(q.dir, 120)}</code>` : ""}?</div>
      ${q.diff || isPatch(q.preview) ? html`<oc-long .text=${q.preview} .open=${true}></oc-long>` : html`<pre class="plain preview" tabindex="0">${visible(clip(q.preview, 100_000))}</pre>`}
      <div class="question-ends">
        <button class="primary" @click=${() => answer("once")}>Once</button>
        <button @click=${() => answer("same")}>This exact call, for this session</button>
        <button @click=${() => answer("reject")}>No</button>
        <button
          @click=${async () => {
            const why = await ask({ title: "Refuse, and say why", body: html``, yes: "Refuse", field: { label: "Reason for the model", value: "", lines: 3 } });
            if (why !== null) answer("reject", why);
          }}
        >
          No, and tell the model why\u2026
        </button>
      </div>
    </div>`;
  }

  private state() {
    const m = this.model;
    const w = m.facts.writer;
    if (m.gone) return html`<p class="dock-line bad">This session is not in the store any more.</p>`;
    const offline = m.connected ? "" : html`<span class="badge bad">not connected; trying again</span>`;
    if (w.where === "here") return html`${offline}${this.here()}`;
    if (w.where === "elsewhere") {
      return html`<p class="dock-line">${offline}Read-only here: ${w.holder ? oneLine(w.holder, 160) : "another program writes this session"}. What it does appears here.</p>`;
    }
    const can = this.writable && m.facts.state !== "damaged" && m.facts.state !== "newer" && !m.facts.noMarkers;
    return html`<p class="dock-line">
      ${offline}${can
        ? html`<button class="primary" ?disabled=${this.working} @click=${() => void this.run(() => act.takeUp(m, this.with.trim()))}>Continue here</button>
            <label class="inline">with <input class="with" size="22" placeholder="the configured model" aria-label="PROVIDER:MODEL" .value=${this.with} @input=${(e: Event) => (this.with = (e.target as HTMLInputElement).value)} /></label>
            <span class="muted">Nobody writes this session. ${m.facts.openTurn ? "A crash or an interrupt left a turn open; it is closed first." : ""}</span>
            <span class="grow"></span>
            <button ?disabled=${this.working} @click=${() => void this.run(() => act.fork(m, null))}>Fork</button>`
        : html`<span class="muted">${m.facts.reason ? `Read-only: ${oneLine(m.facts.reason, 200)}` : "Read-only."}</span>`}
    </p>`;
  }

  private here() {
    const m = this.model;
    const s = m.facts.status;
    const busy = m.busy;
    const fill = s && s.window > 0 ? Math.min(1, s.tokens / s.window) : 0;
    return html`<div class="status" role="status">
        <span class="phase ${busy ? "busy" : ""}">${s ? phase(s.phase, s.tool) : "idle"}</span>
        ${s && busy ? html`<span class="muted">turn ${s.turn}, step ${s.step}${s.attempt > 1 ? `, attempt ${s.attempt}` : ""}</span>` : ""}
        ${s && s.window > 0
          ? html`<span class="gauge" role="meter" aria-label="Window filled" aria-valuemin="0" aria-valuemax=${s.window} aria-valuenow=${s.tokens}><span ${css({ width: `${fill * 100}%` })}></span></span>
              <span class="muted">${short(s.tokens)} of ${short(s.window)}</span>`
          : ""}
        ${s ? html`<span class="muted">${cost(s.spentMicroUSD)}</span>` : ""}${s && s.pending > 0 ? html`<span class="badge">${s.pending} waiting</span>` : ""}
        <span class="grow"></span>
        <label class="inline">asks <select aria-label="What needs an answer" @change=${(e: Event) => void this.run(() => act.setPolicy(m, (e.target as HTMLSelectElement).value))}>
          ${["ask", "edits", "all", "none"].map((p) => html`<option value=${p} ?selected=${s?.approve === p}>${policyNames[p]}</option>`)}
        </select></label>
        <button title="Go on with another model" @click=${() => void act.attempt(() => act.setModel(m))}>Model</button>
        <button ?disabled=${busy} @click=${() => void act.attempt(() => act.edit(m, "compact"))}>Compact</button>
        <button ?disabled=${busy} @click=${() => void act.attempt(() => act.edit(m, "prune"))}>Prune</button>
        <button @click=${() => void act.attempt(() => act.fork(m, null))}>Fork</button>
        <button @click=${() => void act.attempt(() => act.release(m))}>Let go</button>
      </div>
      <form class="composer" @submit=${(e: Event) => (e.preventDefault(), this.submit(false))}>
        ${this.images.map((i) => html`<span class="badge">${oneLine(i.name, 40)} <button type="button" class="bare" aria-label="Leave out" @click=${() => (this.images = this.images.filter((x) => x !== i))}>\u00d7</button></span>`)}
        <textarea
          rows="2"
          aria-label="Prompt"
          placeholder=${busy ? "Steer the running turn (Enter), or queue a prompt (Ctrl-Enter)" : "Write a prompt. Enter sends, Shift-Enter makes a line."}
          .value=${this.text}
          @input=${(e: Event) => (this.text = (e.target as HTMLTextAreaElement).value)}
          @keydown=${(e: KeyboardEvent) => this.key(e)}
          @paste=${(e: ClipboardEvent) => void this.add(e.clipboardData?.files ?? [])}
          @drop=${(e: DragEvent) => (e.preventDefault(), void this.add(e.dataTransfer?.files ?? []))}
        ></textarea>
        <div class="composer-ends">
          ${busy
            ? html`<button type="button" class="primary" ?disabled=${!this.text.trim()} @click=${() => this.submit(true)}>Steer</button>
                <button type="submit" ?disabled=${!this.text.trim()}>Queue</button>
                <button type="button" class="danger" @click=${() => void this.run(() => act.cancel(m))}>Cancel turn</button>`
            : html`<button type="submit" class="primary" ?disabled=${!this.text.trim() && this.images.length === 0}>Send</button>`}
        </div>
      </form>`;
  }
}

const policyNames: Record<string, string> = { ask: "before edits and commands", edits: "before commands", all: "never", none: "refuses all but reading" };

function phase(name: string, tool: string): string {
  switch (name) {
    case "calling":
      return "the model answers";
    case "running":
      return tool ? `runs ${oneLine(tool, 40)}` : "runs a tool";
    case "asking":
      return "waits for your answer";
    case "retrying":
      return "tries the model again";
    case "operating":
      return "edits the history";
    default:
      return name;
  }
}

