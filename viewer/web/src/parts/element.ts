// The base of the page's elements: no shadow, so that the browser's own find,
// selection and translation work across them and one style sheet serves all.
import { LitElement } from "lit";
import { directive, Directive, PartType, type ElementPart, type PartInfo } from "lit/directive.js";
import { noChange } from "lit";

export class Part extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    return this;
  }
}

class Css extends Directive {
  constructor(part: PartInfo) {
    super(part);
    if (part.type !== PartType.ELEMENT) throw new Error("css() stands in the tag");
  }

  override update(part: ElementPart, [props]: [Record<string, string>]) {
    const style = (part.element as HTMLElement).style;
    for (const [name, value] of Object.entries(props)) style.setProperty(name, value);
    return noChange;
  }

  render(_: Record<string, string>) {
    return noChange;
  }
}

/** sets style properties by script: a style attribute would be refused by the
 * content policy */
export const css = directive(Css);
