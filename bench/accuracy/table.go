package main

import (
	"fmt"
	"slices"
	"strings"
)

func printHead() {
	fmt.Println("| program | block | CPU time | holds | seen | stack l2 | l10 | times l2 | miss error mean / max | pairs | cut off | access rate: live / true | error | l2 at the true rate | own account | beside bare | truth l2 |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
}

func (r result) print() {
	c, s := r.scores, r.scores.Scores
	over := slices.Clone(r.overhead)
	slices.Sort(over)
	overhead := "-"
	if len(over) > 0 {
		overhead = fmt.Sprintf("%+.1f %%", 100*(over[len(over)/2]-1))
	}
	if len(over) > 1 {
		overhead += fmt.Sprintf(" [%+.1f, %+.1f]", 100*(over[0]-1), 100*(over[len(over)-1]-1))
	}
	fmt.Printf("| %s | %s | %.0f s | %d | %d | %.1f | %.1f | %.1f | %.2f / %.1f | %.0f | %.0f %% | %.2f / %.2f | %+.0f %% | %.1f | %s | %s | %.1f |\n",
		r.program, r.block, r.cpu.Seconds(), r.holds, c.Live.Observations, 100*s.StackL2, 100*s.StackL10, 100*s.TimeL2, 100*s.MissMean, 100*s.MissMax, 100*c.Pairs.Match, 100*c.Cut,
		c.Rate.Live, c.Rate.True, 100*c.Rate.Error, 100*c.Rate.AtTrue.StackL2, r.said, overhead, 100*r.drift)
}

// printPlaces prints how good a choice of the places of misses each profile makes: of as many as have the share of the
// exact misses, what those chosen from it have of the best choice's; and the same of as many observations drawn from
// the exact answer.
func printPlaces(all []result) {
	if len(all) == 0 {
		return
	}
	fmt.Println("\n| program, block | cache | accesses that miss it | share of the misses | places | chosen live | by chance |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, r := range all {
		for i := 0; i < len(r.scores.PlaceScores); {
			of := r.scores.PlaceScores[i:]
			n := 1
			for n < len(of) && of[n].Cache == of[0].Cache {
				n++
			}
			of, i = of[:n], i+n
			var cover, found, match, chance []string
			for _, q := range of {
				cover = append(cover, fmt.Sprintf("%.0f", 100*q.Cover))
				found = append(found, fmt.Sprint(q.NumPlaces))
				match = append(match, fmt.Sprintf("%.1f", 100*q.Match))
				chance = append(chance, fmt.Sprintf("%.1f", 100*q.Chance))
			}
			fmt.Printf("| %s, %s (%d observations) | %d KiB | %.2f %% | %s %% | %s of %d | %s %% | %s %% |\n", r.program, r.block, r.scores.Live.Observations,
				of[0].Cache>>10, 100*of[0].Ratio, strings.Join(cover, ", "), strings.Join(found, ", "), of[0].All, strings.Join(match, ", "), strings.Join(chance, ", "))
		}
	}
}

// printMeans prints mean and worst of what has a goal.
func printMeans(all []result, blocks []string) {
	for _, b := range blocks {
		var l2, rate, over []float64
		for _, r := range all {
			if r.block == b {
				l2 = append(l2, 100*r.scores.Scores.StackL2)
				rate = append(rate, max(r.scores.Rate.Error, -r.scores.Rate.Error))
				over = append(over, r.overhead...)
			}
		}
		if len(l2) == 0 {
			continue
		}
		fmt.Printf("\nBy %s: l2 %.1f on average, %.1f at worst; access rate off by %.0f %% on average, %.0f %% at worst",
			strings.TrimSpace(b), mean(l2), slices.Min(l2), 100*mean(rate), 100*slices.Max(rate))
		if len(over) > 0 {
			fmt.Printf("; overhead %+.1f %% at the median", 100*(median(over)-1))
		}
		fmt.Println(".")
	}
}

func mean(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
