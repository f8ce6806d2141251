// Call stacks as a flame graph, the root on top.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Ctx } from "./ctx";
import { scaled } from "./curve";
import { amount, percent, shorten } from "./format";
import type { Tree } from "./sums";

interface Box {
  node: number;
  x: number;
  w: number;
  y: number;
}

// lay places what is visible: the way to the node in full width, and all below it by weight.
function lay(t: Tree, total: Float64Array, zoom: number, width: number): Box[] {
  const out: Box[] = [];
  const way: number[] = [];
  for (let i = zoom; i >= 0; i = t.parent[i]) way.push(i);
  way.reverse();
  for (const [y, node] of way.entries()) out.push({ node, x: 0, w: width, y });
  const scale = width / (total[zoom] || 1);
  const queue: Box[] = [out[out.length - 1]];
  while (queue.length) {
    const b = queue.pop()!;
    let x = b.x;
    for (const k of t.children[b.node]) {
      const w = total[k] * scale;
      if (w >= 0.4) {
        const q = { node: k, x, w, y: b.y + 1 };
        out.push(q);
        queue.push(q);
      }
      x += w;
    }
  }
  return out;
}

function hue(name: string): number {
  let h = 2166136261;
  for (let i = 0; i < Math.min(name.length, 80); i++) h = Math.imul(h ^ name.charCodeAt(i), 16777619);
  return (h >>> 0) % 1000;
}

export function Flame({ x, tree, total, self, time, label, onPick }: { x: Ctx; tree: Tree; total: Float64Array; self: Float64Array; time: Float64Array | null; label: string; onPick: (node: number) => void }) {
  const [row, letters] = [scaled(19), scaled(12)];
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  const [hover, setHover] = useState<{ node: number; x: number; y: number } | null>(null);
  const [focus, setFocus] = useState(-1);
  const strings = x.view.d.strings;
  const zoom = x.s.node >= 0 && x.s.node < tree.parent.length && total[x.s.node] > 0 ? x.s.node : 0;
  const boxes = useMemo(() => lay(tree, total, zoom, width), [tree, total, zoom, width]);
  const deepest = boxes.reduce((m, b) => Math.max(m, b.y), 0) + 1;
  const height = Math.max(deepest * row + 2, 60);
  const q = x.s.q.toLowerCase();

  useEffect(() => {
    if (!box.current) return;
    const o = new ResizeObserver(() => box.current && setWidth(Math.max(120, box.current.clientWidth)));
    o.observe(box.current);
    return () => o.disconnect();
  }, []);

  useEffect(() => {
    const el = canvas.current;
    const g = el?.getContext("2d");
    if (!el || !g) return;
    const px = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * px), Math.round(height * px)];
    if (el.width !== wide || el.height !== high) {
      [el.width, el.height] = [wide, high];
      el.style.width = width + "px";
      el.style.height = height + "px";
    }
    g.setTransform(px, 0, 0, px, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = `${letters}px system-ui, sans-serif`;
    g.textBaseline = "middle";
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
    const mark = getComputedStyle(document.documentElement).getPropertyValue("--mark").trim();
    for (const b of boxes) {
      const name = strings[tree.name[b.node]];
      const h = hue(name);
      const found = q !== "" && name.toLowerCase().includes(q);
      // Warm colours, as flame graphs have them.
      g.fillStyle = b.node === 0 ? (x.dark ? "#2c3440" : "#dfe4ea") : `hsl(${12 + (h % 42)} ${x.dark ? 48 : 82}% ${x.dark ? 30 + (h % 7) : 74 + (h % 9)}%)`;
      if (q !== "" && !found && b.node !== 0) g.globalAlpha = 0.45;
      g.fillRect(b.x, b.y * row, Math.max(b.w - 1, 0.4), row - 1);
      g.globalAlpha = 1;
      if (found) {
        g.strokeStyle = mark;
        g.lineWidth = 2;
        g.strokeRect(b.x + 1, b.y * row + 1, Math.max(b.w - 3, 1), row - 3);
      }
      if (b.node === focus) {
        g.strokeStyle = ink;
        g.lineWidth = 2;
        g.strokeRect(b.x + 1, b.y * row + 1, Math.max(b.w - 3, 1), row - 3);
      }
      if (b.w > 30) {
        g.fillStyle = ink;
        g.fillText(shorten(name, Math.max(4, Math.floor((b.w - 8) / (0.55 * letters)))), b.x + 4, b.y * row + row / 2, b.w - 6);
      }
    }
  }, [boxes, width, height, row, q, focus, x.dark, tree, strings]);

  const at = (e: MouseEvent): Box | undefined => {
    const r = canvas.current!.getBoundingClientRect();
    const [mx, y] = [e.clientX - r.left, Math.floor((e.clientY - r.top) / row)];
    return boxes.find((b) => b.y === y && mx >= b.x && mx < b.x + b.w);
  };
  const say = (node: number): string => {
    const place = x.view.place(tree.place[node]);
    return `${strings[tree.name[node]]}${place.file ? " " + place.file : ""}: ${amount(total[node])} (${percent(total[node], total[0])}), by itself ${amount(self[node])}${time ? `; ${percent(time[node], time[0])} of the CPU time` : ""}`;
  };
  const key = (e: KeyboardEvent) => {
    const i = boxes.findIndex((b) => b.node === focus);
    const b = boxes[i] ?? boxes[0];
    let next: Box | undefined;
    const level = (y: number) => boxes.filter((q) => q.y === y).sort((p, q) => p.x - q.x);
    switch (e.key) {
      case "ArrowDown":
        next = level(b.y + 1).find((q) => tree.parent[q.node] === b.node) ?? (focus < 0 ? b : undefined);
        break;
      case "ArrowUp":
        next = boxes.find((q) => q.node === tree.parent[b.node]);
        break;
      case "ArrowRight":
      case "ArrowLeft": {
        const same = level(b.y);
        next = same[same.indexOf(b) + (e.key === "ArrowRight" ? 1 : -1)];
        break;
      }
      case "Enter":
      case " ":
        onPick(b.node);
        break;
      case "Escape":
        onPick(-1);
        break;
      default:
        return;
    }
    e.preventDefault();
    if (next) setFocus(next.node);
  };
  return (
    <div class="flame" ref={box}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="flame graph"
        aria-label={`${label}; arrow keys go through frames, Enter shows one by itself, Escape all`}
        aria-describedby="flame-said"
        onMouseMove={(e) => {
          const b = at(e);
          setHover(b ? { node: b.node, x: e.clientX, y: e.clientY } : null);
        }}
        onMouseLeave={() => setHover(null)}
        onClick={(e) => {
          const b = at(e);
          if (b) onPick(b.node === x.s.node || b.node === 0 ? -1 : b.node);
        }}
        onKeyDown={key}
      />
      <p id="flame-said" class="unseen" aria-live="polite">
        {focus >= 0 && focus < tree.parent.length ? say(focus) : ""}
      </p>
      {hover && hover.node < tree.parent.length ? <Tip x={hover.x} y={hover.y} text={say(hover.node)} /> : null}
    </div>
  );
}

// Tip stands beside the pointer.
export function Tip({ x, y, text }: { x: number; y: number; text: string }) {
  const el = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!el.current) return;
    el.current.style.left = Math.min(x + 12, innerWidth - el.current.offsetWidth - 8) + "px";
    el.current.style.top = Math.min(y + 14, innerHeight - el.current.offsetHeight - 8) + "px";
  }, [x, y, text]);
  return (
    <div class="tip" ref={el} aria-hidden="true">
      {text}
    </div>
  );
}
