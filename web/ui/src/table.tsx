// The table of pairs: metrics at the chosen size, sortable, filterable.

import { useMemo, useRef, useState } from "preact/hooks";
import type { Ctx } from "./ctx";
import { amount, Bar, band, bytes, nanoseconds, percent, PlaceName, useNarrow, weightName } from "./parts";
import { first, type Medians, positive } from "./sums";

type Column = "value" | "seen" | "time" | "native" | "distance" | "use" | "reuse";

// matches says whether a search finds a pair: a part of a name, or of a file and line.
export function matches(x: Ctx, pair: number, q: string): boolean {
  if (q === "") return true;
  const { d } = x.view;
  const hit = (place: number): boolean => {
    if (place < 0) return false;
    const p = x.view.place(place);
    return p.function.toLowerCase().includes(q) || `${p.file}:${p.line}`.toLowerCase().includes(q);
  };
  return hit(d.pairs.use[pair]) || hit(d.pairs.reuse[pair]) || x.view.kind(pair).includes(q);
}

const least = 50;

// While the size is dragged only the rows that are to be seen follow it.
const seenRows = 16;

export function PairTable({ x, caption, only, compact }: { x: Ctx; caption: string; only?: (pair: number) => boolean; compact?: boolean }) {
  const { view, s, c, f } = x;
  const { d } = view;
  const [wanted, setMost] = useState(least);
  const scroll = useRef<HTMLDivElement>(null);
  const room = useRef(new Int32Array(0));
  const most = x.moving && !(scroll.current && scroll.current.scrollTop > 0) ? Math.min(wanted, seenRows) : wanted;
  const values = view.pairs(c, s.weight, f);
  const total = view.total(c, s.weight, f);
  const q = s.q.toLowerCase();
  const [column, down] = (s.sort || "value-").endsWith("-") ? [(s.sort || "value-").slice(0, -1) as Column, true] : [s.sort as Column, false];
  const all = useMemo(() => {
    if (room.current.length !== values.length) room.current = new Int32Array(values.length);
    const list = positive(values, room.current);
    return q === "" && !only ? list : list.filter((i) => matches(x, i, q) && (!only || only(i)));
  }, [values, q, only, view]);
  const known = new Map<number, Medians>();
  const medians = (i: number): Medians => {
    let m = known.get(i);
    if (!m) known.set(i, (m = view.medians(i, c, s.weight, f)));
    return m;
  };
  const text = (i: number, end: boolean): string => (end ? view.endOf(i) : view.place(d.pairs.use[i])).function;
  const key = (i: number): number => {
    if (column === "seen") return medians(i).seen;
    if (column === "time") return medians(i).time;
    if (column === "native") return medians(i).native;
    if (column === "distance") return medians(i).distance || 0;
    return values[i];
  };
  let shown: number[];
  if (column === "use" || column === "reuse") {
    shown = Array.from(all).sort((a, b) => (text(a, column === "reuse") < text(b, column === "reuse") ? -1 : 1) * (down ? -1 : 1)).slice(0, most);
  } else {
    const keys = column === "value" ? values : new Float64Array(values.length);
    if (column !== "value") for (const i of all) keys[i] = key(i);
    shown = first(all, keys, down, most);
  }
  const head = (k: Column, name: string, title: string, kind = "") => (
    <th scope="col" class={kind} aria-sort={column === k ? (down ? "descending" : "ascending") : "none"}>
      <button title={title} onClick={() => x.set({ sort: column === k && down ? k : k + "-" })}>
        {name}
        <span aria-hidden="true">{column === k ? (down ? " ▾" : " ▴") : ""}</span>
      </button>
    </th>
  );
  const narrow = useNarrow();
  const names = (
    <>
      {head("use", "use", "the place that used the datum")}
      {head("reuse", "→ reuse", "the place that used it next")}
    </>
  );
  const whole = f.tid < 0 && f.object < 0;
  let cumulative = 0;
  return (
    <div class="scroll" ref={scroll} tabIndex={0} role="region" aria-label={caption + ", to scroll"}>
      <table class="pairs">
        <caption class={compact ? "unseen" : ""}>
          {caption}: {weightName(x)}, {amount(total)} in all; {all.length} of {d.pairs.use.length} use → reuse pairs
        </caption>
        <thead>
          <tr>
            {head("value", "share", "share of " + weightName(x), "num wide")}
            {narrow ? names : null}
            {s.weight === "misses" ? <th scope="col" class="num">cum</th> : null}
            <th scope="col" class="num">{s.weight === "seen" ? "observed" : s.weight}</th>
            {s.weight === "misses" && !d.exact && whole ? (
              <th scope="col" class="num" title="of all accesses, with the 95 % band that the number of independent places where it was seen leaves">
                per access
              </th>
            ) : null}
            {head("seen", "seen", "observations behind it", "num")}
            {head("time", "accesses between", "median accesses from the use to the reuse", "num")}
            {d.clock_unit === "nanoseconds" ? head("native", "time between", "median CPU time from the use to the reuse", "num") : null}
            {head("distance", "distance", "median stack distance: other data in between", "num")}
            {narrow ? null : names}
          </tr>
        </thead>
        <tbody>
          {shown.map((i) => {
            const m = medians(i);
            const kind = view.kind(i);
            const bound = m.below ? "<" : kind === "censored" || kind === "pruned" ? ">" : "";
            const cold = kind === "cold";
            const v = values[i];
            cumulative += v;
            const places = (
              <>
                <td>
                  <button class="link" aria-pressed={i === s.pair} onClick={(e) => (e.stopPropagation(), x.set({ pair: i === s.pair ? -1 : i, file: "" }))}>
                    <PlaceName p={view.place(d.pairs.use[i])} />
                  </button>
                </td>
                <td>
                  {kind === "invalidated" ? <span class="kind">invalidated by </span> : null}
                  <PlaceName p={view.endOf(i)} />
                </td>
              </>
            );
            return (
              <tr key={i} class={i === s.pair ? "chosen" : ""} data-pair={i} onClick={() => x.set({ pair: i === s.pair ? -1 : i, file: "" })}>
                <td class="num wide">
                  <Bar share={v / total} /> <span class="share">{percent(v, total)}</span>
                </td>
                {narrow ? places : null}
                {s.weight === "misses" ? <td class="num">{column === "value" && down ? percent(cumulative, total) : ""}</td> : null}
                <td class="num">{amount(v)}</td>
                {s.weight === "misses" && !d.exact && whole ? (
                  <td class="num">
                    {percent(v, d.accesses)} <span class="band">{band(view.band(v, view.rest?.pairs, i, c))}</span>
                  </td>
                ) : null}
                <td class="num">{Math.round(m.seen)}</td>
                <td class="num">{cold ? "-" : bound + amount(m.time)}</td>
                {d.clock_unit === "nanoseconds" ? <td class="num">{cold ? "-" : bound + nanoseconds(m.native)}</td> : null}
                <td class="num">{kind === "reuse" ? bytes(m.distance) : "-"}</td>
                {narrow ? null : places}
              </tr>
            );
          })}
        </tbody>
      </table>
      {all.length === 0 ? <p class="none">{q ? `Nothing is found for “${s.q}”.` : "No sample has any of it at this size."}</p> : null}
      {all.length > most && !x.moving ? (
        <button class="more" onClick={() => setMost(most * 4)}>
          show more: {all.length - most} are left
        </button>
      ) : null}
    </div>
  );
}
