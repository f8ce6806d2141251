package layout

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// vague are names that tell nothing outside of a sentence: what is declared under one is
// called by what it is. (Of stop, waypoint and place docs/reference/glossary.md says what they are; of
// several it is to be said whose, or by what they are ordered.)
var vague = []string{"aside", "beside", "besides", "copying", "feet", "front", "fronts", "gap", "gaps", "never", "own", "places", "stops", "together", "took"}

// What others have to look up, that is packages' names, fields and methods, has telling names.
func TestNames(t *testing.T) {
	eachFile(t, func(fset *token.FileSet, _ string, file *ast.File) {
		check := func(ids ...*ast.Ident) {
			for _, id := range ids {
				if slices.Contains(vague, strings.ToLower(id.Name)) {
					t.Errorf("%v: %s tells nothing: name it by what it is", fset.Position(id.Pos()), id.Name)
				}
			}
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				check(d.Name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						check(s.Names...)
					case *ast.TypeSpec:
						check(s.Name)
					}
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var fields *ast.FieldList
			switch x := n.(type) {
			case *ast.StructType:
				fields = x.Fields
			case *ast.InterfaceType:
				fields = x.Methods
			default:
				return true
			}
			for _, f := range fields.List {
				check(f.Names...)
			}
			return true
		})
	})
}
