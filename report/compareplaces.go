package report

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// covers are the shares of a cache's misses whose places are compared, those of
// Schuff et al. (section 6, Table 2).
var covers = [...]float64{.75, .80, .90, .95}

// A placeScore is how good a choice of places the live profile makes: as many as
// the exact one needs for the share of its misses.
type PlaceScore struct {
	Cache     int64   `json:"cache_bytes"`
	Ratio     float64 `json:"miss_ratio"` // exact, of accesses
	Cover     float64 `json:"cover"`
	NumPlaces int     `json:"places"` // of the exact profile, that make up the share
	All       int     `json:"places_in_all"`
	Match     float64 `json:"weight_matched"` // what those chosen have of the misses of the best
	Chance    float64 `json:"chance"`         // Match of as many observations as the live profile has, drawn from the exact one
}

// draws are how often as many observations are drawn for the mean of what chance leaves.
const draws = 40

// DrawMisses counts by place the misses of n accesses drawn at random from those of which so many miss at each
// place. keys are those of misses, in order.
func DrawMisses(r *rand.Rand, keys []string, misses map[string]float64, accesses float64, n int64) map[string]float64 {
	upTo := make([]float64, len(keys))
	sum := 0.0
	for i, k := range keys {
		sum += misses[k]
		upTo[i] = sum
	}
	drawn := map[string]float64{}
	for range n {
		at := r.Float64() * accesses
		if i, exactly := slices.BinarySearch(upTo, at); i < len(keys) && !exactly {
			drawn[keys[i]]++
		}
	}
	return drawn
}

// matchPlaces compares the places of the misses in each cache, by default those
// of the live profile, which has so many observations.
func matchPlaces(live, exact *model.Profile, observations int64, caches []string) ([]PlaceScore, error) {
	var sizes []int64
	for _, s := range caches {
		size, err := cacheSize(live, s)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size)
	}
	if caches == nil {
		for _, c := range live.Caches {
			sizes = append(sizes, c.Size)
		}
	}
	accesses := 0.0
	for i := range exact.Records {
		accesses += exact.Records[i].Accesses
	}
	key := func(stack []*model.Location) string {
		k, _ := placeKey(stack)
		return k
	}
	var out []PlaceScore
	for _, size := range sizes {
		var weights [2]map[string]float64
		for i, p := range []*model.Profile{live, exact} {
			var err error
			if weights[i], err = model.MissWeights(p, size, key); err != nil {
				return nil, BadInput(fmt.Errorf("--cache: %w", err))
			}
		}
		misses := 0.0
		for _, w := range weights[1] {
			misses += w
		}
		scores := make([]PlaceScore, len(covers))
		for i, share := range covers {
			n := len(model.Cover(weights[1], share))
			scores[i] = PlaceScore{Cache: size, Ratio: misses / accesses, Cover: share, NumPlaces: n, All: len(weights[1]), Match: model.WeightMatch(weights[1], weights[0], n)}
		}
		keys := slices.Sorted(maps.Keys(weights[1]))
		r := rand.New(rand.NewPCG(1, uint64(size))) // the same for the same profiles
		for range draws {
			drawn := DrawMisses(r, keys, weights[1], accesses, observations)
			for i := range scores {
				scores[i].Chance += model.WeightMatch(weights[1], drawn, scores[i].NumPlaces) / draws
			}
		}
		out = append(out, scores...)
	}
	return out, nil
}

func writePlaces(b *strings.Builder, scores []PlaceScore, observations int64) {
	if len(scores) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-32s", "places with this share of misses")
	for _, share := range covers {
		fmt.Fprintf(b, " %7.0f%%", 100*share)
	}
	for i := 0; i < len(scores); i += len(covers) {
		of := scores[i : i+len(covers)]
		fmt.Fprintf(b, "\n%-32s", fmt.Sprintf("  %s, %s of accesses", Bytes(float64(of[0].Cache)), Percent(of[0].Ratio, 1)))
		for _, q := range of {
			fmt.Fprintf(b, " %8d", q.NumPlaces)
		}
		fmt.Fprintf(b, "  of %d places\n%-32s", of[0].All, "  as many, by the live profile")
		for _, q := range of {
			fmt.Fprintf(b, " %8s", Percent(q.Match, 1))
		}
		fmt.Fprintf(b, "  of the best choice's misses\n%-32s", "  by chance")
		for _, q := range of {
			fmt.Fprintf(b, " %8s", Percent(q.Chance, 1))
		}
		fmt.Fprintf(b, "  by %d observations drawn from the exact ones", observations)
	}
	b.WriteByte('\n')
}
