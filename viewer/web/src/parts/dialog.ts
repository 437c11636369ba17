// Questions before something is done. A promise that says what was answered.
import { html, render, type TemplateResult } from "lit";

export interface Asked {
  title: string;
  body: TemplateResult;
  yes: string;
  danger?: boolean;
  only?: boolean; // nothing to refuse
  /** a field to type in; its text is the answer */
  field?: { label: string; value: string; lines: number };
}

export interface Choice {
  name: string;
  text: string;
  what?: string; // a line about it
  href?: string; // a file to be kept
  danger?: boolean;
}

/** one of several things that can be done; null when none was wanted */
export function choose(title: string, body: TemplateResult, choices: readonly Choice[]): Promise<string | null> {
  return new Promise((resolve) => {
    const d = document.createElement("dialog");
    d.className = "ask";
    d.setAttribute("aria-labelledby", "ask-title");
    const done = (value: string | null) => {
      d.close();
      d.remove();
      resolve(value);
    };
    render(
      html`<h2 id="ask-title">${title}</h2>
        <div class="ask-body">${body}</div>
        <ul class="choices">
          ${choices.map(
            (c) => html`<li>
              ${c.href
                ? html`<a class="button" href=${c.href} download @click=${() => setTimeout(() => done(c.name))}>${c.text}</a>`
                : html`<button class=${c.danger ? "danger" : ""} @click=${() => done(c.name)}>${c.text}</button>`}
              <span class="muted">${c.what ?? ""}</span>
            </li>`,
          )}
        </ul>
        <div class="ask-ends"><button @click=${() => done(null)}>Cancel</button></div>`,
      d,
    );
    d.addEventListener("cancel", (e) => {
      e.preventDefault();
      done(null);
    });
    d.addEventListener("keydown", (e) => e.stopPropagation());
    document.body.append(d);
    d.showModal();
    d.querySelector<HTMLElement>(".choices a, .choices button")?.focus();
  });
}

/** null when it was not wanted, else the field's text ("" without a field) */
export function ask(q: Asked): Promise<string | null> {
  return new Promise((resolve) => {
    const d = document.createElement("dialog");
    d.className = "ask";
    d.setAttribute("aria-labelledby", "ask-title");
    const done = (value: string | null) => {
      d.close();
      d.remove();
      resolve(value);
    };
    const value = () => (d.querySelector("textarea,input") as HTMLTextAreaElement | null)?.value ?? "";
    const submit = (e: Event) => {
      e.preventDefault();
      done(value());
    };
    render(
      html`<form @submit=${submit}>
        <h2 id="ask-title">${q.title}</h2>
        <div class="ask-body">${q.body}</div>
        ${q.field
          ? html`<label
              >${q.field.label}
              ${q.field.lines > 1
                ? html`<textarea
                    rows=${q.field.lines}
                    .value=${q.field.value}
                    @keydown=${(e: KeyboardEvent) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && submit(e)}
                  ></textarea>`
                : html`<input .value=${q.field.value} />`}
            </label>`
          : ""}
        <div class="ask-ends">
          ${q.only ? "" : html`<button type="button" @click=${() => done(null)}>Cancel</button>`}
          <button class=${q.danger ? "danger" : "primary"} type="submit">${q.yes}</button>
        </div>
      </form>`,
      d,
    );
    d.addEventListener("cancel", (e) => {
      e.preventDefault();
      done(null);
    });
    d.addEventListener("keydown", (e) => e.stopPropagation());
    document.body.append(d);
    d.showModal();
    const field = d.querySelector<HTMLTextAreaElement>("textarea,input");
    field?.focus();
    field?.select();
  });
}
