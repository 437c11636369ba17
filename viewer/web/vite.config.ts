// Builds the page into dist/, which is committed and embedded in the Go
// program. Names carry no hash and nothing depends on the time or the machine,
// so that a rebuild gives the same bytes.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Plugin } from "vite";

/** licenses.txt: the licences of every package that is in the bundle, as they demand */
function licences(): Plugin {
  return {
    name: "licences",
    generateBundle() {
      const texts = new Map<string, string>();
      for (const id of this.getModuleIds()) {
        const at = id.lastIndexOf("node_modules/");
        if (at < 0) continue;
        const parts = id.slice(at + "node_modules/".length).split("/");
        const name = parts[0]!.startsWith("@") ? `${parts[0]}/${parts[1]}` : parts[0]!;
        add(texts, name, join(id.slice(0, at), "node_modules", name));
      }
      add(texts, "@fontsource-variable/source-sans-3", join(import.meta.dirname, "node_modules/@fontsource-variable/source-sans-3"));
      const all = [...texts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, text]) => `== ${name}\n\n${text.trim()}\n`);
      this.emitFile({ type: "asset", fileName: "licenses.txt", source: all.join("\n\n") });
    },
  };
}

function add(texts: Map<string, string>, name: string, folder: string): void {
  if (texts.has(name) || !existsSync(folder)) return;
  const file = readdirSync(folder).find((f) => /^licen[cs]e(\.(md|txt))?$/i.test(f));
  const { license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { license?: string };
  texts.set(name, file ? readFileSync(join(folder, file), "utf8").replace(/\r\n/g, "\n") : `Licence: ${license}`);
}

export default defineConfig({
  base: "./",
  plugins: [licences()],
  build: {
    target: "es2022",
    outDir: "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0, // data: URLs are not allowed for fonts and scripts
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    sourcemap: false,
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
});
