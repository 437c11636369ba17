import { describe, expect, it } from "vitest";
import type { SessionRow } from "../src/api";
import { family } from "../src/list/family";

const row = (id: string, parent: string | null = null) => ({ id, parent }) as SessionRow;
const show = (rows: SessionRow[]) => family(rows).map((p) => "-".repeat(p.depth) + p.row.id).join(" ");

describe("the family tree", () => {
  it.each([
    ["puts children under parents", [row("c", "a"), row("b"), row("a")], "b a -c"],
    ["keeps the order of siblings", [row("x", "a"), row("a"), row("y", "a")], "a -x -y"],
    ["shows a child whose parent is not there as a root", [row("c", "gone"), row("a")], "c a"],
    ["goes on below", [row("a"), row("c", "b"), row("b", "a")], "a -b --c"],
    ["shows a ring of parents once", [row("a", "b"), row("b", "a"), row("c", "c")], "c a -b"],
  ])("%s", (_, rows, want) => expect(show(rows)).toBe(want));
  it("takes 20,000 levels", () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => row("s" + i, i ? "s" + (i - 1) : null));
    expect(family(rows)).toHaveLength(20_000);
  });
});
