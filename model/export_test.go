package model

// Endings are what Kaplan-Meier takes, for tests against exact analyses.
type Endings struct{ *endings }

func NewEndings(b *Bins) Endings { return Endings{newEndings(b)} }

func (e Endings) Add(k Kind, bin int, weight float64) { e.add(k, bin, weight) }
func (e Endings) Solve(mass, net *Hist)               { e.solve(mass, net) }

var (
	NewRand       = newRand
	WithoutEpochs = withoutEpochs
)
