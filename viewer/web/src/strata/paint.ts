// Draws the two bands and the minimap. Pure output: everything that it shows is
// in Picture, nothing is kept between calls but the patterns.
import type { BandAnswer } from "../api";
import { letters, roles, type Palette, type Role } from "../palette";
import { flag, markHeight, rewindHeight, rowCount, rowHeight, toPx, type Monotone, type Scene, type Tile, type Window } from "./scene";

/** where things stand, px; the strata are as high as the deepest needs */
export interface Layout {
  strata: { top: number; height: number };
  tokens: { top: number; height: number };
  lanes: { top: number; height: number; lane: number };
  axis: { top: number; height: number };
  mini: { top: number; height: number };
  height: number;
}

export function layoutOf(rows: number): Layout {
  const strata = Math.min(Math.max(rows, 4), rowCount) * rowHeight + 6;
  const tokens = strata + 22;
  const lanes = tokens + 46;
  const axis = lanes + 70;
  const mini = axis + 22;
  return {
    strata: { top: 0, height: strata },
    tokens: { top: tokens, height: 40 },
    lanes: { top: lanes, height: 70, lane: 14 },
    axis: { top: axis, height: 16 },
    mini: { top: mini, height: 26 },
    height: mini + 28,
  };
}

export interface Picture {
  layout: Layout;
  width: number; // px
  palette: Palette;
  scene: Scene;
  shift: ReadonlyMap<number, number>; // rows that a tile still has to go
  progress: number; // of that, 0 to 1
  window: Window; // units
  until: number; // units that exist at the cursor
  map: Monotone; // seq to units
  band: BandAnswer | null;
  rows: Window; // rows of the log in the window
  rowAt: number; // row of the cursor
  rowCompare: number | null;
  added: ReadonlySet<number>;
  removed: ReadonlySet<number>;
  chosen: Tile | null;
  sources: readonly number[]; // rows in the log of what the chosen tile was made from
  cover: Tile | null; // what covers the chosen tile
  mini: Scene | null; // the whole, at the last event
  total: number; // units of the whole
}

const patterns = new Map<string, CanvasPattern>();

/** The signs of a geological section: dots for sand, dashes for shale, bricks
 * for lime, ticks for tuff, crosses for granite. */
export function pattern(ctx: CanvasRenderingContext2D, role: Role | "removed", p: Palette): CanvasPattern | null {
  const key = role + p.ground;
  const known = patterns.get(key);
  if (known) return known;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const c = tile.getContext("2d");
  if (!c) return null;
  c.strokeStyle = c.fillStyle = role === "removed" ? p.bad : p.letter;
  c.globalAlpha = role === "removed" ? 1 : 0.34;
  c.lineWidth = 1;
  const line = (...points: number[]) => {
    c.beginPath();
    c.moveTo(points[0]!, points[1]!);
    for (let i = 2; i < points.length; i += 2) c.lineTo(points[i]!, points[i + 1]!);
    c.stroke();
  };
  switch (role) {
    case "user":
      c.fillRect(1, 1, 1.4, 1.4);
      c.fillRect(5, 5, 1.4, 1.4);
      break;
    case "assistant":
      line(0, 1.5, 5, 1.5);
      line(4, 5.5, 8, 5.5);
      line(0, 5.5, 1, 5.5);
      break;
    case "tool":
      line(0, 0.5, 8, 0.5);
      line(0, 4.5, 8, 4.5);
      line(1.5, 0, 1.5, 4);
      line(5.5, 4, 5.5, 8);
      break;
    case "context":
      line(1, 1, 2.5, 4, 4, 1);
      line(5, 5, 6.5, 8, 8, 5);
      break;
    case "checkpoint":
      line(2.5, 0, 2.5, 5);
      line(0, 2.5, 5, 2.5);
      line(6.5, 5, 6.5, 8);
      line(5, 6.5, 8, 6.5);
      break;
    case "removed":
      c.lineWidth = 1.5;
      line(-1, 9, 9, -1);
      line(-1, 1, 1, -1);
      line(7, 9, 9, 7);
  }
  const made = ctx.createPattern(tile, "repeat");
  if (made) patterns.set(key, made);
  return made;
}

export function paint(ctx: CanvasRenderingContext2D, pic: Picture): void {
  const { width, palette: p } = pic;
  ctx.clearRect(0, 0, width, pic.layout.height);
  ctx.fillStyle = p.well;
  ctx.fillRect(0, 0, width, pic.layout.strata.height);
  ctx.fillRect(0, pic.layout.tokens.top, width, pic.layout.axis.top - pic.layout.tokens.top);
  turns(ctx, pic);
  strata(ctx, pic);
  tokens(ctx, pic);
  lanes(ctx, pic);
  cursor(ctx, pic);
  lines(ctx, pic);
  minimap(ctx, pic);
}

