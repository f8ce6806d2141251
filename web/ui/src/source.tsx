// Source, with what each line misses beside it, and an arc from the use to the reuse of the chosen pair.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Ctx } from "./ctx";
import { askWith, type Instruction } from "./data";
import { amount, base, percent, weightName } from "./parts";

interface Text {
  path: string;
  text: string;
}

const lineHeight = 18;

// files are those of the profile's lines, those with most misses first.
export function files(x: Ctx): { index: number; name: string; value: number; has: boolean }[] {
  const { d } = x.view;
  const [here, used] = sumsUnder(x);
  const sum = new Map<number, number>();
  for (let i = 0; i < here.length; i++) {
    const file = d.places.file[i];
    if (file > 0 && (here[i] > 0 || used[i] > 0)) sum.set(file, (sum.get(file) ?? 0) + here[i]);
  }
  const has = new Set(d.source_files ?? []);
  return [...sum].map(([index, value]) => ({ index, name: d.strings[index], value, has: has.has(index) })).sort((a, b) => b.value - a.value);
}

interface Gutter {
  here: Map<number, number>;
  used: Map<number, number>;
}

// sumsUnder are the weights of places, where misses happen and where their data were used, of all samples or of those under the
// chosen frame. Of a chosen line all others stay to be chosen, too.
function sumsUnder(x: Ctx): [Float64Array, Float64Array] {
  const { view, s, c } = x;
  const f = { ...x.f, at: "" };
  if (s.node < 1) return [view.places(c, s.weight, f), view.uses(c, s.weight, f)];
  const under = view.under(s.node, s.side);
  const v = view.cells(c, s.weight, f);
  const { pair } = view.d.cells;
  const here = new Float64Array(view.d.places.function.length);
  const used = new Float64Array(here.length);
  for (let i = 0; i < view.n; i++) {
    if (!under[i]) continue;
    here[view.where[i]] += v[i];
    used[view.d.pairs.use[pair[i]]] += v[i];
  }
  return [here, used];
}

export function SourcePane({ x }: { x: Ctx }) {
  const { view, s, c, f } = x;
  const { d } = view;
  const all = files(x);
  const use = s.pair >= 0 ? view.place(d.pairs.use[s.pair]) : null;
  const end = s.pair >= 0 ? view.endOf(s.pair) : null;
  const frame = s.node > 0 ? view.place(view.tree().place[s.node]) : null;
  const wanted = s.file || (end && end.file) || (use && use.file) || (frame && frame.file) || (all[0]?.name ?? "");
  const has = all.find((a) => a.name === wanted)?.has ?? (d.source_files ?? []).some((i) => d.strings[i] === wanted);
  const [text, setText] = useState<Text | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    let gone = false;
    setText(null);
    setError("");
    if (!wanted || !has) return;
    askWith<Text>("source", { profile: String(view.number), file: wanted }).then(
      (t) => !gone && setText(t),
      (e: Error) => !gone && setError(e.message),
    );
    return () => {
      gone = true;
    };
  }, [wanted, has, view]);

  const gutter = useMemo((): Gutter => {
    const g: Gutter = { here: new Map(), used: new Map() };
    const [here, used] = sumsUnder(x);
    const file = d.strings.indexOf(wanted);
    for (let i = 0; i < here.length; i++) {
      if (d.places.file[i] !== file) continue;
      const line = d.places.line[i];
      if (here[i] > 0) g.here.set(line, (g.here.get(line) ?? 0) + here[i]);
      if (used[i] > 0) g.used.set(line, (g.used.get(line) ?? 0) + used[i]);
    }
    return g;
  }, [view, c, s.weight, f, s.node, s.side, wanted]);
  const choose = (
    <label class="pick grow">
      file{" "}
      <select value={wanted} onChange={(e) => x.set({ file: e.currentTarget.value })}>
        {all.some((a) => a.name === wanted) || !wanted ? null : <option value={wanted}>{base(wanted)}</option>}
        {all.slice(0, 300).map((a) => (
          <option key={a.index} value={a.name}>
            {percent(a.value, view.total(c, s.weight, { ...f, at: "" }))} {base(a.name)}
            {a.has ? "" : " (no source)"}
          </option>
        ))}
      </select>
    </label>
  );
  const both = use && end && use.file && end.file && use.file !== end.file ? (
    <span class="ends" role="group" aria-label="ends of the pair">
      <button aria-pressed={wanted === use.file} onClick={() => x.set({ file: use.file })}>
        use
      </button>
      <button aria-pressed={wanted === end.file} onClick={() => x.set({ file: end.file })}>
        reuse
      </button>
    </span>
  ) : null;
  return (
    <section class="pane source" aria-label="source">
      <header>
        <h2>Source</h2>
        {all.length || wanted ? choose : null}
        {both}
      </header>
      {text ? (
        <Lines
          x={x}
          file={wanted}
          text={text.text}
          gutter={gutter}
          use={use && use.file === wanted ? use.line : 0}
          end={end && end.file === wanted ? end.line : 0}
          frame={frame && frame.file === wanted ? frame.line : 0}
        />
      ) : has && !error ? (
        <p class="none">reading …</p>
      ) : (
        <Code x={x} gutter={gutter} file={wanted} error={error} />
      )}
    </section>
  );
}

