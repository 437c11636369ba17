// The tree of sessions: forks and children under the session that they come
// from, families by their newest member.
import type { SessionRow } from "../api";

export interface Placed {
  row: SessionRow;
  depth: number;
}

export function family(rows: readonly SessionRow[]): Placed[] {
  const known = new Set(rows.map((r) => r.id));
  const under = new Map<string, SessionRow[]>();
  const roots: SessionRow[] = [];
  for (const r of rows) {
    if (r.parent !== null && r.parent !== r.id && known.has(r.parent)) {
      const list = under.get(r.parent);
      if (list) list.push(r);
      else under.set(r.parent, [r]);
    } else roots.push(r);
  }
  const out: Placed[] = [];
  const done = new Set<string>();
  const stack: Placed[] = roots.map((row) => ({ row, depth: 0 })).reverse();
  const walk = () => {
    for (let p = stack.pop(); p; p = stack.pop()) {
      if (done.has(p.row.id)) continue;
      done.add(p.row.id);
      out.push(p);
      for (const c of [...(under.get(p.row.id) ?? [])].reverse()) stack.push({ row: c, depth: p.depth + 1 });
    }
  };
  walk();
  // A ring of parents has no root: it is shown from its first member on.
  for (const row of rows) {
    if (done.has(row.id)) continue;
    stack.push({ row, depth: 0 });
    walk();
  }
  return out;
}
