// Small parts that pages share.

import type { Ctx } from "./ctx";
import type { Place, Touched } from "./data";
import { amount, base, bytes, nanoseconds, percent, shorten } from "./format";
import { useEffect, useMemo, useState } from "preact/hooks";
import { sizeName } from "./curve";

export function PlaceName({ p, long }: { p: Place; long?: boolean }) {
  return (
    <span class="place" title={p.function + (p.file ? `  ${p.file}:${p.line}` : "")}>
      <span class="fn">{long ? p.function : shorten(p.function, 60)}</span>
      {p.file ? (
        <span class="loc">
          {base(p.file)}
          {p.line > 0 ? ":" + p.line : ""}
        </span>
      ) : null}
    </span>
  );
}

// Bar is a share as a bar; the number stands beside it.
export function Bar({ share }: { share: number }) {
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="trough" x="0" y="0" width="100" height="8" />
      <rect class="fill" x="0" y="0" width={Math.min(100, Math.max(share > 0 ? 0.7 : 0, 100 * share))} height="8" />
    </svg>
  );
}

export const weightName = (x: Ctx): string =>
  x.s.weight === "misses" ? `misses in ${sizeName(x.view, x.c)}` : x.s.weight === "accesses" ? "accesses" : "observations";

// useQuery says whether a media query holds.
export function useQuery(query: string): boolean {
  const list = useMemo(() => matchMedia(query), [query]);
  const [holds, setHolds] = useState(list.matches);
  useEffect(() => {
    const on = () => setHolds(list.matches);
    on();
    list.addEventListener("change", on);
    return () => list.removeEventListener("change", on);
  }, [list]);
  return holds;
}

// useNarrow: where there is no room for a whole table names come before numbers.
export const useNarrow = (): boolean => useQuery("(max-width: 1000px)");

export function Pick<T extends string>({ label, value, of, onPick }: { label: string; value: T; of: [T, string][]; onPick: (v: T) => void }) {
  return (
    <label class="pick">
      {label}{" "}
      <select value={value} onChange={(e) => onPick(e.currentTarget.value as T)}>
        {of.map(([v, name]) => (
          <option key={v} value={v}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

export const band = (b: [number, number] | null): string => (b ? `[${percent(b[0], 1)}, ${percent(b[1], 1)}]` : "");

export { amount, base, bytes, nanoseconds, percent, shorten };

// stride is a class of docs/explanation/patterns.md in words.
function stride(t: Touched): string {
  switch (t.stride) {
    case "zero":
      return "the same address again";
    case "within_line":
      return `steps of ${t.step} B, within a line`;
    case "line":
      return "line after line";
    case "larger":
      return `steps of ${t.step} B`;
    case "several":
      return `several steps, most of ${t.step} B`;
    case "chase":
      return "pointer chase: the address was read where another pointer led";
    case "gather":
      return "gather: the address comes from a value that was read";
    case "random":
      return "random: addresses are computed";
    case "irregular":
      return "irregular steps";
  }
  return "too little was seen to tell";
}

// touchText is how memory is touched, in a line.
export const touchText = (x: Ctx, t: Touched): string =>
  [
    stride(t) + (t.stride ? ` (${percent(t.kept, 1)} of it)` : ""),
    t.fetches > 0 ? `${Math.round(t.used)} of ${x.view.d.block} bytes of a fetched line are used` : "",
    t.fetches > 0 && t.waits ? "no prefetcher follows" : "",
    t.members?.length ? `it fetches ${t.members.slice(0, 6).join(", ")}${t.members.length > 6 ? " and others" : ""}` : "",
  ]
    .filter(Boolean)
    .join("; ");

// HowTouched is the pattern of access of a place, where that was seen.
export function HowTouched({ x, title, place }: { x: Ctx; title: string; place: number }) {
  const list = (x.view.d.touched ?? []).filter((t) => t.place === place);
  if (list.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul class="plain touched">
        {list.map((t) => (
          <li key={t.op}>
            {t.op}
            {t.data ? ` of ${t.data}` : ""}: {touchText(x, t)}
          </li>
        ))}
      </ul>
    </>
  );
}

// DistanceHist is how much other data went by between the uses and reuses of some samples, by octaves. The line is the
// cache: what is right of it misses.
export function DistanceHist({ x, cells }: { x: Ctx; cells: number[] }) {
  const { d } = x.view;
  const bins = new Map<number, number>();
  let never = 0;
  let all = 0;
  for (const i of cells) {
    if (Number.isNaN(d.cells.distance[i])) {
      never += d.cells.accesses[i];
      all += d.cells.accesses[i];
      continue;
    }
    const k = d.cells.distance[i] < 1 ? -1 : Math.floor(Math.log2(d.cells.distance[i]));
    bins.set(k, (bins.get(k) ?? 0) + d.cells.reuses[i]);
    all += d.cells.reuses[i];
  }
  if (!(all > 0)) return <p class="none">No reuse was seen.</p>;
  const keys = [...bins.keys()];
  const here = Math.log2(d.sizes[x.c]);
  const first = Math.min(...keys, Math.floor(here)) - 1;
  const last = Math.max(...keys, Math.ceil(here)) + 1;
  const n = last - first + 1 + (never > 0 ? 2 : 0);
  const most = Math.max(...bins.values(), never);
  const [w, h, top] = [n * 26, 116, 10];
  const bar = (k: number, v: number, name: string, at: number) => (
    <g key={k}>
      <rect class={k + 0.5 >= here ? "bad" : "good"} x={at * 26 + 2} width={22} y={top + (1 - v / most) * h} height={Math.max((v / most) * h, 1)}>
        <title>{`${name}: ${percent(v, all)}, ${amount(v)} accesses`}</title>
      </rect>
    </g>
  );
  // The picture is as wide as its pane, whatever it has: letters grow with it, and there are fewer of them.
  const letters = Math.max(11, Math.round(w / 36));
  const step = Math.max(1, Math.ceil((6 * letters) / 26 / 2) + 1);
  const label = (k: number) => (k < 0 ? "0" : bytes(2 ** k).replace(/\.0+(?=[KMGT]|B)/, ""));
  return (
    <svg class="hist" viewBox={`${-letters} 0 ${w + 8 + 2.5 * letters} ${h + 24 + letters}`} role="img" aria-label={`stack distances: ${keys.sort((a, b) => a - b).map((k) => `${label(k)} ${percent(bins.get(k)!, all)}`).join(", ")}${never > 0 ? `, never reused ${percent(never, all)}` : ""}`}>
      {[...bins].map(([k, v]) => bar(k, v, `${label(k)} to ${label(k + 1)}`, k - first))}
      {never > 0 ? bar(99, never, "never seen reused", n - 1) : null}
      <line class="c" x1={(here - first) * 26} x2={(here - first) * 26} y1={2} y2={top + h + 4} />
      <line class="axis" x1={0} x2={w} y1={top + h} y2={top + h} />
      {Array.from({ length: last - first + 1 }, (_, i) => first + i).map((k) => (k >= -1 && (k - Math.max(first, -1)) % step === 0 ? <text key={k} x={(k - first) * 26} y={top + h + 4 + letters} font-size={letters}>{label(k)}</text> : null))}
      {never > 0 ? <text x={(n - 1) * 26 + 12} y={top + h + 4 + letters} font-size={letters}>never</text> : null}
    </svg>
  );
}