function strata(ctx: CanvasRenderingContext2D, pic: Picture): void {
  const { palette: p, window, width } = pic;
  ctx.textBaseline = "middle";
  for (let row = rowCount - 1; row >= 0; row--) {
    for (const t of pic.scene.row(row)) {
      const left = toPx(t.x, window, width);
      const right = toPx(t.x + t.w, window, width);
      if (right < 0 || left > width) continue;
      const away = (pic.shift.get(t.seq) ?? 0) * (1 - pic.progress);
      drawTile(ctx, pic, t, Math.max(-4, left), Math.min(width + 4, right), (row + away) * rowHeight);
    }
  }
  // What is not there yet at the cursor.
  const end = toPx(pic.until, window, width);
  if (end < width) {
    ctx.strokeStyle = p.edge;
    ctx.setLineDash([3, 4]);
    ctx.strokeRect(Math.max(-1, end) + 0.5, 0.5, width - end, rowHeight - 1);
    ctx.setLineDash([]);
  }
}

function drawTile(ctx: CanvasRenderingContext2D, pic: Picture, t: Tile, left: number, right: number, top: number): void {
  const p = pic.palette;
  const w = Math.max(right - left, 0.5);
  const gap = w >= 2 ? 1 : 0;
  const rewind = (t.flags & flag.rewind) !== 0;
  const y = rewind ? top + rowHeight - rewindHeight - 1 : top;
  const h = rewind ? rewindHeight : rowHeight - 1;
  const fill = w - gap;
  ctx.globalAlpha = t.row === 0 || t.row >= rowCount - 1 ? 1 : Math.max(0.72, 1 - t.row * 0.045);
  ctx.fillStyle = rewind ? p.sheet : p[t.role];
  ctx.fillRect(left, y, fill, h);
  const sign = rewind ? pattern(ctx, "removed", p) : fill >= 5 ? pattern(ctx, t.role, p) : null;
  if (sign) {
    ctx.fillStyle = sign;
    ctx.fillRect(left, y, fill, h);
  }
  ctx.globalAlpha = 1;
  if (!rewind) label(ctx, p, t, left, fill, y);
  if (t.flags & flag.pinned && fill > 4) {
    ctx.fillStyle = p.letter;
    ctx.beginPath();
    ctx.moveTo(left + fill - 7, y);
    ctx.lineTo(left + fill, y);
    ctx.lineTo(left + fill, y + 7);
    ctx.fill();
  }
  const within = (s: ReadonlySet<number>) => s.has(t.seq) || (t.count > 1 && [...s].some((n) => t.seq <= n && n <= t.last));
  if (pic.removed.size > 0 && t.row > 0 && within(pic.removed)) {
    const hatch = pattern(ctx, "removed", p);
    if (hatch) {
      ctx.fillStyle = p.sheet;
      ctx.globalAlpha = 0.55;
      ctx.fillRect(left, y, fill, h);
      ctx.globalAlpha = 1;
      ctx.fillStyle = hatch;
      ctx.fillRect(left, y, fill, h);
    }
  }
  if (pic.added.size > 0 && t.row === 0 && within(pic.added)) outline(ctx, p.good, p.sheet, left, y, fill, h);
  if (pic.chosen && pic.chosen.seq === t.seq && pic.chosen.row === t.row) outline(ctx, p.focus, p.sheet, left, y, fill, h);
}

function label(ctx: CanvasRenderingContext2D, p: Palette, t: Tile, left: number, w: number, y: number): void {
  if (w < 13) return;
  const from = Math.max(0, left);
  const room = left + w - from;
  let text: string = letters[t.role];
  if (t.count > 1) text = `\u00d7${t.count}`;
  else if (room >= 46) text += " " + t.seq;
  ctx.font = "600 11px 'Source Sans 3 Variable', system-ui, sans-serif";
  const size = ctx.measureText(text).width;
  if (size + 6 > room) return;
  // The pattern must not cross the letters.
  ctx.fillStyle = p[t.role];
  ctx.fillRect(from + 2, y + 4, size + 4, rowHeight - 9);
  ctx.fillStyle = p.letter;
  ctx.fillText(text, from + 4, y + rowHeight / 2);
}

function outline(ctx: CanvasRenderingContext2D, colour: string, halo: string, x: number, y: number, w: number, h: number): void {
  ctx.lineWidth = 4;
  ctx.strokeStyle = halo;
  ctx.strokeRect(x, y + 1, Math.max(w, 2), h - 2);
  ctx.lineWidth = 2;
  ctx.strokeStyle = colour;
  ctx.strokeRect(x, y + 1, Math.max(w, 2), h - 2);
  ctx.lineWidth = 1;
}

