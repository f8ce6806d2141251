// Data objects, and what of them is touched.

import { useMemo } from "preact/hooks";
import type { Ctx } from "./ctx";
import { amount, Bar, band, percent, touchText, useNarrow, weightName } from "./parts";

const most = 1000;

interface Row {
  object: number;
  name: string;
  of: "whole" | "part" | "rest"; // the rest of a whole is what of it is of no known part
}

export function ObjectsPage({ x }: { x: Ctx }) {
  const { view, c, s } = x;
  const { d } = view;
  const { name, member, whole } = d.objects;
  const f = { tid: x.f.tid, object: -1 };
  const own = view.objects(c, s.weight, f);
  const all = view.wholes(c, s.weight, f);
  const total = view.total(c, s.weight, f);
  const q = s.q.toLowerCase();
  const facts = useMemo(() => {
    const make = () => ({ accesses: new Float64Array(name.length), seen: new Float64Array(name.length) });
    const facts = { own: make(), all: make() };
    for (let i = 0; i < view.n; i++) {
      if (f.tid >= 0 && d.cells.tid[i] !== f.tid) continue;
      for (const [of, o] of [[facts.own, d.cells.object[i]], [facts.all, view.whole[i]]] as const) {
        of.accesses[o] += d.cells.accesses[i];
        of.seen[o] += d.cells.seen[i];
      }
    }
    return facts;
  }, [view, f.tid]);
  const touched = useMemo(() => new Map((d.touched ?? []).filter((t) => t.place < 0).map((t) => [t.data, t])), [view]);
  const parts = useMemo(() => {
    const parts = new Map<number, number[]>();
    for (let i = 0; i < name.length; i++) if (whole[i] !== i) parts.set(whole[i], [...(parts.get(whole[i]) ?? []), i]);
    return parts;
  }, [view]);
  const rows: Row[] = [];
  const wholes = Array.from(name.keys())
    .filter((i) => whole[i] === i && (view.dataName(i).toLowerCase().includes(q) || (parts.get(i) ?? []).some((k) => view.dataName(k).toLowerCase().includes(q))))
    .sort((a, b) => all[b] - all[a] || facts.all.accesses[b] - facts.all.accesses[a]);
  for (const i of wholes.slice(0, most)) {
    rows.push({ object: i, name: view.dataName(i), of: "whole" });
    const mine = (parts.get(i) ?? []).filter((k) => facts.own.seen[k] > 0).sort((a, b) => own[b] - own[a] || facts.own.accesses[b] - facts.own.accesses[a]);
    for (const k of mine) rows.push({ object: k, name: d.strings[member[k]], of: "part" });
    if (mine.length && facts.own.seen[i] > 0) rows.push({ object: i, name: "of no known part", of: "rest" });
  }
  const narrow = useNarrow();
  const head = <th scope="col">data, and its parts</th>;
  const bands = s.weight === "misses" && !d.exact && f.tid < 0;
  const squares = (r: Row) => (r.of === "whole" && view.rest?.wholes.from.length ? view.rest.wholes : view.rest?.objects);
  return (
    <section class="pane" aria-label="data objects">
      <div class="scroll" tabIndex={0} role="region" aria-label="data objects, to scroll">
        <table class="objects">
          <caption>
            data objects by {weightName(x)}, {amount(total)} in all; choose one to see its samples only
          </caption>
          <thead>
            <tr>
              <th scope="col" class="num wide">share</th>
              {narrow ? head : null}
              <th scope="col" class="num">{s.weight === "seen" ? "observed" : s.weight}</th>
              {bands ? <th scope="col" class="num">per access</th> : null}
              <th scope="col" class="num">seen</th>
              <th scope="col" class="num">accesses</th>
              <th scope="col" class="num">its miss ratio</th>
              {narrow ? null : head}
              {touched.size ? <th scope="col">how it is touched</th> : null}
            </tr>
          </thead>
          <tbody>
            {rows.map((r) => {
              const value = (r.of === "whole" ? all : own)[r.object];
              const { accesses, seen } = r.of === "whole" ? facts.all : facts.own;
              const chosen = r.object === s.object && r.of !== "rest";
              const pick = () => x.set({ object: r.object === s.object ? -1 : r.object });
              const touch = r.of === "whole" ? touched.get(d.strings[name[r.object]]) : undefined;
              const data = (
                <td class="data">
                  {r.of === "rest" ? (
                    <span class="note">{r.name}</span>
                  ) : (
                    <button class="link" aria-pressed={chosen} onClick={(e) => (e.stopPropagation(), pick())}>
                      {r.name}
                    </button>
                  )}
                </td>
              );
              return (
                <tr key={r.object + r.of} class={r.of + (chosen ? " chosen" : "")} onClick={pick}>
                  <td class="num wide">
                    <Bar share={value / total} /> <span class="share">{percent(value, total)}</span>
                  </td>
                  {narrow ? data : null}
                  <td class="num">{amount(value)}</td>
                  {bands ? (
                    <td class="num">
                      {percent(value, d.accesses)} <span class="band">{band(view.band(value, squares(r), r.object, c))}</span>
                    </td>
                  ) : null}
                  <td class="num">{amount(seen[r.object])}</td>
                  <td class="num">{amount(accesses[r.object])}</td>
                  <td class="num">{s.weight === "misses" ? percent(value, accesses[r.object]) : "-"}</td>
                  {narrow ? null : data}
                  {touched.size ? <td class="small">{touch ? touchText(x, touch) : ""}</td> : null}
                </tr>
              );
            })}
          </tbody>
        </table>
        {wholes.length > most ? <p class="none">{wholes.length - most} others are not shown: search for them.</p> : null}
      </div>
    </section>
  );
}
