import { describe, expect, it } from "vitest";
import { age, bytes, cost, date, duration, many, short } from "../src/format";

describe("formats", () => {
  it.each([[0, "0"], [999, "999"], [1000, "1k"], [41_250, "41.3k"], [999_499, "999k"], [999_500, "1M"], [1_250_000, "1.3M"], [null, "\u2013"]])("short %j is %s", (n, want) => expect(short(n)).toBe(want));
  it.each([[12, "12 B"], [20_480, "20.5 kB"], [5e6, "5 MB"], [3e9, "3 GB"]])("bytes %d is %s", (n, want) => expect(bytes(n)).toBe(want));
  it("does not call an unknown cost nothing", () => expect([cost(null), cost(0), cost(500), cost(52_000), cost(1.5e6)]).toEqual(["\u2013", "$0", "$0.0005", "$0.05", "$1.50"]));
  it.each([[40, "40 ms"], [1800, "1.8 s"], [61_000, "1 min 1 s"], [7_260_000, "2 h 1 min"]])("duration %d is %s", (n, want) => expect(duration(n)).toBe(want));
  it("ages in one unit, and never below now", () => expect([age(10, 0), age(0, 59e3), age(0, 3.6e6), age(0, 86.4e6 * 3)]).toEqual(["now", "now", "1 h", "3 d"]));
  it("counts one and many", () => expect([many(1, "event"), many(1200, "event"), many(2, "entry", "entries")]).toEqual(["1 event", "1,200 events", "2 entries"]));
  it("takes times that no calendar has", () => expect(date(1e18)).toBe("1000000000000000000"));
});
