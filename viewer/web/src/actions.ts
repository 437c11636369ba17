// What the page can do to a session. Each action says first what it would do,
// and asks where something is lost to the model's eye.
import { html } from "lit";
import { address, APIError, get, post, secrets, session, type Edits, type Item, type RewindAnswer, type ServerFacts, type SessionList } from "./api";
import { count, many, short } from "./format";
import type { Model } from "./model";
import { ask, choose, type Choice } from "./parts/dialog";
import { complain, note } from "./parts/say";
import { link, type Shelf } from "./route";
import { oneLine } from "./text/plain";

/** runs an action; what is refused is said at the foot of the page */
export async function attempt(f: () => Promise<void>): Promise<void> {
  try {
    await f();
  } catch (err) {
    complain(err);
  }
}

const path = (m: Model, what: string) => session(m.id) + "/" + what;

/** the agent that a call needs: continues the session when nobody writes it, and
 * says where, as the start of a path */
async function needAgent(m: Model): Promise<string> {
  return session(m.here ? m.id : await takeUp(m)) + "/";
}

/** takes the lock and starts an agent; without a model with the configured one.
 * A session that is never written goes on in a new one, whose page comes then. */
export async function takeUp(m: Model, model = ""): Promise<string> {
  const got = await post<{ session: string; model: string; cut: string | null }>(path(m, "continue"), model ? { model } : {});
  const other = got.session !== m.id;
  if (other) location.hash = link(got.session);
  else await m.refresh();
  note(`Continued ${other ? "in a new session" : "here"} with ${got.model}.` + (got.cut ? " " + got.cut : ""));
  return got.session;
}

export async function release(m: Model): Promise<void> {
  if (m.busy && (await ask({ title: "Let go of this session?", body: html`<p>The running turn is cancelled; what it did so far stays in the log.</p>`, yes: "Cancel turn and let go", danger: true })) === null) return;
  await post(path(m, "release"), {});
  await m.refresh();
}

export async function send(m: Model, text: string, attachments: string[]): Promise<void> {
  const at = await needAgent(m);
  await post(at + "send", attachments.length > 0 ? { text, attachments } : { text });
}

export const steer = (m: Model, text: string): Promise<unknown> => post(path(m, "steer"), { text });

export async function cancel(m: Model): Promise<void> {
  const got = await post<{ dropped: string[] }>(path(m, "cancel"), { keepInbox: false });
  if (got.dropped.length > 0) note(`Cancelled; ${many(got.dropped.length, "waiting prompt")} dropped: ${got.dropped.map((t) => oneLine(t, 60)).join(" \u00b7 ")}`);
}

export async function approve(m: Model, id: string, verdict: "once" | "same" | "reject", reason = ""): Promise<void> {
  try {
    await post(path(m, "approve"), verdict === "reject" && reason ? { id, verdict, reason } : { id, verdict });
  } catch (err) {
    if (err instanceof APIError && err.code === "ANSWERED") note("Somebody else answered first.");
    else throw err;
  }
}

export async function setModel(m: Model): Promise<void> {
  const name = await ask({ title: "Go on with another model", body: html``, yes: "Change", field: { label: "PROVIDER:MODEL", value: m.facts.model ?? "", lines: 1 } });
  if (!name?.trim()) return;
  const got = await post<{ model: string }>(path(m, "model"), { model: name.trim() });
  note(`The next step asks ${got.model}.`);
}

export const setPolicy = (m: Model, value: string): Promise<unknown> => post(path(m, "policy"), { approve: value });

