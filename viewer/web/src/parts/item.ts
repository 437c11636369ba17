// One item of a conversation as people read it. What is folded is remembered by
// the list, because rows come and go while one scrolls.
import { html, nothing, type TemplateResult } from "lit";
import { attachmentURL, type Block, type Item } from "../api";
import { bytes, cost, count, date, duration, many, short, time } from "../format";
import type { DraftBlock } from "../live";
import { letters, roleNames, type Role } from "../palette";
import { languageOf } from "../text/code";
import { clip, oneLine, pretty, visible } from "../text/plain";
import { difference } from "./text";

/** what the list knows and can do for an item */
export interface Around {
  isOpen(key: string): boolean;
  toggle(key: string): void;
  whole(item: Item): void; // load it uncut
  actions(item: Item): TemplateResult;
  version(item: Item, by: number): void;
  go(seq: number): void;
  unfold(item: Item): void; // a rewound part
  durable: number;
  live: boolean;
}

export function roleOf(item: Item): Role {
  switch (item.kind) {
    case "user":
      return "user";
    case "assistant":
      return "assistant";
    case "result":
    case "prune":
      return "tool";
    case "checkpoint":
      return "checkpoint";
    default:
      return "context";
  }
}

const chip = (role: Role) => html`<span class="chip ${role}" aria-hidden="true">${letters[role]}</span>`;

export function itemView(item: Item, a: Around): TemplateResult {
  switch (item.kind) {
    case "turn":
      return html`<div class="turn"><span>turn ${item.turn}</span><time title=${date(item.time)}>${time(item.time)}</time></div>`;
    case "end":
      return html`<div class="line-item bad" role="note"><b>Turn ended: ${oneLine(item.reason ?? "", 60)}</b> ${visible(clip(item.text ?? "", 2000))}</div>`;
    case "title":
      return html`<div class="line-item muted">Named \u201c${oneLine(item.text ?? "")}\u201d</div>`;
    case "notice":
      return html`<div class="line-item muted"><code>${oneLine(item.what ?? "", 60)}</code> ${visible(clip(item.text ?? "", 2000))}</div>`;
    case "prune":
      return html`<div class="line-item">
        ${chip("tool")}<span>Result ${seqLink(item.of ?? 0, a)} shortened: ${short(item.tokensBefore)} \u2192 ${short(item.tokensAfter)} tokens. The original stays in the log.</span>
        <span class="grow"></span>${a.actions(item)}
      </div>`;
    case "rewind":
      return html`<div class="line-item"><span class="hatch" aria-hidden="true"></span>Taken back to ${seqLink(item.to ?? 0, a)}: ${many(item.count ?? 0, "message")} left the model's sight.</div>`;
    case "rewound":
      return html`<button class="line-item fold" @click=${() => a.unfold(item)}>
        <span class="hatch" aria-hidden="true"></span>${many(item.count ?? 0, "message")}, rewound <span class="muted">(show)</span>
      </button>`;
    case "result":
      return result(item, a);
    default:
      return message(item, a);
  }
}

const seqLink = (seq: number, a: Around) => html`<button class="bare seq" @click=${() => a.go(seq)}>${seq}</button>`;

function head(item: Item, a: Around, name: unknown, extra: unknown = nothing): TemplateResult {
  const role = roleOf(item);
  return html`<header class="item-head">
    ${chip(role)}<b class="who">${name}</b>
    <button class="bare seq" title="Look at event ${item.seq}" @click=${() => a.go(item.seq)}>${item.seq}</button>
    <time title=${date(item.time)}>${time(item.time)}</time>
    ${item.covered !== null && !item.rewound ? html`<span class="badge" title="The model sees ${item.covered} instead">covered by ${item.covered}</span>` : ""}
    ${item.rewound ? html`<span class="badge hatched">rewound</span>` : ""}${item.pinned ? html`<span class="badge">pinned</span>` : ""}
    ${item.seq > a.durable ? html`<span class="badge pending" title="Not yet synced to the disk; a power cut could lose it">not yet durable</span>` : ""}
    ${extra}<span class="grow"></span>${a.actions(item)}
  </header>`;
}

