// Sums over samples. What depends on the cache size is a step function of each sample, made by
// rdx; here their values are only added up.

import type { Data, Place, Rest, Steps } from "./data";

export interface Filter {
  tid: number; // -1: all
  object: number; // -1: all
  at?: string; // pairs with an end at that line of source, file:number
}

const keyOf = (f: Filter): string => `${f.tid} ${f.object} ${f.at ?? ""}`;

export type Weight = "misses" | "accesses" | "seen";

// valueAt is a step function's value at the grid's size number c.
export function valueAt(s: Steps, f: number, c: number): number {
  let v = 0;
  for (let e = s.from[f], to = s.from[f + 1]; e < to && s.at[e] > c; e++) v = s.value[e];
  return v;
}

export interface Groups {
  from: Int32Array;
  list: Int32Array;
}

// csr lists for each of n groups its members.
export function csr(of: Int32Array, n: number): Groups {
  const from = new Int32Array(n + 1);
  for (let i = 0; i < of.length; i++) if (of[i] >= 0) from[of[i] + 1]++;
  for (let i = 0; i < n; i++) from[i + 1] += from[i];
  const next = from.slice(0, n);
  const list = new Int32Array(from[n]);
  for (let i = 0; i < of.length; i++) if (of[i] >= 0) list[next[of[i]]++] = i;
  return { from, list };
}

// addUp adds to each group what its members have.
function addUp(of: Int32Array, v: Float64Array, out: Float64Array): Float64Array {
  for (let i = 0; i < of.length; i++) if (of[i] >= 0) out[of[i]] += v[i];
  return out;
}

