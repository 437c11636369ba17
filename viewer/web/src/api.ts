// The server's API as docs/http.md has it: types of what is used here, and one
// way to ask.

export interface Tokens {
  input: number | null;
  cacheRead: number | null;
  cacheWrite: number | null;
  output: number | null;
  reasoning: number | null;
}

export interface ServerFacts {
  program: string;
  version: string;
  store: string;
  token: boolean;
  writable: boolean;
  search: boolean;
  demo: string;
  running: string[];
  beside: string | null;
  shelves: boolean;
  exports: { name: string; ending: string; what: string }[];
}

export interface ShelvedRow {
  id: string;
  title: string | null;
  cwd: string | null;
  updatedAt: number;
  at: number;
  bytes: number;
  events: number;
  turns: number;
  starred: boolean;
  unfinished: boolean;
}

export interface ShelfList {
  shelf: string;
  sessions: ShelvedRow[];
}

export interface SessionRow {
  id: string;
  title: string | null;
  cwd: string | null;
  createdAt: number;
  updatedAt: number;
  events: number | null;
  turns: number | null;
  bytes: number;
  state: string;
  reason: string | null;
  parent: string | null;
  depth: number;
  origin: string | null;
  model: string | null;
  tokens: Tokens | null;
  costMicroUSD: number | null;
  unpriced: number;
  tags: string[];
  starred: boolean;
  here: boolean;
}

export interface SessionList {
  total: number;
  cursor: string | null;
  pending: number;
  sessions: SessionRow[];
}

export interface SearchHit {
  session: string;
  title: string | null;
  seq: number;
  time: number;
  role: string;
  text: string;
  spans: [number, number][];
}

export interface SearchAnswer {
  indexing: { done: number; all: number } | null;
  more: boolean;
  from: number;
  hits: SearchHit[];
}

export interface Writer {
  where: "here" | "elsewhere" | "none";
  holder?: string | null;
}

export interface Status {
  phase: string;
  turn: number;
  step: number;
  attempt: number;
  tool: string;
  canceled: boolean;
  tokens: number;
  window: number;
  spentMicroUSD: number;
  unpriced: number;
  pending: number;
  approve: string;
}

export interface Question {
  id: string;
  callId: string;
  tool: string;
  class: string;
  arguments: string;
  preview: string;
  diff: boolean;
  dir: string;
  title?: string;
}

export interface Session {
  id: string;
  title: string | null;
  cwd: string | null;
  createdAt: number;
  updatedAt: number;
  header: string;
  parent: string | null;
  seedLength: number;
  depth: number;
  events: number;
  rows: number;
  lastSeq: number;
  items: number;
  appended: number;
  nodes: number;
  generation: number;
  epoch: number;
  openTurn: { turn: number; step: number } | null;
  turns: number;
  model: string | null;
  window: number | null;
  contextTokens: number | null;
  tokens: Tokens | null;
  costMicroUSD: number | null;
  unpriced: number;
  bytes: number;
  tags: string[];
  pins: number[];
  lostPins: number[];
  prompts: number[];
  noMarkers: boolean;
  /** of what is stored: 0, or that of a later dsh */
  format: number;
  state: string;
  reason: string | null;
  writer: Writer;
  status: Status | null;
  questions: Question[];
  durable: number;
  cursor: string;
}

export interface Block {
  type: "text" | "reasoning" | "call" | "image" | "other";
  text?: string;
  cut?: boolean;
  bytes?: number | null;
  id?: string;
  name?: string | null;
  arguments?: string;
  result?: number | null;
  state?: string;
  attachment?: string;
  mediaType?: string | null;
  width?: number | null;
  height?: number | null;
  raw?: string;
}

export interface Item {
  index: number;
  seq: number;
  kind: string;
  time: number;
  turn: number | null;
  step: number | null;
  covered: number | null;
  pinned: boolean;
  rewound: boolean;
  blocks?: Block[];
  source?: { kind?: string; plugin?: string; form?: string; summary?: string };
  versions?: { n: number; seqs: number[] } | null;
  model?: string | null;
  interrupted?: boolean;
  finish?: string | null;
  usage?: Tokens | null;
  costMicroUSD?: number | null;
  callId?: string;
  callSeq?: number | null;
  tool?: string;
  isError?: boolean;
  error?: { name: string; code: string } | null;
  ms?: number | null;
  pruned?: number | null;
  start?: number;
  end?: number;
  count?: number;
  tokensBefore?: number | null;
  tokensAfter?: number | null;
  level?: number | null;
  cacheInvalidated?: number | null;
  modelFree?: boolean | null;
  of?: number;
  to?: number;
  items?: number;
  by?: number;
  first?: number;
  last?: number;
  reason?: string;
  text?: string;
  what?: string;
}