function message(item: Item, a: Around): TemplateResult {
  const role = roleOf(item);
  const src = item.source;
  let name: unknown = roleNames[role];
  if (item.kind === "user") name = src?.kind && src.kind !== "user" ? html`injected by ${oneLine(src.plugin ?? src.kind, 40)}` : "you";
  if (item.kind === "context") name = html`context${src?.form || src?.plugin || src?.kind ? html` <span class="muted">${oneLine(src.form ?? src.plugin ?? src.kind ?? "", 40)}</span>` : ""}`;
  if (item.kind === "assistant") name = item.model ? oneLine(item.model, 50) : "assistant";
  if (item.kind === "checkpoint") name = html`checkpoint${item.level && item.level > 1 ? ` level ${item.level}` : ""}`;
  const injected = item.kind === "context" || (item.kind === "user" && !!src?.kind && src.kind !== "user");
  const folded = injected && !a.isOpen(`${item.seq}:all`);
  return html`<article class="item ${item.kind} ${item.covered !== null || item.rewound ? "shadowed" : ""}" aria-label="${roleNames[role]}, event ${item.seq}">
    ${head(item, a, name, item.kind === "assistant" ? usage(item) : item.kind === "checkpoint" ? saved(item, a) : versions(item, a))}
    ${injected
      ? html`<button class="fold" aria-expanded=${!folded} @click=${() => a.toggle(`${item.seq}:all`)}>
          ${folded ? html`<span class="fold-text">${oneLine(firstText(item)) || "empty"}</span>` : "fold"}
        </button>`
      : ""}
    ${folded ? "" : html`<div class="body">${(item.blocks ?? []).map((b, i) => block(item, b, i, a))}</div>`}
    ${item.interrupted ? html`<p class="line-item bad">Interrupted</p>` : ""}
    ${item.finish && /max|length/.test(item.finish) ? html`<p class="line-item bad">Cut off: ${oneLine(item.finish, 40)}</p>` : ""}
  </article>`;
}

const firstText = (item: Item) => item.blocks?.find((b) => b.text)?.text ?? "";

function usage(item: Item) {
  const u = item.usage;
  if (!u) return nothing;
  const sent = (u.input ?? 0) + (u.cacheRead ?? 0) + (u.cacheWrite ?? 0);
  return html`<span class="muted figures" title="input ${u.input ?? "?"}, from cache ${u.cacheRead ?? "?"}, output ${u.output ?? "?"} tokens"
    >${short(sent)} \u2192 ${short(u.output)}${item.costMicroUSD !== null && item.costMicroUSD !== undefined ? " \u00b7 " + cost(item.costMicroUSD) : ""}</span
  >`;
}

function saved(item: Item, a: Around) {
  return html`<span class="muted figures">${item.count !== undefined ? html`in place of ${many(item.count, "node")} (${seqLink(item.start ?? 0, a)}\u2026${seqLink(item.end ?? 0, a)}), ` : ""}${short(item.tokensBefore)} \u2192 ${short(item.tokensAfter)} tokens${item.modelFree ? ", made without a model" : ""}</span>`;
}

function versions(item: Item, a: Around) {
  const v = item.versions;
  if (!v || v.seqs.length < 2) return nothing;
  return html`<span class="versions" role="group" aria-label="Versions of this prompt">
    <button class="bare" aria-label="Earlier version" ?disabled=${v.n <= 1} @click=${() => a.version(item, -1)}>\u2039</button>
    <span>${v.n} / ${v.seqs.length}</span>
    <button class="bare" aria-label="Later version" ?disabled=${v.n >= v.seqs.length} @click=${() => a.version(item, 1)}>\u203a</button>
  </span>`;
}

