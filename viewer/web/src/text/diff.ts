// A line diff for edits and for requests: the common head and tail are taken
// off, the middle is compared by Myers' greedy algorithm up to a bound, beyond
// which it counts as replaced whole.

export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
}

const bound = 600; // differences; memory grows with its square

export function diffLines(before: string, after: string): DiffLine[] {
  const a = before === "" ? [] : before.split("\n");
  const b = after === "" ? [] : after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ kind: "same", text }));
  return [
    ...same(a.slice(0, head)),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...same(a.slice(a.length - tail)),
  ];
}

function middle(a: string[], b: string[]): DiffLine[] {
  const whole = (): DiffLine[] => [
    ...a.map((text): DiffLine => ({ kind: "removed", text })),
    ...b.map((text): DiffLine => ({ kind: "added", text })),
  ];
  if (a.length === 0 || b.length === 0) return whole();
  const most = Math.min(a.length + b.length, bound);
  const trace: Int32Array[] = [];
  let reach = new Int32Array(2 * most + 3);
  const mid = most + 1;
  for (let d = 0; d <= most; d++) {
    trace.push(reach.slice());
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && reach[mid + k - 1]! < reach[mid + k + 1]!) ? reach[mid + k + 1]! : reach[mid + k - 1]! + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) x++, y++;
      reach[mid + k] = x;
      if (x >= a.length && y >= b.length) return walk(a, b, trace, d, mid);
    }
  }
  return whole();
}

function walk(a: string[], b: string[], trace: Int32Array[], d: number, mid: number): DiffLine[] {
  const out: DiffLine[] = [];
  let x = a.length;
  let y = b.length;
  for (; d > 0; d--) {
    const reach = trace[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && reach[mid + k - 1]! < reach[mid + k + 1]!);
    const from = down ? k + 1 : k - 1;
    const fx = reach[mid + from]!;
    const fy = fx - from;
    while (x > fx && y > fy && x > 0 && y > 0 && a[x - 1] === b[y - 1]) out.push({ kind: "same", text: a[--x]! }), y--;
    if (down) out.push({ kind: "added", text: b[--y]! });
    else out.push({ kind: "removed", text: a[--x]! });
  }
  while (x > 0 && y > 0) out.push({ kind: "same", text: a[--x]! }), y--;
  return out.reverse();
}

/** the lines near a change; gaps are runs of unchanged lines left out */
export interface Hunk {
  skipped: number; // unchanged lines before it
  lines: DiffLine[];
}

export function hunks(lines: DiffLine[], context = 3): { hunks: Hunk[]; after: number } {
  const out: Hunk[] = [];
  let shown = 0;
  for (let i = 0; i < lines.length; ) {
    if (lines[i]!.kind === "same") {
      i++;
      continue;
    }
    const from = Math.max(shown, i - context);
    let end = i;
    for (let j = i; j < lines.length && j - end <= 2 * context; j++) if (lines[j]!.kind !== "same") end = j;
    const to = Math.min(lines.length, end + 1 + context);
    out.push({ skipped: from - shown, lines: lines.slice(from, to) });
    shown = to;
    i = to;
  }
  return { hunks: out, after: lines.length - shown };
}

/** true when text looks like a unified diff */
export function isPatch(text: string): boolean {
  const head = text.slice(0, 4000);
  return /^(diff --git |--- .*\n\+\+\+ |@@ -\d)/m.test(head) && /^@@ -\d/m.test(head);
}

/** a unified diff's lines by kind; headers count as unchanged */
export function patchLines(text: string): DiffLine[] {
  return text.split("\n").map((line) => ({
    kind: line.startsWith("+") && !line.startsWith("+++") ? "added" : line.startsWith("-") && !line.startsWith("---") ? "removed" : "same",
    text: line,
  }));
}
