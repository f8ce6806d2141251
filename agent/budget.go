package agent

import "time"

// Budget is the account of what sampling costs the machine: time in which threads are held,
// CPU time of sessions and of the agent. It says how many sessions a period can have.
type Budget struct {
	Share float64 // of the machine's CPU time
	CPUs  int
	Most  int // sessions at once

	periods        int           // that were allowed
	allowed, spent time.Duration // since the start
	perSession     time.Duration // what one is taken to cost
	agentCost      time.Duration // the agent itself, in a period
}

const (
	// firstSession is assumed of a session until some have been seen: its start and its symbols.
	firstSession = 700 * time.Millisecond
	// Of what was not spent, or too much, so many periods' budget is remembered.
	mostSaved, mostOwed = 5, 10
	// repaidIn so many periods is what the first has: it has not gone by when it is spent.
	repaidIn = 8
)

// Allow adds the budget of a period that begins, and says how much that is: the first's is lent.
func (b *Budget) Allow(period time.Duration) (more time.Duration) {
	all := time.Duration(b.Share * float64(b.CPUs) * float64(period))
	if more = all; 0 < b.periods && b.periods <= repaidIn {
		more -= all / repaidIn
	}
	b.periods++
	b.allowed += more
	if left := b.allowed - b.spent; left > (1+mostSaved)*all {
		b.allowed = b.spent + (1+mostSaved)*all
	} else if left < -mostOwed*all {
		b.allowed = b.spent - mostOwed*all
	}
	return more
}

// Session books one that has ended.
func (b *Budget) Session(cost time.Duration) {
	b.spent += cost
	if b.perSession == 0 {
		b.perSession = firstSession
	}
	b.perSession += (cost - b.perSession) / 8
}

// Agent books the agent's own CPU time in a period.
func (b *Budget) Agent(cost time.Duration) {
	b.spent += cost
	b.agentCost += (cost - b.agentCost) / 4
}

// Spent is all so far.
func (b *Budget) Spent() time.Duration { return b.spent }

// Sessions is how many a period's budget pays for on average: it may be a tenth of one,
// which is then one in ten periods, drawn by lot.
func (b *Budget) Sessions() float64 {
	per := b.perSession
	if per == 0 {
		per = firstSession
	}
	left := b.allowed - b.spent - b.agentCost
	return min(max(float64(left)/float64(per), 0), float64(b.Most))
}