function turns(ctx: CanvasRenderingContext2D, pic: Picture): void {
  if (!pic.band) return;
  const { palette: p, width } = pic;
  ctx.strokeStyle = p.edge;
  ctx.fillStyle = p.muted;
  ctx.globalAlpha = 0.55;
  ctx.lineWidth = 1;
  ctx.textBaseline = "middle";
  ctx.font = "11px 'Source Sans 3 Variable', system-ui, sans-serif";
  let free = -Infinity;
  for (const t of pic.band.turns) {
    const up = toPx(pic.map.at(t.seq), pic.window, width);
    const down = toPx(t.row, pic.rows, width);
    if ((up < -50 && down < -50) || (up > width + 50 && down > width + 50)) continue;
    ctx.beginPath();
    ctx.moveTo(up, 0);
    ctx.lineTo(up, pic.layout.strata.height);
    ctx.lineTo(down, pic.layout.tokens.top);
    ctx.lineTo(down, pic.layout.axis.top);
    ctx.stroke();
    const text = "turn " + t.turn;
    if (down > free) {
      ctx.globalAlpha = 1;
      ctx.fillText(text, down + 4, pic.layout.tokens.top - 8);
      ctx.globalAlpha = 0.55;
      free = down + ctx.measureText(text).width + 12;
    }
  }
  ctx.globalAlpha = 1;
}

function tokens(ctx: CanvasRenderingContext2D, pic: Picture): void {
  const b = pic.band;
  if (!b || b.requests.length === 0) return;
  const { palette: p, width } = pic;
  const { top, height } = pic.layout.tokens;
  const most = Math.max(...b.requests.map((r) => Math.max(r[2] ?? 0, 1)));
  const limit = Math.max(0, ...b.requests.map((r) => r[3] ?? 0));
  // The window is the scale, unless its fill would be a line on the ground.
  const scale = limit > 0 && most > limit / 12 ? Math.max(limit, most) : most * 1.15;
  const y = (v: number) => top + height - (v / scale) * (height - 4);
  if (limit > 0 && limit <= scale) {
    ctx.strokeStyle = p.bad;
    ctx.setLineDash([6, 3]);
    ctx.beginPath();
    ctx.moveTo(0, y(limit));
    ctx.lineTo(width, y(limit));
    ctx.stroke();
    ctx.setLineDash([]);
  }
  ctx.beginPath();
  let last: number | null = null;
  let first = 0;
  for (const [row, , n] of b.requests) {
    if (n === null) continue;
    const x = toPx(row, pic.rows, width);
    if (last === null) {
      ctx.moveTo(x, y(n));
      first = x;
    } else {
      ctx.lineTo(x, last);
      ctx.lineTo(x, y(n));
    }
    last = y(n);
  }
  if (last !== null) {
    const end = toPx(pic.band!.rows, pic.rows, width);
    ctx.lineTo(end, last);
    ctx.strokeStyle = p.assistant;
    ctx.lineWidth = 1.5;
    ctx.stroke();
    ctx.lineTo(end, top + height);
    ctx.lineTo(first, top + height);
    ctx.fillStyle = p.assistant;
    ctx.globalAlpha = 0.16;
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.lineWidth = 1;
  }
  ctx.fillStyle = p.bad;
  for (const [row, , , , broke] of b.requests) {
    if (!broke) continue;
    const x = toPx(row, pic.rows, width);
    ctx.beginPath();
    ctx.moveTo(x - 4, top);
    ctx.lineTo(x + 4, top);
    ctx.lineTo(x, top + 7);
    ctx.fill();
  }
}

const laneRole: Role[] = ["context", "assistant", "tool", "checkpoint", "context"];

function lanes(ctx: CanvasRenderingContext2D, pic: Picture): void {
  const b = pic.band;
  if (!b) return;
  const { palette: p, width } = pic;
  const { top, lane } = pic.layout.lanes;
  const one = width / Math.max(1e-9, pic.rows.to - pic.rows.from);
  const thick = Math.min(Math.max(one * 0.7, 1), 10);
  for (const [l, row, , , count] of b.marks) {
    const x = toPx(row, pic.rows, width);
    if (x < -12 || x > width + 2) continue;
    const h = markHeight(count, lane);
    ctx.fillStyle = l === 0 || l === 4 ? p.muted : p[laneRole[l] ?? "context"];
    ctx.fillRect(x, top + (l + 1) * lane - h - 1, thick, h);
  }
  ctx.fillStyle = p.muted;
  ctx.font = "10px 'Source Sans 3 Variable', system-ui, sans-serif";
  ctx.textBaseline = "middle";
  // Their names stand where the cursor is not.
  const left = toPx(pic.rowAt, pic.rows, width) > width / 2;
  b.lanes.forEach((name, l) => {
    const size = ctx.measureText(name).width;
    const x = left ? 0 : width - size - 8;
    ctx.fillStyle = p.well;
    ctx.globalAlpha = 0.8;
    ctx.fillRect(x, top + l * lane + 1, size + 8, lane - 2);
    ctx.globalAlpha = 1;
    ctx.fillStyle = p.muted;
    ctx.fillText(name, x + 4, top + l * lane + lane / 2 + 1);
  });
}

