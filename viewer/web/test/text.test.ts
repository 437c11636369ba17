import { describe, expect, it } from "vitest";
import { createHash } from "node:crypto";
import { clip, oneLine, pretty, visible } from "../src/text/plain";
import { diffLines, hunks, isPatch, patchLines } from "../src/text/diff";
import { first, next } from "../src/digest";

describe("visible", () => {
  it.each([
    ["shows escape sequences", "\u001b[2J", "\u241b[2J"],
    ["shows NUL, bell, backspace and delete", "\0\u0007\b\u007f", "\u2400\u2407\u2408\u2421"],
    ["shows C1 controls by code", "\u009b31m", "\u27e8U+009B\u27e931m"],
    ["shows bidi overrides by code", "a\u202eb", "a\u27e8U+202E\u27e9b"],
    ["shows zero-width characters by code", "a\u200bb\ufeff", "a\u27e8U+200B\u27e9b\u27e8U+FEFF\u27e9"],
    ["replaces lone surrogates", "\ud83d x \ude00", "\ufffd x \ufffd"],
    ["keeps pairs, newlines, tabs and Hebrew", "\ud83d\ude00\n\t\u05d0", "\ud83d\ude00\n\t\u05d0"],
    ["takes CRLF as a newline and shows a lone CR", "a\r\nb\rc", "a\nb\u240dc"],
  ])("%s", (_, text, want) => expect(visible(text)).toBe(want));
});

describe("clip and oneLine", () => {
  it("never cut a surrogate pair", () => expect(clip("a\ud83d\ude00", 2)).toBe("a"));
  it("take the first line that has something in it", () => expect(oneLine("\n\n  hello\nworld")).toBe("hello"));
  it("mark what they cut", () => expect(oneLine("x".repeat(200), 10)).toBe("xxxxxxxxxx\u2026"));
});

describe("pretty", () => {
  it.each([
    ["indents members", '{"a":1,"b":[true,null]}', '{\n  "a": 1,\n  "b": [\n    true,\n    null\n  ]\n}'],
    ["keeps numbers and escapes as spelled", '{"a":1e999,"b":"\\ud83d,{"}', '{\n  "a": 1e999,\n  "b": "\\ud83d,{"\n}'],
    ["keeps empty ones short", '{"a":{},"b":[ ]}', '{\n  "a": {},\n  "b": []\n}'],
    ["does not fail on what is no JSON", '{"a', '{\n  "a'],
  ])("%s", (_, json, want) => expect(pretty(json)).toBe(want));
  it("takes 10,000 levels", () => {
    const deep = "[".repeat(10_000) + "1" + "]".repeat(10_000);
    expect(pretty(deep).replace(/\s/g, "")).toBe(deep);
  });
});

describe("diffLines", () => {
  it.each([
    ["nothing and nothing", "", "", ""],
    ["the same text", "a\nb", "a\nb", " a b"],
    ["one line changed", "a\nb\nc", "a\nx\nc", " a-b+x c"],
    ["lines added at the end", "a", "a\nb", " a+b"],
    ["all removed", "a\nb", "", "-a-b"],
    ["a line moved", "a\nb\nc", "b\nc\na", "-a b c+a"],
  ])("%s", (_, a, b, want) => {
    const sign = { same: " ", added: "+", removed: "-" };
    expect(diffLines(a, b).map((l) => sign[l.kind] + l.text).join("")).toBe(want);
  });

  it("gives back both texts, whatever they are", () => {
    let seed = 7;
    const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    for (let round = 0; round < 300; round++) {
      const text = () => Array.from({ length: 1 + random(12) }, () => "abc"[random(3)]).join("\n");
      const a = text();
      const b = text();
      const d = diffLines(a, b);
      expect(d.filter((l) => l.kind !== "added").map((l) => l.text).join("\n")).toBe(a);
      expect(d.filter((l) => l.kind !== "removed").map((l) => l.text).join("\n")).toBe(b);
    }
  });

  it("is bounded on texts that have nothing in common", () => {
    const a = Array.from({ length: 5000 }, (_, i) => "a" + i).join("\n");
    const b = Array.from({ length: 5000 }, (_, i) => "b" + i).join("\n");
    expect(diffLines(a, b)).toHaveLength(10_000);
  });
});

describe("hunks", () => {
  it("leave out what is far from a change and count it", () => {
    const lines = diffLines([..."abcdefghijklmnop"].join("\n"), [..."abcdefgXijklmnop"].join("\n"));
    const got = hunks(lines, 2);
    expect(got.hunks).toHaveLength(1);
    expect(got.hunks[0]!.skipped).toBe(5);
    expect(got.hunks[0]!.lines.map((l) => l.text).join("")).toBe("fghXij");
    expect(got.after).toBe(6);
  });
  it("join changes that are near each other and keep every line once", () => {
    const a = Array.from({ length: 60 }, (_, i) => "l" + i);
    const b = a.map((l, i) => (i === 10 || i === 14 || i === 40 ? l + "!" : l));
    const lines = diffLines(a.join("\n"), b.join("\n"));
    const got = hunks(lines);
    expect(got.hunks).toHaveLength(2);
    const total = got.hunks.reduce((n, h) => n + h.skipped + h.lines.length, 0) + got.after;
    expect(total).toBe(lines.length);
  });
});

describe("patches", () => {
  const patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
  it("are known by their hunk headers", () => {
    expect(isPatch(patch)).toBe(true);
    expect(isPatch("- a list\n- of things\n")).toBe(false);
  });
  it("have added and removed lines, but not their headers", () => {
    expect(patchLines(patch).filter((l) => l.kind !== "same").map((l) => l.text)).toEqual(["-a", "+b"]);
  });
});

describe("the digest chain", () => {
  const sha = (...parts: Uint8Array[]) => {
    const h = createHash("sha256");
    parts.forEach((p) => h.update(p));
    return new Uint8Array(h.digest());
  };
  const hex = (b: Uint8Array) => Buffer.from(b).toString("hex");
  const bytes = (s: string) => new TextEncoder().encode(s);
  it("begins with the header", async () => expect(await first(bytes("{}"))).toBe(hex(sha(bytes("{}")))));
  it("puts each message behind the link before", async () => {
    const got = await next(await next(await first(bytes("h")), bytes("m0")), bytes("m1"));
    expect(got).toBe(hex(sha(sha(sha(bytes("h")), bytes("m0")), bytes("m1"))));
  });
});
