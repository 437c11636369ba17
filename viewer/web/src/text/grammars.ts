// The languages that code is coloured in; loaded when the first code block
// comes, so that a page without code does not wait for them.
import { createLowlight } from "lowlight";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import makefile from "highlight.js/lib/languages/makefile";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const low = createLowlight({
  bash, c, cpp, css, diff, go, ini, java, javascript, json, makefile, python, rust, sql, typescript, xml, yaml,
});

interface Part {
  type: string;
  value?: string;
  properties?: { className?: unknown };
  children?: Part[];
}

/** the code as text nodes and spans, or null for a language that is not known */
export function colour(text: string, language: string): DocumentFragment | null {
  if (!low.registered(language)) return null;
  const out = document.createDocumentFragment();
  add(out, low.highlight(language, text) as Part);
  return out;
}

function add(into: Node, part: Part): void {
  for (const child of part.children ?? []) {
    if (child.type === "text") {
      into.appendChild(document.createTextNode(child.value ?? ""));
      continue;
    }
    const span = document.createElement("span");
    const names = child.properties?.className;
    if (Array.isArray(names)) span.className = names.filter((n) => /^[\w-]+$/.test(String(n))).join(" ");
    add(span, child);
    into.appendChild(span);
  }
}
