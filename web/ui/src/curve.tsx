// The miss ratio curve, with a line at the cache size that all else follows.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Ctx } from "./ctx";
import { colours, dashes, type Overlay } from "./beside";
import type { Curve } from "./data";
import { bytes, parseSize, percent } from "./format";
import type { View } from "./sums";

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// scaled is a length as it is where the root's letters have their usual 13 pixels.
export const scaled = (px: number): number => Math.round((px * (parseFloat(getComputedStyle(document.documentElement).fontSize) || 13)) / 13);

// said is a point of a curve in the words of rdx mrc.
export function said(curve: Curve | null, c: number): string {
  if (!curve) return "nothing was observed";
  const [ratio, low, high, note] = [curve.ratio[c], curve.low[c], curve.high[c], curve.note[c]];
  if (low === high) return percent(ratio, 1);
  const band = `[${percent(low, 1)}, ${percent(high, 1)}]`;
  if (!note) return `${percent(ratio, 1)} ${band}`;
  if (curve.unknown[c]) return `? ${band}`;
  return `<${percent(high, 1).replace("<", "")} ${band}`;
}

// sizeName is a size, with the caches that have it.
export function sizeName(v: View, c: number): string {
  const levels = (v.d.caches ?? []).filter((x) => x.at === c).map((x) => x.level);
  return bytes(v.d.sizes[c]) + (levels.length ? ` (${levels.join(", ")})` : "");
}

export const nearest = (sizes: number[], size: number): number => {
  let best = 0;
  for (let i = 1; i < sizes.length; i++) if (Math.abs(Math.log(sizes[i] / size)) < Math.abs(Math.log(sizes[best] / size))) best = i;
  return best;
};

const percents = (v: number): string => (v === 0 ? "0" : (100 * v).toFixed(v < 0.01 ? 2 : v < 0.1 ? 1 : 0) + "%");

// at finds a curve's values on the sizes of another grid; what it has no point for is left out.
function at(o: Overlay, sizes: number[], of: (c: Curve) => number[]): (number | null)[] {
  const own = new Map(o.sizes.map((s, i) => [s, i]));
  return sizes.map((s) => {
    const i = own.get(s);
    return i === undefined ? null : of(o.curve)[i];
  });
}

// drawLine draws the line at the size into a copy of the chart.
export function drawLine(g: CanvasRenderingContext2D, chart: HTMLCanvasElement): void {
  const line = document.querySelector(".curve .at-size")?.getBoundingClientRect();
  const dot = document.querySelector(".curve .at-size div")?.getBoundingClientRect();
  if (!line || !dot) return;
  const px = devicePixelRatio;
  const from = chart.getBoundingClientRect();
  const [left, middle] = [(line.left + line.width / 2 - from.left) * px, (dot.top + dot.height / 2 - from.top) * px];
  g.strokeStyle = g.fillStyle = colour("--ink");
  g.lineWidth = 2 * px;
  g.beginPath();
  g.moveTo(left, (line.top - from.top) * px);
  g.lineTo(left, (line.bottom - from.top) * px);
  g.stroke();
  for (const [radius, fill] of [[5, "--ink"], [2.5, "--paper"]] as const) {
    g.fillStyle = colour(fill);
    g.beginPath();
    g.arc(left, middle, radius * px, 0, 7);
    g.fill();
  }
}

