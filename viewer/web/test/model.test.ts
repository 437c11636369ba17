import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Model } from "../src/model";

// The stream, as a test speaks on it.
class Source extends EventTarget {
  static last: Source;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  readyState = 1;
  constructor(readonly url: string) {
    super();
    Source.last = this;
  }
  close() {}
  say(name: string, data: unknown, id = "") {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data), lastEventId: id }));
  }
}

const session = (more: object = {}) => ({
  id: "s", title: null, events: 10, rows: 10, lastSeq: 9, items: 3, appended: 3, nodes: 3, generation: 0, prompts: [], pins: [], turns: 1,
  writer: { where: "here" }, status: { phase: "idle" }, questions: [], durable: 9, cursor: "s.0.0.9.0", ...more,
});

const record = (seq: number) => ({ row: seq, seq, last: seq, type: "tool/call", items: 3, nodes: 3, appended: 3, generation: 0, durable: true, item: null, foldsFrom: null, shadowed: null });

let answers: ((v: object) => void)[] = [];
const settle = () => new Promise((r) => setTimeout(r));

beforeEach(() => {
  answers = [];
  vi.stubGlobal("EventSource", Source);
  vi.stubGlobal("window", globalThis);
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("removeEventListener", () => {});
  vi.stubGlobal("document", Object.assign(new EventTarget(), { hidden: false }));
  vi.stubGlobal("fetch", () => new Promise((r) => answers.push((v) => r({ ok: true, status: 200, json: async () => v }))));
});
afterEach(() => vi.unstubAllGlobals());

async function open() {
  const opening = Model.open("s");
  answers.shift()!(session());
  const m = await opening;
  Source.last.onopen!();
  return m;
}

describe("a session", () => {
  it("keeps what its stream said while an older answer was on its way", async () => {
    const m = await open();
    const asking = m.refresh();
    Source.last.say("question", { id: "ap-1" });
    Source.last.say("status", { phase: "asking" });
    answers.shift()!(session({ status: { phase: "calling" }, writer: { where: "none" }, title: "named" }));
    await asking;
    expect(m.facts).toMatchObject({ status: { phase: "asking" }, questions: [{ id: "ap-1" }], writer: { where: "here" }, title: "named" });
    m.close();
  });

  it("believes an answer while there is no stream", async () => {
    const m = await open();
    Source.last.onerror!();
    const asking = m.refresh();
    answers.shift()!(session({ status: null, writer: { where: "none" } }));
    await asking;
    expect(m.facts).toMatchObject({ status: null, writer: { where: "none" } });
    m.close();
  });

  it("loses no record that comes while the log is read anew", async () => {
    const m = await open();
    const heard: string[] = [];
    m.on((c) => heard.push(c.what === "record" ? `record ${c.record.seq}` : c.what));
    Source.last.say("reset", { reason: "log-changed", cursor: "s.1.0.4.0" });
    Source.last.say("record", record(5));
    Source.last.say("record", record(6));
    answers.shift()!(session({ events: 6, lastSeq: 5, rows: 6 })); // made before 6 came
    await settle();
    expect(heard).toEqual(["reset", "record 6"]);
    expect(m.facts.lastSeq).toBe(6);
    m.close();
  });
});
