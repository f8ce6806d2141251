// Sums over samples. What depends on the cache size is a step function of each sample, made by
// rdx; here it is only added up.

import type { Data, Place, Steps } from "./data";

export interface Filter {
  tid: number; // -1: all
  object: number; // -1: all
}

export type Weight = "misses" | "accesses" | "seen";

// valueAt is a step function's value at the grid's size number c.
export function valueAt(s: Steps, f: number, c: number): number {
  let sum = 0;
  for (let e = s.from[f], to = s.from[f + 1]; e < to && s.at[e] > c; e++) sum += s.amount[e];
  return sum;
}

// csr lists for each of n groups its members.
export function csr(of: Int32Array, n: number): { from: Int32Array; list: Int32Array } {
  const from = new Int32Array(n + 1);
  for (const g of of) if (g >= 0) from[g + 1]++;
  for (let i = 0; i < n; i++) from[i + 1] += from[i];
  const next = from.slice(0, n);
  const list = new Int32Array(from[n]);
  for (let i = 0; i < of.length; i++) if (of[i] >= 0) list[next[of[i]]++] = i;
  return { from, list };
}

// first are the n of a list with the greatest keys, or the smallest, in order: while a size is dragged there is no
// time to sort all.
export function first(list: Iterable<number>, keys: Float64Array, down: boolean, n: number): number[] {
  const sign = down ? 1 : -1;
  const before = (a: number, b: number): boolean => (keys[a] - keys[b]) * sign > 0 || (keys[a] === keys[b] && a < b);
  const heap: number[] = []; // the last of those kept is on top
  const sink = () => {
    for (let i = 0; ; ) {
      let k = 2 * i + 1;
      if (k >= heap.length) return;
      if (k + 1 < heap.length && before(heap[k], heap[k + 1])) k++;
      if (!before(heap[i], heap[k])) return;
      [heap[i], heap[k]] = [heap[k], heap[i]];
      i = k;
    }
  };
  for (const i of list) {
    if (heap.length < n) {
      heap.push(i);
      for (let k = heap.length - 1; k > 0; ) {
        const up = (k - 1) >> 1;
        if (!before(heap[up], heap[k])) break;
        [heap[up], heap[k]] = [heap[k], heap[up]];
        k = up;
      }
    } else if (before(i, heap[0])) {
      heap[0] = i;
      sink();
    }
  }
  return heap.sort((a, b) => (before(a, b) ? -1 : 1));
}

// positive are the indices of what is more than 0.
export function positive(values: Float64Array): number[] {
  const list: number[] = [];
  for (let i = 0; i < values.length; i++) if (values[i] > 0) list.push(i);
  return list;
}

export interface Medians {
  time: number;
  native: number;
  distance: number; // NaN: none
  below: boolean;
  seen: number;
}

// Tree is call stacks with equal functions under one caller merged.
export interface Tree {
  parent: number[];
  name: number[]; // string
  place: number[]; // one of the places merged
  children: number[][];
  depth: number[];
  of: Int32Array; // of each of Data.nodes
  levels: number;
}

export type Side = "miss" | "use" | "reuse";

// View is a profile with what can be worked out of it once.
export class View {
  readonly d: Data;
  readonly n: number;
  readonly byPair: { from: Int32Array; list: Int32Array };
  readonly where: Int32Array; // the place that each cell's misses happen at
  readonly whereNode: Int32Array;
  private memo = new Map<string, unknown>();

  // It is of the profile of that number on that stack, as they were asked for.
  constructor(d: Data, readonly number: number, readonly onStack: string) {
    this.d = d;
    this.n = d.cells.use.length;
    this.byPair = csr(d.cells.pair, d.pairs.use.length);
    this.where = new Int32Array(this.n);
    this.whereNode = new Int32Array(this.n);
    for (let i = 0; i < this.n; i++) {
      const pair = d.cells.pair[i];
      const reused = d.cells.reuse[i] >= 0 && d.strings[d.pairs.kind[pair]] === "reuse";
      this.where[i] = reused ? d.pairs.reuse[pair] : d.pairs.use[pair];
      this.whereNode[i] = reused ? d.cells.reuse[i] : d.cells.use[i];
    }
  }

  private once<T>(key: string, make: () => T): T {
    if (this.memo.has(key)) return this.memo.get(key) as T;
    // What depends on a size is kept for one only.
    const family = key.slice(0, key.indexOf(" "));
    for (const k of this.memo.keys()) if (k.startsWith(family + " ")) this.memo.delete(k);
    const v = make();
    this.memo.set(key, v);
    return v;
  }

  place(i: number): Place {
    const { strings, places } = this.d;
    return { function: strings[places.function[i]], file: strings[places.file[i]], line: places.line[i] };
  }