export function CurveChart({ x, height }: { x: Ctx; height: number }) {
  const box = useRef<HTMLDivElement>(null);
  const place = useRef<(() => void) | null>(null);
  const now = useRef(x);
  now.current = x;
  const { view, beside, c, dark } = x;
  const d = view.d;

  useEffect(() => {
    if (!box.current || !d.curve) return;
    const grid = colour("--rule");
    const soft = colour("--soft");
    const one = colour("--one");
    const letters = scaled(11);
    const font = `${letters}px system-ui, sans-serif`;
    const sizes = d.sizes;
    const data: uPlot.AlignedData = [sizes, d.curve.high, d.curve.low, d.curve.ratio.map((r, i) => (d.curve!.note[i] ? null : r)), d.curve.ratio.map((r, i) => (d.curve!.note[i] || d.curve!.note[i - 1] || d.curve!.note[i + 1] ? r : null))];
    const series: uPlot.Series[] = [
      {},
      { stroke: "transparent", points: { show: false } },
      { stroke: "transparent", points: { show: false } },
      { stroke: one, width: 2, points: { show: false } },
      { stroke: one, width: 1.5, dash: [2, 4], points: { show: false } },
    ];
    const bands: uPlot.Band[] = [{ series: [1, 2], fill: one + "30" }];
    for (const [k, o] of beside.entries()) {
      const own = colour(colours[k]);
      data.push(at(o, sizes, (q) => q.high) as number[], at(o, sizes, (q) => q.low) as number[], at(o, sizes, (q) => q.ratio) as number[]);
      const unseen = { stroke: "transparent", points: { show: false }, spanGaps: true };
      series.push(unseen, unseen, { stroke: own, width: 2, dash: dashes[k], points: { show: false }, spanGaps: true });
      // More than two bands beside its own would hide each other.
      if (beside.length <= 2) bands.push({ series: [series.length - 3, series.length - 2], fill: own + "28" });
    }
    const splits = (u: uPlot): number[] => {
      const out: number[] = [];
      const room = u.bbox.width / devicePixelRatio / scaled(62);
      const first = Math.ceil(Math.log2(sizes[0]));
      const last = Math.floor(Math.log2(sizes[sizes.length - 1]));
      const step = Math.max(1, Math.ceil((last - first) / room));
      for (let k = first; k <= last; k += step) out.push(2 ** k);
      return out;
    };
    const draw = (u: uPlot) => {
      const g = u.ctx;
      const px = devicePixelRatio;
      g.save();
      g.font = `${letters * px}px system-ui, sans-serif`;
      g.textAlign = "center";
      let free = -Infinity;
      for (const cache of d.caches ?? []) {
        if (cache.at < 0) continue;
        const left = Math.round(u.valToPos(sizes[cache.at], "x", true));
        g.strokeStyle = soft;
        g.setLineDash([4 * px, 4 * px]);
        g.lineWidth = px;
        g.beginPath();
        g.moveTo(left, u.bbox.top);
        g.lineTo(left, u.bbox.top + u.bbox.height);
        g.stroke();
        const wide = g.measureText(cache.level).width;
        if (left - wide / 2 > free) {
          g.fillStyle = soft;
          g.fillText(cache.level, left, u.bbox.top - 5 * px);
          free = left + wide / 2 + 4 * px;
        }
      }
      g.restore();
    };
    const u = new uPlot(
      {
        width: box.current.clientWidth,
        height,
        padding: [scaled(18), scaled(22), 0, 0],
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { show: false }, x: false, y: false },
        scales: { x: { time: false, distr: 3, log: 2, range: [sizes[0], sizes[sizes.length - 1]] }, y: { range: (_u, _min, max) => [0, Math.min(1.02, Math.max(max * 1.05, 0.001))] } },
        axes: [
          { stroke: soft, font, size: scaled(26), gap: 3, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, splits, values: (_u, s) => s.map((v) => (v === null ? "" : bytes(v).replace(/\.0+(?=[KMGT]|B)/, ""))) },
          { stroke: soft, font, size: scaled(46), grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, values: (_u, s) => s.map((v) => percents(v)) },
        ],
        series,
        bands,
        hooks: { draw: [draw, () => place.current?.()] },
      },
      data,
      box.current,
    );
    // The line is an element of its own: where it moves, nothing of the chart is drawn again.
    const line = document.createElement("div");
    line.className = "at-size";
    const dot = line.appendChild(document.createElement("div"));
    const put = () => {
      const at = now.current.c;
      line.style.transform = `translateX(${Math.round(u.valToPos(sizes[at], "x"))}px)`;
      dot.style.transform = `translateY(${u.valToPos(d.curve!.ratio[at], "y")}px)`;
    };
    u.over.appendChild(line);
    place.current = put;
    let dragging = false;
    let frame = 0;
    let left = 0;
    const go = () => {
      frame = 0;
      const size = u.posToVal(left, "x");
      const i = nearest(sizes, Math.min(Math.max(size, sizes[0]), sizes[sizes.length - 1]));
      if (i !== now.current.c) now.current.set({ size: sizes[i] }, true);
    };
    const move = (e: PointerEvent) => {
      if (!dragging) return;
      left = e.clientX - u.over.getBoundingClientRect().left;
      if (!frame) frame = requestAnimationFrame(go);
    };
    const down = (e: PointerEvent) => {
      dragging = true;
      u.over.setPointerCapture(e.pointerId);
      move(e);
    };
    const up = () => (dragging = false);
    u.over.addEventListener("pointerdown", down);
    u.over.addEventListener("pointermove", move);
    u.over.addEventListener("pointerup", up);
    u.over.addEventListener("pointercancel", up);
    const sized = new ResizeObserver(() => box.current && box.current.clientWidth > 0 && u.setSize({ width: box.current.clientWidth, height }));
    sized.observe(box.current);
    return () => {
      sized.disconnect();
      cancelAnimationFrame(frame);
      u.destroy();
      place.current = null;
    };
  }, [view, beside, height, dark]);

  useLayoutEffect(() => place.current?.(), [c]);
  if (!d.curve) return <p class="none">Nothing was observed: there is no curve to draw.</p>;
  return <div class="curve" ref={box} role="img" aria-label={`miss ratio curve from ${bytes(d.sizes[0])} to ${bytes(d.sizes[d.sizes.length - 1])}; at ${sizeName(view, c)}: ${said(d.curve, c)}`} />;
}

// SizeBar chooses the size: by name, by slider, by number.
export function SizeBar({ x }: { x: Ctx }) {
  const { view, c, set } = x;
  const d = view.d;
  const to = (i: number, replace = false) => set({ size: d.sizes[Math.min(Math.max(i, 0), d.sizes.length - 1)] }, replace);
  return (
    <div class="sizebar">
      <span class="at" data-test="size">
        <b>{sizeName(view, c)}</b>
      </span>
      <span class="ratio" data-test="ratio" aria-live="polite">
        miss ratio <b>{said(d.curve, c)}</b>
        {d.curve?.note[c] ? <span class="note"> {d.curve.note[c]}</span> : null}
      </span>
      <input
        type="range"
        min={0}
        max={d.sizes.length - 1}
        step={1}
        value={c}
        aria-label="cache size"
        aria-valuetext={`${sizeName(view, c)}, miss ratio ${said(d.curve, c)}`}
        onInput={(e) => to(Number(e.currentTarget.value), true)}
      />
      <span class="levels" role="group" aria-label="caches of the machine">
        {(d.caches ?? []).map((k) =>
          k.at < 0 ? null : (
            <button key={k.level} aria-pressed={k.at === c} title={bytes(k.bytes)} onClick={() => to(k.at)}>
              {k.level}
            </button>
          ),
        )}
      </span>
      <input
        class="typed"
        aria-label="cache size, such as 1m"
        placeholder="1m"
        size={6}
        onChange={(e) => {
          const size = parseSize(e.currentTarget.value);
          if (size) to(nearest(d.sizes, size));
          e.currentTarget.value = "";
        }}
      />
    </div>
  );
}