function block(item: Item, b: Block, i: number, a: Around): TemplateResult {
  const key = `${item.seq}:${i}`;
  switch (b.type) {
    case "text":
      return html`${item.kind === "assistant" || item.kind === "checkpoint" || item.kind === "user"
        ? html`<oc-markdown .text=${b.text ?? ""}></oc-markdown>`
        : html`<oc-long .text=${b.text ?? ""}></oc-long>`}${cutNote(item, b, a)}`;
    case "reasoning":
      return html`<div class="reasoning">
        <button class="fold" aria-expanded=${a.isOpen(key)} @click=${() => a.toggle(key)}>
          <span class="fold-name">reasoning</span> ${a.isOpen(key) ? "" : html`<span class="fold-text">${oneLine(b.text ?? "")}</span>`}
        </button>
        ${a.isOpen(key) ? html`<oc-markdown .text=${b.text ?? ""}></oc-markdown>${cutNote(item, b, a)}` : ""}
      </div>`;
    case "call": {
      const open = a.isOpen(key);
      return html`<div class="call ${b.state ?? ""}">
        <button class="fold" aria-expanded=${open} @click=${() => a.toggle(key)}>
          <span class="fold-name">${oneLine(b.name ?? "call", 60)}</span> <span class="fold-text">${callLine(b)}</span>
          ${b.state === "running" ? html`<span class="badge live">running</span>` : b.state === "none" ? html`<span class="badge">no result</span>` : b.state === "error" ? html`<span class="badge bad">error</span>` : ""}
        </button>
        ${open ? html`${callBody(b)}${cutNote(item, b, a)}` : ""}
      </div>`;
    }
    case "image":
      return picture(b);
    default:
      return html`<details class="other"><summary>${oneLine(b.name ?? "other", 60)}</summary><oc-long .text=${b.raw ?? b.text ?? ""}></oc-long></details>`;
  }
}

function cutNote(item: Item, b: Block, a: Around) {
  return b.cut ? html`<button class="more" @click=${() => a.whole(item)}>Load all ${bytes(b.bytes ?? null)}</button>` : "";
}

/** the box has the picture's shape before it is there, so nothing moves */
function picture(b: Block): TemplateResult {
  const w = b.width ?? 320;
  const h = b.height ?? 200;
  if (!b.attachment) return html`<p class="muted">${oneLine(b.name ?? "image", 80)}: not stored</p>`;
  return html`<figure>
    <img src=${attachmentURL(b.attachment)} width=${w} height=${h} loading="lazy" alt=${oneLine(b.name ?? "attached picture", 120)} />
    <figcaption class="muted">${oneLine(b.name ?? "", 80)} ${b.width && b.height ? `${b.width} \u00d7 ${b.height}` : ""} ${b.bytes ? bytes(b.bytes) : ""}</figcaption>
  </figure>`;
}

interface Args {
  [name: string]: unknown;
}

function args(b: Block): Args | null {
  if (b.cut || !b.arguments || b.arguments.length > 400_000) return null;
  try {
    const v: unknown = JSON.parse(b.arguments);
    return v !== null && typeof v === "object" && !Array.isArray(v) ? (v as Args) : null;
  } catch {
    return null;
  }
}

const str = (v: unknown): string | null => (typeof v === "string" ? v : null);
const pathOf = (v: Args) => str(v.path) ?? str(v.file_path) ?? str(v.filePath);

/** what a call is about, in one line */
export function callLine(b: Block): string {
  const v = args(b);
  if (!v) return oneLine(b.arguments ?? "", 120);
  const command = str(v.command) ?? str(v.cmd);
  return oneLine(command ?? pathOf(v) ?? str(v.pattern) ?? str(v.query) ?? b.arguments ?? "", 120);
}

