package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// Ready is OnStack, with what the profile's writer has not derived.
func Ready(raw *model.Profile, stack string) (*model.Profile, error) {
	p, err := OnStack(raw, stack)
	if err != nil {
		return nil, err
	}
	seen := false
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == model.Reuse && r.Reuses != 0 {
			return p, nil
		}
		seen = seen || r.Kind == model.Reuse && r.Accesses > 0
	}
	if seen {
		err = p.Derive()
	}
	return p, err
}

// OnStack is what a profile says of one kind of stack, "" for the one it was
// made for: of several the private one. What has nothing to be taken out stays
// as it is, derived fields too.
func OnStack(p *model.Profile, stack string) (*model.Profile, error) {
	kinds := p.StackKinds()
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	kind := model.StackPrivate
	switch {
	case stack != "":
		i := slices.Index(names, stack)
		if i < 0 {
			return nil, fmt.Errorf("the profile observed no %s stack, but %s (record it with rdx attach --stack %s or both)",
				stack, strings.Join(names, " and "), stack)
		}
		kind = kinds[i]
	case len(kinds) == 0:
		return p, nil
	case !slices.Contains(kinds, kind):
		kind = kinds[0]
	}
	if len(kinds) == 1 && !hasLines(p) {
		return p, nil
	}
	return p.OnStack(kind), nil
}

func hasLines(p *model.Profile) bool {
	for i := range p.Records {
		if p.Records[i].Kind.OfLine() {
			return true
		}
	}
	return false
}
