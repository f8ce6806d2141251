import type { Overlay } from "./beside";
import type { Listing } from "./data";
import type { State } from "./state";
import type { Filter, View } from "./sums";

// Ctx is what every part of a page needs.
export interface Ctx {
  list: Listing;
  view: View;
  beside: Overlay[];
  s: State;
  set: (change: Partial<State>, replace?: boolean) => void;
  moving: boolean; // the size is being dragged
  c: number; // index in the grid
  f: Filter;
  dark: boolean;
}
