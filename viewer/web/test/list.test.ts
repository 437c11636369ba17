import { describe, expect, it, vi } from "vitest";
import { Pages } from "../src/list/pages";
import { applyDraft } from "../src/live";
import { link, number, parse } from "../src/route";

const settle = () => new Promise((r) => setTimeout(r));

describe("pages", () => {
  it("ask once for what is near and have it then", async () => {
    const load = vi.fn(async (from: number, n: number) => Array.from({ length: n }, (_, i) => from + i));
    const p = new Pages<number>(load, () => {}, 10, 5);
    p.want(25, 31, 1000);
    p.want(25, 31, 1000);
    await settle();
    expect(load.mock.calls.map((c) => c[0])).toEqual([20, 30, 10, 40]);
    expect([p.at(25), p.at(31), p.at(99)]).toEqual([25, 31, undefined]);
  });
  it("stay few however far one scrolls", async () => {
    const p = new Pages<number>(async (from, n) => Array.from({ length: n }, (_, i) => from + i), () => {}, 10, 5);
    for (let at = 0; at < 5000; at += 30) {
      p.want(at, at + 9, 5000);
      await settle();
      expect(p.at(at)).toBe(at);
      p.want(at, at + 9, 5000);
      expect(p.held).toBeLessThanOrEqual(5);
    }
  });
  it("drop answers for what was forgotten", async () => {
    let done!: (v: number[]) => void;
    const p = new Pages<number>(() => new Promise((r) => (done = r)), () => {}, 10);
    p.want(0, 5, 10);
    p.forget();
    done([1, 2, 3]);
    await settle();
    expect(p.at(0)).toBeUndefined();
  });
  it("change what is on its way as well", async () => {
    const made: { n: number }[] = Array.from({ length: 10 }, (_, n) => ({ n }));
    let done!: (v: { n: number }[]) => void;
    const p = new Pages<{ n: number }>(() => new Promise((r) => (done = r)), () => {}, 10);
    p.want(0, 5, 10);
    p.change((x) => {
      if (x.n === 3) x.n = 33;
    });
    done(made); // as it was before
    await settle();
    expect(p.at(3)).toEqual({ n: 33 });
  });
  it("load a page again that has grown", async () => {
    let n = 3;
    const p = new Pages<number>(async () => Array.from({ length: n }, (_, i) => i), () => {}, 10);
    p.want(0, 2, 3);
    await settle();
    n = 5;
    p.want(0, 4, 5);
    await settle();
    expect(p.at(4)).toBe(4);
  });
  it("do not ask again at once for what failed", async () => {
    let now = 0;
    const load = vi.fn(async () => Promise.reject(new Error("no")));
    const p = new Pages<number>(load, () => {}, 10, 5, () => now);
    p.want(0, 5, 10);
    await settle();
    p.want(0, 5, 10);
    expect(load).toHaveBeenCalledTimes(1);
    now = 2000;
    p.want(0, 5, 10);
    expect(load).toHaveBeenCalledTimes(2);
    await settle();
  });
  it("take elements from elsewhere at their end", async () => {
    const p = new Pages<string>(async () => ["a"], () => {}, 10);
    p.want(0, 0, 1);
    await settle();
    p.put(1, "b");
    p.put(7, "z");
    expect([p.at(0), p.at(1), p.at(7)]).toEqual(["a", "b", undefined]);
  });
});

describe("drafts", () => {
  it("grow by what comes, and begin anew at a reset", () => {
    let d = applyDraft([], { turn: 1, step: 1, reset: true, blocks: [{ index: 0, type: "text", text: "All" }] });
    d = applyDraft(d, { turn: 1, step: 1, blocks: [{ index: 0, append: " of it" }] });
    d = applyDraft(d, { turn: 1, step: 1, blocks: [{ index: 1, type: "call", name: "read", append: "{" }] });
    expect(d).toEqual([
      { index: 0, type: "text", text: "All of it" },
      { index: 1, type: "call", text: "{", name: "read" },
    ]);
    expect(applyDraft(d, { turn: 0, step: 0, blocks: [] })).toEqual([]);
  });
});

describe("routes", () => {
  it.each(["4f2a", "a/b", "a b?c#d%"])("keep the id %j", (id) => {
    expect(parse(link(id, "strata", { at: 12 }))).toMatchObject({ session: id, view: "strata" });
  });
  it("without a session are the list", () => expect(parse("#/").session).toBeNull());
  it("take only whole numbers", () => {
    const q = new URLSearchParams("a=12&b=1e9&c=x&d=-3");
    expect(["a", "b", "c", "d", "e"].map((n) => number(q, n))).toEqual([12, null, null, -3, null]);
  });
});
