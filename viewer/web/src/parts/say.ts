// Short messages at the foot of the page, read out by screen readers too.
import { html } from "lit";
import { customElement, state } from "lit/decorators.js";
import { say as text } from "../api";
import { visible } from "../text/plain";
import { Part } from "./element";

interface Note {
  id: number;
  text: string;
  bad: boolean;
}

let notes: Saying | null = null;

export const note = (what: string): void => notes?.add(what, false);
export const complain = (err: unknown): void => notes?.add(text(err), true);

@customElement("oc-saying")
export class Saying extends Part {
  @state() private notes: Note[] = [];
  private next = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    notes = this;
  }

  add(what: string, bad: boolean): void {
    const id = this.next++;
    this.notes = [...this.notes.slice(-3), { id, text: visible(what), bad }];
    if (!bad) setTimeout(() => this.drop(id), 6000);
  }

  private drop(id: number): void {
    this.notes = this.notes.filter((n) => n.id !== id);
  }

  override render() {
    return html`<div class="saying" role="status" aria-live="polite">
      ${this.notes.map(
        (n) => html`<div class="note ${n.bad ? "bad" : ""}">
          <span>${n.text}</span><button class="bare" aria-label="Dismiss" @click=${() => this.drop(n.id)}>×</button>
        </div>`,
      )}
    </div>`;
  }
}