/** compact or prune: shows the plan, does it when that is wanted */
export async function edit(m: Model, what: "compact" | "prune", body: Record<string, unknown> = {}): Promise<void> {
  const at = await needAgent(m);
  const plan = await post<Edits>(at + what, { ...body, dryRun: true });
  if (plan.planned.length === 0) {
    note(plan.notice ?? plan.problem ?? (what === "compact" ? "Nothing to compact." : "Nothing to prune."));
    return;
  }
  const tokens = plan.planned.reduce((n, p) => n + p.tokens, 0);
  const lost = plan.planned.reduce((n, p) => n + (p.cacheInvalidated ?? 0), 0);
  const ok = await ask({
    title: what === "compact" ? "Compact?" : "Prune?",
    body: html`<p>
        ${plan.planned.map((p) => html`${many(p.nodes.length, "node")} (${p.nodes.length > 1 ? `${p.nodes[0]}\u2026${p.nodes.at(-1)}` : p.nodes[0]}), ${count(p.tokens)} tokens<br />`)}
      </p>
      <p>
        ${count(tokens)} of ${count(plan.before)} tokens are ${what === "compact" ? "summarised" : "shortened"};
        ${lost > 0 ? `${count(lost)} tokens leave the provider's cache.` : "the provider's cache is not touched."} Nothing is deleted: the originals stay in the log.
      </p>`,
    yes: what === "compact" ? "Compact" : "Prune",
  });
  if (ok === null) return;
  const got = await post<Edits>(at + what, body);
  if (got.problem) note(got.problem);
  else note(`${short(got.before)} \u2192 ${short(got.after)} tokens` + (got.notice ? ". " + got.notice : ""));
}

export async function pin(m: Model, node: number, pinned: boolean): Promise<void> {
  await post(path(m, "pin"), { node, pinned });
  await m.refresh();
  note(pinned ? `${node} is pinned: no compaction, no pruning.` : `${node} is not pinned any more.`);
}

function lossOf(plan: RewindAnswer) {
  return html`<p>${many(plan.messages, "message")} (${count(plan.tokens)} tokens) leave the model's sight. They stay in the log.</p>
    ${plan.pinsEnded.length > 0 ? html`<p>Pins that end: ${plan.pinsEnded.join(", ")}</p>` : ""}
    ${plan.dropped.length > 0 ? html`<p>Waiting prompts that are dropped: ${plan.dropped.map((t) => oneLine(t, 80)).join(" \u00b7 ")}</p>` : ""}
    ${plan.notUndone.length > 0
      ? html`<p>Not undone:</p>
          <ul>
            ${plan.notUndone.map((n) => html`<li>${oneLine(n.tool, 30)}: <code>${oneLine(n.what, 100)}</code></li>`)}
          </ul>`
      : ""}`;
}

export async function rewind(m: Model, to: number): Promise<void> {
  const plan = await post<RewindAnswer>(path(m, "rewind"), { to, dryRun: true });
  if (plan.messages === 0) {
    note("Nothing comes after that point.");
    return;
  }
  if ((await ask({ title: `Go back to ${plan.to}?`, body: lossOf(plan), yes: "Rewind", danger: true })) === null) return;
  await post(path(m, "rewind"), { to });
  await m.refresh();
}

export async function fork(m: { id: string }, at: number | null): Promise<void> {
  const got = await post<{ session: string; newer: string | null }>(session(m.id) + "/fork", at === null ? {} : { at });
  note(got.newer ? `Forked from the older log: what ${oneLine(got.newer, 200)} has is not in it.` : "Forked; the original is as it was.");
  location.hash = link(got.session);
}

const textOf = (item: Item) => (item.blocks ?? []).filter((b) => b.type === "text").map((b) => b.text ?? "").join("\n");

/** sends a prompt again in place of itself, changed when edited */
export async function retry(m: Model, item: Item, edited: boolean): Promise<void> {
  let text: string | null = null;
  if (edited) {
    const whole = item.blocks?.some((b) => b.cut) ? (await get<{ item: Item }>(`${session(m.id)}/conversation/${item.seq}`)).item : item;
    text = await ask({
      title: "Edit and send again",
      body: html`<p>What came after this prompt leaves the model's sight; it stays in the log as an earlier version.</p>`,
      yes: "Send",
      field: { label: "Prompt", value: textOf(whole), lines: 8 },
    });
    if (text === null) return;
  } else if ((await ask({ title: "Send this prompt again?", body: html`<p>The answer so far leaves the model's sight; it stays in the log as an earlier version.</p>`, yes: "Retry" })) === null) return;
  const at = await needAgent(m);
  await post(at + "retry", text === null ? { at: item.seq } : { at: item.seq, edit: text });
}

