// Curves that are drawn beside the profile's: of other profiles, of its other stacks, by other models.

import { useEffect, useState } from "preact/hooks";
import type { Ctx } from "./ctx";
import { type Curve, type Data, type Listing, load, loadCurve } from "./data";
import type { State } from "./state";

export interface Overlay {
  key: string;
  name: string;
  sizes: number[];
  block: number; // bytes
  curve: Curve;
}

// What there is room for. Each has a colour and a dash of its own.
const most = 6;

export const dashes: number[][] = [[8, 4], [12, 3, 2, 3], [5, 2], [16, 5], [2, 2], [10, 3, 2, 3, 2, 3]];

export const colours = ["--two", "--three", "--four", "--five", "--six", "--seven"];

const listOf = (s: State): string[] => s.beside.split(",").filter(Boolean);

const ofData = (key: string, d: Data): Overlay | null => (d.curve ? { key, name: d.file + (d.stack && d.stack !== "own" ? `, ${d.stack} stack` : ""), sizes: d.sizes, block: d.block, curve: d.curve } : null);

// useBeside has the curves that the state asks for, as they come.
export function useBeside(list: Listing | null, profile: number, s: State): Overlay[] {
  const stacks = list && profile >= 0 ? list.profiles[profile].stacks : [];
  const keys = [...new Set([...(s.other >= 0 ? [String(s.other)] : []), ...listOf(s)])].filter((k) => (/^[0-9]+$/.test(k) ? Number(k) !== profile && Number(k) < (list?.profiles.length ?? 0) : stacks.includes(k) ? k !== (s.stack || stacks[0]) : list?.models.slice(1).includes(k))).slice(0, most);
  const [all, setAll] = useState<Overlay[]>([]);
  useEffect(() => {
    let gone = false;
    setAll([]);
    const get = async (k: string): Promise<Overlay | null> => {
      if (/^[0-9]+$/.test(k)) return ofData(k, await load(Number(k), ""));
      if (stacks.includes(k)) return ofData(k, await load(profile, k));
      const [d, curve] = await Promise.all([load(profile, s.stack), loadCurve(profile, s.stack, k)]);
      return { key: k, name: `model ${k}`, sizes: d.sizes, block: d.block, curve };
    };
    if (keys.length) void Promise.all(keys.map((k) => get(k).catch(() => null))).then((found) => !gone && setAll(found.filter((o): o is Overlay => o !== null)));
    return () => {
      gone = true;
    };
  }, [list, profile, s.stack, keys.join()]);
  return all;
}

// BesideBar chooses them.
export function BesideBar({ x }: { x: Ctx }) {
  const { list, s, view } = x;
  const { stacks } = list.profiles[s.profile];
  const chosen = listOf(s);
  const toggle = (k: string) => x.set({ beside: (chosen.includes(k) ? chosen.filter((q) => q !== k) : [...chosen, k]).join() });
  const profiles = list.profiles.map((p, i): [string, string] => [String(i), p.name]).filter(([k]) => Number(k) !== s.profile && Number(k) !== s.other);
  const group = (title: string, of: [string, string][]) =>
    of.length ? (
      <span role="group" aria-label={`draw ${title} beside`}>
        {title}{" "}
        {of.map(([k, name]) => (
          <button key={k} aria-pressed={chosen.includes(k)} disabled={!chosen.includes(k) && chosen.length >= most} onClick={() => toggle(k)}>
            {name}
          </button>
        ))}
      </span>
    ) : null;
  const groups = [
    profiles.length > 8 ? null : group("profiles", profiles),
    group("stack", stacks.filter((k) => stacks.length > 1 && k !== (s.stack || stacks[0])).map((k) => [k, k])),
    // What was counted is not converted.
    view.d.exact ? null : group("models", list.models.slice(1).map((k) => [k, k])),
  ];
  if (groups.every((g) => g === null) && profiles.length <= 8) return null;
  return (
    <div class="besides">
      beside:
      {profiles.length > 8 ? (
        <select aria-label="draw a profile beside" value="" onChange={(e) => e.currentTarget.value && toggle(e.currentTarget.value)}>
          <option value="">profile</option>
          {profiles.map(([k, name]) => (
            <option key={k} value={k}>
              {chosen.includes(k) ? "− " : "+ "}
              {name}
            </option>
          ))}
        </select>
      ) : null}
      {groups}
    </div>
  );
}
