import { describe, expect, it } from "vitest";
import { contrast, dark, light, roles, type Palette } from "../src/palette";

const grounds: (keyof Palette)[] = ["ground", "sheet", "well"];
const texts: (keyof Palette)[] = ["ink", "muted", "link", "good", "bad", "warn"];

describe.each([
  ["light", light],
  ["dark", dark],
])("the %s palette", (_, p) => {
  it.each(grounds.flatMap((g) => texts.map((t) => [t, g] as const)))("writes %s on %s at 4.5:1", (t, g) => {
    expect(contrast(p[t], p[g])).toBeGreaterThanOrEqual(4.5);
  });
  it.each(roles.flatMap((r) => grounds.map((g) => [r, g] as const)))("sets %s off from %s at 3:1, as text at 4.5:1", (r, g) => {
    expect(contrast(p[r], p[g])).toBeGreaterThanOrEqual(4.5);
  });
  it.each(roles)("writes letters on %s at 4.5:1", (r) => {
    expect(contrast(p.letter, p[r])).toBeGreaterThanOrEqual(4.5);
  });
  it.each(grounds)("draws control edges and focus on %s at 3:1", (g) => {
    expect(contrast(p.edge, p[g])).toBeGreaterThanOrEqual(3);
    expect(contrast(p.focus, p[g])).toBeGreaterThanOrEqual(3);
  });
  it.each(["addWash", "removeWash", "hit"] as const)("keeps ink readable on %s", (w) => {
    expect(contrast(p.ink, p[w])).toBeGreaterThanOrEqual(4.5);
  });
});

describe("contrast", () => {
  it("is 21 between black and white, either way", () => {
    expect(contrast("#000000", "#ffffff")).toBeCloseTo(21, 5);
    expect(contrast("#ffffff", "#000000")).toBeCloseTo(21, 5);
  });
});