function cursor(ctx: CanvasRenderingContext2D, pic: Picture): void {
  const { palette: p, width } = pic;
  const draw = (row: number, units: number | null, colour: string, dash: number[]) => {
    const x = Math.min(Math.max(toPx(row + 0.5, pic.rows, width), -4), width + 4);
    ctx.strokeStyle = colour;
    ctx.lineWidth = 2;
    ctx.setLineDash(dash);
    ctx.beginPath();
    if (units !== null) {
      const up = toPx(units, pic.window, width);
      ctx.moveTo(up, 0);
      ctx.lineTo(up, pic.layout.strata.height);
      ctx.lineTo(x, pic.layout.tokens.top);
    } else ctx.moveTo(x, pic.layout.tokens.top);
    ctx.lineTo(x, pic.layout.axis.top + 4);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillStyle = colour;
    ctx.beginPath();
    ctx.moveTo(x - 5, pic.layout.axis.top + 10);
    ctx.lineTo(x + 5, pic.layout.axis.top + 10);
    ctx.lineTo(x, pic.layout.axis.top + 2);
    ctx.fill();
    ctx.lineWidth = 1;
  };
  if (pic.rowCompare !== null) draw(pic.rowCompare, null, p.good, [4, 3]);
  draw(pic.rowAt, pic.until, p.link, []);
}

function lines(ctx: CanvasRenderingContext2D, pic: Picture): void {
  const t = pic.chosen;
  if (!t) return;
  const { palette: p, width, window } = pic;
  const centre = (u: Tile) => toPx(u.x + u.w / 2, window, width);
  ctx.strokeStyle = p.focus;
  ctx.lineWidth = 1.25;
  const from = { x: centre(t), y: t.row * rowHeight + rowHeight };
  for (const row of pic.sources) {
    const x = toPx(row + 0.5, pic.rows, width);
    ctx.globalAlpha = 0.75;
    ctx.beginPath();
    ctx.moveTo(from.x, from.y);
    ctx.bezierCurveTo(from.x, from.y + 60, x, pic.layout.lanes.top - 60, x, pic.layout.lanes.top + pic.layout.lanes.lane);
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  if (pic.cover) {
    ctx.setLineDash([2, 2]);
    ctx.beginPath();
    ctx.moveTo(from.x, t.row * rowHeight);
    ctx.lineTo(centre(pic.cover), pic.cover.row * rowHeight + rowHeight - 2);
    ctx.stroke();
    ctx.setLineDash([]);
  }
  ctx.lineWidth = 1;
}

function minimap(ctx: CanvasRenderingContext2D, pic: Picture): void {
  const { palette: p, width } = pic;
  const { top, height } = pic.layout.mini;
  ctx.fillStyle = p.well;
  ctx.fillRect(0, top, width, height);
  const whole = { from: 0, to: Math.max(pic.total, 1e-9) };
  if (pic.mini) {
    const h = height / rowCount;
    for (const t of pic.mini.tiles) {
      ctx.fillStyle = p[t.role];
      const x = toPx(t.x, whole, width);
      ctx.fillRect(x, top + t.row * h, Math.max(toPx(t.x + t.w, whole, width) - x, 0.5), h + 0.4);
    }
  }
  const a = toPx(pic.window.from, whole, width);
  const b = toPx(pic.window.to, whole, width);
  ctx.fillStyle = p.ground;
  ctx.globalAlpha = 0.66;
  ctx.fillRect(0, top, a, height);
  ctx.fillRect(b, top, width - b, height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = p.ink;
  ctx.strokeRect(a + 0.5, top + 0.5, Math.max(b - a - 1, 2), height - 1);
  ctx.fillStyle = p.link;
  ctx.fillRect(toPx(pic.until, whole, width) - 1, top, 2, height);
}

/** the key of roles: a letter and a pattern each */
export function legend(canvas: HTMLCanvasElement, role: (typeof roles)[number], p: Palette): void {
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = 22 * scale;
  canvas.height = 16 * scale;
  const ctx = canvas.getContext("2d");
  if (!ctx) return;
  ctx.scale(scale, scale);
  ctx.fillStyle = p[role];
  ctx.fillRect(0, 0, 22, 16);
  const sign = pattern(ctx, role, p);
  if (sign) {
    ctx.fillStyle = sign;
    ctx.fillRect(0, 0, 22, 16);
  }
  ctx.fillStyle = p[role];
  ctx.fillRect(5, 2, 12, 12);
  ctx.fillStyle = p.letter;
  ctx.font = "600 11px 'Source Sans 3 Variable', system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillText(letters[role], 11, 8.5);
}
