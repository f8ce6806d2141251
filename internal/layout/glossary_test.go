package layout

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// terms are those of rdx's design, and those that its code uses most.
var terms = []string{
	"access", "block", "use", "reuse", "reuse pair", "reuse time", "reuse distance", "stack distance",
	"cold", "censored", "invalidated", "pruned", "lost", "footprint", "miss ratio curve",
	"private stack", "shared stack", "access source", "access clock",
	"hold", "tick", "watch", "open access", "epoch", "probe", "group", "rate", "slot", "trap", "period",
	"stop", "waypoint", "place", "observation", "record", "kind", "count", "cluster", "burst", "budget",
}

// glossary is what docs/reference/glossary.md explains.
func glossary(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	means := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) < 2 || strings.TrimSpace(cells[0]) == "term" {
			continue
		}
		for term := range strings.SplitSeq(cells[0], ",") {
			if term = strings.TrimSpace(term); means[term] != "" {
				t.Errorf("%s stands there twice", term)
			} else {
				means[term] = strings.TrimSpace(strings.Join(cells[1:], "|"))
			}
		}
	}
	return means
}

func TestGlossary(t *testing.T) {
	means := glossary(t)
	for _, term := range terms {
		if means[term] == "" {
			t.Errorf("%s is not explained", term)
		}
	}
	for term, meaning := range means {
		if meaning == "" || slices.Contains(strings.Fields(meaning), "TODO") {
			t.Errorf("%s: %q", term, meaning)
		}
	}
}