  kind(pair: number): string {
    return this.d.strings[this.d.pairs.kind[pair]];
  }

  // endOf is what a pair's end is called.
  endOf(pair: number): Place {
    const r = this.d.pairs.reuse[pair];
    return r < 0 ? { function: "[" + this.kind(pair) + "]", file: "", line: 0 } : this.place(r);
  }

  // keyOf names a pair, in whatever profile.
  keyOf(pair: number): string {
    const name = (p: Place) => `${p.function}\n${p.file}\n${p.line}`;
    return `${this.kind(pair)}\n${name(this.place(this.d.pairs.use[pair]))}\n${name(this.endOf(pair))}`;
  }

  // pairOf is the pair of that name, -1 if there is none.
  pairOf(key: string): number {
    for (let i = 0; i < this.d.pairs.use.length; i++) if (this.keyOf(i) === key) return i;
    return -1;
  }

  // cells are all samples' weights that pass the filter.
  cells(c: number, w: Weight, f: Filter): Float64Array {
    return this.once(`cells ${c} ${w} ${f.tid} ${f.object}`, () => {
      const { cells } = this.d;
      const out = new Float64Array(this.n);
      const { from, at, amount } = cells.misses;
      for (let i = 0; i < this.n; i++) {
        if ((f.tid >= 0 && cells.tid[i] !== f.tid) || (f.object >= 0 && cells.object[i] !== f.object)) continue;
        if (w === "accesses") out[i] = cells.accesses[i];
        else if (w === "seen") out[i] = cells.seen[i];
        else {
          let sum = 0;
          for (let e = from[i], to = from[i + 1]; e < to && at[e] > c; e++) sum += amount[e];
          out[i] = sum;
        }
      }
      return out;
    });
  }

  total(c: number, w: Weight, f: Filter): number {
    return this.once(`total ${c} ${w} ${f.tid} ${f.object}`, () => {
      let sum = 0;
      for (const v of this.cells(c, w, f)) sum += v;
      return sum;
    });
  }

  private grouped(key: string, of: Int32Array, n: number, c: number, w: Weight, f: Filter): Float64Array {
    return this.once(`${key} ${c} ${w} ${f.tid} ${f.object}`, () => {
      const v = this.cells(c, w, f);
      const out = new Float64Array(n);
      for (let i = 0; i < this.n; i++) if (of[i] >= 0) out[of[i]] += v[i];
      return out;
    });
  }

  pairs(c: number, w: Weight, f: Filter): Float64Array {
    return this.grouped("pairs", this.d.cells.pair, this.d.pairs.use.length, c, w, f);
  }

  objects(c: number, w: Weight, f: Filter): Float64Array {
    return this.grouped("objects", this.d.cells.object, this.d.objects.name.length, c, w, f);
  }

  // places are where misses happen.
  places(c: number, w: Weight, f: Filter): Float64Array {
    return this.grouped("places", this.where, this.d.places.function.length, c, w, f);
  }

  // uses are where what is missed was used before.
  uses(c: number, w: Weight, f: Filter): Float64Array {
    const of = this.once("use-places ", () => Int32Array.from(this.d.cells.pair, (p) => this.d.pairs.use[p]));
    return this.grouped("uses", of, this.d.places.function.length, c, w, f);
  }

  // medians of a pair's samples that have any of the weight, as rdx top has them.
  medians(pair: number, c: number, w: Weight, f: Filter): Medians {
    const { cells } = this.d;
    const v = this.cells(c, w, f);
    const list: number[] = [];
    let seen = 0;
    for (let k = this.byPair.from[pair]; k < this.byPair.from[pair + 1]; k++) {
      const i = this.byPair.list[k];
      if (v[i] > 0) {
        list.push(i);
        seen += cells.seen[i];
      }
    }
    const weight = (i: number) => (cells.reuses[i] > 0 ? cells.reuses[i] : cells.accesses[i]);
    const at = (value: (i: number) => number): number => {
      const order = list.slice().sort((a, b) => value(a) - value(b) || a - b);
      let half = 0;
      for (const i of order) half += weight(i) / 2;
      for (const i of order) if ((half -= weight(i)) <= 0) return i;
      return order.length ? order[order.length - 1] : -1;
    };
    const t = at((i) => cells.time[i]);
    if (t < 0) return { time: NaN, native: NaN, distance: NaN, below: false, seen };
    const distance = (i: number) => (Number.isNaN(cells.distance[i]) ? 0 : cells.distance[i]);
    return { time: cells.time[t], native: cells.native[at((i) => cells.native[i])], distance: cells.distance[at(distance)], below: cells.below[t] > 0, seen };
  }

