// What the server, or the file around this script, has: see the package web.

export interface Listing {
  version: number;
  live: boolean;
  pprof: boolean;
  models: string[]; // the one that all numbers are of first
  profiles: { name: string; command: string; start: string; stacks: string[] }[];
}

export interface Steps {
  from: Int32Array;
  at: Int32Array;
  value: Float64Array;
}

export interface Curve {
  ratio: number[];
  low: number[];
  high: number[];
  note: string[]; // why a ratio is not to be quoted
  unknown: boolean[]; // beside its band
}

export interface Place {
  function: string;
  file: string;
  line: number;
}

export interface ThreadRow {
  tid: number;
  threads: number;
  accesses: number;
  observations: number;
  reuse_time_shares: number[];
  not_reused_share: number;
  invalidated_share: number;
  falsely_shared_share: number;
  miss_ratios: number[];
}

export interface Threads {
  reuse_time_edges: number[];
  caches: string[] | null;
  threads_in_all: number;
  threads: ThreadRow[] | null;
  sharing: { writer_tid: number; reader_tid: number; accesses_invalidated: number; accesses_falsely_shared: number }[] | null;
}

export interface Invalidation {
  kind: string;
  writer: Place;
  reader: Place;
  accesses: number;
  share: number;
  observations: number;
  thread_pairs: number;
  data?: string[];
  read_offsets: number[];
  written_offsets: number[];
}

// Touched is how a place, or where place is -1 all that touches a data object, touches memory.
export interface Touched {
  place: number;
  data: string;
  op: string;
  accesses: number;
  fetches: number;
  stride: string;
  step: number;
  kept: number;
  waits: boolean;
  used: number; // bytes of a fetched line
  written: number; // share of fetched lines
  members: string[] | null;
}

// Data is all that pages show of a profile; what is More's comes later than the rest of it.
export interface Data extends Omit<More, "cells"> {
  version: number;
  file: string;
  stack: string;
  stacks: string[] | null;
  rows: { key: string; text: string }[];
  survey: {
    command: string;
    seconds: number;
    source: string;
    caches: { level: string; bytes: number; miss_ratio: number; low: number; high: number; note?: string }[] | null;
    warnings: string[] | null;
    remarks: string[] | null;
    observations: number;
    lost: number;
    losses: Record<string, number>;
  };
  exact: boolean;
  block: number;
  clock_unit: string;
  accesses: number;
  holds: number;
  samples: number;
  merged: number;
  sizes: number[];
  first: number;
  caches: { level: string; bytes: number; at: number }[] | null;
  curve: Curve | null;
  count_bands: { least: number; per_step: number; low: number[]; high: number[]; none: number };
  strings: string[];
  places: { function: Int32Array; file: Int32Array; line: Int32Array };
  cells: {
    pair: Int32Array;
    first: Float64Array; // misses at the size that pages begin with
  } & MoreCells;
  pairs: { use: Int32Array; reuse: Int32Array; kind: Int32Array };
  objects: { name: Int32Array; member: Int32Array; whole: Int32Array };
  source_files: number[] | null;
}

interface MoreCells {
  use: Int32Array;
  reuse: Int32Array;
  object: Int32Array;
  tid: Int32Array;
  epoch: Int32Array;
  op: Int32Array;
  below: Int32Array;
  use_at: Int32Array;
  reuse_at: Int32Array;
  seen: Float64Array;
  accesses: Float64Array;
  reuses: Float64Array;
  time: Float64Array;
  native: Float64Array;
  distance: Float64Array;
  misses: Steps;
}

// More is what the first picture, the overview at the size number first, does without.
interface More {
  cells: MoreCells;
  nodes: { parent: Int32Array; place: Int32Array };
  moments: { node: Int32Array; tid: Int32Array; time: Float64Array };
  touched: Touched[] | null;
  sites: { mapping: string; build_id: string; offset: string; place: number }[] | null;
}

// Rest is what takes rdx longer than all that.
export interface Rest {
  pairs: Steps; // clusters' squares
  objects: Steps;
  wholes: Steps; // empty where no object has parts
  threads: Threads | null;
  invalidations: { true_share: number; false_share: number; pairs_in_all: number; pairs: Invalidation[] | null } | null;
}

interface Band {
  value: number;
  low: number;
  high: number;
}

export interface Change {
  before: Band;
  after: Band;
  change: Band;
  significant: boolean;
}

export interface Diff {
  caches: (Change & { level?: string; bytes: number; note?: string })[] | null;
  by: string;
  pairs_in_all: number;
  pairs: (Change & { use: string; reuse: string; observations: [number, number] })[] | null;
  total: Change;
  notes?: string[]; // why the two may not be comparable
}

