// The first time: one line that says what the picture is, and four stops
// through the session at hand. Pure: which stops there are.

export interface Stop {
  at: number; // where the cursor goes
  look: number | null; // which node is shown
  text: string;
}

/** covering: the nodes that cover others, with how deep they cover, in log order */
export function stops(covering: readonly { seq: number; kind: string }[], lastSeq: number): Stop[] {
  const list = [...covering].sort((a, b) => a.seq - b.seq);
  if (list.length === 0) {
    return [
      { at: lastSeq, look: null, text: "Each tile is a message that the model sees, as wide as it is long. Nothing is covered yet in this session. To see more: outcrop demo." },
    ];
  }
  const first = list[0]!;
  const big = list.findLast((c) => c.kind === "checkpoint") ?? list[list.length - 1]!;
  const what = (c: { kind: string }) => (c.kind === "tool" ? "A long result was shortened" : c.kind === "checkpoint" ? "A summary took the place of what was said" : "An edit took the place of a stretch");
  return [
    { at: first.seq - 1, look: null, text: "1 of 4. Before any edit: each tile is a message, as wide as it is long. All of them are the surface: what the model sees." },
    { at: first.seq, look: first.seq, text: `2 of 4. ${what(first)} (${first.seq}). The original sank one row; it is still in the log.` },
    { at: big.seq, look: big.seq, text: big === first ? "3 of 4. Lines lead from a tile to the events it was made from." : `3 of 4. ${what(big)} (${big.seq}). All under it is what it covers, down to the originals.` },
    { at: lastSeq, look: null, text: "4 of 4. Now. The right, where raw tiles crop out, is new; the left is old and folded. Drag the slider, click any tile." },
  ];
}
