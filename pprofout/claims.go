package pprofout

import "slices"

// claims are ranges of sorted addresses, by their indexes, and what they say of them; later
// ones win. They take memory by the number of addresses, however many there are, and time by their number.
type claims[T any] struct {
	addresses int
	all       []claim[T]
}

type claim[T any] struct {
	from, to int
	what     T
	won      []int // the addresses that no later one has
}

func (c *claims[T]) add(from, to int, what T) {
	if from >= to {
		return
	}
	if len(c.all) >= 2*c.addresses+1000 {
		c.all = c.winners() // those that have won nothing by now never will
		slices.Reverse(c.all)
	}
	c.all = append(c.all, claim[T]{from: from, to: to, what: what})
}

// winners are the claims that have won addresses, the last first.
func (c *claims[T]) winners() []claim[T] {
	next := make([]int, c.addresses+1) // of an address, the first from it on that is not taken
	for i := range next {
		next[i] = i
	}
	find := func(i int) int {
		for next[i] != i {
			next[i] = next[next[i]]
			i = next[i]
		}
		return i
	}
	var kept []claim[T]
	for k := len(c.all) - 1; k >= 0; k-- {
		x := c.all[k]
		x.won = nil
		for i := find(x.from); i < x.to; i = find(i) {
			x.won = append(x.won, i)
			next[i] = i + 1
		}
		if len(x.won) > 0 {
			kept = append(kept, x)
		}
	}
	return kept
}
