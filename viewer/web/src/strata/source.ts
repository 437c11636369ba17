// What the Strata view knows of the server: the tiles in its window, the whole
// for the minimap, the log as marks. One question of a kind is under way at a
// time; while it is, only the newest next one waits.
import { aborted, get, session, type BandAnswer, type EventFacts, type StrataAnswer, type SurfaceDiff } from "../api";
import { Monotone, Scene, seqMap, tiles, type Window } from "./scene";

export interface Look {
  at: number;
  window: Window | null; // null: everything
  px: number;
  widths: "tokens" | "equal";
}

/** runs the newest of many wishes, one after the other */
class Latest<T> {
  private wish: (() => Promise<T>) | null = null;
  private running = false;

  constructor(
    private readonly done: (v: T) => void,
    private readonly failed: (err: unknown) => void,
  ) {}

  ask(f: () => Promise<T>): void {
    this.wish = f;
    if (!this.running) void this.run();
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.wish) {
      const f = this.wish;
      this.wish = null;
      try {
        this.done(await f());
      } catch (err) {
        if (!aborted(err)) this.failed(err);
      }
    }
    this.running = false;
  }
}

export interface Hear {
  scene(before: Scene, now: Scene, a: StrataAnswer): void;
  other(): void;
  failed(err: unknown): void;
}

export class Source {
  scene = new Scene([]);
  answer: StrataAnswer | null = null;
  mini: Scene | null = null;
  whole: StrataAnswer | null = null;
  band: BandAnswer | null = null;
  map = new Monotone([]); // seq to units
  rowMap = new Monotone([]); // seq to rows
  added: ReadonlySet<number> = new Set();
  removed: ReadonlySet<number> = new Set();
  diff: SurfaceDiff | null = null;
  private readonly facts = new Map<number, Promise<EventFacts>>();
  private readonly tilesQ: Latest<StrataAnswer>;
  private readonly miniQ: Latest<StrataAnswer>;
  private readonly bandQ: Latest<BandAnswer>;
  private readonly diffQ: Latest<SurfaceDiff | null>;
  private lastSeq = -1;

  constructor(
    private readonly id: string,
    hear: Hear,
  ) {
    this.tilesQ = new Latest((a) => {
      const before = this.scene;
      this.answer = a;
      this.scene = new Scene(tiles(a.tiles, a.kinds));
      this.remap();
      hear.scene(before, this.scene, a);
    }, hear.failed);
    this.miniQ = new Latest((a) => {
      this.whole = a;
      this.mini = new Scene(tiles(a.tiles, a.kinds));
      this.remap();
      hear.other();
    }, hear.failed);
    this.bandQ = new Latest((b) => {
      this.band = b;
      const points: [number, number][] = [[0, 0]];
      for (const [, row, seq, last, , entries] of b.marks) {
        points.push([seq, row], [last + 1, row + entries]);
      }
      points.push([this.lastSeq + 1, b.rows]);
      this.rowMap = new Monotone(points);
      hear.other();
    }, hear.failed);
    this.diffQ = new Latest((d) => {
      this.diff = d;
      this.added = new Set(d?.added.map((n) => n.seq));
      this.removed = new Set(d?.removed.map((n) => n.seq));
      hear.other();
    }, hear.failed);
  }

  private remap(): void {
    const all = [...(this.mini?.tiles ?? []), ...this.scene.tiles];
    this.map = seqMap(all, this.lastSeq, this.whole?.widthTotal ?? this.answer?.widthTotal ?? 0);
  }

  look(l: Look): void {
    this.tilesQ.ask(() =>
      get<StrataAnswer>(`${session(this.id)}/strata`, {
        at: l.at,
        from: l.window?.from ?? null,
        to: l.window?.to ?? null,
        px: l.px,
        widths: l.widths,
      }),
    );
  }

  lookAtAll(lastSeq: number, px: number, widths: Look["widths"]): void {
    this.lastSeq = lastSeq;
    this.miniQ.ask(() => get<StrataAnswer>(`${session(this.id)}/strata`, { at: lastSeq, px, widths }));
  }

  lookAtLog(rows: Window | null, px: number): void {
    this.bandQ.ask(() =>
      get<BandAnswer>(`${session(this.id)}/band`, {
        from: rows ? Math.max(0, Math.floor(rows.from)) : null,
        to: rows ? Math.ceil(rows.to) : null,
        px,
      }),
    );
  }

  compare(a: number | null, b: number): void {
    this.diffQ.ask(async () => (a === null ? null : get<SurfaceDiff>(`${session(this.id)}/surface`, { diff: `${Math.min(a, b)}..${Math.max(a, b)}` })));
  }

  /** an event's facts; those of the last 200 are kept, until something comes */
  event(seq: number): Promise<EventFacts> {
    let known = this.facts.get(seq);
    if (!known) {
      known = get<EventFacts>(`${session(this.id)}/events/${seq}`);
      known.catch(() => this.facts.delete(seq));
      this.facts.set(seq, known);
      if (this.facts.size > 200) this.facts.delete(this.facts.keys().next().value!);
    }
    return known;
  }

  forgetEvents(): void {
    this.facts.clear();
  }
}
