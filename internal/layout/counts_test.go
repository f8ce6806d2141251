package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// countsFile has the names of a profile's counts, as one table.
const countsFile = "model/counts.go"

// fullName says whether a literal can be nothing but a count's name: single words are others', too.
func fullName(s string) bool { return strings.Contains(s, " ") }

// countTable reads the table: what the names, families and reasons are.
func countTable(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", countsFile), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		of, ok := v.Type.(*ast.Ident)
		if !ok {
			t.Errorf("%v has no type", v.Names)
			return true
		}
		if s, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value); err != nil || slices.Contains(table[of.Name], s) {
			t.Errorf("%v is %q, and so is another: %v", v.Names, s, err)
		} else {
			table[of.Name] = append(table[of.Name], s)
		}
		return true
	})
	if len(table["CountName"]) < 50 || len(table["CountFamily"]) < 5 || len(table["Reason"]) < 30 {
		t.Fatalf("%d names, %d families, %d reasons", len(table["CountName"]), len(table["CountFamily"]), len(table["Reason"]))
	}
	return table
}

// A count's name stands in the table and nowhere else, tests included, so that nothing looks for
// one that is not counted any more; and a reason is told by its constant.
func TestCountNames(t *testing.T) {
	table := countTable(t)
	eachSource(t, true, func(fset *token.FileSet, name string, file *ast.File) {
		if name == countsFile || strings.HasPrefix(name, "internal/layout/") {
			return
		}
		literal := func(e ast.Expr) (string, bool) {
			lit, ok := e.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return "", false
			}
			s, err := strconv.Unquote(lit.Value)
			return s, err == nil
		}
		tell := func(n ast.Node, s string) {
			t.Errorf("%v: %q is a count's name: use its constant in %s", fset.Position(n.Pos()), s, countsFile)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.BasicLit:
				s, ok := literal(x)
				if !ok {
					return true
				}
				family := slices.ContainsFunc(table["CountFamily"], func(f string) bool { return strings.HasPrefix(s, f) })
				if family || fullName(s) && slices.Contains(table["CountName"], s) && !strings.HasPrefix(name, "gpu/") {
					tell(x, s)
				}
				if slices.Contains(table["Reason"], s) && fullName(s) && !strings.HasPrefix(name, "sampler/") { // which knows nothing of profiles
					tell(x, s)
				}
			case *ast.CallExpr:
				called := ""
				switch f := x.Fun.(type) {
				case *ast.Ident:
					called = f.Name
				case *ast.SelectorExpr:
					called = f.Sel.Name
					if p, ok := f.X.(*ast.Ident); ok && p.Name == "strings" {
						called = "strings"
					}
				}
				for _, a := range x.Args {
					if s, ok := literal(a); ok && (slices.Contains(table["CountName"], s) && strings.EqualFold(called, "CountOf") || slices.Contains([]string{"CountOf", "AddCount"}, called)) {
						tell(a, s)
					}
					if c, ok := a.(*ast.CallExpr); ok && called == "strings" && !strings.HasPrefix(name, "sampler/") && convertsName(c) {
						t.Errorf("%v: a count's name is searched as text: compare it, or use its family", fset.Position(a.Pos()))
					}
				}
			case *ast.BinaryExpr:
				for _, e := range []ast.Expr{x.X, x.Y} {
					if s, ok := literal(e); ok && !fullName(s) && slices.Contains(table["CountName"], s) && isName(x.X, x.Y) {
						tell(e, s)
					}
				}
			}
			return true
		})
	})
}

// isName says whether one of the expressions is a field called Name.
func isName(all ...ast.Expr) bool {
	return slices.ContainsFunc(all, func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Name"
	})
}

// convertsName says whether a call is string(x.Name).
func convertsName(c *ast.CallExpr) bool {
	f, ok := c.Fun.(*ast.Ident)
	return ok && f.Name == "string" && len(c.Args) == 1 && isName(c.Args[0])
}
