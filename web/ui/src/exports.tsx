// The curve as a file: with all that is drawn beside it.

import { dashes } from "./beside";
import type { Ctx } from "./ctx";
import { drawLine } from "./curve";
import type { Curve } from "./data";
import { bytes } from "./format";

function download(name: string, type: string, text: BlobPart) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

interface Drawn {
  name: string;
  sizes: number[];
  block: number;
  curve: Curve;
}

// drawn are the curves of the chart.
export const drawn = (x: Ctx): Drawn[] => {
  const { d } = x.view;
  return d.curve ? [{ name: d.file + (d.stack && d.stack !== "own" ? `, ${d.stack} stack` : ""), sizes: d.sizes, block: d.block, curve: d.curve }, ...x.beside] : [];
};

function csv(x: Ctx): string {
  const quoted = (s: string) => (/[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s);
  const rows = drawn(x).flatMap(({ name, sizes, block, curve }) => sizes.map((s, i) => [quoted(name), s, s / block, curve.note[i] ? "" : curve.ratio[i], curve.low[i], curve.high[i], curve.note[i]].join(",")));
  return "curve,bytes,blocks,miss_ratio,low,high,note\n" + rows.join("\n") + "\n";
}

// Colours that the colour blind can tell apart (Okabe and Ito), as rdx mrc --format svg has them.
const paints = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

const escaped = (s: string): string => s.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd").replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

function svg(x: Ctx): string {
  const { d } = x.view;
  const all = drawn(x);
  const [width, plot, left, right, top, bottom] = [760, 440, 64, 32, 24, 56];
  const height = plot + 18 * all.length;
  const [least, largest] = [d.sizes[0], d.sizes[d.sizes.length - 1]];
  const greatest = Math.max(...all.flatMap((o) => o.curve.high), 0);
  const axis = [0.01, 0.05, 0.1, 0.25, 0.5].find((v) => greatest <= v) ?? 1;
  const at = (size: number) => left + ((width - left - right) * Math.log2(size / least)) / Math.log2(largest / least);
  const y = (ratio: number) => top + (plot - top - bottom) * (1 - Math.min(ratio, axis) / axis);
  const point = (size: number, ratio: number) => `${at(size).toFixed(1)},${y(ratio).toFixed(1)}`;
  const out = [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`, `<rect width="${width}" height="${height}" fill="white"/>`];
  for (let k = 0; k <= 5; k++) {
    const v = (axis * k) / 5;
    out.push(`<path d="M${left} ${y(v).toFixed(1)}H${width - right}" stroke="#ddd"/><text x="${left - 6}" y="${(y(v) + 4).toFixed(1)}" text-anchor="end">${Number((100 * v).toPrecision(4))}%</text>`);
  }
  for (let s = 2 ** Math.ceil(Math.log2(least)); s <= largest; s *= 4)
    out.push(`<path d="M${at(s).toFixed(1)} ${top}V${plot - bottom}" stroke="#eee"/><text x="${at(s).toFixed(1)}" y="${plot - bottom + 18}" text-anchor="middle">${bytes(s).replace(/\.0+(?=[KMGT]|B)/, "")}</text>`);
  for (const k of d.caches ?? []) {
    if (k.at < 0) continue;
    const left = at(d.sizes[k.at]).toFixed(1);
    out.push(`<path d="M${left} ${top}V${plot - bottom}" stroke="#999" stroke-dasharray="2 3"/><text x="${left}" y="${top - 6}" text-anchor="middle" fill="#555">${escaped(k.level)}</text>`);
  }
  for (const [i, o] of all.entries()) {
    const paint = paints[i % paints.length];
    const dash = i > 0 ? ` stroke-dasharray="${dashes[i - 1].join(" ")}"` : "";
    const inside = o.sizes.map((s, k) => [s, k] as const).filter(([s]) => s >= least && s <= largest);
    if (all.length <= 3) out.push(`<polygon points="${inside.map(([s, k]) => point(s, o.curve.high[k])).join(" ")} ${inside.slice().reverse().map(([s, k]) => point(s, o.curve.low[k])).join(" ")}" fill="${paint}" fill-opacity="0.15"/>`);
    out.push(`<polyline points="${inside.map(([s, k]) => point(s, o.curve.ratio[k])).join(" ")}" fill="none" stroke="${paint}" stroke-width="2"${dash}/>`);
    out.push(`<path d="M${left} ${plot + 18 * i}h28" stroke="${paint}" stroke-width="2"${dash}/><text x="${left + 34}" y="${plot + 18 * i + 4}">${escaped(o.name)}</text>`);
  }
  const line = at(d.sizes[x.c]).toFixed(1);
  out.push(`<path d="M${line} ${top}V${plot - bottom}" stroke="#222" stroke-width="1.5"/>`, `<text x="${(left + width - right) / 2}" y="${plot - 14}" text-anchor="middle">cache size (miss ratio, 95 % bands; the line is at ${bytes(d.sizes[x.c])})</text>`, "</svg>");
  return out.join("\n") + "\n";
}

function png() {
  const canvas = document.querySelector<HTMLCanvasElement>(".curve canvas");
  if (!canvas) return;
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const g = copy.getContext("2d")!;
  g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--paper");
  g.fillRect(0, 0, copy.width, copy.height);
  g.drawImage(canvas, 0, 0);
  drawLine(g, canvas);
  copy.toBlob((b) => b && download("curve.png", "image/png", b));
}

export function Exports({ x }: { x: Ctx }) {
  if (!x.view.d.curve) return null;
  return (
    <span class="exports" role="group" aria-label="save the curve">
      <button onClick={() => download("curve.svg", "image/svg+xml", svg(x))}>svg</button>
      <button onClick={png}>png</button>
      <button onClick={() => download("curve.csv", "text/csv", csv(x))}>csv</button>
    </span>
  );
}
