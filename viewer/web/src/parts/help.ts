// The keys of each view. One list: the help dialog shows it.
import { html } from "lit";
import { ask } from "./dialog";

export type Keys = readonly (readonly [key: string, what: string])[];

export const everywhere: Keys = [
  ["?", "this list"],
  ["1 \u2013 5", "Conversation, Strata, Log, Requests, Numbers"],
  ["g", "the list of sessions"],
  ["/ or Ctrl-F", "find; in the list: search"],
  ["t", "light, dark, or as the system has it"],
  ["Esc", "close what is open"],
];

export function help(view: string, keys: Keys): void {
  const list = (k: Keys) => html`<dl class="keys">${k.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>`;
  void ask({ title: "Keys: " + view, body: html`${list(keys)}<h3>Everywhere</h3>${list(everywhere)}`, yes: "Close", only: true });
}

/** true when a key is meant for what one types in */
export function typing(e: KeyboardEvent): boolean {
  const t = e.target;
  if (!(t instanceof HTMLElement)) return false;
  return t.isContentEditable || t instanceof HTMLTextAreaElement || t instanceof HTMLSelectElement || (t instanceof HTMLInputElement && t.type !== "checkbox" && t.type !== "range");
}
