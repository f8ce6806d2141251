package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// openers are the functions and types by which something with a name is opened, listened on or started, by package.
var openers = map[string]string{
	"os": "Open OpenFile OpenRoot OpenInRoot Create CreateTemp ReadFile WriteFile ReadDir Readlink DirFS MkdirTemp Mkdir MkdirAll " +
		"CopyFS Link Symlink StartProcess Truncate",
	"unix":     "Open Openat Openat2 Readlink Readlinkat Socket Connect Bind Mkfifo Mkfifoat Mknod Mknodat Mkdir Mkdirat MemfdCreate Creat OpenByHandleAt Exec",
	"syscall":  "Open Openat Readlink Socket Connect Bind Mkfifo Mknod Mkdir Creat Exec ForkExec StartProcess",
	"filepath": "Glob Walk WalkDir EvalSymlinks",
	"net": "Dial DialTimeout DialUnix DialTCP DialUDP DialIP Listen ListenUnix ListenTCP ListenUDP ListenPacket ListenUnixgram " +
		"Dialer ListenConfig FileConn FileListener",
	"http":      "Get Post Head PostForm ListenAndServe ListenAndServeTLS ServeFile Dir Client Transport DefaultClient",
	"tls":       "Dial Listen LoadX509KeyPair",
	"exec":      "Command CommandContext LookPath",
	"elf":       "Open",
	"buildinfo": "ReadFile",
	"plugin":    "Open",
	"gosym":     "",
	"btf":       "LoadSpec LoadKernelSpec",
	"link":      "OpenExecutable AttachCgroup LoadPinnedLink",
	"ebpf":      "LoadPinnedMap LoadPinnedProgram LoadCollectionSpec",
}

// outside of what users run.
var notProduct = []string{"bench", "demo", "vm", "deploy", "internal", "fleet/backend", "sampler/safeopen/stallfs"}

// opensIn are the calls that open something in the functions of a folder, by "FOLDER FUNCTION".
func opensIn(t *testing.T, root string) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); rel != "." && (slices.Contains(notProduct, rel) || name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			name := "a variable"
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name = nameOf(d)
			case *ast.GenDecl:
				if d.Tok == token.TYPE {
					continue
				}
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if pkg, ok := s.X.(*ast.Ident); ok && slices.Contains(strings.Fields(openers[pkg.Name]), s.Sel.Name) {
						key := filepath.ToSlash(filepath.Dir(rel)) + " " + name
						found[key] = append(found[key], pkg.Name+"."+s.Sel.Name)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// nameOf a function, Type.Method of a method.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// What opens a file, a link, a socket or a folder is in the tables of docs/reference/opens.md, with who can make the name.
func TestOpensAreListed(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "opens.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 6 { // | what | who | how | by |
			continue
		}
		for _, m := range regexp.MustCompile("`([\\w/-]+ [\\w.]+)`").FindAllStringSubmatch(cells[len(cells)-2], -1) {
			listed[m[1]] = true
		}
	}
	found := opensIn(t, root)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if !listed[key] {
			t.Errorf("%s opens something (%s) that docs/reference/opens.md does not list: say there who can make its name, and how it is opened", key, strings.Join(found[key], ", "))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		if found[key] == nil {
			t.Errorf("docs/reference/opens.md lists %s, which opens nothing", key)
		}
	}
}
