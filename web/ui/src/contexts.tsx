// Call stacks as a flame graph or as a tree.

import { useState } from "preact/hooks";
import type { Ctx } from "./ctx";
import { Flame } from "./flame";
import { amount, Bar, percent, Pick, weightName } from "./parts";
import type { Side, Tree } from "./sums";

export function ContextsPane({ x }: { x: Ctx }) {
  const { view, s, c, f } = x;
  const tree = view.tree();
  const { total, self } = view.treeSums(s.side, c, s.weight, f, s.pair);
  const time = view.treeTimes(f.tid);
  const ofPair = s.pair >= 0 ? " of the chosen pair" : f.at ? " of the chosen line" : "";
  const label = `call stacks by ${weightName(x)}${ofPair}, ${s.side === "miss" ? "where it happens" : s.side === "use" ? "of uses" : "of reuses"}`;
  const pick = (node: number) => x.set({ node, file: "" });
  return (
    <section class="pane contexts" aria-label="contexts">
      <header>
        <h2>Contexts</h2>
        <Pick<Side> label="stacks of" value={s.side} of={[["miss", "the miss"], ["use", "the use"], ["reuse", "the reuse"]]} onPick={(side) => x.set({ side })} />
        <Pick label="as" value={s.view} of={[["flame", "flame graph"], ["tree", "tree"]]} onPick={(v) => x.set({ view: v })} />
        {s.node >= 0 ? (
          <button onClick={() => pick(-1)}>all stacks</button>
        ) : null}
        <span class="sum" data-test="flame-total">
          {amount(total[0])}
          {ofPair}
        </span>
      </header>
      {!(total[0] > 0) ? (
        <p class="none">No stack has any of it at this size.</p>
      ) : s.view === "tree" ? (
        <TreeView x={x} tree={tree} total={total} self={self} time={time} label={label} />
      ) : (
        <div class="scroll" tabIndex={-1}>
          <Flame x={x} tree={tree} total={total} self={self} time={time} label={label} onPick={pick} />
        </div>
      )}
    </section>
  );
}

const mostRows = 2000;

function TreeView({ x, tree, total, self, time, label }: { x: Ctx; tree: Tree; total: Float64Array; self: Float64Array; time: Float64Array | null; label: string }) {
  const strings = x.view.d.strings;
  // Open at first is the way along the heaviest.
  const [open, setOpen] = useState<Set<number>>(() => {
    const way = new Set<number>([0]);
    for (let i = 0; tree.children[i].length; ) {
      i = tree.children[i].reduce((a, b) => (total[b] > total[a] ? b : a));
      way.add(i);
    }
    return way;
  });
  const [focus, setFocus] = useState(0);
  const rows: { node: number; level: number }[] = [];
  const walk: { node: number; level: number }[] = [{ node: 0, level: 1 }];
  while (walk.length && rows.length < mostRows) {
    const r = walk.pop()!;
    rows.push(r);
    if (!open.has(r.node)) continue;
    const kids = tree.children[r.node].filter((k) => total[k] > 0).sort((a, b) => total[a] - total[b]);
    for (const k of kids) walk.push({ node: k, level: r.level + 1 });
  }
  const toggle = (node: number, to?: boolean) => {
    const next = new Set(open);
    if (to ?? !next.has(node)) next.add(node);
    else next.delete(node);
    setOpen(next);
  };
  const key = (e: KeyboardEvent) => {
    const i = Math.max(rows.findIndex((r) => r.node === focus), 0);
    let next = focus;
    if (e.key === "ArrowDown") next = rows[Math.min(i + 1, rows.length - 1)].node;
    else if (e.key === "ArrowUp") next = rows[Math.max(i - 1, 0)].node;
    else if (e.key === "ArrowRight") toggle(focus, true);
    else if (e.key === "ArrowLeft") {
      if (open.has(focus)) toggle(focus, false);
      else next = Math.max(tree.parent[focus], 0);
    } else if (e.key === "Enter" || e.key === " ") x.set({ node: focus === x.s.node ? -1 : focus, file: "" });
    else return;
    e.preventDefault();
    setFocus(next);
    const el = e.currentTarget as HTMLElement;
    requestAnimationFrame(() => el.querySelector<HTMLElement>(`[data-node="${next}"]`)?.focus());
  };
  const q = x.s.q.toLowerCase();
  return (
    <div class="scroll">
      <div class={"treehead" + (time ? " timed" : "")} aria-hidden="true">
        <span>{x.s.weight === "seen" ? "observed" : x.s.weight}</span>
        <span>by itself</span>
        {time ? <span>CPU time</span> : null}
        <span>function</span>
      </div>
      <ul class={"tree" + (time ? " timed" : "")} role="tree" aria-label={label} onKeyDown={key}>
        {rows.map((r) => {
          const name = strings[tree.name[r.node]];
          const kids = tree.children[r.node].some((k) => total[k] > 0);
          return (
            <li
              key={r.node}
              role="treeitem"
              aria-level={r.level}
              aria-expanded={kids ? open.has(r.node) : undefined}
              aria-selected={x.s.node === r.node}
              tabIndex={r.node === focus ? 0 : -1}
              data-node={r.node}
              class={(x.s.node === r.node ? "chosen" : "") + (q && name.toLowerCase().includes(q) ? " found" : "")}
              onClick={() => (setFocus(r.node), x.set({ node: r.node === x.s.node || r.node === 0 ? -1 : r.node, file: "" }))}
            >
              <span class="num">
                <Bar share={total[r.node] / total[0]} /> <span class="share">{percent(total[r.node], total[0])}</span>
              </span>
              <span class="num">{self[r.node] > 0 ? percent(self[r.node], total[0]) : ""}</span>
              {time ? <span class="num">{percent(time[r.node], time[0])}</span> : null}
              <span class="name">
                {Array.from({ length: Math.min(r.level - 1, 40) }, (_, i) => (
                  <i key={i} class="indent" />
                ))}
                <span class="twist" aria-hidden="true" onClick={(e) => (e.stopPropagation(), toggle(r.node))}>
                  {kids ? (open.has(r.node) ? "▾" : "▸") : "·"}
                </span>
                {name}
              </span>
            </li>
          );
        })}
      </ul>
      {rows.length >= mostRows ? <p class="none">The first {mostRows} rows; close some.</p> : null}
    </div>
  );
}