function callBody(b: Block): TemplateResult {
  const v = args(b);
  const path = v && pathOf(v);
  if (v) {
    const edits = Array.isArray(v.edits) ? (v.edits as Args[]) : [v];
    const pairs = edits
      .filter((e): e is Args => e !== null && typeof e === "object")
      .map((e) => [str(e.old) ?? str(e.old_string) ?? str(e.oldText), str(e.new) ?? str(e.new_string) ?? str(e.newText)] as const);
    if (pairs.length > 0 && pairs.every(([o, n]) => o !== null && n !== null)) {
      return html`<div class="path">${visible(path ?? "")}</div>${pairs.map(([o, n]) => difference(o!, n!))}`;
    }
    const command = str(v.command) ?? str(v.cmd);
    if (command !== null) return html`<oc-code .code=${[command, "bash"]}></oc-code>`;
    const content = str(v.content);
    if (content !== null && path) return html`<div class="path">${visible(path)}</div><oc-code .code=${[clip(content, 200_000), languageOf(path)]}></oc-code>`;
  }
  return html`<oc-code .code=${[pretty(clip(b.arguments ?? "", 200_000)), "json"]}></oc-code>`;
}

function result(item: Item, a: Around): TemplateResult {
  const key = `${item.seq}:result`;
  const open = a.isOpen(key);
  const texts = (item.blocks ?? []).filter((b) => b.type === "text");
  const size = texts.reduce((n, b) => n + (b.bytes ?? b.text?.length ?? 0), 0);
  const images = (item.blocks ?? []).filter((b) => b.type === "image");
  return html`<article class="item result ${item.isError ? "failed" : ""} ${item.covered !== null || item.rewound ? "shadowed" : ""}" aria-label="result of ${item.tool ?? "a tool"}, event ${item.seq}">
    <div class="result-head">
      <button class="fold" aria-expanded=${open} @click=${() => a.toggle(key)}>
        ${chip("tool")} <span class="fold-name">${oneLine(item.tool ?? "result", 60)}</span>
        ${item.isError ? html`<span class="badge bad">${oneLine(item.error?.code ?? "error", 40)}</span>` : ""}
        <span class="fold-text">${open ? "" : oneLine(firstText(item), 140)}</span>
      </button>
      <span class="muted figures">${bytes(size)}${item.ms !== null && item.ms !== undefined ? " \u00b7 " + duration(item.ms) : ""}</span>
      ${item.pruned !== null && item.pruned !== undefined ? html`<span class="badge" title="The model sees the shortened copy">pruned: ${item.pruned}</span>` : item.covered !== null && !item.rewound ? html`<span class="badge">covered by ${item.covered}</span>` : ""}
      ${item.pinned ? html`<span class="badge">pinned</span>` : ""}${item.seq > a.durable ? html`<span class="badge pending">not yet durable</span>` : ""}
      <span class="grow"></span>${a.actions(item)}
    </div>
    ${open ? html`<div class="body">${(item.blocks ?? []).map((b, i) => block(item, b, i, a))}</div>` : images.map(picture)}
  </article>`;
}

/** the reply that is being written */
export function draftView(blocks: readonly DraftBlock[]): TemplateResult {
  return html`<article class="item assistant drafting" aria-label="reply in progress" aria-busy="true">
    <header class="item-head">${chip("assistant")}<b class="who">writing</b><span class="badge live">live</span></header>
    <div class="body">
      ${blocks.map((b) =>
        b.type === "text"
          ? html`<oc-markdown .text=${b.text}></oc-markdown>`
          : b.type === "reasoning"
            ? html`<div class="reasoning"><p class="plain draft-reasoning">${visible(b.text.slice(-600))}</p></div>`
            : html`<div class="call"><span class="fold-name">${oneLine(b.name ?? "call", 60)}</span> <span class="fold-text">${oneLine(b.text, 120)} <span class="muted">${count(b.text.length)}</span></span></div>`,
      )}
    </div>
  </article>`;
}

/** the height of an item before it was measured, px */
export function guess(item: Item | undefined): number {
  if (!item) return 38;
  switch (item.kind) {
    case "result":
      return 40;
    case "user":
    case "assistant":
    case "checkpoint":
      return 58 + (item.blocks ?? []).reduce((n, b) => n + (b.type === "text" ? Math.min(2000, Math.ceil((b.text?.length ?? 0) / 90) * 24) : b.type === "image" ? 300 : 36), 0);
    case "context":
      return 66;
    default:
      return 38;
  }
}
