package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rdx-profiler/rdx/model"
)

func printHead() {
	fmt.Println("Accuracy in octaves, never reused or invalidated first as one more: of distances, with the clock at the best single rate, and of reuse times;")
	fmt.Println("what chance alone leaves of as many observations drawn from the exact distances; what the conversion makes of the exact times by one ssx, and by epochs;")
	fmt.Println("and what a profile makes of as many perfect samples of the recording, 2047 touches of each read ahead.")
	fmt.Printf("%-6s %-8s %9s %20s %9s %9s %9s %9s %9s %16s %16s %13s\n", "", "stack", "distances", "at the best rate", "times", "chance", "one ssx", "epochs", "perfect",
		"never reused", "invalidated", "observations")
}

// score prints one row, and with -bins both histograms.
func score(name string, p *model.Profile, stack model.StackKind, exact *truth) error {
	distances, times, err := histograms(p)
	if err != nil {
		return err
	}
	best, factor := 0.0, 1.0
	for k := -16; k <= 16; k++ {
		f := math.Exp2(float64(k) / 8)
		d, _, err := histograms(p.AtRate(p.Clock.Rate * f))
		if err != nil {
			return err
		}
		if a := octaves(exact.Distances, d); a > best {
			best, factor = a, f
		}
	}
	var x model.SSX
	if err := x.Reset(exact.Times); err != nil {
		return err
	}
	converted := model.NewHist(exact.Times.Bins)
	if err := x.Stacks(converted, exact.Times); err != nil {
		return err
	}
	local, err := exact.byEpochs()
	if err != nil {
		return err
	}
	n := effective(p)
	perfect, err := exact.perfectly(int(n))
	if err != nil {
		return err
	}
	fmt.Printf("%-6s %-8s %8.1f%% %8.1f%% with x %.2f %8.1f%% %8.1f%% %8.1f%% %8.1f%% %8.1f%% %6.2f of %5.2f%% %6.2f of %5.2f%% %13.0f\n", name, stack,
		100*octaves(exact.Distances, distances), 100*best, factor, 100*octaves(exact.Times, times), 100*byChance(exact.Distances, int(n)), 100*octaves(exact.Distances, converted),
		100*octaves(exact.Distances, local), 100*octaves(exact.Distances, perfect),
		share(distances, distances.Cold), share(exact.Distances, exact.Distances.Cold),
		share(distances, distances.Invalidated), share(exact.Distances, exact.Distances.Invalidated), n)
	if *bins {
		printBins("reuse time", times, exact.Times)
		printBins("distance", distances, exact.Distances)
		printBins("perfect", perfect, exact.Distances)
		printBins("by epochs", local, exact.Distances)
	}
	return nil
}

// printAgreement prints how well exact answers agree with each other: a profile cannot
// agree with them better.
func printAgreement(name string, stack model.StackKind, exact []*truth) {
	for i, x := range exact {
		for _, y := range exact[:i] {
			fmt.Printf("%-6s %-8s %8.1f%% of distances and %.1f%% of times are alike in two recordings\n", name, stack,
				100*octaves(x.Distances, y.Distances), 100*octaves(x.Times, y.Times))
		}
	}
}

func histograms(p *model.Profile) (distances, times *model.Hist, err error) {
	if times, err = p.Times(); err != nil {
		return nil, nil, err
	}
	distances, err = p.Stacks(model.LogBins(exactBins))
	return distances, times, err
}

// octaves is the accuracy in bins of an octave. What is never reused and what is
// invalidated count as one: the exact engine calls an access invalidated whose block the
// thread had before, rdx one whose block another thread writes next, though the
// thread itself may never come back to it.
func octaves(a, b *model.Hist) float64 {
	a, b = a.Rebin(model.LogBins(1)), b.Rebin(model.LogBins(1))
	for _, h := range []*model.Hist{a, b} {
		h.Cold, h.Invalidated = h.Cold+h.Invalidated, 0
	}
	v, err := model.Accuracy(a, b)
	if err != nil {
		panic(err) // no histogram here is empty
	}
	return v
}

func share(h *model.Hist, mass float64) float64 { return 100 * mass / h.Total() }

// effective is how many observations of equal weight tell as much as the
// profile's.
func effective(p *model.Profile) float64 {
	var sum, squares float64
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == model.Lost || !(r.Accesses > 0) {
			continue
		}
		sum += r.Accesses
		squares += r.Accesses * r.Accesses / float64(max(r.Observations, 1))
	}
	return sum * sum / squares
}

// byChance is the mean accuracy of n draws from the exact distances.
func byChance(exact *model.Hist, n int) float64 {
	const rounds = 20
	r := rand.New(rand.NewPCG(1, 2))
	all := append([]float64{exact.Cold, exact.Invalidated}, exact.W...)
	sum := 0.0
	for range rounds {
		got := model.NewHist(exact.Bins)
		for range n {
			u, i := r.Float64()*exact.Total(), 0
			for ; i < len(all)-1 && u >= all[i]; i++ {
				u -= all[i]
			}
			switch i {
			case 0:
				got.Cold++
			case 1:
				got.Invalidated++
			default:
				got.W[i-2]++
			}
		}
		sum += octaves(exact, got)
	}
	return sum / rounds
}

func printBins(what string, got, exact *model.Hist) {
	got, exact = got.Rebin(model.LogBins(1)), exact.Rebin(model.LogBins(1))
	fmt.Printf("%22s %8s %8s\n", what, "exact", "live")
	for i := range exact.W {
		if a, b := share(exact, exact.W[i]), share(got, got.W[i]); a > 0 || b > 0 {
			fmt.Printf("%22d %7.2f%% %7.2f%%\n", exact.Bins.Lo(i), a, b)
		}
	}
}
