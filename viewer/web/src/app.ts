// The page: lets itself in, then shows the list or one session.
import { html } from "lit";
import { customElement, state } from "lit/decorators.js";
import { APIError, get, post, say, type ServerFacts } from "./api";
import { Part } from "./parts/element";
import { help, typing } from "./parts/help";
import { complain } from "./parts/say";
import { link, parse, type Route } from "./route";
import { setTheme, theme, type Theme } from "./theme";
import { sessionKeys, SessionsView } from "./views/sessions";
import { shelfKeys, type ShelfView } from "./views/shelf";
import type { SessionPage } from "./views/session";

@customElement("oc-app")
export class App extends Part {
  @state() private server: ServerFacts | null = null;
  @state() private route: Route = parse("");
  @state() private locked = false;
  @state() private error = "";
  @state() private theme: Theme = theme();

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("hashchange", () => void this.arrive());
    addEventListener("keydown", (e) => this.key(e));
    void this.arrive();
  }

  /** the fragment is where to go, or a token first, which is dropped at once */
  private async arrive(): Promise<void> {
    const key = /^#k=([^&]*)(?:&(.*))?$/.exec(location.hash);
    if (key) {
      history.replaceState(null, "", "#" + (key[2] ?? "/"));
      await this.letIn(decodeURIComponent(key[1]!));
      // Beside a chat its session is what one came for.
      if (!key[2] && this.server?.beside) history.replaceState(null, "", link(this.server.beside));
    } else if (!this.server) await this.begin();
    this.route = parse(location.hash);
  }

  private async letIn(key: string): Promise<void> {
    try {
      await post("/token", { key });
    } catch (err) {
      if (!(err instanceof APIError && err.status === 401)) complain(err);
    }
    await this.begin();
  }

  private async begin(): Promise<void> {
    try {
      this.server = await get<ServerFacts>("");
      this.locked = false;
      this.error = "";
    } catch (err) {
      if (err instanceof APIError && err.status === 401) this.locked = true;
      else {
        this.error = say(err);
        setTimeout(() => void this.begin(), 2000);
      }
    }
  }

  private key(e: KeyboardEvent): void {
    const find = e.key === "f" && (e.ctrlKey || e.metaKey);
    if (e.defaultPrevented || document.querySelector("dialog[open]") || (typing(e) && !find)) return;
    const page = this.querySelector<SessionsView | ShelfView | SessionPage>("oc-sessions, oc-shelf, oc-session");
    if (this.route.session === null) {
      if (find && page instanceof SessionsView) page.focusSearch();
      else if (e.key === "?") this.help();
      else if (e.ctrlKey || e.metaKey || e.altKey || !page?.key(e)) return this.own(e);
    } else if (!page?.key(e)) return this.own(e);
    e.preventDefault();
  }

  private own(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "t") this.turnTheme();
    else if (e.key === "g") location.hash = "#/";
    else return;
    e.preventDefault();
  }

  private turnTheme(): void {
    const next: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
    this.theme = next[this.theme];
    setTheme(this.theme);
  }

  private help(): void {
    if (this.route.shelf !== null) help(this.route.shelf === "archive" ? "Archive" : "Trash", shelfKeys);
    else if (this.route.session === null) help("Sessions", sessionKeys);
    else this.querySelector<SessionPage>("oc-session")?.key(new KeyboardEvent("keydown", { key: "?" }));
  }

  override render() {
    return html`<a class="skip" href="#view" @click=${(e: Event) => (e.preventDefault(), this.querySelector<HTMLElement>(".scroll, .strata")?.focus())}>To the content</a>
      <header class="top">
        <a class="mark" href="#/" aria-label="Outcrop: all sessions">
          <svg viewBox="0 0 40 24" aria-hidden="true"><path class="s1" d="M0 8 11 3l11 4L33 1l7 2v5l-7 1-11 3-11-3-11 4z" /><path class="s2" d="m0 14 11-4 11 3 11-3 7-1v5l-7 2-11 3-11-3-11 3z" /><path class="s3" d="m0 20 11-3 11 3 11-3 7-2v9H0z" /></svg>
          <span>Outcrop</span>
        </a>
        <span class="grow"></span>
        ${this.server ? html`<code class="muted store">${this.server.store}</code>` : ""}
        <button class="bare" title="Light, dark, or as the system has it (t)" @click=${() => this.turnTheme()}>${this.theme === "auto" ? "auto" : this.theme}</button>
        <button class="bare" title="Keys (?)" aria-label="Keys" @click=${() => this.help()}>?</button>
      </header>
      ${this.locked ? this.door() : this.error ? html`<p class="empty bad">${this.error}</p>` : ""}
      ${this.server && !this.locked
        ? this.route.session === null
          ? html`<main class="page">${this.route.shelf !== null ? html`<oc-shelf .shelf=${this.route.shelf}></oc-shelf>` : html`<oc-sessions .server=${this.server}></oc-sessions>`}</main>`
          : html`<oc-session class="page" .route=${this.route} .server=${this.server}></oc-session>`
        : ""}
      <oc-saying></oc-saying>`;
  }

  private door() {
    return html`<form
      class="door"
      @submit=${(e: Event) => {
        e.preventDefault();
        const text = (e.target as HTMLFormElement).querySelector("input")!.value.trim();
        void this.letIn(/#k=([^&]+)/.exec(text)?.[1] ?? text);
      }}
    >
      <h1>This page needs its key</h1>
      <p>Open the address that <code>outcrop serve</code> printed, or paste it here. A key is good until the server ends.</p>
      <label>Address or key <input autocomplete="off" /></label>
      <button class="primary" type="submit">Open</button>
    </form>`;
  }
}
