// Numbers and times as people read them.

const plain = new Intl.NumberFormat("en");

export const count = (n: number): string => plain.format(n);

/** "1 event", "3 events" */
export const many = (n: number, one: string, more = one + "s"): string => `${count(n)} ${n === 1 ? one : more}`;

/** a short form of a big number: 41.2k */
export function short(n: number | null | undefined): string {
  if (n === null || n === undefined) return "\u2013";
  if (n < 1000) return String(Math.round(n));
  if (n < 999_500) return trim(n / 1000) + "k";
  return trim(n / 1e6) + "M";
}

const trim = (n: number) => (n < 99.95 ? n.toFixed(1).replace(/\.0$/, "") : Math.round(n).toString());

export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return "\u2013";
  if (n < 1000) return n + " B";
  if (n < 999_500) return trim(n / 1000) + " kB";
  if (n < 999_500_000) return trim(n / 1e6) + " MB";
  return trim(n / 1e9) + " GB";
}

/** micro-dollars as dollars; unknown is a dash, never 0 */
export function cost(micro: number | null | undefined): string {
  if (micro === null || micro === undefined) return "\u2013";
  const d = micro / 1e6;
  if (d === 0) return "$0";
  return "$" + (d < 0.01 ? d.toFixed(4) : d < 100 ? d.toFixed(2) : Math.round(d).toString());
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "\u2013";
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60_000) return trim(ms / 1000) + " s";
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
}

/** how long ago, in one unit */
export function age(time: number, now: number): string {
  const s = Math.max(0, (now - time) / 1000);
  if (s < 60) return "now";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86_400) return Math.floor(s / 3600) + " h";
  if (s < 86_400 * 60) return Math.floor(s / 86_400) + " d";
  if (s < 86_400 * 365) return Math.floor(s / (86_400 * 30)) + " mo";
  return Math.floor(s / (86_400 * 365)) + " y";
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const valid = (ms: number) => Math.abs(ms) <= 8.64e15;
export const time = (ms: number): string => (valid(ms) ? clock.format(ms) : String(ms));
export const date = (ms: number): string => (valid(ms) ? full.format(ms) : String(ms));

export const percent = (share: number | null): string => (share === null ? "\u2013" : Math.round(share * 100) + " %");
