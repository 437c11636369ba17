// Only the rows near the screen exist. A controller around virtual-core: the
// host renders items() at their offsets inside a box of total() height.
import {
  Virtualizer,
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
} from "@tanstack/virtual-core";
import type { ReactiveController, ReactiveControllerHost } from "lit";

export interface VirtualOptions {
  scroller: () => HTMLElement | null;
  count: () => number;
  estimate: (index: number) => number; // px
  key?: (index: number) => number | string;
  overscan?: number;
  fixed?: boolean; // every row is as high as estimated: nothing is measured
}

export class Virtual implements ReactiveController {
  private v: Virtualizer<HTMLElement, HTMLElement> | null = null;
  private stop: (() => void) | null = null;
  private frame = 0;
  private measuring = false;
  private moved = false; // while measuring
  private passes = 0; // in a row that moved something
  private placed = -1; // where the list itself scrolled to last

  constructor(
    private readonly host: ReactiveControllerHost,
    private readonly opts: VirtualOptions,
  ) {
    host.addController(this);
  }

  hostUpdated(): void {
    const el = this.opts.scroller();
    if (!el) return;
    if (!this.v) {
      this.v = new Virtualizer(this.options());
      this.stop = this.v._didMount();
      this.v._willUpdate();
      this.again();
      return;
    }
    this.v.setOptions(this.options());
    this.v._willUpdate();
    if (!this.opts.fixed) this.measureAll(el);
  }

  /** Gives each row that was just rendered its height before it is painted, so
   * that no frame shows rows at guessed places. */
  private measureAll(el: HTMLElement): void {
    this.measuring = true;
    this.moved = false;
    for (const row of el.querySelectorAll<HTMLElement>("[data-index]")) {
      this.v!.measureElement(row); // and whenever it changes
      this.v!.resizeItem(Number(row.dataset.index), row.offsetHeight);
    }
    this.measuring = false;
    this.passes = this.moved ? this.passes + 1 : 0;
    if (!this.moved) return;
    if (this.passes <= 5) this.host.requestUpdate();
    else this.again();
  }

  hostDisconnected(): void {
    this.stop?.();
    this.stop = null;
    this.v = null;
    cancelAnimationFrame(this.frame);
  }

  items(): VirtualItem[] {
    this.v?.setOptions(this.options());
    return this.v?.getVirtualItems() ?? [];
  }

  total(): number {
    return this.v?.getTotalSize() ?? 0;
  }

  /** first and last row on the screen */
  range(): [number, number] {
    const r = this.v?.range;
    return r ? [r.startIndex, r.endIndex] : [0, 0];
  }

  show(index: number, align: "start" | "center" | "end" | "auto" = "center"): void {
    this.v?.scrollToIndex(index, { align });
  }

  /** heights that were measured are taken anew from here on */
  measure(): void {
    this.v?.measure();
  }

  atEnd(slack = 80): boolean {
    const el = this.opts.scroller();
    return !el || el.scrollTop + el.clientHeight >= el.scrollHeight - slack;
  }

  /** whether the list stands where it was put, and no reader moved it */
  get untouched(): boolean {
    const el = this.opts.scroller();
    return !el || Math.abs(el.scrollTop - this.placed) < 1.5;
  }

  /** says that where the list stands now is where it was put */
  settle(): void {
    this.placed = this.opts.scroller()?.scrollTop ?? -1;
  }

  private options() {
    return {
      count: this.opts.count(),
      getScrollElement: () => this.opts.scroller(),
      estimateSize: this.opts.estimate,
      overscan: this.opts.overscan ?? 8,
      scrollToFn: (to: number, how: Parameters<typeof elementScroll>[1], v: Virtualizer<HTMLElement, HTMLElement>) => {
        elementScroll(to, how, v);
        this.settle();
      },
      observeElementRect,
      observeElementOffset,
      getItemKey: this.opts.key ?? ((i: number) => i),
      indexAttribute: "data-index",
      onChange: (_: unknown, sync: boolean) => {
        // While scrolling the rows must stand before the next paint.
        if (this.measuring) this.moved = true;
        else if (sync) this.host.requestUpdate();
        else this.again();
      },
    };
  }

  private again(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.host.requestUpdate());
  }
}