export async function star(id: string, starred: boolean): Promise<void> {
  await post(session(id) + "/star", { starred });
}

/** adds a tag, or takes one away; null when nothing was said */
export async function tag(id: string, tags: readonly string[]): Promise<string[] | null> {
  const name = (await ask({ title: "Tag this session", body: html`<p>A tag that it has is taken away.</p>`, yes: "Set", field: { label: "Tag", value: "", lines: 1 } }))?.trim();
  if (!name) return null;
  const set = !tags.includes(name);
  await post(session(id) + "/tag", { tag: name, set });
  return set ? [...tags, name] : tags.filter((t) => t !== name);
}

export async function rename(id: string, old: string | null): Promise<string | null> {
  const title = await ask({ title: "Name this session", body: html``, yes: "Rename", field: { label: "Title", value: old ?? "", lines: 1 } });
  if (title === null) return null;
  return (await post<{ title: string }>(session(id) + "/title", { title })).title;
}

/** puts a session, and those that come from it, into the archive or the trash;
 * false when that was not wanted */
export async function putAway(id: string, title: string | null, shelf: Shelf): Promise<boolean> {
  const { total } = await get<SessionList>("/sessions", { parent: id, limit: 1 });
  const name = oneLine(title ?? id, 80);
  const ok = await ask({
    title: shelf === "archive" ? "Archive this session?" : "Delete this session?",
    body: html`<p><b>${name}</b> ${shelf === "archive" ? "goes into the archive: it is not listed, found or continued until it is put back." : "goes into the trash, with its attachments and the outputs of its tools. It can be put back from there."}</p>
      ${total > 0 ? html`<p>${many(total, "session")} ${total === 1 ? "comes" : "come"} from it, and ${total === 1 ? "goes" : "go"} along, with all that come from there.</p>` : ""}`,
    yes: shelf === "archive" ? "Archive" : "Delete",
    danger: shelf === "trash",
  });
  if (ok === null) return false;
  const got = await post<{ sessions: string[] }>(session(id) + (shelf === "archive" ? "/archive" : "/delete"), { tree: total > 0 });
  note(`${got.sessions.length > 1 ? many(got.sessions.length, "session") : name}: in the ${shelf}, from where ${got.sessions.length > 1 ? "they" : "it"} can be put back.`);
  return true;
}

export async function restore(shelf: Shelf, id: string): Promise<void> {
  await post(`/shelves/${shelf}/restore`, { session: id });
}

/** offers a session as a file */
export async function exportIt(server: ServerFacts, id: string): Promise<void> {
  await choose("Export", exportNote(), exportChoices(server, id));
}

const exportNote = () =>
  secrets.shown ? html`<p class="bad">Secrets are shown just now, and go along: the file holds keys and passwords as they are.</p>` : html`<p>What looks like a key or a password is masked in the file.</p>`;

const exportChoices = (server: ServerFacts, id: string): Choice[] =>
  server.exports.map((f) => ({ name: f.name, text: f.name, what: f.what, href: address(session(id) + "/export", { format: f.name }) }));

/** what else can be done with a session: true when it is not in the list any more */
export async function more(server: ServerFacts, id: string, title: string | null, readOnly: boolean): Promise<boolean> {
  const choices: Choice[] = exportChoices(server, id).map((c) => ({ ...c, text: `Export as ${c.text}` }));
  if (server.shelves && !readOnly)
    choices.push({ name: "archive", text: "Archive\u2026", what: "out of the list, into the archive" }, { name: "trash", text: "Delete\u2026", what: "into the trash, from where it can be put back", danger: true });
  const what = await choose(oneLine(title ?? id, 60), exportNote(), choices);
  return what === "archive" || what === "trash" ? putAway(id, title, what) : false;
}