  // band of a sum of misses, per access: model.PerAccess's. Null where there is no chance, or the sum is not all
  // of a group.
  band(sum: number, squares: Steps, group: number, c: number): [number, number] | null {
    const { accesses, holds, exact, count_bands: b } = this.d;
    if (exact || !(accesses > 0) || !(holds > 0) || group + 1 >= squares.from.length) return null;
    if (!(sum > 0)) return [0, b.none / holds];
    const unit = valueAt(squares, group, c) / sum;
    if (!(unit > 0)) return null;
    const k = sum / unit;
    const x = Math.log(k / b.least) / Math.log(b.per_step);
    const i = Math.min(Math.max(Math.floor(x), 0), b.low.length - 2);
    const share = Math.min(Math.max(x - i, 0), 1);
    const low = b.low[i] + share * (b.low[i + 1] - b.low[i]);
    const high = b.high[i] + share * (b.high[i + 1] - b.high[i]);
    return [(low * sum) / accesses, (high * sum) / accesses];
  }

  // tree merges nodes by function.
  tree(): Tree {
    return this.once("tree ", () => {
      const { nodes, places } = this.d;
      const t: Tree = { parent: [-1], name: [places.function[nodes.place[0]]], place: [nodes.place[0]], children: [[]], depth: [0], of: new Int32Array(nodes.parent.length), levels: 1 };
      const found = new Map<number, Map<number, number>>();
      for (let i = 1; i < nodes.parent.length; i++) {
        const parent = t.of[nodes.parent[i]];
        const name = places.function[nodes.place[i]];
        let of = found.get(parent);
        if (!of) found.set(parent, (of = new Map()));
        let at = of.get(name);
        if (at === undefined) {
          at = t.parent.length;
          of.set(name, at);
          t.parent.push(parent);
          t.name.push(name);
          t.place.push(nodes.place[i]);
          t.children.push([]);
          t.children[parent].push(at);
          t.depth.push(t.depth[parent] + 1);
          t.levels = Math.max(t.levels, t.depth[at] + 1);
        }
        t.of[i] = at;
      }
      const by = this.d.strings;
      for (const c of t.children) c.sort((a, b) => (by[t.name[a]] < by[t.name[b]] ? -1 : by[t.name[a]] > by[t.name[b]] ? 1 : a - b));
      return t;
    });
  }

  nodeOf(side: Side): Int32Array {
    return side === "miss" ? this.whereNode : side === "use" ? this.d.cells.use : this.d.cells.reuse;
  }

  // treeSums are the weights of a tree's nodes, all below included; and of each by itself. Pair -1 is all.
  treeSums(side: Side, c: number, w: Weight, f: Filter, pair: number): { total: Float64Array; self: Float64Array } {
    return this.once(`treeSums ${side} ${c} ${w} ${f.tid} ${f.object} ${pair}`, () => {
      const t = this.tree();
      const v = this.cells(c, w, f);
      const self = new Float64Array(t.parent.length);
      const node = this.nodeOf(side);
      for (let i = 0; i < this.n; i++) {
        if (node[i] >= 0 && (pair < 0 || this.d.cells.pair[i] === pair)) self[t.of[node[i]]] += v[i];
      }
      const total = self.slice();
      for (let i = t.parent.length - 1; i > 0; i--) total[t.parent[i]] += total[i];
      return { total, self };
    });
  }

  // below marks the pairs that have a sample whose stack goes through a node of the tree.
  pairsThrough(node: number, side: Side): Uint8Array {
    return this.once(`through ${node} ${side}`, () => {
      const t = this.tree();
      const inside = new Uint8Array(t.parent.length);
      inside[node] = 1;
      for (let i = node + 1; i < t.parent.length; i++) inside[i] |= inside[t.parent[i]];
      const out = new Uint8Array(this.d.pairs.use.length);
      const of = this.nodeOf(side);
      for (let i = 0; i < this.n; i++) if (of[i] >= 0 && inside[t.of[of[i]]]) out[this.d.cells.pair[i]] = 1;
      return out;
    });
  }

  // stack is the places from a node on, leaf first.
  stack(node: number): Place[] {
    const out: Place[] = [];
    for (let i = node; i > 0; i = this.d.nodes.parent[i]) out.push(this.place(this.d.nodes.place[i]));
    return out;
  }

  // heaviest is the pair's sample with most of the weight, -1 if none has any.
  heaviest(pair: number, v: Float64Array): number {
    let best = -1;
    for (let k = this.byPair.from[pair]; k < this.byPair.from[pair + 1]; k++) {
      const i = this.byPair.list[k];
      if (best < 0 || v[i] > v[best]) best = i;
    }
    return best;
  }
}
