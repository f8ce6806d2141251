package model

import (
	"fmt"
	"math"
	"math/bits"
)

// maxGrouped bounds the programs Group takes: it looks at every subset.
const maxGrouped = 16

// Grouping says which programs share a cache.
type Grouping struct {
	Groups [][]int // numbers of programs, one entry per cache in use
	Corun  []Corun // by program
	Misses float64 // per unit of time, all programs
}

// Group assigns programs to identical caches of the given number of blocks, at
// most perCache to each, so that the predicted misses of all are least (cache
// conscious task regrouping, Xiang et al., CCGrid 2012). The answer is the
// best one: all groups are tried, for up to 16 programs.
func Group(programs []Corunner, blocks float64, caches, perCache int) (*Grouping, error) {
	n := len(programs)
	if n == 0 || n > maxGrouped {
		return nil, fmt.Errorf("group: %d programs, want 1 to %d", n, maxGrouped)
	}
	if caches < 1 || perCache < 1 || caches < (n+perCache-1)/perCache {
		return nil, fmt.Errorf("group: %d programs do not fit on %d caches with %d each", n, caches, perCache)
	}
	caches = min(caches, n)
	all := 1<<n - 1
	misses := make([]float64, all+1) // of a set of programs in one cache
	for set := 1; set <= all; set++ {
		if bits.OnesCount(uint(set)) > perCache {
			misses[set] = math.Inf(1)
			continue
		}
		shared, members, err := composeSet(programs, set, blocks)
		if err != nil {
			return nil, err
		}
		for k, i := range members {
			misses[set] += programs[i].Rate * shared[k].MissRatio
		}
	}
	// best[g][set] is the fewest misses of the set on g caches, first[g][set]
	// the group on one of them: the one that has the set's lowest program.
	best, first := make([][]float64, caches+1), make([][]int, caches+1)
	for g := range best {
		best[g], first[g] = make([]float64, all+1), make([]int, all+1)
		for set := 1; set <= all; set++ {
			best[g][set] = math.Inf(1)
			if g == 0 {
				continue
			}
			lowest := set & -set
			rest := set ^ lowest
			for sub := rest; ; sub = (sub - 1) & rest {
				group := sub | lowest
				if m := misses[group] + best[g-1][set^group]; m < best[g][set] {
					best[g][set], first[g][set] = m, group
				}
				if sub == 0 {
					break
				}
			}
		}
	}
	out := &Grouping{Corun: make([]Corun, n), Misses: best[caches][all]}
	for g, set := caches, all; set != 0; g-- {
		group := first[g][set]
		shared, members, err := composeSet(programs, group, blocks)
		if err != nil {
			return nil, err
		}
		for k, i := range members {
			out.Corun[i] = shared[k]
		}
		out.Groups = append(out.Groups, members)
		set ^= group
	}
	return out, nil
}

func composeSet(programs []Corunner, set int, blocks float64) (shared []Corun, members []int, err error) {
	var p []Corunner
	for i := range programs {
		if set>>i&1 == 1 {
			p, members = append(p, programs[i]), append(members, i)
		}
	}
	shared, err = Compose(p, blocks)
	return shared, members, err
}
