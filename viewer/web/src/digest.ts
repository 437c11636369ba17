// The request digest, computed in the browser: v1: and the last link of a
// chain, h(0) = sha256(header as logged), h(i+1) = sha256(h(i) + message i as
// logged).

export type Bytes = Uint8Array<ArrayBuffer>;

/** the first link, of the bytes of a request header; hex */
export async function first(header: Bytes): Promise<string> {
  return hex(await crypto.subtle.digest("SHA-256", header));
}

/** the link after another, of the bytes of a message; hex */
export async function next(link: string, message: Bytes): Promise<string> {
  const block = new Uint8Array(32 + message.length);
  for (let i = 0; i < 32; i++) block[i] = parseInt(link.slice(2 * i, 2 * i + 2), 16);
  block.set(message, 32);
  return hex(await crypto.subtle.digest("SHA-256", block));
}

function hex(sum: ArrayBuffer): string {
  return Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, "0")).join("");
}
