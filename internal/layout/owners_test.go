package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// owners are the collector's types that hold what a session keeps: only methods of one write its fields.
var owners = []string{"Session", "traced", "sampling", "tracing", "targets", "handler", "traps", "holds", "stepper", "neighbours", "reports", "watches", "groupWatches", "group", "shares",
	"registers", "observations", "copyLimit", "copyCost", "timing", "tickPace", "budget", "sourceState", "account", "prober", "profilerCost", "memory",
	"handover", "backlog", "thread"}

// nothing stands for what a package imports: its own types are enough to tell whose a field is.
type nothing struct{}

func (nothing) Import(p string) (*types.Package, error) {
	pkg := types.NewPackage(p, path.Base(p))
	pkg.MarkComplete()
	return pkg, nil
}

// collectorTypes checks the package as far as its own types go.
func collectorTypes(t *testing.T) (*token.FileSet, []*ast.File, *types.Info) {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join("..", "..", "collector", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection), Types: make(map[ast.Expr]types.TypeAndValue)}
	config := types.Config{Importer: nothing{}, Error: func(error) {}} // of what is imported
	_, _ = config.Check("collector", fset, files, info)
	return fset, files, info
}

// named is the name of a type, or of what it points to.
func named(of types.Type) string {
	if p, ok := of.(*types.Pointer); ok {
		of = p.Elem()
	}
	if n, ok := of.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// holder is the type that a selected field is declared in, which may be embedded in the one it is selected of.
func holder(sel *types.Selection) string {
	of := sel.Recv()
	for _, i := range sel.Index()[:len(sel.Index())-1] {
		if p, ok := of.Underlying().(*types.Pointer); ok {
			of = p.Elem()
		}
		of = of.Underlying().(*types.Struct).Field(i).Type()
	}
	return named(of)
}

// written are the fields that a statement writes, elements of maps and slices in them included.
func written(n ast.Node) (fields []*ast.SelectorExpr) {
	var add func(e ast.Expr)
	add = func(e ast.Expr) {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			fields = append(fields, x)
		case *ast.IndexExpr:
			add(x.X)
		case *ast.ParenExpr:
			add(x.X)
		case *ast.StarExpr:
			add(x.X)
		}
	}
	switch x := n.(type) {
	case *ast.AssignStmt:
		for _, e := range x.Lhs {
			add(e)
		}
	case *ast.IncDecStmt:
		add(x.X)
	case *ast.CallExpr:
		if f, ok := x.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") {
			add(x.Args[0])
		}
	}
	return fields
}

// Each type of a session holds its own fields: nobody else writes them. Whoever waits for a session does not touch
// what the tracing thread has, but hands it what is to be done.
func TestOwners(t *testing.T) {
	fset, files, info := collectorTypes(t)
	seen, reached := 0, 0
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || f.Name.Name == "wire" { // which tells them of each other
				continue
			}
			method := ""
			if f.Recv != nil {
				method = named(info.TypeOf(f.Recv.List[0].Type))
			} else if strings.HasPrefix(f.Name.Name, "new") {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if n == nil {
					return true
				}
				for _, e := range written(n) {
					sel := info.Selections[e]
					if sel == nil || sel.Kind() != types.FieldVal || !slices.Contains(owners, holder(sel)) {
						continue
					}
					if seen++; holder(sel) != method {
						t.Errorf("%v: %s.%s writes %s of %s", fset.Position(e.Pos()), method, f.Name.Name, e.Sel.Name, holder(sel))
					}
				}
				if e, ok := n.(*ast.SelectorExpr); ok && e.Sel.Name == "sampling" {
					traced := method == "Session" && (f.Name.Name == "Wait" || f.Name.Name == "seize")
					sel := info.Selections[e]
					if sel != nil && (traced || holder(sel) == "traced" && f.Name.Name != "do") {
						t.Errorf("%v: %s.%s reaches what the tracing thread has", fset.Position(e.Pos()), method, f.Name.Name)
					}
					reached++
				}
				return true
			})
		}
	}
	if seen < 200 || reached < 10 {
		t.Errorf("%d writes and %d uses of a session's were looked at", seen, reached)
	}
}
