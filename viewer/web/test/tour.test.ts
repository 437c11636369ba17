import { describe, expect, it } from "vitest";
import { stops } from "../src/strata/tour";

describe("the tour", () => {
  it("has four stops, in the order of the log", () => {
    const got = stops([{ seq: 36, kind: "checkpoint" }, { seq: 31, kind: "tool" }], 47);
    expect(got.map((s) => [s.at, s.look])).toEqual([[30, null], [31, 31], [36, 36], [47, null]]);
  });
  it("has four stops with one edit too", () => expect(stops([{ seq: 9, kind: "context" }], 20).map((s) => s.at)).toEqual([8, 9, 9, 20]));
  it("says so when nothing is covered", () => expect(stops([], 3)).toHaveLength(1));
});
