package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rdx-profiler/rdx/"

// mayImport is what each package imports of rdx, and no other does: a name stands for that package alone, and one that is
// not needed any more is an error. A row holds for packages below it that have none. Commands, benchmarks and the tests' guest
// may import all.
var mayImport = map[string][]string{
	"model":            nil,
	"internal/version": {"bpf"},
	"internal/needs":   {"trace"},
	"internal/suite":   nil,
	"internal/mutants": nil,
	"docs/cases":       nil,
	"proc":             nil,
	"bpf":              nil,
	"exact":            {"model"},
	"trace":            {"model", "proc"},
	"gpu":              {"exact", "model"},
	"gpu/device":       {"exact", "gpu", "gpu/opencl"},
	"gpu/opencl":       nil,
	"sampler": {
		"bpf", "proc", "sampler/clock", "sampler/interp", "sampler/memrecord", "sampler/objfile", "sampler/ptrace",
		"sampler/unwind",
	},
	"sampler/ahead": {
		"model", "proc", "sampler", "sampler/clock", "sampler/interp", "sampler/interp/a64", "sampler/operand",
		"sampler/pipeline", "sampler/ptrace", "sampler/unwind",
	},
	"sampler/clock":      nil,
	"sampler/cost":       nil,
	"sampler/interp":     nil,
	"sampler/interp/a64": {"sampler/interp", "sampler/operand"},
	"sampler/memrecord":  nil,
	"sampler/objfile":    nil,
	"sampler/operand":    nil,
	"sampler/pipeline":   nil,
	"sampler/ptrace":     {"proc", "sampler/clock", "sampler/safeopen"},
	"sampler/safeopen":   nil,
	"sampler/unwind":     {"sampler/objfile"},
	"collector": {
		"collector/callstack", "collector/estimate", "collector/hotset", "collector/interleave",
		"collector/library", "collector/record", "collector/sharing", "collector/target", "model", "proc",
		"sampler", "sampler/ahead", "sampler/memrecord", "sampler/pipeline", "sampler/ptrace", "sampler/safeopen",
		"sampler/unwind",
	},
	"collector/callstack": {"collector/target", "model", "sampler", "sampler/ahead", "sampler/unwind"},
	"collector/estimate": {
		"collector/callstack", "collector/record", "collector/sharing", "collector/target", "model", "sampler",
		"sampler/ahead", "sampler/pipeline",
	},
	"collector/hotset":     {"collector/target", "model"},
	"collector/interleave": {"collector/estimate", "collector/record", "collector/target", "sampler/ahead"},
	"collector/library":    {"sampler", "sampler/objfile", "sampler/safeopen", "sampler/unwind"},
	"collector/record":     {"collector/target", "model", "sampler", "sampler/ahead", "sampler/pipeline"},
	"collector/sharing":    {"collector/record", "collector/target", "sampler", "sampler/ahead"},
	"collector/target":     {"collector/library", "model", "proc", "sampler/ptrace", "sampler/safeopen"},
	"pprofout":             {"model", "sampler/objfile", "sampler/safeopen"},
	"fleet":                {"model"},
	"fleet/backend":        {"model"},
	"agent":                {"fleet"},
	"report":               {"model", "sampler"},
	"why":                  {"model", "report"},
	"web":                  {"model", "pprofout", "report", "sampler/objfile"},
}

// free may import all.
var free = []string{"cmd", "bench", "vm", "internal/layout"}

// Limits of what one can read.
const (
	mostFiles  = 45  // of a package, without tests
	mostFields = 40  // of a type
	mostLines  = 100 // of a function
)

// larger are the functions and types that are tables. An entry that is
// not needed any more is an error.
var larger = map[string]bool{
	// Decoder tables.
	"sampler/interp oneByte":     true,
	"sampler/interp twoByte":     true,
	"sampler/interp parseVecOp":  true,
	"sampler/interp vectorEntry": true,
	"sampler/unwind evaluate":    true,
}

// under says whether a package is one of those named or below it.
func under(pkg string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return pkg == n || strings.HasPrefix(pkg, n+"/") })
}

// owner is the entry of mayImport that a package falls under.
func owner(pkg string) string {
	for p := pkg; p != "."; p = filepath.Dir(p) {
		if _, ok := mayImport[p]; ok {
			return p
		}
	}
	return ""
}

// eachFile parses the files of rdx that are no tests.
func eachFile(t *testing.T, f func(fset *token.FileSet, name string, file *ast.File)) {
	t.Helper()
	eachSource(t, false, f)
}

// eachSource parses the files of rdx, those of tests if asked to.
func eachSource(t *testing.T, tests bool, f func(fset *token.FileSet, name string, file *ast.File)) {
	t.Helper()
	root := filepath.Join("..", "..")
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); path != root && (strings.HasPrefix(n, ".") || n == "testdata" || n == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || !tests && strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f(fset, filepath.ToSlash(rel), file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImports(t *testing.T) {
	needed := map[[2]string]bool{} // by row and import
	eachFile(t, func(_ *token.FileSet, name string, file *ast.File) {
		pkg := filepath.ToSlash(filepath.Dir(name))
		if under(pkg, free) || strings.HasPrefix(pkg, "deploy/") || strings.HasPrefix(pkg, "demo") {
			return
		}
		of := owner(pkg)
		if of == "" {
			t.Errorf("%s: package %s is in no row of the table: say what it may import", name, pkg)
			return
		}
		for _, im := range file.Imports {
			to, ok := strings.CutPrefix(strings.Trim(im.Path.Value, `"`), module)
			if !ok {
				continue
			}
			needed[[2]string{of, to}] = true
			if !slices.Contains(mayImport[of], to) {
				t.Errorf("%s: %s must not import %s", name, pkg, to)
			}
		}
	})
	for pkg, all := range mayImport {
		for _, to := range all {
			if !needed[[2]string{pkg, to}] {
				t.Errorf("%s does not import %s any more: take it out of its row", pkg, to)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	files, over := map[string]int{}, map[string]bool{}
	exceeds := func(what string, n, most int, unit string) {
		over[what] = true
		if !larger[what] {
			t.Errorf("%s has %d %s, at most %d may it have", what, n, unit, most)
		}
	}
	eachFile(t, func(fset *token.FileSet, name string, file *ast.File) {
		pkg := filepath.ToSlash(filepath.Dir(name))
		files[pkg]++
		if ast.IsGenerated(file) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncDecl:
				if lines := fset.Position(x.End()).Line - fset.Position(x.Pos()).Line + 1; lines > mostLines {
					exceeds(pkg+" "+x.Name.Name, lines, mostLines, "lines")
				}
			case *ast.TypeSpec:
				if s, ok := x.Type.(*ast.StructType); ok && s.Fields.NumFields() > mostFields {
					exceeds(pkg+" "+x.Name.Name, s.Fields.NumFields(), mostFields, "fields")
				}
			}
			return true
		})
	})
	for pkg, n := range files {
		if n > mostFiles {
			exceeds(pkg, n, mostFiles, "files")
		}
	}
	for what := range larger {
		if !over[what] {
			t.Errorf("%s is not too large any more: take it out of the list", what)
		}
	}
}
