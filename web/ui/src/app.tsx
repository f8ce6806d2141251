import { render } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import type { Ctx } from "./ctx";
import { useBeside } from "./beside";
import { CurveChart, nearest, SizeBar } from "./curve";
import { ask, forget, isFile, load, loadFirst, loadMore, loadRest, type Listing } from "./data";
import { ObjectsPage } from "./objects";
import { CodePage, ComparePage, Overview, PairsPage, ShareLink, ThreadsPage, TimePage } from "./pages";
import { Pick, useQuery } from "./parts";
import * as rdxFormat from "./format";
import { parse, type State, write } from "./state";
import { View } from "./sums";

const pages: [string, string, (p: { x: Ctx }) => preact.JSX.Element][] = [
  ["overview", "Overview", Overview],
  ["code", "Code", CodePage],
  ["pairs", "Pairs", PairsPage],
  ["data", "Data", ObjectsPage],
  ["threads", "Threads", ThreadsPage],
  ["time", "Time", TimePage],
  ["compare", "Compare", ComparePage],
];

const sizeOf = (v: View, s: State): number => (s.size > 0 ? nearest(v.d.sizes, s.size) : v.d.first);

// isFirst says whether a view shows what it can before it is complete.
const isFirst = (v: View, s: State): boolean => !pages.slice(1).some(([id]) => id === s.page) && s.tid < 0 && s.object < 0 && sizeOf(v, s) === v.d.first;

