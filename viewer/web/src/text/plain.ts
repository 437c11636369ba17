// Untrusted text made visible: control and direction characters are shown by
// their names instead of acting on the page or hiding from the reader.

const hidden = /\r\n|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** text with every character that acts without being seen shown as a sign */
export function visible(text: string): string {
  return text.replace(hidden, (c) => {
    if (c === "\r\n") return "\n";
    const code = c.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    if (code >= 0xd800 && code <= 0xdfff) return "\ufffd";
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

/** the first line of text, for one-line places, at most max UTF-16 units */
export function oneLine(text: string, max = 160): string {
  const head = text.slice(0, max * 4).trimStart();
  const line = visible(head.split(/[\n\r]/, 1)[0] ?? "");
  return line.length > max ? clip(line, max) + "\u2026" : line;
}

/** what an event says, without the kind that stands beside it */
export function gist(what: string, max = 160): string {
  return oneLine(what.replace(/^(user|assistant|context|checkpoint|result\*?|error\*?) /, ""), max);
}

/** the first max units of text, never half a surrogate pair */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max);
}

/** JSON text with two blanks a level; text that is no JSON stays as it is.
 * Works on the characters, so numbers and escapes keep their spelling and
 * depth costs nothing. */
export function pretty(json: string): string {
  const out: string[] = [];
  let depth = 0;
  const brk = () => out.push("\n" + "  ".repeat(Math.min(depth, 40)));
  for (let i = 0; i < json.length; ) {
    const c = json[i]!;
    if (c === '"') {
      let j = i + 1;
      while (j < json.length && json[j] !== '"') j += json[j] === "\\" ? 2 : 1;
      out.push(json.slice(i, j + 1));
      i = j + 1;
      continue;
    }
    i++;
    if (c === "{" || c === "[") {
      out.push(c);
      let j = i;
      while (j < json.length && /\s/.test(json[j]!)) j++;
      if (json[j] === "}" || json[j] === "]") {
        out.push(json[j]!);
        i = j + 1;
        continue;
      }
      depth++;
      brk();
    } else if (c === "}" || c === "]") {
      depth = Math.max(0, depth - 1);
      brk();
      out.push(c);
    } else if (c === ",") {
      out.push(c);
      brk();
    } else if (c === ":") {
      out.push(": ");
    } else if (!/\s/.test(c)) {
      let j = i;
      while (j < json.length && !/[\s,:{}[\]"]/.test(json[j]!)) j++;
      out.push(json.slice(i - 1, j));
      i = j;
    }
  }
  return out.join("");
}
