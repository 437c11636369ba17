// The geometry of the Strata view, without a canvas: windows that zoom and pan,
// the map between seqs and widths, tiles under the pointer.
//
// Strata are measured in units of width (the square root of tokens, summed from
// the left), the log in rows of the event list. One window, in units of width,
// rules both bands: the tiles that lie under nothing else tell which seq stands
// where, and so which rows belong to a stretch of strata.

import type { TileRow } from "../api";
import type { Role } from "../palette";

export const rowHeight = 22;
export const rowCount = 9; // eight rows and one for everything deeper
export const rewindHeight = 6;

export const flag = { rewind: 1, pinned: 2, covers: 4, deep: 8, joined: 16 } as const;

export interface Tile {
  row: number;
  x: number;
  w: number;
  seq: number;
  last: number;
  role: Role;
  tokens: number;
  count: number;
  flags: number;
}

export function tiles(rows: TileRow[], kinds: readonly string[]): Tile[] {
  return rows.map(([row, x, w, seq, last, kind, tokens, count, flags]) => ({
    row, x, w, seq, last, role: (kinds[kind] ?? "context") as Role, tokens, count, flags,
  }));
}

/** a stretch of an axis, from < to */
export interface Window {
  from: number;
  to: number;
}

/** w inside 0 to total, not narrower than least, its width kept where it can be */
export function clamp(w: Window, total: number, least: number): Window {
  const span = Math.min(Math.max(w.to - w.from, Math.min(least, total)), total);
  const from = Math.min(Math.max(0, w.from), total - span);
  return { from, to: from + span };
}

/** w made narrower (factor < 1) or wider about a point that stays in its place */
export function zoom(w: Window, factor: number, about: number, total: number, least: number): Window {
  const span = Math.min(Math.max((w.to - w.from) * factor, Math.min(least, total)), total);
  const share = w.to > w.from ? (about - w.from) / (w.to - w.from) : 0.5;
  return clamp({ from: about - share * span, to: about - share * span + span }, total, least);
}

export function pan(w: Window, by: number, total: number): Window {
  return clamp({ from: w.from + by, to: w.to + by }, total, w.to - w.from);
}

/** the place of v on a screen of px pixels */
export function toPx(v: number, w: Window, px: number): number {
  return w.to > w.from ? ((v - w.from) / (w.to - w.from)) * px : 0;
}

export function fromPx(p: number, w: Window, px: number): number {
  return px > 0 ? w.from + (p / px) * (w.to - w.from) : w.from;
}

/** a map that never falls, through points, straight between them */
export class Monotone {
  private readonly xs: number[] = [];
  private readonly ys: number[] = [];

  /** points in any order; of those that would make it fall the later are left out */
  constructor(points: Iterable<readonly [number, number]>) {
    for (const [x, y] of [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
      const n = this.xs.length;
      if (n > 0 && y < this.ys[n - 1]!) continue;
      if (n > 0 && x === this.xs[n - 1]) {
        this.ys[n - 1] = y;
        continue;
      }
      this.xs.push(x);
      this.ys.push(y);
    }
  }

  at(x: number): number {
    return follow(this.xs, this.ys, x);
  }

  /** the least x that comes to y */
  back(y: number): number {
    return follow(this.ys, this.xs, y);
  }
}

function follow(xs: number[], ys: number[], x: number): number {
  const n = xs.length;
  if (n === 0) return 0;
  if (x <= xs[0]!) return ys[0]!;
  if (x >= xs[n - 1]!) return ys[n - 1]!;
  let low = 0;
  let high = n - 1;
  while (high - low > 1) {
    const mid = (low + high) >> 1;
    if (xs[mid]! < x) low = mid;
    else high = mid;
  }
  const span = xs[high]! - xs[low]!;
  return span === 0 ? ys[high]! : ys[low]! + ((x - xs[low]!) / span) * (ys[high]! - ys[low]!);
}

/** seq to units of width, from the tiles that lie under nothing else and cover
 * nothing; the log's ends are the axis' ends */
export function seqMap(all: readonly Tile[], lastSeq: number, widthTotal: number): Monotone {
  const points: [number, number][] = [[0, 0]];
  for (const t of all) {
    if (t.flags & flag.covers || t.flags & flag.deep) continue;
    points.push([t.seq, t.x]);
    if (t.last > t.seq) points.push([t.last, t.x + t.w]);
  }
  points.push([lastSeq + 1, widthTotal]);
  return new Monotone(points);
}

/** tiles for looking up: by row, in order of x */
export class Scene {
  private readonly rows: Tile[][] = Array.from({ length: rowCount }, () => []);
  private readonly place = new Map<number, Tile>();

  constructor(readonly tiles: readonly Tile[]) {
    for (const t of tiles) {
      this.rows[Math.min(t.row, rowCount - 1)]!.push(t);
      if (t.count === 1) this.place.set(t.seq, t);
    }
    for (const r of this.rows) r.sort((a, b) => a.x - b.x);
  }

  row(n: number): readonly Tile[] {
    return this.rows[n] ?? [];
  }

  /** the tile of one node, when it is drawn by itself */
  find(seq: number): Tile | undefined {
    return this.place.get(seq);
  }

  /** the tile that shows a node, by itself or joined with others */
  showing(seq: number): Tile | undefined {
    return this.place.get(seq) ?? this.tiles.find((t) => t.seq <= seq && seq <= t.last && t.count > 1);
  }

  /** the tile at x units and y pixels from the top; thin ones within slack units */
  hit(x: number, y: number, slack: number): Tile | null {
    const row = this.rows[Math.floor(y / rowHeight)];
    if (!row || y < 0) return null;
    let low = 0;
    let high = row.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (row[mid]!.x <= x) low = mid + 1;
      else high = mid;
    }
    const left = row[low - 1];
    if (left && x < left.x + left.w) return left;
    const right = row[low];
    const near = [left && x - left.x - left.w <= slack ? left : null, right && right.x - x <= slack ? right : null];
    return near.find((t) => t) ?? null;
  }
}

/** how far each tile that stays has moved, in rows: from where it was to where it is */
export function moved(before: Scene, after: Scene): Map<number, number> {
  const out = new Map<number, number>();
  for (const t of after.tiles) {
    const old = t.count === 1 ? before.find(t.seq) : undefined;
    if (old && old.row !== t.row) out.set(t.seq, old.row - t.row);
  }
  return out;
}

/** height of a run's mark, px: its logarithm, within a lane */
export function markHeight(count: number, lane: number): number {
  return Math.min(lane - 2, 3 + Math.log2(Math.max(1, count)) * 1.2);
}
