// Markdown to DOM nodes. The parser's tokens become elements of a fixed list,
// text becomes text nodes; no HTML is ever parsed, so nothing that a message
// says can become markup or run. Links lead to http, https and mailto only, and
// images are links, because the page loads nothing from elsewhere.
import MarkdownIt, { type Token } from "markdown-it";
import { visible } from "./plain";

const parser = new MarkdownIt({ html: false, linkify: true, breaks: false });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });

/** longer texts are shown as plain text: reading them needs no layout, and a
 * hostile one costs no time */
export const markdownLimit = 100_000;

const allowed = new Set(
  "p h1 h2 h3 h4 h5 h6 blockquote ul ol li table thead tbody tr th td em strong s a".split(" "),
);

export function safeLink(href: string): string | null {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** what a code block becomes: given its text and its language */
export type CodeRenderer = (text: string, language: string) => Node;

export function markdown(text: string, code: CodeRenderer): DocumentFragment {
  const root = document.createDocumentFragment();
  if (text.length > markdownLimit) {
    const pre = document.createElement("p");
    pre.className = "plain";
    pre.textContent = visible(text);
    root.append(pre);
    return root;
  }
  build(root, parser.parse(visible(text), {}), code);
  return root;
}

function build(root: Node, tokens: Token[], code: CodeRenderer): void {
  const stack: Node[] = [root];
  const top = () => stack[stack.length - 1]!;
  for (const t of tokens) {
    if (t.nesting === 1) {
      const el = t.hidden || !allowed.has(t.tag) ? null : document.createElement(t.tag);
      if (el instanceof HTMLAnchorElement) link(el, attr(t, "href"));
      if (el?.tagName === "OL" && attr(t, "start")) el.setAttribute("start", attr(t, "start"));
      const align = /text-align:(left|right|center)/.exec(attr(t, "style"))?.[1];
      if (el && align) el.className = "align-" + align;
      if (el) top().appendChild(el);
      stack.push(el ?? top());
    } else if (t.nesting === -1) {
      if (stack.length > 1) stack.pop();
    } else {
      leaf(top(), t, code);
    }
  }
}

const attr = (t: Token, name: string): string => String(t.attrGet(name) ?? "");

function link(el: HTMLAnchorElement, href: string): void {
  const safe = safeLink(href);
  if (safe === null) return;
  el.href = safe;
  el.title = safe;
  el.target = "_blank";
  el.rel = "noopener noreferrer nofollow";
}

function leaf(into: Node, t: Token, code: CodeRenderer): void {
  switch (t.type) {
    case "inline":
      build(into, t.children ?? [], code);
      return;
    case "fence":
    case "code_block":
      into.appendChild(code(t.content.replace(/\n$/, ""), t.info.trim().split(/\s/, 1)[0] ?? ""));
      return;
    case "code_inline": {
      const el = document.createElement("code");
      el.textContent = t.content;
      into.appendChild(el);
      return;
    }
    case "image": {
      const el = document.createElement("a");
      link(el, attr(t, "src"));
      el.textContent = "image: " + (t.content || attr(t, "src") || "no name");
      into.appendChild(el);
      return;
    }
    case "hardbreak":
      into.appendChild(document.createElement("br"));
      return;
    case "softbreak":
      into.appendChild(document.createTextNode("\n"));
      return;
    case "hr":
      into.appendChild(document.createElement("hr"));
      return;
    default:
      if (t.content) into.appendChild(document.createTextNode(t.content));
  }
}
