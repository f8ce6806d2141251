package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each mend is still where the table says, and so is its test. Whether that fails without the mend: make mutants.
func TestMutantsApply(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	for i := range mutants {
		m := &mutants[i]
		if _, err := m.changed(); err != nil || m.old == m.new {
			t.Errorf("%s: %v", m, err)
		}
		name, _, _ := strings.Cut(m.test, "/")
		there := regexp.MustCompile(`(?m)^func ` + name + `\(`)
		files, err := filepath.Glob(filepath.Join(m.folder(), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			found = found || there.Match(b)
		}
		if !found {
			t.Errorf("%s: no such test in %s", m, m.folder())
		}
	}
	if len(mutants) < 25 {
		t.Errorf("%d mends", len(mutants))
	}
}
