// The stream of one session. The browser's EventSource reconnects by itself and
// sends the last id; what is missed comes in order, once. A reset means: load
// everything anew, from the cursor that it gives.
import { address, session, type Item, type Question, type Row, type Status, type Writer } from "./api";
import { whileSeen } from "./seen";

export interface RecordNews extends Row {
  durable: boolean;
  generation: number;
  nodes: number;
  items: number;
  appended: number;
  item: Item | null;
  foldsFrom: number | null;
  shadowed: number[] | null;
}

export interface DraftBlock {
  index: number;
  type: "text" | "reasoning" | "call";
  text: string;
  name?: string;
}

export interface Hello {
  cursor: string;
  events: number;
  rows: number;
  items: number;
  durable: number;
  writer: Writer;
  status: Status | null;
  questions: Question[];
}

/** records that were not sent one by one: only what there is now */
export interface BatchNews {
  first: number;
  last: number;
  rows: number;
  items: number;
  appended: number;
  nodes: number;
  generation: number;
  durable: boolean;
  foldsFrom: number;
}

interface DraftNews {
  turn: number;
  step: number;
  reset?: boolean;
  blocks: { index: number; type?: DraftBlock["type"]; name?: string; text?: string; append?: string }[];
}

export interface Listener {
  hello(h: Hello): void;
  record(r: RecordNews): void;
  batch(b: BatchNews): void;
  draft(blocks: DraftBlock[]): void;
  durable(seq: number): void;
  status(s: Status): void;
  question(q: Question): void;
  answered(id: string, outcome: string): void;
  writer(w: Writer): void;
  reset(reason: string): void;
  gone(): void;
  state(connected: boolean): void;
}

/** the blocks after news about them */
export function applyDraft(blocks: DraftBlock[], news: DraftNews): DraftBlock[] {
  const out = news.reset || news.turn === 0 ? [] : blocks.slice();
  for (const b of news.blocks) {
    const at = out.findIndex((x) => x.index === b.index);
    const old = at < 0 ? { index: b.index, type: b.type ?? "text", text: "" } : out[at]!;
    const next: DraftBlock = { ...old, type: b.type ?? old.type, text: b.text ?? old.text + (b.append ?? "") };
    const name = b.name ?? old.name;
    if (name !== undefined) next.name = name;
    if (at < 0) out.push(next);
    else out[at] = next;
  }
  return out;
}

const silence = 30_000; // three pings missed
const again = 1_000;

/** keeps one session's stream open until close() */
export class Live {
  private source: EventSource | null = null;
  private blocks: DraftBlock[] = [];
  private timer = 0;
  private closed = false;
  private readonly unsee: () => void;

  constructor(
    private readonly id: string,
    private cursor: string,
    private readonly to: Listener,
  ) {
    this.unsee = whileSeen(
      () => this.open(),
      () => this.shut(),
    );
    this.open();
  }

  close(): void {
    this.closed = true;
    this.unsee();
    this.shut();
  }

  private shut(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  private open(): void {
    if (this.closed) return;
    this.source?.close();
    const s = new EventSource(address(session(this.id) + "/live", { after: this.cursor, chunks: 1 }));
    this.source = s;
    this.watch();
    s.onopen = () => this.to.state(true);
    s.onerror = () => {
      this.to.state(false);
      // The browser gives up for good on an answer that is not a stream.
      if (s.readyState === EventSource.CLOSED) this.later(again);
    };
    const on = <T>(name: string, f: (data: T, id: string) => void) =>
      s.addEventListener(name, (e) => {
        const m = e as MessageEvent<string>;
        this.watch();
        if (m.lastEventId) this.cursor = m.lastEventId;
        f(JSON.parse(m.data) as T, m.lastEventId);
      });
    on<Hello>("hello", (h) => {
      this.blocks = [];
      this.to.draft([]);
      this.to.hello(h);
    });
    on<RecordNews>("record", (r) => {
      if (r.type === "assistant/message") {
        this.blocks = [];
        this.to.draft([]);
      }
      this.to.record(r);
    });
    on<BatchNews>("batch", (b) => this.to.batch(b));
    on<DraftNews>("draft", (d) => {
      this.blocks = applyDraft(this.blocks, d);
      this.to.draft(this.blocks);
    });
    on<{ seq: number }>("durable", (d) => this.to.durable(d.seq));
    on<Status>("status", (d) => this.to.status(d));
    on<Question>("question", (d) => this.to.question(d));
    on<{ id: string; outcome: string }>("answered", (d) => this.to.answered(d.id, d.outcome));
    on<Writer>("writer", (d) => this.to.writer(d));
    on<{ reason: string; cursor: string }>("reset", (d) => {
      this.cursor = d.cursor;
      this.to.reset(d.reason);
    });
    on<unknown>("gone", () => {
      this.close();
      this.to.gone();
    });
    on<unknown>("ping", () => {});
  }

  /** a stream that is silent too long is dead, whatever its socket says */
  private watch(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.to.state(false);
      this.open();
    }, silence);
  }

  private later(ms: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.open(), ms);
  }
}
