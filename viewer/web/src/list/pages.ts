// A long list of the server's, a page at a time: pages are asked for when they
// come near the screen, and the ones looked at longest ago are forgotten, so
// that memory stays flat however far one scrolls.

export class Pages<T> {
  private readonly pages = new Map<number, T[]>();
  private readonly asked = new Map<number, AbortController>();
  private readonly changes = new Map<AbortController, ((value: T) => void)[]>(); // since a page was asked for
  private readonly failed = new Map<number, number>(); // page: when it may be asked for again

  constructor(
    private readonly load: (from: number, limit: number, signal: AbortSignal) => Promise<T[]>,
    private readonly changed: () => void,
    readonly size = 100,
    private readonly keep = 40,
    private readonly now: () => number = () => Date.now(),
  ) {}

  /** the element, or undefined while it is not here; asks for nothing */
  at(index: number): T | undefined {
    return this.pages.get(Math.floor(index / this.size))?.[index % this.size];
  }

  /** puts an element that is known from elsewhere, if its page is here or it is the first of one */
  put(index: number, value: T): void {
    const p = Math.floor(index / this.size);
    const page = this.pages.get(p);
    if (page && index % this.size <= page.length) page[index % this.size] = value;
    else if (!page && index % this.size === 0) this.pages.set(p, [value]);
  }

  /** changes what is here in place, and what is on its way when it comes: an
   * answer may have been made before the change. f may be called on what it
   * changed already. */
  change(f: (value: T) => void): void {
    for (const page of this.pages.values()) page.forEach(f);
    for (const stop of this.asked.values()) {
      const list = this.changes.get(stop);
      if (list) list.push(f);
      else this.changes.set(stop, [f]);
    }
  }

  /** sees to it that first to last, and a page either side, are here or on their way */
  want(first: number, last: number, total: number): void {
    if (total <= 0) return;
    const low = Math.max(0, Math.floor(first / this.size) - 1);
    const high = Math.min(Math.floor((total - 1) / this.size), Math.floor(last / this.size) + 1);
    for (const [p, c] of this.asked) {
      if (p < low - 2 || p > high + 2) {
        this.drop(p, c);
      }
    }
    // What is on the screen comes first.
    const on = [Math.floor(first / this.size), Math.floor(last / this.size)];
    for (const p of new Set([...on, ...Array.from({ length: high - low + 1 }, (_, i) => low + i)])) {
      if (p < low || p > high) continue;
      const page = this.pages.get(p);
      const full = Math.min(this.size, total - p * this.size);
      if (page && page.length >= full) {
        this.pages.delete(p);
        this.pages.set(p, page); // looked at last
      } else this.ask(p);
    }
    while (this.pages.size > this.keep) {
      const oldest = this.pages.keys().next().value!;
      this.pages.delete(oldest);
    }
  }

  /** forgets everything from index on */
  forget(index = 0): void {
    const from = Math.floor(index / this.size);
    for (const p of [...this.pages.keys()]) if (p >= from) this.pages.delete(p);
    for (const [p, c] of [...this.asked]) {
      if (p >= from) this.drop(p, c);
    }
    this.failed.clear();
  }

  private drop(p: number, stop: AbortController): void {
    stop.abort();
    this.asked.delete(p);
    this.changes.delete(stop);
  }

  get held(): number {
    return this.pages.size;
  }

  private ask(p: number): void {
    if (this.asked.has(p) || (this.failed.get(p) ?? 0) > this.now()) return;
    const stop = new AbortController();
    this.asked.set(p, stop);
    this.load(p * this.size, this.size, stop.signal).then(
      (got) => {
        if (this.asked.get(p) !== stop) return;
        this.asked.delete(p);
        this.failed.delete(p);
        for (const f of this.changes.get(stop) ?? []) got.forEach(f);
        this.changes.delete(stop);
        this.pages.set(p, got);
        this.changed();
      },
      () => {
        if (this.asked.get(p) !== stop) return;
        this.asked.delete(p);
        this.changes.delete(stop);
        this.failed.set(p, this.now() + 1000);
        setTimeout(this.changed, 1100);
      },
    );
  }
}