export interface Conversation {
  from: number;
  total: number;
  all: boolean;
  masked: number;
  cursor: string;
  items: Item[];
}

export interface Row {
  row: number;
  seq: number;
  last: number;
  count: number;
  type: string;
  lane: string;
  time: number;
  op: null | "append" | { replace: [number, number] };
  sources: number | null;
  ignorable: boolean;
  what: string;
  bytes: number;
  turn: number | null;
  step: number | null;
  raw?: string;
}

export interface Rows {
  row: number;
  rows: number;
  next: number | null;
  events: Row[];
}

export interface EventFacts {
  seq: number;
  type: string;
  time: number;
  lane: string;
  op: Row["op"];
  ignorable: boolean;
  raw: string;
  exact: boolean;
  cut?: boolean;
  bytes: number;
  what: string;
  kind: string | null;
  tokens: number | null;
  turn: number | null;
  step: number | null;
  item: Item | null;
  state: string;
  coveredBy: number[];
  covers: number[];
  coversTotal: number;
  sources: number[] | null;
  sourcesTotal: number;
  origins: { first: number; last: number; type: string; depth: number; known: boolean; sources: number[] }[];
  row: number;
  masked: number;
}

/** row, x, w, seq, last, kind, tokens, count, flags */
export type TileRow = [number, number, number, number, number, number, number, number, number];

export interface StrataAnswer {
  at: number;
  generation: number;
  columns: number;
  columnsTotal: number;
  width: number;
  widthTotal: number;
  from: number;
  to: number;
  px: number;
  rows: number;
  kinds: string[];
  tiles: TileRow[];
  noMarkers: boolean;
}

export interface NodeFacts {
  seq: number;
  row: number;
  x: number;
  w: number;
  kind: string;
  tokens: number;
  what: string;
  up: number | null;
  left: number | null;
  right: number | null;
  down: number[];
  downTotal: number;
  flags: number;
}

export interface TableRow {
  seq: number;
  kind: string;
  tokens: number;
  what: string;
  covers: number;
  under: number;
  first: number;
  last: number;
  flags: number;
}

export interface BandAnswer {
  from: number;
  to: number;
  rows: number;
  px: number;
  lanes: string[];
  marks: [number, number, number, number, number, number][]; // lane, row, seq, last, count, entries
  turns: { turn: number; row: number; seq: number; column: number; endRow: number | null; endSeq: number | null }[];
  turnsTotal: number;
  requests: [number, number, number | null, number | null, number][]; // row, seq, tokens, window, break
}

export interface Place {
  seq: number;
  row: number;
  column: number | null;
  columns: number;
}

export interface SurfaceNode {
  seq: number;
  kind: string;
  tokens: number;
  what: string;
  covers: number;
  pinned: boolean;
}

export interface SurfaceDiff {
  a: number;
  b: number;
  same: number;
  added: SurfaceNode[];
  removed: SurfaceNode[];
  addedTotal: number;
  removedTotal: number;
}

export interface Break {
  why: string;
  edits?: number[];
  foretold: number | null;
  held: number | null;
  read: number | null;
  lost: number | null;
  costMicroUSD: number | null;
}

export interface RequestRow {
  index: number;
  id: string;
  turn: number;
  step: number;
  attempt: number;
  prefix: number;
  ok: boolean;
  outcome: string;
  recorded: boolean;
  encoder: string | null;
  model: string | null;
  time: number;
  ms: number | null;
  usage: Tokens | null;
  costMicroUSD: number | null;
  inherited: boolean;
  seq: number | null;
  break: Break | null;
}

export interface RequestList {
  from: number;
  total: number;
  requests: RequestRow[];
}

export interface RequestMessage {
  i: number;
  seq: number;
  role: string;
  kind: string;
  what: string;
  tokens: number;
  bytes: number;
  hash: string;
  exact: boolean;
  raw?: string;
}

export interface RequestFacts {
  request: RequestRow | null;
  header: string;
  headerSeq: number | null;
  exact: boolean;
  system: string | null;
  tools: { name: string; raw: string }[];
  config: string;
  total: number;
  from: number;
  messages: RequestMessage[];
  digest: string;
  recorded: string | null;
  match: boolean | null;
  h0: string;
  before: string | null;
  same: number;
  headerChanged: boolean;
  removed: { seq: number; kind: string; what: string; tokens: number }[];
  removedTotal: number;
  added: number;
  tokens: Record<string, number>;
  masked: number;
}

