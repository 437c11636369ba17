// One open session: what is known of it, kept up to date by its stream. Views
// listen; they load their own data and hear here what to load again.
import { get, session, type Item, type Question, type Session, type Status, type Writer } from "./api";
import { Live, type BatchNews, type DraftBlock, type Hello, type RecordNews } from "./live";

export type Change =
  | { what: "facts" }
  | { what: "draft" }
  | { what: "record"; record: RecordNews }
  | { what: "batch"; batch: BatchNews }
  | { what: "reset" }
  | { what: "gone" };

export class Model {
  draft: DraftBlock[] = [];
  connected = true;
  gone = false;
  private live: Live | null = null;
  private readonly listeners = new Set<(c: Change) => void>();
  private timer = 0;
  private closed = false;
  private late: (() => void)[] | null = null; // news that wait for a reload

  private constructor(public facts: Session) {}

  static async open(id: string, signal?: AbortSignal): Promise<Model> {
    const m = new Model(await get<Session>(session(id), {}, signal));
    m.listen();
    return m;
  }

  get id(): string {
    return this.facts.id;
  }

  /** whether this process writes the session */
  get here(): boolean {
    return this.facts.writer.where === "here";
  }

  /** whether a turn or an operation runs here */
  get busy(): boolean {
    return this.here && this.facts.status !== null && this.facts.status.phase !== "idle";
  }

  on(f: (c: Change) => void): () => void {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.live?.close();
    this.listeners.clear();
  }

  /** reads the facts anew; the stream goes on */
  async refresh(): Promise<void> {
    const f = await get<Session>(session(this.id));
    if (this.closed) return;
    // How far the log is known is the stream's to say: what the answer is ahead
    // of it still comes, and the views must hear of it.
    const { events, rows, lastSeq, items, appended, nodes, generation } = this.facts;
    this.facts = { ...f, ...this.ofAgent(f), events, rows, lastSeq, items, appended, nodes, generation };
    this.tell({ what: "facts" });
  }

  /** What an agent does is the stream's to say while there is one: an answer may
   * have been made before the last news and come after it, and nothing would
   * ever mend it. */
  private ofAgent(f: Session): Pick<Session, "writer" | "status" | "questions" | "durable"> {
    const { writer, status, questions, durable } = this.connected ? this.facts : f;
    return { writer, status, questions, durable };
  }

  private listen(): void {
    this.live = new Live(this.id, this.facts.cursor, {
      hello: (h: Hello) => this.set({ writer: h.writer, status: h.status, questions: h.questions, durable: h.durable }),
      record: (r) => this.record(r),
      batch: (b) => this.batch(b),
      draft: (d) => {
        this.draft = d;
        this.tell({ what: "draft" });
      },
      durable: (seq) => this.set({ durable: Math.max(seq, this.facts.durable) }),
      status: (status: Status) => this.set({ status }),
      question: (q: Question) => this.set({ questions: [...this.facts.questions.filter((x) => x.id !== q.id), q] }),
      answered: (id) => this.set({ questions: this.facts.questions.filter((x) => x.id !== id) }),
      writer: (writer: Writer) => this.set(writer.where === "here" ? { writer } : { writer, status: null, questions: [] }),
      reset: () => void this.reload(),
      gone: () => {
        this.gone = true;
        this.tell({ what: "gone" });
      },
      state: (connected) => {
        if (this.connected === connected) return;
        this.connected = connected;
        this.tell({ what: "facts" });
      },
    });
  }

  /** The log is not what it was. News that come while it is read anew wait: the
   * answer may have been made before them. */
  private async reload(): Promise<void> {
    this.late ??= [];
    try {
      const f = await get<Session>(session(this.id));
      if (this.closed) return;
      this.facts = { ...f, ...this.ofAgent(f) };
      const late = this.late;
      this.late = null;
      this.tell({ what: "reset" });
      for (const news of late) news();
    } catch {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.reload(), 1000);
    }
  }

  private record(r: RecordNews): void {
    if (this.late) {
      this.late.push(() => this.record(r));
      return;
    }
    if (r.last <= this.facts.lastSeq) return; // the facts were read after it
    const f = this.facts;
    this.facts = {
      ...f,
      events: r.last + 1,
      lastSeq: r.last,
      rows: Math.max(f.rows, r.row + 1),
      items: r.items,
      nodes: r.nodes,
      appended: r.appended,
      generation: r.generation,
      updatedAt: r.time,
      durable: r.durable ? Math.max(f.durable, r.last) : f.durable,
      prompts: isPrompt(r.item) ? [...f.prompts, r.seq].slice(-2000) : f.prompts,
      title: r.item?.kind === "title" ? (r.item.text ?? f.title) : f.title,
      openTurn: r.type === "turn/start" ? { turn: r.turn ?? 0, step: 0 } : r.type === "turn/end" ? null : f.openTurn,
      turns: r.type === "turn/start" ? f.turns + 1 : f.turns,
    };
    this.tell({ what: "record", record: r });
    this.soon();
  }

  private batch(b: BatchNews): void {
    if (this.late) {
      this.late.push(() => this.batch(b));
      return;
    }
    if (b.last <= this.facts.lastSeq) return;
    const { rows, items, appended, nodes, generation } = b;
    this.facts = { ...this.facts, events: b.last + 1, lastSeq: b.last, rows, items, appended, nodes, generation, durable: b.durable ? b.last : this.facts.durable };
    this.tell({ what: "batch", batch: b });
    this.soon();
  }

  /** sums, prompts and the open turn are the server's to say */
  private soon(): void {
    if (this.late) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.refresh().catch(() => {}), 700);
  }

  private set(part: Partial<Session>): void {
    this.facts = { ...this.facts, ...part };
    this.tell({ what: "facts" });
  }

  private tell(c: Change): void {
    for (const f of [...this.listeners]) f(c);
  }
}

const isPrompt = (item: Item | null): boolean => item?.kind === "user" && (item.source?.kind ?? "user") === "user";
