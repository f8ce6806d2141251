package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stable are the packages that others may import: each says what of it is stable, and has an example.
var stable = []string{"model", "exact", "pprofout", "trace"}

// Each package that can be imported says whether others may count on it.
func TestStability(t *testing.T) {
	docs, examples := map[string]string{}, map[string]bool{}
	eachSource(t, true, func(_ *token.FileSet, name string, file *ast.File) {
		dir := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") {
					examples[dir] = true
				}
			}
		} else if first, _, _ := strings.Cut(dir, "/"); file.Name.Name != "main" && !slices.Contains([]string{"internal", "docs", "vm", "bench"}, first) {
			said, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", name), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			docs[dir] += strings.ReplaceAll(said.Doc.Text(), "\n", " ")
		}
	})
	for dir, doc := range docs {
		wants := []string{"may change"}
		if slices.Contains(stable, dir) {
			if wants = []string{"Stable:", "Units", "hapes", "Errors", "ources"}; !examples[dir] {
				t.Errorf("%s has no Example", dir)
			}
			if dir == "exact" {
				wants[1], wants[4] = "times in touches", "algorithms are those of"
			}
		}
		for _, w := range wants {
			if !strings.Contains(doc, w) {
				t.Errorf("%s: its doc does not say: %s", dir, w)
			}
		}
	}
	if len(docs) < 30 {
		t.Errorf("%d packages were looked at", len(docs))
	}
}