// first are the n of a list with the greatest keys, or the smallest, in order: while a size is dragged there is no
// time to sort all.
export function first(list: ArrayLike<number>, keys: Float64Array, down: boolean, n: number): number[] {
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
  for (let at = 0; at < list.length; at++) {
    const i = list[at];
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

// positive are the indices of what is more than 0, in a list that has room for all.
export function positive(values: Float64Array, list = new Int32Array(values.length)): Int32Array {
  let n = 0;
  for (let i = 0; i < values.length; i++) if (values[i] > 0) list[n++] = i;
  return list.subarray(0, n);
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

// sumsBelow adds to each node what all below it have.
function sumsBelow(t: Tree, v: Float64Array): Float64Array {
  const { parent } = t;
  for (let i = parent.length - 1; i > 0; i--) v[parent[i]] += v[i];
  return v;
}

export type Side = "miss" | "use" | "reuse";

// View is a profile with what can be worked out of it once.
export class View {
  readonly d: Data;
  readonly n: number;
  readonly where: Int32Array; // the place that each cell's misses happen at
  early = false; // nothing is known of samples yet
  complete = false; // as soon as loadMore has been
  rest: Rest | null = null; // until it is there
  private memo = new Map<string, unknown>();
  private rooms = new Map<string, [ArrayBuffer, ArrayBuffer]>();
  private ofPairs: Groups | null = null;
  private wholeOf: Int32Array | null = null;
  private readonly reuse: number; // string
  private now: Float64Array; // misses of all samples at the size number nowAt
  private nowAt = -1;

  // It is of the profile of that number on that stack, as they were asked for.
  constructor(d: Data, readonly number: number, readonly onStack: string) {
    this.d = d;
    this.n = d.cells.pair.length;
    this.now = new Float64Array(this.n);
    this.where = new Int32Array(this.n);
    this.reuse = d.strings.indexOf("reuse");
    const { pair } = d.cells;
    const { use, reuse } = d.pairs;
    for (let i = 0; i < this.n; i++) this.where[i] = this.reused(pair[i]) ? reuse[pair[i]] : use[pair[i]];
  }

  // reused says whether a pair's end is a reuse, which is where it misses; else it is where it is used.
  private reused(pair: number): boolean {
    return this.d.pairs.kind[pair] === this.reuse;
  }

  // whole are the objects that each cell's is a part of.
  get whole(): Int32Array {
    return (this.wholeOf ??= this.d.cells.object.map((o) => this.d.objects.whole[o]));
  }

  // byPair are the samples of each pair.
  get byPair(): Groups {
    return (this.ofPairs ??= csr(this.d.cells.pair, this.d.pairs.use.length));
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

  // room is an array of zeros for a sum. Two of each family take turns, so that dragging needs no new memory: what was asked for
  // before the last is overwritten. Each is an object of its own, by which useMemo sees that it is another.
  private room(family: string, n: number): Float64Array {
    let two = this.rooms.get(family);
    if (!two) this.rooms.set(family, (two = [new ArrayBuffer(8 * n), new ArrayBuffer(8 * n)]));
    two.reverse();
    return new Float64Array(two[0]).fill(0);
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

  // pairsAt marks the pairs that have an end at a line of source.
  pairsAt(at: string): Uint8Array {
    return this.once(`at ${at}`, () => {
      const { places, pairs, strings } = this.d;
      const file = strings.indexOf(at.slice(0, at.lastIndexOf(":")));
      const line = Number(at.slice(at.lastIndexOf(":") + 1));
      const is = (place: number) => place >= 0 && places.file[place] === file && places.line[place] === line;
      return Uint8Array.from(pairs.use, (use, i) => (is(use) || is(pairs.reuse[i]) ? 1 : 0));
    });
  }

  // isOf says whether a sample is of a data object, or of a part of it.
  isOf(cell: number, object: number): boolean {
    return this.d.cells.object[cell] === object || this.whole[cell] === object;
  }

  // dataName is a data object's name, with its part as rdx top --by data has it.
  dataName(object: number): string {
    const { objects, strings } = this.d;
    const member = strings[objects.member[object]];
    return (strings[objects.name[object]] || "(no name)") + (member ? ": " + member : "");
  }

  // cells are all samples' weights that pass the filter.
  cells(c: number, w: Weight, f: Filter): Float64Array {
    return this.once(`cells ${c} ${w} ${keyOf(f)}`, () => {
      const { cells } = this.d;
      const { tid } = cells;
      const out = this.room("cells", this.n);
      out.set(w === "misses" ? this.missesAt(c) : w === "accesses" ? cells.accesses : cells.seen);
      if (f.tid >= 0) for (let i = 0; i < this.n; i++) if (tid[i] !== f.tid) out[i] = 0;
      if (f.object >= 0) for (let i = 0; i < this.n; i++) if (!this.isOf(i, f.object)) out[i] = 0;
      if (f.at) {
        const at = this.pairsAt(f.at);
        for (let i = 0; i < this.n; i++) if (!at[cells.pair[i]]) out[i] = 0;
      }
      return out;
    });
  }

  // missesAt are the misses of all samples. From one size to another only those change that have a step between: while a size
  // is dragged these are few. Nothing is added up on the way: each has the value that it has at the size.
  private missesAt(c: number): Float64Array {
    const v = this.now;
    if (this.nowAt < 0) {
      v.set(this.d.cells.first);
      this.nowAt = this.d.first;
    }
    if (c === this.nowAt) return v;
    const { from, at, value } = this.d.cells.misses;
    const { steps, cell } = this.once("steps ", () => {
      const cell = new Int32Array(at.length);
      for (let i = 0; i < this.n; i++) cell.fill(i, from[i], from[i + 1]);
      return { steps: csr(at, this.d.sizes.length + 1), cell };
    });
    // Beginning with size at[e] step e is over; before it begins where the one after it is over.
    for (; this.nowAt < c; this.nowAt++) {
      for (let k = steps.from[this.nowAt + 1]; k < steps.from[this.nowAt + 2]; k++) {
        const e = steps.list[k];
        v[cell[e]] = e > from[cell[e]] ? value[e - 1] : 0;
      }
    }
    for (; this.nowAt > c; this.nowAt--) {
      for (let k = steps.from[this.nowAt]; k < steps.from[this.nowAt + 1]; k++) {
        const e = steps.list[k];
        v[cell[e]] = value[e];
      }
    }
    return v;
  }

  total(c: number, w: Weight, f: Filter): number {
    return this.once(`total ${c} ${w} ${keyOf(f)}`, () => {
      const v = this.cells(c, w, f);
      let sum = 0;
      for (let i = 0; i < v.length; i++) sum += v[i];
      return sum;
    });
  }

  private grouped(key: string, of: Int32Array, n: number, c: number, w: Weight, f: Filter): Float64Array {
    return this.once(`${key} ${c} ${w} ${keyOf(f)}`, () => {
      return addUp(of, this.cells(c, w, f), this.room(key, n));
    });
  }

  pairs(c: number, w: Weight, f: Filter): Float64Array {
    return this.grouped("pairs", this.d.cells.pair, this.d.pairs.use.length, c, w, f);
  }

  objects(c: number, w: Weight, f: Filter): Float64Array {
    return this.grouped("objects", this.d.cells.object, this.d.objects.name.length, c, w, f);
  }

  // wholes are data objects with all their parts.
  wholes(c: number, w: Weight, f: Filter): Float64Array {
    return this.grouped("wholes", this.whole, this.d.objects.name.length, c, w, f);
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
  band(sum: number, squares: Steps | undefined, group: number, c: number): [number, number] | null {
    const { accesses, holds, exact, count_bands: b } = this.d;
    if (exact || !squares || !(accesses > 0) || !(holds > 0) || group + 1 >= squares.from.length) return null;
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
    const { use, reuse, pair } = this.d.cells;
    if (side !== "miss") return side === "use" ? use : reuse;
    return this.once("whereNode ", () => pair.map((p, i) => (this.reused(p) ? reuse[i] : use[i])));
  }

  // treeNodes are the samples' nodes of the tree.
  private treeNodes(side: Side): Int32Array {
    return this.once(`treeNodes ${side}`, () => {
      const { of } = this.tree();
      return this.nodeOf(side).map((n) => (n < 0 ? -1 : of[n]));
    });
  }

  // treeSums are the weights of a tree's nodes, all below included; and of each by itself. Pair -1 is all.
  treeSums(side: Side, c: number, w: Weight, f: Filter, pair: number): { total: Float64Array; self: Float64Array } {
    return this.once(`treeSums ${side} ${c} ${w} ${keyOf(f)} ${pair}`, () => {
      const t = this.tree();
      const v = this.cells(c, w, f);
      const self = this.room("self", t.parent.length);
      const total = this.room("total", t.parent.length);
      const of = this.treeNodes(side);
      if (pair < 0) addUp(of, v, self);
      else for (let k = this.byPair.from[pair], to = this.byPair.from[pair + 1]; k < to; k++) {
        const i = this.byPair.list[k];
        if (of[i] >= 0) self[of[i]] += v[i];
      }
      total.set(self);
      return { total: sumsBelow(t, total), self };
    });
  }

  // treeTimes are the CPU time of a tree's nodes, all below included, as sampled: null where it was not.
  treeTimes(tid: number): Float64Array | null {
    const { node, tid: of, time } = this.d.moments;
    if (node.length === 0) return null;
    return this.once(`treeTimes ${tid}`, () => {
      const t = this.tree();
      const total = new Float64Array(t.parent.length);
      for (let i = 0; i < node.length; i++) if (tid < 0 || of[i] === tid) total[t.of[node[i]]] += time[i];
      return sumsBelow(t, total);
    });
  }

  // under marks the samples whose stack goes through a node of the tree.
  under(node: number, side: Side): Uint8Array {
    return this.once(`under ${node} ${side}`, () => {
      const t = this.tree();
      const inside = new Uint8Array(t.parent.length);
      inside[node] = 1;
      for (let i = node + 1; i < t.parent.length; i++) inside[i] |= inside[t.parent[i]];
      return Uint8Array.from(this.nodeOf(side), (n) => (n >= 0 ? inside[t.of[n]] : 0));
    });
  }

  // pairsThrough marks the pairs that have a sample whose stack goes through a node of the tree.
  pairsThrough(node: number, side: Side): Uint8Array {
    return this.once(`through ${node} ${side}`, () => {
      const under = this.under(node, side);
      const out = new Uint8Array(this.d.pairs.use.length);
      for (let i = 0; i < this.n; i++) if (under[i]) out[this.d.cells.pair[i]] = 1;
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