export interface Phases {
  bytes: number[];
  windows: {
    file: string;
    start: string;
    seconds: number;
    holds: number;
    accesses_per_second: number;
    miss_ratios: Band[];
    changed: boolean[];
    top_pair: string;
    top_pair_share_of_accesses: Band;
  }[];
}

export interface Instruction {
  offset: string;
  text: string;
  sites: number[];
  file?: string;
  line?: number;
}

// packed are the answers that a file has inside.
let packed: Map<string, string> | null = null;

function inside(): Map<string, string> {
  if (!packed) {
    packed = new Map();
    for (const t of document.querySelectorAll<HTMLTemplateElement>("template.packed")) packed.set(t.dataset.id!, t.content.textContent!);
  }
  return packed;
}

export const isFile = (): boolean => inside().size > 0;

const waiting = new Map<string, Promise<unknown>>();

// ask gets an answer, once.
export function ask<T>(id: string): Promise<T> {
  let p = waiting.get(id);
  if (!p) {
    p = isFile() ? unpack(id) : over(id);
    waiting.set(id, p);
    p.catch(() => waiting.delete(id));
  }
  return p as Promise<T>;
}

// forget makes what was answered be asked for again.
export const forget = (id?: string): void => {
  if (id === undefined) waiting.clear();
  else waiting.delete(id);
};

async function over(url: string): Promise<unknown> {
  const r = await fetch(url);
  if (!r.ok) throw new Error((await r.text()).trim());
  return decode(await r.arrayBuffer());
}

type Json = Record<string, unknown>;

// decode reads an answer: JSON, or JSON with columns behind it, which become typed arrays where they lie.
function decode(b: ArrayBuffer): unknown {
  const text = (from: number, to: number): unknown => JSON.parse(new TextDecoder().decode(new Uint8Array(b, from, to - from)));
  const magic = 0x01786472; // rdx, 1
  if (b.byteLength < 8 || new DataView(b).getUint32(0, true) !== magic) return checked(text(0, b.byteLength));
  let at = 8 + new DataView(b).getUint32(4, true);
  const { value, columns } = text(8, at) as { value: Json; columns: { name: string; kind: string; n: number }[] };
  for (const { name, kind, n } of columns) {
    const c = kind === "f64" ? new Float64Array(b, at, n) : new Int32Array(b, at, n);
    at += (c.byteLength + 7) & ~7;
    const path = name.split(".");
    let into = value;
    for (const k of path.slice(0, -1)) into = into[k] as Json;
    into[path[path.length - 1]] = c;
  }
  return value;
}

function checked(v: unknown): unknown {
  if (v && typeof v === "object" && "error" in v) throw new Error(String(v.error));
  return v;
}

// askWith asks with parameters that may contain anything.
export function askWith<T>(path: string, parameters: Record<string, string>): Promise<T> {
  const id = path + "?" + Object.entries(parameters).map(([k, v]) => `${k}=${v}`).join("&");
  if (isFile()) return ask<T>(id);
  let p = waiting.get(id);
  if (!p) {
    p = over(path + "?" + new URLSearchParams(parameters).toString());
    waiting.set(id, p);
    p.catch(() => waiting.delete(id));
  }
  return p as Promise<T>;
}

async function unpack(id: string): Promise<unknown> {
  const text = inside().get(id);
  if (text === undefined) throw new Error("this file does not have it inside: rdx web shows it");
  const stream = new Blob([raw(text) as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  return decode(await new Response(stream).arrayBuffer());
}

function raw(text: string): Uint8Array {
  const quick = (Uint8Array as unknown as { fromBase64?: (t: string) => Uint8Array }).fromBase64;
  if (quick) return quick.call(Uint8Array, text);
  const s = atob(text);
  const b = new Uint8Array(s.length);
  for (let i = 0; i < s.length; i++) b[i] = s.charCodeAt(i);
  return b;
}

const dataOf = (profile: number, stack: string) => `data?profile=${profile}&stack=${stack}`;

export const load = (profile: number, stack: string): Promise<Data> => ask<Data>(dataOf(profile, stack));

// loadFirst gives what of it is there before the samples: the curve, and what was measured. A file has all at once.
export const loadFirst = (profile: number, stack: string): Promise<Data> => ask<Data>(`first?profile=${profile}&stack=${stack}`);

// loadMore fills in what came without.
export async function loadMore(d: Data, profile: number, stack: string): Promise<void> {
  const { cells, ...others } = await ask<More>(`more?profile=${profile}&stack=${stack}&version=${d.version}`);
  Object.assign(d.cells, cells);
  Object.assign(d, others);
}

export const loadCurve = (profile: number, stack: string, model: string): Promise<Curve> => ask<Curve>(`curve?profile=${profile}&stack=${stack}&model=${model}`);

export const loadRest = (d: Data, profile: number, stack: string): Promise<Rest> => ask<Rest>(`rest?profile=${profile}&stack=${stack}&version=${d.version}`);
