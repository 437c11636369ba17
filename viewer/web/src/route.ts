// Where the page is, in the fragment of its address: #/ is the list, #/archive
// and #/trash what was put away, #/s/ID/VIEW?key=value a session. The browser's history works as usual.

export type View = "talk" | "strata" | "log" | "requests" | "numbers";

export const views: readonly { id: View; name: string; key: string }[] = [
  { id: "talk", name: "Conversation", key: "1" },
  { id: "strata", name: "Strata", key: "2" },
  { id: "log", name: "Log", key: "3" },
  { id: "requests", name: "Requests", key: "4" },
  { id: "numbers", name: "Numbers", key: "5" },
];

export type Shelf = "archive" | "trash";

export interface Route {
  session: string | null;
  shelf: Shelf | null; // in place of the list
  view: View;
  params: URLSearchParams;
}

export function parse(hash: string): Route {
  const text = hash.replace(/^#/, "");
  const cut = text.indexOf("?");
  const path = cut < 0 ? text : text.slice(0, cut);
  const params = new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1));
  const parts = path.split("/").filter(Boolean);
  const shelf = parts[0] === "archive" || parts[0] === "trash" ? parts[0] : null;
  if (parts[0] !== "s" || !parts[1]) return { session: null, shelf, view: "talk", params };
  const view = views.find((v) => v.id === parts[2])?.id ?? "talk";
  let id = parts[1];
  try {
    id = decodeURIComponent(id);
  } catch {
    // an id that is no good encoding is taken as it stands
  }
  return { session: id, shelf: null, view, params };
}

export function link(session: string | null, view: View = "talk", params: Record<string, string | number | null | undefined> = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== null && v !== undefined && v !== "") q.set(k, String(v));
  const query = q.toString();
  const path = session === null ? "#/" : `#/s/${encodeURIComponent(session)}/${view}`;
  return path + (query ? "?" + query : "");
}

/** the number of a parameter, null when it is none */
export function number(params: URLSearchParams, name: string): number | null {
  const text = params.get(name);
  return text !== null && /^-?\d{1,15}$/.test(text) ? Number(text) : null;
}
