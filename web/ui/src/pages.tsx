// The pages.

import { useEffect, useMemo, useState } from "preact/hooks";
import { ContextsPane } from "./contexts";
import type { Ctx } from "./ctx";
import { BesideBar } from "./beside";
import { CurveChart, said, sizeName } from "./curve";
import { ask, type Change, type Diff, type Phases } from "./data";
import { drawn, Exports } from "./exports";
import { amount, Bar, band, bytes, DistanceHist, HowTouched, nanoseconds, percent, Pick, PlaceName, useQuery } from "./parts";
import { first, positive } from "./sums";
import { SourcePane } from "./source";
import { PairTable } from "./table";

export function Overview({ x }: { x: Ctx }) {
  const { view, c, f, s } = x;
  const { d } = view;
  // Before there are samples there are no sums of them.
  const [at, of] = view.early ? [d.first, { tid: -1, object: -1 }] : [c, f];
  const warnings = d.rows.filter((r) => r.key === "!");
  const facts = d.rows.filter((r) => r.key !== "!" && !(d.caches ?? []).some((k) => r.key.startsWith(k.level + " ")));
  const values = view.pairs(at, "misses", of);
  const total = view.total(at, "misses", of);
  const top = useMemo(() => first(positive(values), values, true, 8), [values]);
  const places = view.places(at, "misses", of);
  const here = useMemo(() => {
    // Places of one function together, by its name's number.
    const sum = new Float64Array(d.strings.length);
    const best = new Int32Array(d.strings.length).fill(-1);
    for (let i = 0; i < places.length; i++) {
      if (!(places[i] > 0)) continue;
      const fn = d.places.function[i];
      sum[fn] += places[i];
      if (best[fn] < 0 || places[i] > places[best[fn]]) best[fn] = i;
    }
    return first(positive(sum), sum, true, 8).map((fn) => ({ place: best[fn], value: sum[fn] }));
  }, [places]);
  // Under instrumentation a program takes long for other reasons than its own.
  const low = useQuery("(max-height: 950px)");
  const high = useQuery("(min-height: 1400px)");
  const timed = d.survey.seconds > 0 && !d.exact;
  const perSecond = timed ? (total * d.block) / d.survey.seconds : NaN;
  return (
    <div class="overview">
      <section class="card big" aria-label="miss ratio curve">
        <header>
          <h2>Miss ratio by cache size</h2>
          <span class="hint">drag anywhere in it: all numbers follow</span>
          <Exports x={x} />
        </header>
        <CurveChart x={x} height={low ? 180 : high ? 420 : 240} />
        <Legend x={x} />
        <BesideBar x={x} />
      </section>
      <section class="card" aria-label="caches">
        <h2>This machine's caches</h2>
        <div class="fit">
        <table class="caches">
          <thead>
            <tr>
              <th scope="col">cache</th>
              <th scope="col" class="num">size</th>
              <th scope="col" class="num">miss ratio</th>
              <th scope="col">95 % band</th>
              <th scope="col" class="num">from below</th>
            </tr>
          </thead>
          <tbody>
            {(d.caches ?? []).map((k) => {
              if (k.at < 0 || !d.curve) return null;
              const note = d.curve.note[k.at];
              const misses = d.curve.ratio[k.at] * d.accesses;
              return (
                <tr key={k.level} class={k.at === c ? "chosen" : ""} onClick={() => x.set({ size: d.sizes[k.at] })}>
                  <th scope="row">
                    <button class="link" aria-pressed={k.at === c} onClick={() => x.set({ size: d.sizes[k.at] })}>{k.level}</button>
                  </th>
                  <td class="num">{bytes(k.bytes)}</td>
                  <td class="num">
                    <b>{said(d.curve, k.at).split(" [")[0]}</b>
                  </td>
                  <td>
                    {d.exact ? "counted" : `${percent(d.curve.low[k.at], 1)} to ${percent(d.curve.high[k.at], 1)}`}
                    {note ? <div class="note">{note}</div> : null}
                  </td>
                  <td class="num">{note || !timed ? "-" : bytes((misses * d.block) / d.survey.seconds) + "/s"}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
        </div>
        <p class="small">
          At <b>{sizeName(view, c)}</b>:{" "}
          {view.early ? (
            "reading …"
          ) : d.curve?.note[c] ? (
            `at most ${amount(d.curve.high[c] * d.accesses)} of ${amount(d.accesses)} accesses miss: ${d.curve.note[c]}`
          ) : (
            <>
              {amount(total)} of {amount(d.accesses)} accesses miss
              {Number.isFinite(perSecond) ? `, ${bytes(perSecond)}/s of lines from the next level` : ""}
            </>
          )}
          {view.early ? "" : "."}
        </p>
        <h2>What it holds</h2>
        <ul class="chips">
          <li>{d.exact ? "counted, every access" : `${amount(d.holds)} independent looks`}</li>
          {view.early ? <li>reading …</li> : <li>{many(d.samples, "sample")}</li>}
          {d.merged ? <li>{amount(d.merged)} small ones shown together, by pairs</li> : null}
          {view.early ? null : <li>{many(d.pairs.use.length, "pair")}</li>}
          {view.early ? null : <li>{many(d.objects.whole.filter((w, i) => w === i).length, "data object")}</li>}
          {view.rest ? <li>{many(view.rest.threads?.threads_in_all ?? 1, "thread")}</li> : null}
          {(d.stacks ?? []).map((k) => (
            <li key={k}>{k} stack</li>
          ))}
          {view.rest?.threads?.sharing?.length ? <li>sharing</li> : null}
          {view.early ? null : <li>{many((d.source_files ?? []).length, "source file")}</li>}
        </ul>
      </section>
      <section class="card" aria-label="places">
        <h2>Where misses happen <span class="hint">functions, at {sizeName(view, c)}</span></h2>
        <ol class="toplist">
          {here.map((p) => (
            <li key={p.place}>
              <button class="link row" onClick={() => x.set({ page: "code", q: d.strings[d.places.function[p.place]], pair: -1, file: d.strings[d.places.file[p.place]] })}>
                <span class="num">{percent(p.value, total)}</span>
                <Bar share={p.value / total} />
                <PlaceName p={view.place(p.place)} />
              </button>
            </li>
          ))}
        </ol>
        {here.length === 0 ? <p class="none">{view.early ? "reading …" : "Nothing misses at this size."}</p> : null}
      </section>
      <section class="card" aria-label="pairs">
        <h2>Which reuses miss <span class="hint">use → reuse, at {sizeName(view, c)}</span></h2>
        <ol class="toplist">
          {top.map((i) => (
            <li key={i}>
              <button class="link row" onClick={() => x.set({ page: "code", pair: i, file: "" })}>
                <span class="num">{percent(values[i], total)}</span>
                <Bar share={values[i] / total} />
                <span>
                  <PlaceName p={view.place(d.pairs.use[i])} /> → <PlaceName p={view.endOf(i)} />
                </span>
              </button>
            </li>
          ))}
        </ol>
        {top.length === 0 ? <p class="none">{view.early ? "reading …" : "Nothing misses at this size."}</p> : null}
      </section>
      <section class="card" aria-label="findings">
        <h2>How sure it is</h2>
        {warnings.length ? (
          <ul class="warnings">
            {warnings.map((w, i) => (
              <li key={i}>{w.text}</li>
            ))}
          </ul>
        ) : (
          <p class="none">Nothing limits the figures beyond their bands.</p>
        )}
        {s.tid >= 0 || s.object >= 0 || s.at ? <p class="note">Lists show the samples of a filter only; the curve is of all.</p> : null}
      </section>
      <section class="card whole" aria-label="measurement">
        <h2>What was measured</h2>
        <dl class="facts">
          {facts.map((r) => (
            <div key={r.key}>
              <dt>{r.key}</dt>
              <dd>{r.text}</dd>
            </div>
          ))}
        </dl>
        {(d.survey.remarks ?? []).length ? (
          <details>
            <summary>{d.survey.remarks!.length} remarks of the session</summary>
            <ul class="small">
              {d.survey.remarks!.map((r, i) => (
                <li key={i}>{r}</li>
              ))}
            </ul>
          </details>
        ) : null}
      </section>
    </div>
  );
}

// Legend names the curves, and says what each is at the size.
function Legend({ x }: { x: Ctx }) {
  const size = x.view.d.sizes[x.c];
  return (
    <div class="legend">
      {drawn(x).map((o, i) => {
        const at = o.sizes.indexOf(size);
        return (
          <span key={i} class="curve-name">
            <svg width="34" height="8" aria-hidden="true"><line class={"line" + i} x1="0" x2="34" y1="4" y2="4" /></svg> {o.name} <b>{at < 0 ? "" : said(o.curve, at)}</b>
          </span>
        );
      })}
      <span class="curve-name">
        <svg width="28" height="8" aria-hidden="true"><line class="rare" x1="0" x2="28" y1="4" y2="4" /></svg> too little seen to quote
      </span>
      <span class="curve-name">
        <svg width="28" height="10" aria-hidden="true"><rect class="banded" width="28" height="10" /></svg> 95 % band
      </span>
    </div>
  );
}

export function CodePage({ x }: { x: Ctx }) {
  const through = x.s.node >= 0 ? x.view.pairsThrough(x.s.node, x.s.side) : null;
  return (
    <div class="panes">
      <SourcePane x={x} />
      <ContextsPane x={x} />
      <section class="pane metrics" aria-label="metrics">
        <PairTable x={x} caption={through ? "pairs through the chosen frame" : "pairs"} only={through ? (i) => through[i] > 0 : undefined} />
      </section>
    </div>
  );
}

export function PairsPage({ x }: { x: Ctx }) {
  return (
    <div class="split">
      <section class="pane" aria-label="pairs">
        <PairTable x={x} caption="pairs" />
      </section>
      <PairDetail x={x} />
    </div>
  );
}

// endings say what the ends of pairs that are no reuse mean.
const endings: Record<string, string> = {
  cold: "the first access to its data: nothing is known of a use before",
  censored: "no reuse was seen for as long as it was watched; it may come later, and counts as far as that",
  pruned: "watching was given up before a reuse came, for others to be watched; it counts as far as that",
  invalidated: "another thread wrote the line, and so takes it away before it is used again",
};

function PairDetail({ x }: { x: Ctx }) {
  const { view, s, c, f } = x;
  const { d } = view;
  if (s.pair < 0)
    return (
      <section class="pane" aria-label="chosen pair">
        <p class="none">Choose a pair: its stacks, distances and data are shown here.</p>
      </section>
    );
  const v = view.cells(c, s.weight, f);
  const cells: number[] = [];
  for (let k = view.byPair.from[s.pair]; k < view.byPair.from[s.pair + 1]; k++) {
    const i = view.byPair.list[k];
    if ((f.tid < 0 || d.cells.tid[i] === f.tid) && (f.object < 0 || view.isOf(i, f.object))) cells.push(i);
  }
  const sum = (of: (i: number) => string) => {
    const m = new Map<string, number>();
    for (const i of cells) m.set(of(i), (m.get(of(i)) ?? 0) + d.cells.accesses[i]);
    return [...m].sort((a, b) => b[1] - a[1]);
  };
  const heaviest = cells.reduce((a, b) => (a < 0 || v[b] > v[a] ? b : a), -1);
  const stacks = new Set(cells.map((i) => d.cells.use[i] + " " + d.cells.reuse[i])).size;
  const accesses = cells.reduce((t, i) => t + d.cells.accesses[i], 0);
  const kind = view.kind(s.pair);
  const list = (title: string, node: number) => (
    <div>
      <h3>{title}</h3>
      <ol class="stack">
        {(node >= 0 ? view.stack(node) : []).map((p, i) => (
          <li key={i}>
            <PlaceName p={p} long />
          </li>
        ))}
      </ol>
    </div>
  );
  return (
    <section class="pane detail" aria-label="chosen pair">
      <header>
        <h2>
          <PlaceName p={view.place(d.pairs.use[s.pair])} /> → <PlaceName p={view.endOf(s.pair)} />
        </h2>
        <button onClick={() => x.set({ page: "code", file: "" })}>show in source</button>
        <ShareLink />
      </header>
      <div class="scroll" tabIndex={0} role="region" aria-label="details of the pair, to scroll">
        {endings[kind] ? <p class="small">[{kind}]: {endings[kind]}</p> : null}
        <h3>Stack distance: other data in between</h3>
        <DistanceHist x={x} cells={cells} />
        <p class="small">What is right of the line, {sizeName(view, c)}, misses. {amount(accesses)} accesses in all.</p>
        <div class="two">
          {list("use", heaviest < 0 ? -1 : d.cells.use[heaviest])}
          {kind === "reuse" || kind === "invalidated" ? list(kind === "reuse" ? "reuse" : "invalidating write", heaviest < 0 ? -1 : d.cells.reuse[heaviest]) : null}
        </div>
        {stacks > 1 ? <p class="small">The heaviest of {stacks} pairs of stacks.</p> : null}
        <h3>Data</h3>
        <ul class="plain">
          {sum((i) => view.dataName(d.cells.object[i]))
            .slice(0, 10)
            .map(([name, w]) => (
              <li key={name}>
                <span class="num">{percent(w, accesses)}</span> {name}
              </li>
            ))}
        </ul>
        <HowTouched x={x} title="How the use touches memory" place={d.pairs.use[s.pair]} />
        {d.pairs.reuse[s.pair] >= 0 && d.pairs.reuse[s.pair] !== d.pairs.use[s.pair] ? <HowTouched x={x} title="How the reuse touches memory" place={d.pairs.reuse[s.pair]} /> : null}
        <h3>The use is a</h3>
        <ul class="plain">
          {sum((i) => ["not known", "load", "store"][d.cells.op[i]] ?? "not known").map(([name, w]) => (
            <li key={name}>
              <span class="num">{percent(w, accesses)}</span> {name}
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}

export function ShareLink() {
  const [done, setDone] = useState(false);
  if (!navigator.clipboard) return null;
  return (
    <button
      onClick={() => {
        void navigator.clipboard.writeText(location.href).then(() => {
          setDone(true);
          setTimeout(() => setDone(false), 2000);
        });
      }}
    >
      {done ? "copied" : "copy link"}
    </button>
  );
}

// Heat is a cell of a heat map: its number stands in it.
function Heat({ v, most, text, title }: { v: number; most: number; text: string; title: string }) {
  const step = v > 0 ? Math.max(1, Math.ceil((v / most) * 8)) : 0;
  return (
    <td class={"num h" + step} title={title}>
      {text}
    </td>
  );
}

export function ThreadsPage({ x }: { x: Ctx }) {
  const { view, s } = x;
  if (!view.rest) return <p class="none">reading …</p>;
  const { threads: t, invalidations } = view.rest;
  if (!t) return <p class="none">Nothing is known of threads.</p>;
  const sharing = t.sharing ?? [];
  const tids = [...new Set(sharing.flatMap((k) => [k.writer_tid, k.reader_tid]))].sort((a, b) => a - b).slice(0, 64);
  const cell = new Map(sharing.map((k) => [k.writer_tid + " " + k.reader_tid, k]));
  const most = Math.max(...sharing.map((k) => k.accesses_invalidated + k.accesses_falsely_shared), 0);
  const edge = (i: number) => (i + 1 < t.reuse_time_edges.length ? `< ${amount(t.reuse_time_edges[i + 1])}` : `≥ ${amount(t.reuse_time_edges[i])}`);
  return (
    <div class="stackpage">
      <section class="card" aria-label="threads">
        <div class="scroll" tabIndex={0} role="region" aria-label="threads, to scroll">
          <table>
            <caption>threads: {t.threads_in_all} in all; choose one to see its samples only</caption>
            <thead>
              <tr>
                <th scope="col">thread</th>
                <th scope="col" class="num">accesses</th>
                <th scope="col" class="num">seen</th>
                {t.reuse_time_edges.map((_, i) => (
                  <th scope="col" class="num" key={i} title="share of its accesses reused within so many accesses">
                    {edge(i)}
                  </th>
                ))}
                <th scope="col" class="num">not reused</th>
                <th scope="col" class="num" title="share of its accesses that find the line gone by another thread's write of the same words">invalidated</th>
                <th scope="col" class="num" title="the same, by a write of other words of the line">falsely shared</th>
                {(t.caches ?? []).map((k) => (
                  <th scope="col" class="num" key={k}>
                    {k} misses
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {(t.threads ?? []).map((r) => (
                <tr key={r.tid} class={r.tid === s.tid ? "chosen" : ""}>
                  <th scope="row">
                    {r.tid > 0 ? (
                      <button class="link" aria-pressed={r.tid === s.tid} onClick={() => x.set({ tid: r.tid === s.tid ? -1 : r.tid })}>
                        {r.tid}
                      </button>
                    ) : (
                      `${r.threads} others`
                    )}
                  </th>
                  <td class="num">{amount(r.accesses)}</td>
                  <td class="num">{amount(r.observations)}</td>
                  {r.reuse_time_shares.map((v, i) => (
                    <Heat key={i} v={v} most={1} text={percent(v, 1)} title="" />
                  ))}
                  <td class="num">{percent(r.not_reused_share, 1)}</td>
                  <td class="num">{percent(r.invalidated_share, 1)}</td>
                  <td class="num">{percent(r.falsely_shared_share, 1)}</td>
                  {r.miss_ratios.map((v, i) => (
                    <td class="num" key={i}>
                      {percent(v, 1)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      <section class="card" aria-label="sharing">
        <h2>Who invalidates whom</h2>
        {tids.length ? (
          <div class="scroll" tabIndex={0} role="region" aria-label="sharing matrix, to scroll">
            <table class="matrix">
              <caption>accesses of a reader that find the line gone by a writer: true sharing / false sharing</caption>
              <thead>
                <tr>
                  <th scope="col">writer ↓ reader →</th>
                  {tids.map((r) => (
                    <th scope="col" class="num" key={r}>
                      {r}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {tids.map((w) => (
                  <tr key={w}>
                    <th scope="row">{w}</th>
                    {tids.map((r) => {
                      const k = cell.get(w + " " + r);
                      const v = k ? k.accesses_invalidated + k.accesses_falsely_shared : 0;
                      return <Heat key={r} v={v} most={most} text={k ? `${amount(k.accesses_invalidated)} / ${amount(k.accesses_falsely_shared)}` : w === r ? "–" : ""} title={k ? `${w} writes what ${r} uses: true ${amount(k.accesses_invalidated)}, false ${amount(k.accesses_falsely_shared)}` : ""} />;
                    })}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <p class="none">{invalidations ? "No thread was seen to take a line from another." : "Other threads' writes were not watched: record with rdx attach --stack private, or both."}</p>
        )}
      </section>
      {invalidations?.pairs?.length ? (
        <section class="card" aria-label="invalidations">
          <div class="scroll" tabIndex={0} role="region" aria-label="invalidations, to scroll">
            <table>
              <caption>
                invalidations: truly shared {percent(invalidations.true_share, 1)} of accesses, falsely {percent(invalidations.false_share, 1)}
              </caption>
              <thead>
                <tr>
                  <th scope="col" class="num">share</th>
                  <th scope="col" class="num">accesses</th>
                  <th scope="col" class="num">seen</th>
                  <th scope="col">sharing</th>
                  <th scope="col">writer</th>
                  <th scope="col">reader</th>
                  <th scope="col">data</th>
                </tr>
              </thead>
              <tbody>
                {invalidations.pairs.slice(0, 200).map((k, i) => (
                  <tr key={i}>
                    <td class="num">{percent(k.share, 1)}</td>
                    <td class="num">{amount(k.accesses)}</td>
                    <td class="num">{k.observations}</td>
                    <td>{k.kind}</td>
                    <td>
                      <PlaceName p={k.writer} />
                    </td>
                    <td>
                      <PlaceName p={k.reader} />
                    </td>
                    <td>{(k.data ?? []).join(", ")}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      ) : null}
    </div>
  );
}

export function TimePage({ x }: { x: Ctx }) {
  const { view, f } = x;
  const { d } = view;
  const [phases, setPhases] = useState<Phases | null>(null);
  const [error, setError] = useState("");
  const many = x.list.profiles.length > 1;
  useEffect(() => {
    if (many)
      ask<Phases>("time").then(
        (p) => (setPhases(p), setError("")),
        (e: Error) => setError(e.message),
      );
  }, [many, view]);
  // Epochs are numbered by thread; the thread with most accesses is shown unless one is chosen.
  const map = useMemo(() => {
    const by = new Map<number, number>();
    for (let i = 0; i < view.n; i++) by.set(d.cells.tid[i], (by.get(d.cells.tid[i]) ?? 0) + d.cells.accesses[i]);
    const tid = f.tid >= 0 ? f.tid : ([...by].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0);
    let [first, last] = [Infinity, -Infinity];
    const mine: number[] = [];
    for (let i = 0; i < view.n; i++) {
      if (d.cells.tid[i] !== tid || (f.object >= 0 && !view.isOf(i, f.object))) continue;
      mine.push(i);
      first = Math.min(first, d.cells.epoch[i]);
      last = Math.max(last, d.cells.epoch[i]);
    }
    const columns = mine.length ? Math.min(last - first + 1, 48) : 0;
    const rows: number[][] = []; // from never down to the shortest
    const levels = 30;
    const lowest = 6; // 64 bytes
    for (let k = 0; k < levels + 1; k++) rows.push(new Array<number>(columns).fill(0));
    const total = new Array<number>(columns).fill(0);
    for (const i of mine) {
      const col = Math.min(columns - 1, Math.floor(((d.cells.epoch[i] - first) / (last - first + 1)) * columns));
      const dist = d.cells.distance[i];
      const w = Number.isNaN(dist) ? d.cells.accesses[i] : d.cells.reuses[i];
      const r = Number.isNaN(dist) ? 0 : levels - Math.min(levels - 1, Math.max(0, Math.floor(Math.log2(Math.max(dist, 1)) - lowest)));
      rows[r][col] += w;
      total[col] += w;
    }
    const most = rows.reduce((m, r) => r.reduce((m, v, i) => Math.max(m, total[i] > 0 ? v / total[i] : 0), m), 0);
    return { tid, columns, rows, total, most, lowest, levels };
  }, [view, f.tid, f.object]);
  return (
    <div class="stackpage">
      <section class="card" aria-label="reuse distance over time">
        <h2>
          Stack distance over the run <span class="hint">thread {map.tid}; each column is a stretch of its run, adding up to 100 %</span>
        </h2>
        {map.columns === 1 ? <p class="note">There is one stretch only: the session was too short, or had too few samples, to tell parts of the run apart.</p> : null}
        {map.columns > 0 ? (
          <div class="scroll" tabIndex={0} role="region" aria-label="heat map of stack distance over time, to scroll">
            <table class="heatmap">
              <caption class="unseen">share of accesses by stack distance, from the first part of the run to the last</caption>
              <tbody>
                {map.rows.map((r, k) => {
                  const from = map.lowest + map.levels - k;
                  const name = k === 0 ? "never reused" : k === map.levels ? "less than 128B" : `${bytes(2 ** from)} to ${bytes(2 ** (from + 1))}`;
                  const used = map.rows.slice(1, k + 1).some((q) => q.some((v) => v > 0));
                  return k > 0 && !used ? null : (
                    <tr key={k}>
                      <th scope="row">{name}</th>
                      {r.map((v, i) => {
                        const share = map.total[i] > 0 ? v / map.total[i] : 0;
                        return <Heat key={i} v={share} most={map.most} text={share >= 0.005 ? String(Math.round(100 * share)) : ""} title={`part ${i + 1}: ${percent(share, 1)} at ${name}`} />;
                      })}
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
        ) : (
          <p class="none">No sample of this thread.</p>
        )}
      </section>
      <section class="card" aria-label="windows">
        <h2>Windows</h2>
        {!many ? <p class="none">Several profiles of one program, such as rdx attach --every 10s writes, are shown here one after the other.</p> : null}
        {error ? <p class="none">These profiles can't be shown one after the other: {error}.</p> : null}
        {many && !error && !phases ? <p class="none">reading …</p> : null}
        {phases ? (
          <div class="scroll" tabIndex={0} role="region" aria-label="windows, to scroll">
            <table>
              <caption>miss ratios by window, with 95 % bands; a star marks a window that differs from the phase before it by more than chance</caption>
              <thead>
                <tr>
                  <th scope="col">start</th>
                  <th scope="col" class="num">length</th>
                  <th scope="col" class="num">accesses/s</th>
                  {phases.bytes.map((b) => (
                    <th scope="col" class="num" key={b}>
                      {bytes(b)}
                    </th>
                  ))}
                  <th scope="col">top pair</th>
                  <th scope="col">file</th>
                </tr>
              </thead>
              <tbody>
                {phases.windows.map((w, i) => (
                  <tr key={i}>
                    <td>{w.start.slice(11, 19)}</td>
                    <td class="num">{nanoseconds(w.seconds * 1e9)}</td>
                    <td class="num">{amount(w.accesses_per_second)}</td>
                    {w.miss_ratios.map((r, k) => (
                      <td class={"num h" + (r.value > 0 ? Math.max(1, Math.ceil(r.value * 8)) : 0)} key={k}>
                        {percent(r.value, 1)}
                        {w.changed[k] ? " *" : ""} <span class="band">{band([r.low, r.high])}</span>
                      </td>
                    ))}
                    <td>{w.top_pair}</td>
                    <td>{w.file}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : null}
      </section>
    </div>
  );
}

export function ComparePage({ x }: { x: Ctx }) {
  const { s, list } = x;
  const [diff, setDiff] = useState<Diff | null>(null);
  const [error, setError] = useState("");
  const other = s.other >= 0 && s.other < list.profiles.length ? s.other : -1;
  useEffect(() => {
    let gone = false;
    setDiff(null);
    setError("");
    if (other >= 0 && other !== s.profile)
      ask<Diff>(`diff?before=${s.profile}&after=${other}`).then(
        (d) => !gone && setDiff(d),
        (e: Error) => !gone && setError(e.message),
      );
    return () => {
      gone = true;
    };
  }, [other, s.profile, x.view]);
  if (list.profiles.length < 2) return <p class="none">Name two profiles to compare them: rdx web before.pb.gz after.pb.gz</p>;
  const q = s.q.toLowerCase();
  const change = (k: Change) => (
    <>
      <td class="num">{percent(k.before.value, 1)}</td>
      <td class="num">{percent(k.after.value, 1)}</td>
      <td class={"num " + (k.significant ? (k.change.value > 0 ? "worse" : "better") : "")}>
        {signed(k.change.value)} <span class="band">[{signed(k.change.low)}, {signed(k.change.high)}]</span>
      </td>
      <td>{k.significant ? (k.change.value > 0 ? "★ more" : "★ less") : "may be chance"}</td>
    </>
  );
  return (
    <div class="stackpage">
      <section class="card" aria-label="curves">
        <header>
          <h2>Compare</h2>
          <Pick label="before" value={String(s.profile)} of={list.profiles.map((p, i) => [String(i), p.name])} onPick={(v) => x.set({ profile: Number(v) })} />
          <Pick label="after" value={String(other)} of={[["-1", "choose"], ...list.profiles.map((p, i): [string, string] => [String(i), p.name])]} onPick={(v) => x.set({ other: Number(v) })} />
        </header>
        <CurveChart x={x} height={240} />
        <Legend x={x} />
        <BesideBar x={x} />
      </section>
      {error ? <p class="none">{error}</p> : null}
      {diff ? (
        <section class="card" aria-label="changes">
          {diff.notes ? (
            <ul class="warnings">
              {diff.notes.map((n, i) => (
                <li key={i}>{n}</li>
              ))}
            </ul>
          ) : null}
          <div class="scroll" tabIndex={0} role="region" aria-label="changes, to scroll">
            <table>
              <caption>miss ratios; a star marks a change that is more than chance</caption>
              <thead>
                <tr>
                  <th scope="col">cache</th>
                  <th scope="col" class="num">before</th>
                  <th scope="col" class="num">after</th>
                  <th scope="col" class="num">change, points</th>
                  <th scope="col">chance?</th>
                </tr>
              </thead>
              <tbody>
                {(diff.caches ?? []).map((k) => (
                  <tr key={k.bytes}>
                    <th scope="row">
                      {k.level} {bytes(k.bytes)}
                      {k.note ? <span class="note"> {k.note}</span> : null}
                    </th>
                    {change(k)}
                  </tr>
                ))}
              </tbody>
            </table>
            <table>
              <caption>pairs by {diff.by}, shares of all accesses; {diff.pairs_in_all} in all, the bands are for all of them at once</caption>
              <thead>
                <tr>
                  <th scope="col">use → reuse</th>
                  <th scope="col" class="num">seen</th>
                  <th scope="col" class="num">before</th>
                  <th scope="col" class="num">after</th>
                  <th scope="col" class="num">change, points</th>
                  <th scope="col">chance?</th>
                </tr>
              </thead>
              <tbody>
                <tr>
                  <th scope="row">all pairs</th>
                  <td></td>
                  {change(diff.total)}
                </tr>
                {(diff.pairs ?? [])
                  .filter((k) => !q || (k.use + " " + k.reuse).toLowerCase().includes(q))
                  .slice(0, 300)
                  .map((k) => (
                    <tr key={k.use + "\n" + k.reuse}>
                      <th scope="row">
                        {k.use} → {k.reuse}
                      </th>
                      <td class="num">{k.observations.join(", ")}</td>
                      {change(k)}
                    </tr>
                  ))}
              </tbody>
            </table>
          </div>
        </section>
      ) : null}
    </div>
  );
}

const signed = (v: number): string => (v > 0 ? "+" : v < 0 ? "−" : "") + percent(Math.abs(v), 1);

const many = (n: number, thing: string): string => `${amount(n)} ${thing}${n === 1 ? "" : "s"}`;