interface LinesOf {
  x: Ctx;
  file: string;
  text: string;
  gutter: Gutter;
  use: number; // lines; 0: none
  end: number;
  frame: number;
}

function Lines({ x, file, text, gutter, use, end, frame }: LinesOf) {
  const scroll = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => text.replace(/\t/g, "    ").split("\n"), [text]);
  const total = x.view.total(x.c, x.s.weight, { ...x.f, at: "" });
  const choose = (n: number) => x.set({ at: x.s.at === `${file}:${n}` ? "" : `${file}:${n}` });
  const most = Math.max(...gutter.here.values(), 0);
  const hottest = [...gutter.here].sort((a, b) => b[1] - a[1])[0]?.[0] ?? [...gutter.used].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 1;
  const [top, setTop] = useState(0);
  const [high, setHigh] = useState(600);
  const goal = end || use || (gutter.here.size ? hottest : frame || hottest);
  const asked = useRef("");
  useEffect(() => {
    const key = `${file} ${use} ${end} ${frame}`;
    if (!scroll.current || asked.current === key) return;
    asked.current = key;
    const middle = use && end && Math.abs(use - end) * lineHeight < scroll.current.clientHeight - 60 ? (use + end) / 2 : goal;
    scroll.current.scrollTop = Math.max(0, (middle - 0.5) * lineHeight - scroll.current.clientHeight / 2);
    setHigh(scroll.current.clientHeight);
  }, [text, use, end, frame, goal]);
  const from = Math.max(0, Math.floor(top / lineHeight) - 40);
  const to = Math.min(lines.length, Math.ceil((top + high) / lineHeight) + 40);
  const y = (line: number) => (line + 0.5) * lineHeight; // below the head
  return (
    <div class="lines" ref={scroll} tabIndex={0} role="region" aria-label="source lines" onScroll={(e) => (setTop(e.currentTarget.scrollTop), setHigh(e.currentTarget.clientHeight))}>
      <svg class="arc" width="38" height={(lines.length + 1) * lineHeight} aria-hidden="true">
        {use > 0 && end > 0 ? (
          use === end ? (
            <path d={`M30 ${y(use) - 5} C 6 ${y(use) - 16}, 6 ${y(use) + 16}, 30 ${y(use) + 5}`} />
          ) : (
            <path d={`M30 ${y(use)} C ${Math.max(2, 18 - Math.abs(use - end))} ${y(use)}, ${Math.max(2, 18 - Math.abs(use - end))} ${y(end)}, 30 ${y(end)}`} />
          )
        ) : null}
        {end > 0 ? <path class="tip-of-arc" d={`M31 ${y(end) + (use === end ? 5 : 0)} l -7 -4 l 0 8 z`} /> : null}
      </svg>
      <table>
        <caption class="unseen">
          source lines with {weightName(x)}
        </caption>
        <thead>
          <tr>
            <th scope="col">pair</th>
            <th scope="col" title={`share of ${weightName(x)} that happens at the line`}>{x.s.weight === "seen" ? "seen here" : x.s.weight}</th>
            <th scope="col" title={`share of ${weightName(x)} whose data was last used at the line`}>last used</th>
            <th scope="col">line</th>
            <th scope="col">source</th>
          </tr>
        </thead>
        <tbody>
          {from > 0 ? <Gap n={from} /> : null}
          {lines.slice(from, to).map((t, k) => {
            const n = from + k + 1;
            const v = gutter.here.get(n) ?? 0;
            const u = gutter.used.get(n) ?? 0;
            const marks = (n === use ? "use" : "") + (n === use && n === end ? ", " : "") + (n === end ? "reuse" : "") || (n === frame ? "frame" : "");
            const chosen = x.s.at === `${file}:${n}`;
            return (
              <tr key={n} data-line={n} class={(n === use || n === end || chosen ? "end" : "") + (v > 0 ? " hot" : "") + (v > 0 || u > 0 ? " any" : "")} onClick={v > 0 || u > 0 ? () => choose(n) : undefined}>
                <td class="marks">{marks}</td>
                <td class="num heat" title={v > 0 ? `${amount(v)} ${weightName(x)} happen here` : ""}>
                  {v > 0 ? (
                    <>
                      <svg class="heatbar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                        <rect x={100 - (100 * v) / most} width={(100 * v) / most} y="0" height="10" />
                      </svg>
                      <span>{percent(v, total)}</span>
                    </>
                  ) : null}
                </td>
                <td class="num used" title={u > 0 ? `data of ${amount(u)} ${weightName(x)} were used here before` : ""}>
                  {u > 0 ? percent(u, total) : ""}
                </td>
                <td class="num no">
                  {v > 0 || u > 0 || chosen ? (
                    <button class="link" aria-pressed={chosen} title="show only what is used or reused at this line" onClick={(e) => (e.stopPropagation(), choose(n))}>
                      {n}
                    </button>
                  ) : (
                    n
                  )}
                </td>
                <td class="code">
                  {t || " "}
                </td>
              </tr>
            );
          })}
          {to < lines.length ? <Gap n={lines.length - to} /> : null}
        </tbody>
      </table>
    </div>
  );
}

