// The state of the pages, which is all in the URL: a link shows the same view.

export interface State {
  page: string;
  profile: number;
  other: number; // to compare with; -1: none
  stack: string;
  beside: string; // whose curves are drawn beside: stacks, models and numbers of profiles, with commas
  size: number; // bytes; 0: the profile's
  weight: "misses" | "accesses" | "seen";
  side: "miss" | "use" | "reuse";
  pair: number;
  node: number;
  file: string;
  at: string; // a line of source, file:number, whose pairs alone are shown
  tid: number;
  object: number;
  q: string;
  sort: string;
  view: string; // of contexts
}

export const initial: State = {
  page: "overview",
  profile: 0,
  other: -1,
  stack: "",
  beside: "",
  size: 0,
  weight: "misses",
  side: "miss",
  pair: -1,
  node: -1,
  file: "",
  at: "",
  tid: -1,
  object: -1,
  q: "",
  sort: "",
  view: "flame",
};

export function parse(hash: string): State {
  const s: Record<string, string | number> = { ...initial } as unknown as Record<string, string | number>;
  for (const [k, v] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (!(k in initial)) continue;
    if (typeof s[k] === "number") {
      const n = Number(v);
      if (Number.isFinite(n)) s[k] = Math.trunc(n);
    } else s[k] = v.slice(0, 4000);
  }
  const t = s as unknown as State;
  if (!["misses", "accesses", "seen"].includes(t.weight)) t.weight = "misses";
  if (!["miss", "use", "reuse"].includes(t.side)) t.side = "miss";
  return t;
}

export function write(s: State): string {
  const q = new URLSearchParams();
  for (const k of Object.keys(initial) as (keyof State)[]) if (s[k] !== initial[k]) q.set(k, String(s[k]));
  return "#" + q.toString();
}
