// How numbers are shown: as the package report prints them. A test holds both together.

export const amount = (f: number): string => scaled(f, 1000, ["", "k", "M", "G", "T", "P", "E"]);
export const bytes = (f: number): string => scaled(f, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
export const nanoseconds = (f: number): string => scaled(f, 1000, ["ns", "us", "ms", "s", "ks", "Ms", "Gs"]);

function scaled(f: number, base: number, units: string[]): string {
  let i = 0;
  while (i < units.length - 1 && f >= base * (1 - 0.0005)) {
    f /= base;
    i++;
  }
  let digits = 0;
  if (i > 0 || f !== Math.trunc(f)) digits = Math.max(0, 2 - Math.trunc(Math.log10(Math.max(f, 1))));
  return f.toFixed(digits) + units[i];
}

export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return "-";
  const p = (100 * part) / whole;
  if (p > 0 && p < 0.05) return "<0.1%";
  return p.toFixed(1) + "%";
}

export function shorten(s: string, n: number): string {
  const r = Array.from(s);
  if (r.length <= n) return s;
  const tail = Math.trunc((n - 3) / 2);
  return r.slice(0, n - 3 - tail).join("") + "..." + r.slice(r.length - tail).join("");
}

export const base = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

// parseSize reads 32k, 1.5m, 2MiB or a number of bytes; null for anything else.
export function parseSize(text: string): number | null {
  const m = /^\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)(i?b)?\s*$/i.exec(text);
  if (!m) return null;
  return Number(m[1]) * 1024 ** " kmgt".indexOf(m[2] ? m[2].toLowerCase() : " ");
}