function App() {
  const [list, setList] = useState<Listing | null>(null);
  const [s, setState] = useState<State>(() => parse(location.hash));
  const [view, setView] = useState<View | null>(null);
  const [, setCame] = useState(0); // what has come of the view
  const [error, setError] = useState("");
  const now = useRef(s);
  now.current = s;
  const dark = useQuery("(prefers-color-scheme: dark)");
  const high = useQuery("(min-height: 1400px)");
  const timer = useRef(0);
  const [moving, setMoving] = useState(false);
  const step = useRef((_by: number): void => undefined);

  const set = useCallback((change: Partial<State>, replace = false) => {
    const next = { ...now.current, ...change };
    // What is numbered by the profile means nothing in another.
    if (("profile" in change && change.profile !== s.profile) || "stack" in change) Object.assign(next, { pair: -1, node: -1, tid: -1, object: -1, file: "", at: "" }, "profile" in change && !("stack" in change) ? { stack: "" } : {});
    if (("side" in change && change.side !== now.current.side) || ("page" in change && change.page !== "code")) next.node = -1;
    now.current = next;
    setState(next);
    // Browsers allow few changes of the address a second: while something is dragged it waits.
    clearTimeout(timer.current);
    if (replace) {
      if ("size" in change) setMoving(true);
      timer.current = window.setTimeout(() => {
        setMoving(false);
        history.replaceState(null, "", write(now.current));
      }, 150);
    }
    if (!replace && write(next) !== location.hash) history.pushState(null, "", write(next));
  }, [s.profile]);

  useEffect(() => {
    const back = () => setState(parse(location.hash));
    addEventListener("popstate", back);
    addEventListener("hashchange", back);
    return () => {
      removeEventListener("popstate", back);
      removeEventListener("hashchange", back);
    };
  }, []);

  useEffect(() => {
    let version = -1;
    let again = 0;
    const look = async () => {
      try {
        const l = await ask<Listing>("list");
        if (l.version !== version) {
          if (version >= 0 || l.live) forget();
          version = l.version;
          setList(l);
        }
        if (l.live) again = window.setTimeout(() => (forget("list"), void look()), 1000);
      } catch (e) {
        setError((e as Error).message);
      }
    };
    void look();
    return () => clearTimeout(again);
  }, []);

  const profile = list ? Math.min(Math.max(s.profile, 0), list.profiles.length - 1) : -1;
  useEffect(() => {
    if (!list || profile < 0) return;
    let gone = false;
    const shown = view && !view.early;
    // The curve is there before the samples. What is shown already stays instead.
    if (!shown && !list.live && !isFile())
      loadFirst(profile, s.stack).then(
        (d) => {
          if (gone) return;
          const next = new View(d, profile, s.stack);
          next.early = true;
          setView((was) => (was && !was.early ? was : next));
        },
        () => undefined, // who asks for all of it is told why
      );
    const get = async () => {
      const d = await load(profile, s.stack);
      const next = new View(d, profile, s.stack);
      // What is shown stays until all of another is there.
      if (shown || !isFirst(next, now.current)) {
        try {
          await loadMore(d, profile, s.stack);
        } catch (e) {
          if (list.live) return null; // there are newer profiles, which come by themselves
          throw e;
        }
        next.complete = true;
      }
      return next;
    };
    get().then(
      (next) => {
        if (gone || !next) return;
        setError("");
        setView((was) => {
          // While samples come in, what is chosen gets other numbers.
          const chosen = now.current;
          if (was && was.number === profile && list.live) {
            const pair = chosen.pair >= 0 && chosen.pair < was.d.pairs.use.length ? next.pairOf(was.keyOf(chosen.pair)) : -1;
            const name = chosen.object >= 0 && chosen.object < was.d.objects.name.length ? was.dataName(chosen.object) : undefined;
            const object = name === undefined ? -1 : next.d.objects.name.findIndex((_, i) => next.dataName(i) === name);
            if (pair !== chosen.pair || object !== chosen.object || chosen.node >= 0) queueMicrotask(() => set({ pair, object, node: -1 }, true));
          }
          return next;
        });
      },
      (e: Error) => {
        if (gone) return;
        setError(e.message);
        setView(null);
      },
    );
    return () => {
      gone = true;
    };
  }, [list, profile, s.stack]);

  // When the first picture is there, and when it has samples, for tests that measure it; only then all else is asked for.
  useEffect(() => {
    Object.assign(globalThis, { rdxView: view?.complete ? view : null });
    if (!view) return;
    for (const name of view.early ? ["rdx-shown"] : ["rdx-shown", "rdx-samples"]) {
      if (performance.getEntriesByName(name).length === 0) requestAnimationFrame(() => performance.mark(name));
    }
    if (view.early) return;
    let gone = false;
    const then = async () => {
      try {
        if (!view.complete) await loadMore(view.d, view.number, view.onStack);
        view.complete = true;
        if (gone) return;
        Object.assign(globalThis, { rdxView: view });
        setCame((n) => n + 1);
        view.rest = await loadRest(view.d, view.number, view.onStack);
        if (!gone) setCame((n) => n + 1);
      } catch (e) {
        if (!gone && !view.complete && !list?.live) setError((e as Error).message);
      }
    };
    const soon = setTimeout(() => void then(), 100);
    return () => {
      gone = true;
      clearTimeout(soon);
    };
  }, [view]);

  const beside = useBeside(list, profile, s);

  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const typing = e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement;
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "/" && !typing) {
        document.querySelector<HTMLInputElement>("#search")?.focus();
        e.preventDefault();
      } else if (e.key === "Escape" && e.target instanceof HTMLInputElement) e.target.blur();
      else if (!typing && /^[1-7]$/.test(e.key)) set({ page: pages[Number(e.key) - 1][0] });
      else if (!typing && (e.key === "[" || e.key === "]")) step.current(e.key === "]" ? 1 : -1);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [set]);

  const object = view && s.object < view.d.objects.name.length ? s.object : -1;
  const f = useMemo(() => ({ tid: s.tid, object, at: s.at }), [s.tid, object, s.at]);

  if (!list) return <p class="none">{error || "reading …"}</p>;
  if (list.profiles.length === 0) return <p class="none">{list.live ? "The first samples are being taken …" : "There is no profile."}</p>;
  const page = pages.find(([id]) => id === s.page) ?? pages[0];
  const named = list.profiles[profile];
  const stacks = named.stacks;
  const x: Ctx | null = view && {
    list,
    view,
    beside,
    s: { ...s, profile, pair: s.pair < view.d.pairs.use.length ? s.pair : -1, node: s.node >= 0 && view.complete && s.node < view.tree().parent.length ? s.node : -1 },
    set,
    moving,
    c: sizeOf(view, s),
    f,
    dark,
  };
  const Page = page[2];
  step.current = (by) => x && set({ size: x.view.d.sizes[Math.min(Math.max(x.c + by, 0), x.view.d.sizes.length - 1)] }, true);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById("main")?.focus())}>
        to the page
      </a>
      <header class="top">
        <h1>
          <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
            <path class="mark1" d="M3 17 C 3 2, 19 2, 19 17" />
            <circle cx="3" cy="17" r="2.6" />
            <path class="mark2" d="M19 20 l -4 -6 l 8 0 z" />
          </svg>
          rdx
        </h1>
        {list.profiles.length > 1 ? (
          <Pick label="profile" value={String(profile)} of={list.profiles.map((p, i) => [String(i), p.name])} onPick={(v) => set({ profile: Number(v) })} />
        ) : (
          <span class="command" title={named.command}>
            {named.command || named.name}
          </span>
        )}
        {stacks.length > 1 ? <Pick label="stack" value={s.stack || stacks[0]} of={stacks.map((k) => [k, k])} onPick={(v) => set({ stack: v === stacks[0] ? "" : v })} /> : null}
        {list.live ? <span class="live">live</span> : null}
        <Pick label="count" value={s.weight} of={[["misses", "misses"], ["accesses", "accesses"], ["seen", "observations"]]} onPick={(weight) => set({ weight })} />
        <input id="search" type="search" placeholder="search  /" aria-label="search functions, files and data" value={s.q} onInput={(e) => set({ q: e.currentTarget.value }, true)} />
        <ShareLink />
        {list.pprof && !isFile() ? (
          <a class="outside" href={`pprof/${profile}/`} target="_blank" rel="noopener">
            pprof
          </a>
        ) : null}
      </header>
      <nav class="tabs" aria-label="pages">
        {pages.map(([id, name]) => (
          <a
            key={id}
            href={write({ ...s, page: id })}
            aria-current={id === page[0] ? "page" : undefined}
            onClick={(e) => {
              if (e.ctrlKey || e.metaKey || e.shiftKey) return;
              e.preventDefault();
              set({ page: id });
            }}
          >
            {name}
          </a>
        ))}
        {x && (x.f.tid >= 0 || x.f.object >= 0 || x.f.at) ? (
          <span class="filters">
            only
            {x.f.tid >= 0 ? <button onClick={() => set({ tid: -1 })}>thread {x.f.tid} ×</button> : null}
            {x.f.at ? <button onClick={() => set({ at: "" })}>{rdxFormat.base(x.f.at)} ×</button> : null}
            {x.f.object >= 0 ? <button onClick={() => set({ object: -1 })}>{x.view.dataName(x.f.object)} ×</button> : null}
          </span>
        ) : null}
      </nav>
      {error ? (
        <p class="error" role="alert">
          {error}
        </p>
      ) : null}
      {x ? (
        <>
          <section class="size" aria-label="cache size">
            {page[0] === "overview" || page[0] === "compare" ? null : <CurveChart x={x} height={high ? 190 : 104} />}
            <SizeBar x={x} />
          </section>
          {x.view.early && page[0] === "overview" ? (
            <main id="main" tabIndex={-1} aria-busy="true">
              <Page x={x} />
            </main>
          ) : !x.view.early && (x.view.complete || isFirst(x.view, s)) ? (
            <main id="main" tabIndex={-1} data-page={page[0]} data-number={String(view!.number)} data-profile={view!.d.file}>
              <Page x={x} />
            </main>
          ) : (
            <p class="none">reading …</p>
          )}
        </>
      ) : error ? null : (
        <p class="none">reading …</p>
      )}
    </>
  );
}

// What is wanted first is asked for before anything is drawn.
void ask<Listing>("list").catch(() => undefined);
const profiles = Number(document.getElementById("app")!.dataset.profiles ?? 0);
if (profiles > 0) {
  const s = parse(location.hash);
  const profile = Math.min(Math.max(s.profile, 0), profiles - 1);
  for (const get of [loadFirst, load]) get(profile, s.stack).catch(() => undefined);
}

render(<App />, document.getElementById("app")!);

// For tests that hold both ways to write numbers, and to add them up, together.
Object.assign(globalThis, { rdxFormat });
