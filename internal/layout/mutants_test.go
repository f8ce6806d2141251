package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each mend of internal/mutants is still where its table says, once, and so is its test. Whether that fails without
// the mend: make mutants.
func TestMutantsApply(t *testing.T) {
	root := filepath.Join("..", "..")
	table, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal", "mutants", "table.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(table, func(node ast.Node) bool {
		row, ok := node.(*ast.CompositeLit)
		if !ok || row.Type != nil {
			return true
		}
		var cells []string
		for _, e := range row.Elts {
			lit, ok := e.(*ast.BasicLit)
			if !ok {
				t.Fatalf("row %d: not made of texts", n+1)
			}
			s, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			cells = append(cells, s)
		}
		if n++; len(cells) != 6 {
			t.Fatalf("row %d has %d texts, want 6", n, len(cells))
		}
		why, file, old, changed, test, in := cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Errorf("%s: %v", why, err)
			return false
		}
		if k := strings.Count(string(b), old); k != 1 || old == changed {
			t.Errorf("internal/mutants/table.go, %q: %s has the text that it changes %d times, want once: where that has moved or changed, change it there, too", why, file, k)
		}
		if in == "" {
			in = filepath.Dir(file)
		}
		test, _, _ = strings.Cut(test, "/")
		there := regexp.MustCompile(`(?m)^func ` + test + `\(`)
		found := false
		files, _ := filepath.Glob(filepath.Join(root, in, "*_test.go"))
		for _, f := range files {
			b, err := os.ReadFile(f)
			found = found || err == nil && there.Match(b)
		}
		if !found {
			t.Errorf("internal/mutants/table.go, %q: %s has no %s", why, in, test)
		}
		return false
	})
	if n < 25 {
		t.Errorf("%d mends", n)
	}
}