// Gap stands for lines that are out of sight.
function Gap({ n }: { n: number }) {
  return (
    <tr aria-hidden="true">
      <td colSpan={5}>
        <svg width="1" height={n * lineHeight} />
      </td>
    </tr>
  );
}

// Code is instructions where there is no source, and what is known of lines where there are none either.
function Code({ x, gutter, file, error }: { x: Ctx; gutter: Gutter; file: string; error: string }) {
  const { view, s, c, f } = x;
  const { d } = view;
  const [code, setCode] = useState<{ site: number; list: Instruction[] } | null>(null);
  const [why, setWhy] = useState("");
  // The instruction to show: of the chosen pair's end, or where most is missed once the size lies still.
  const still = useRef(c);
  if (!x.moving) still.current = c;
  const site = useMemo(() => {
    const v = view.cells(c, s.weight, f);
    const of = file ? d.strings.indexOf(file) : -1;
    let best = -1;
    let most = 0;
    const reused = (i: number) => d.cells.reuse[i] >= 0;
    const sum = new Float64Array((d.sites ?? []).length);
    for (let i = 0; i < view.n; i++) {
      if (s.pair >= 0 && d.cells.pair[i] !== s.pair) continue;
      if (s.pair < 0 && of >= 0 && d.places.file[view.where[i]] !== of) continue;
      const k = reused(i) ? d.cells.reuse_at[i] : d.cells.use_at[i];
      if (k < 0) continue;
      const t = (sum[k] += v[i]);
      if (t > most || best < 0) {
        best = k;
        most = t;
      }
    }
    return best;
  }, [view, s.pair, s.weight, f, file, d.exact ? 0 : still.current]);
  useEffect(() => {
    let gone = false;
    setWhy("");
    if (site < 0) {
      setCode(null);
      return;
    }
    askWith<Instruction[]>("code", { profile: String(view.number), stack: view.onStack, site: String(site) }).then(
      (list) => !gone && setCode({ site, list }),
      (e: Error) => !gone && (setCode(null), setWhy(e.message)),
    );
    return () => {
      gone = true;
    };
  }, [site, view]);
  const at = useMemo(() => {
    const v = view.cells(c, s.weight, f);
    const here = new Float64Array((d.sites ?? []).length);
    const used = new Float64Array(here.length);
    if (!code) return { here, used };
    const { reuse, reuse_at, use_at } = d.cells;
    for (let i = 0; i < view.n; i++) {
      const to = reuse[i] >= 0 ? reuse_at[i] : use_at[i];
      if (to >= 0) here[to] += v[i];
      if (use_at[i] >= 0) used[use_at[i]] += v[i];
    }
    return { here, used };
  }, [view, c, s.weight, f, !code]);
  const ends = useMemo(() => {
    const use = new Set<number>();
    const end = new Set<number>();
    if (s.pair >= 0) {
      for (let k = view.byPair.from[s.pair]; k < view.byPair.from[s.pair + 1]; k++) {
        const i = view.byPair.list[k];
        use.add(d.cells.use_at[i]);
        if (d.cells.reuse[i] >= 0) end.add(d.cells.reuse_at[i]);
      }
    }
    return { use, end };
  }, [view, s.pair]);
  const total = view.total(c, s.weight, f);
  const reason = error || (file ? "" : "the profile names no source line here");
  if (!code) {
    const list = [...gutter.here].sort((a, b) => b[1] - a[1]).slice(0, 200);
    return (
      <div class="lines" tabIndex={0} role="region" aria-label="lines">
        <p class="none">
          {reason || `No source of ${base(file)}: it is not below a folder that rdx was given. Start rdx with --source FOLDER.`}
          {why ? ` No instructions: ${why}.` : ""}
        </p>
        {list.map(([n, v]) => (
          <p class="none" key={n}>
            {base(file)}:{n} {percent(v, total)}
          </p>
        ))}
      </div>
    );
  }
  return (
    <div class="lines" tabIndex={0} role="region" aria-label="instructions">
      <p class="none">
        {reason || `No source of ${base(file)} below the folders that rdx was given (--source FOLDER)`}; instructions of {base(d.sites![code.site].mapping)}:
      </p>
      <table>
        <caption class="unseen">instructions with {weightName(x)}</caption>
        <tbody>
          {code.list.map((k) => {
            const sum = (m: Float64Array) => k.sites.reduce((t, i) => t + m[i], 0);
            const v = sum(at.here);
            const u = sum(at.used);
            const isUse = k.sites.some((i) => ends.use.has(i));
            const isEnd = k.sites.some((i) => ends.end.has(i));
            return (
              <tr key={k.offset} class={(isUse || isEnd ? "end" : "") + (v > 0 ? " hot" : "")}>
                <td class="marks">{[isUse ? "use" : "", isEnd ? "reuse" : ""].filter(Boolean).join(", ")}</td>
                <td class="num heat">{v > 0 ? percent(v, total) : ""}</td>
                <td class="num used">{u > 0 ? percent(u, total) : ""}</td>
                <td class="num no">{k.offset}</td>
                <td class="code">{k.text}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
