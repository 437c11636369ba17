import { describe, expect, it } from "vitest";
import { clamp, flag, fromPx, markHeight, Monotone, moved, pan, Scene, seqMap, tiles, toPx, zoom, type Tile } from "../src/strata/scene";

const tile = (t: Partial<Tile>): Tile => ({ row: 0, x: 0, w: 10, seq: 0, last: 0, role: "user", tokens: 1, count: 1, flags: 0, ...t });

let seed = 11;
const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;

describe("windows", () => {
  it("keep the point under the pointer in its place when they zoom", () => {
    for (let i = 0; i < 500; i++) {
      const from = random() * 900;
      const w = { from, to: from + 1 + random() * (1000 - from - 1) };
      const about = w.from + random() * (w.to - w.from);
      const z = zoom(w, 0.2 + random() * 0.8, about, 1000, 0.01);
      expect(toPx(about, z, 1600)).toBeCloseTo(toPx(about, w, 1600), 4);
    }
  });
  it("never leave the axis, and never come below the least width", () => {
    let w = { from: 0, to: 1000 };
    for (let i = 0; i < 2000; i++) {
      w = random() < 0.5 ? zoom(w, 0.3 + random() * 2, w.from + random() * (w.to - w.from), 1000, 16) : pan(w, (random() - 0.5) * 400, 1000);
      expect(w.from).toBeGreaterThanOrEqual(0);
      expect(w.to).toBeLessThanOrEqual(1000 + 1e-9);
      expect(w.to - w.from).toBeGreaterThanOrEqual(16 - 1e-9);
    }
  });
  it("are the whole axis when that is narrower than the least", () => {
    expect(clamp({ from: 3, to: 4 }, 5, 16)).toEqual({ from: 0, to: 5 });
  });
  it("map pixels there and back", () => {
    const w = { from: 12.5, to: 87 };
    for (const p of [0, 1, 333.3, 1600]) expect(toPx(fromPx(p, w, 1600), w, 1600)).toBeCloseTo(p, 9);
  });
  it("of an empty axis give zero, not NaN", () => {
    expect(toPx(5, { from: 0, to: 0 }, 100)).toBe(0);
    expect(fromPx(5, { from: 0, to: 0 }, 0)).toBe(0);
  });
});

describe("a monotone map", () => {
  const m = new Monotone([[10, 100], [0, 0], [20, 100], [30, 200], [25, 50]]);
  it.each([[-5, 0], [5, 50], [10, 100], [15, 100], [25, 150], [99, 200]])("takes %d to %d", (x, y) => expect(m.at(x)).toBe(y));
  it("goes back to the place it came from where it rises", () => {
    for (const x of [1, 7, 22, 29]) expect(m.back(m.at(x))).toBeCloseTo(x, 9);
  });
  it("of no points is zero", () => expect(new Monotone([]).at(3)).toBe(0));
});

describe("the seq map", () => {
  const all = [
    tile({ seq: 36, last: 36, x: 0, w: 30, flags: flag.covers }),
    tile({ row: 1, seq: 4, last: 4, x: 0, w: 10 }),
    tile({ row: 1, seq: 9, last: 12, x: 10, w: 20, count: 3, flags: flag.joined }),
    tile({ seq: 41, last: 41, x: 30, w: 5 }),
  ];
  const m = seqMap(all, 50, 35);
  it("puts originals where they lie and passes over what covers", () => {
    expect([4, 9, 12, 41, 51].map((s) => m.at(s))).toEqual([0, 10, 30, 30, 35]);
  });
  it("never falls", () => {
    let before = -1;
    for (let s = -1; s < 60; s++) {
      expect(m.at(s)).toBeGreaterThanOrEqual(before);
      before = m.at(s);
    }
  });
});

describe("a scene", () => {
  const s = new Scene([
    tile({ seq: 1, last: 1, x: 0, w: 10 }),
    tile({ seq: 2, last: 2, x: 10, w: 0.5 }),
    tile({ seq: 3, last: 7, x: 20, w: 10, count: 4, flags: flag.joined }),
    tile({ seq: 8, last: 8, row: 3, x: 5, w: 5 }),
  ]);
  it.each([
    ["inside", 5, 10, 1],
    ["at the left edge", 10, 0, 2],
    ["near a thin one", 11, 10, 2],
    ["in a lower row", 7, 70, 8],
    ["in a joined one", 29.9, 21.9, 3],
  ])("finds a tile %s", (_, x, y, seq) => expect(s.hit(x, y, 1)?.seq).toBe(seq));
  it.each([["in a gap", 15, 10], ["in an empty row", 5, 30], ["above", 5, -1], ["far below", 5, 1e6]])("finds nothing %s", (_, x, y) => expect(s.hit(x, y, 1)).toBeNull());
  it("finds any tile by its middle, of many", () => {
    const many = Array.from({ length: 5000 }, (_, i) => tile({ seq: i, last: i, x: i * 3, w: 3, row: i % 9 }));
    const scene = new Scene(many);
    for (let i = 0; i < 5000; i += 7) expect(scene.hit(i * 3 + 1.5, (i % 9) * 22 + 11, 0)?.seq).toBe(i);
  });
  it("knows which tile shows a node that was joined", () => {
    expect(s.showing(5)?.seq).toBe(3);
    expect(s.find(5)).toBeUndefined();
  });
  it("tells what sank, and how far", () => {
    const after = new Scene([tile({ seq: 9, last: 9, flags: flag.covers }), tile({ seq: 1, last: 1, row: 1 })]);
    expect([...moved(s, after)]).toEqual([[1, -1]]);
  });
});

describe("tiles and marks", () => {
  it("take an unknown kind as context", () => {
    expect(tiles([[0, 0, 1, 2, 2, 99, 3, 1, 0]], ["user"])[0]!.role).toBe("context");
  });
  it("grow with the logarithm and stay in their lane", () => {
    expect(markHeight(1, 14)).toBe(3);
    expect(markHeight(64, 14)).toBeGreaterThan(markHeight(8, 14));
    expect(markHeight(1e9, 14)).toBe(12);
  });
});