export interface NumbersAnswer {
  fields: string[];
  calls: (number | null)[][];
  total: {
    calls: number;
    failed: number;
    input: number;
    cacheRead: number;
    cacheWrite: number;
    output: number;
    reasoning: number;
    costMicroUSD: number | null;
    unpriced: number;
  };
  cacheShare: number | null;
  tools: { name: string; calls: number; errors: number; ms: { total: number; median: number; p95: number; most: number } | null }[];
  largest: { seq: number; kind: string; tokens: number; what: string }[];
  window: number | null;
  joined: number;
}

export interface FindHit {
  seq: number;
  index: number;
  kind: string;
  part: string;
  covered: number | null;
  rewound: boolean;
  text: string;
  spans: [number, number][];
}

export interface FindAnswer {
  q: string;
  next: number | null;
  hits: FindHit[];
}

export interface Edits {
  edits: { kind: string; replacement: number; shadowed: number[]; tokensBefore: number; tokensAfter: number; cacheInvalidated: number }[];
  planned: { kind: string; nodes: number[]; tokens: number; level: number; cacheInvalidated: number }[];
  before: number;
  after: number;
  notice: string | null;
  problem: string | null;
  dryRun: boolean;
}

export interface RewindAnswer {
  to: number;
  replacement: number | null;
  removed: number[];
  messages: number;
  tokens: number;
  pinsEnded: number[];
  notUndone: { seq: number; tool: string; what: string }[];
  dropped: string[];
  dryRun: boolean;
}

/** What the server refused, or that it could not be reached (status 0). */
export class APIError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint = "",
  ) {
    super(message);
  }

  get text(): string {
    return this.hint ? `${this.message} (${this.hint})` : this.message;
  }
}

type Params = Record<string, string | number | boolean | null | undefined>;

let showSecrets = false;

/** whether text comes with its secrets; asked for by hand, forgotten on reload */
export const secrets = {
  get shown() {
    return showSecrets;
  },
  show(on: boolean) {
    showSecrets = on;
  },
};

/** the address of a path below /api/v1; empty parameters are left out */
export function address(path: string, params: Params = {}): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) q.set(name, value === true ? "1" : String(value));
  }
  if (showSecrets) q.set("secrets", "show");
  const query = q.toString();
  return "/api/v1" + path + (query ? "?" + query : "");
}

export async function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  return answer<T>(await reach(address(path, params), { signal: signal ?? null, headers: { Accept: "application/json" } }));
}

/** a change; the headers say that it comes from this page */
export async function post<T>(path: string, body: unknown): Promise<T> {
  return answer<T>(
    await reach("/api/v1" + path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Outcrop": "1" },
      body: JSON.stringify(body),
    }),
  );
}

export async function upload(file: Blob): Promise<string> {
  const got = await answer<{ id: string }>(
    await reach("/api/v1/attachments", {
      method: "POST",
      headers: { "Content-Type": file.type, "X-Outcrop": "1" },
      body: file,
    }),
  );
  return got.id;
}

async function reach(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { credentials: "same-origin", cache: "no-store", ...init });
  } catch (err) {
    if (err instanceof DOMException && err.name === "AbortError") throw err;
    throw new APIError(0, "UNREACHABLE", "the server does not answer", "is outcrop serve still running?");
  }
}

async function answer<T>(res: Response): Promise<T> {
  if (res.ok) return res.status === 204 ? (undefined as T) : ((await res.json()) as T);
  let code = "";
  let message = `the server answered ${res.status}`;
  let hint = "";
  try {
    const { error } = (await res.json()) as { error: { code: string; message: string; hint?: string } };
    ({ code, message } = error);
    hint = error.hint ?? "";
  } catch {
    // a body that is no JSON says nothing more than its status
  }
  throw new APIError(res.status, code, message, hint);
}

export const session = (id: string) => "/sessions/" + encodeURIComponent(id);

export const attachmentURL = (id: string) => "/api/v1/attachments/" + encodeURIComponent(id).replace("%3A", ":");

/** what to say about an error */
export function say(err: unknown): string {
  if (err instanceof APIError) return err.text;
  return err instanceof Error ? err.message : String(err);
}

export const aborted = (err: unknown) => err instanceof DOMException && err.name === "AbortError";
