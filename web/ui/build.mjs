// Bundles the pages into the folder named, beside what page.html and report.html need.
import { build } from "esbuild";
import { cpSync, readFileSync, writeFileSync } from "node:fs";

const out = process.argv[2];
await build({
  entryPoints: { app: "src/app.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
for (const page of ["page.html", "report.html"]) cpSync(`src/${page}`, `${out}/${page}`);
// What is in the bundle, and under which licences.
const own = JSON.parse(readFileSync("package.json", "utf8"));
let text = "What of others is in app.js and app.css:\n";
for (const name of Object.keys(own.dependencies).sort()) {
  const dir = `node_modules/${name}`;
  const p = JSON.parse(readFileSync(`${dir}/package.json`, "utf8"));
  text += `\n${name} ${p.version}, ${p.license}\n\n${readFileSync(`${dir}/LICENSE`, "utf8").trim()}\n`;
}
writeFileSync(`${out}/LICENCES.txt`, text);
