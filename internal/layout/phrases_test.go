package layout

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// foreignPhrases are of others: of cobra, of Pyroscope, of the kernel.
var foreignPhrases = []string{"unknown command", "Did you mean", "query time range exceeds", "Max open files"}

// commentKinds and rateSources are told by methods of the model, see its CommentKind and Clock.RateIs.
var commentKinds = []string{"HeapProbed", "NothingWatched", "BudgetRaised", "BudgetWaits", "NoSample", "Overhead", "HeldFor", "NamesMissing",
	"SymbolsPartly", "EndedEarly", "MergedFrom", "ChangedSince", "RatesDiffer", "InterruptIdle", "FollowingProbes", "AssumedRate", "EstimatedRate"}

// What rdx itself says in English is not searched for words: what is asked has a field, a count's name, a reason or a comment's
// kind.
func TestPhrases(t *testing.T) {
	looked := 0
	eachSource(t, false, func(fset *token.FileSet, name string, file *ast.File) {
		if name == "model/profile.go" || strings.HasPrefix(name, "bench/") || strings.HasPrefix(name, "vm/") { // these read figures from what is said
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Contains", "HasPrefix", "HasSuffix", "CutPrefix", "CutSuffix", "Index", "Count"}, f.Sel.Name) {
				return true
			}
			if p, ok := f.X.(*ast.Ident); !ok || p.Name != "strings" {
				return true
			}
			looked++
			switch x := call.Args[1].(type) {
			case *ast.BasicLit:
				s, err := strconv.Unquote(x.Value)
				if err == nil && strings.Contains(strings.Trim(s, " :;,"), " ") && !slices.Contains(foreignPhrases, s) {
					t.Errorf("%v: %q is searched for in text", fset.Position(x.Pos()), s)
				}
			case *ast.SelectorExpr:
				if slices.Contains(commentKinds, x.Sel.Name) {
					t.Errorf("%v: %s is searched for in text: use model's CommentKind, or Clock.RateIs", fset.Position(x.Pos()), x.Sel.Name)
				}
			case *ast.Ident:
				if slices.Contains(commentKinds, x.Name) {
					t.Errorf("%v: %s is searched for in text: use model's CommentKind, or Clock.RateIs", fset.Position(x.Pos()), x.Name)
				}
			}
			return true
		})
	})
	if looked < 50 {
		t.Errorf("%d searches were looked at", looked)
	}
}
