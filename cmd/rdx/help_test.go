package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdx-profiler/rdx/fleet"
)

// Each command says what it is for, and shows a call that its own flags and
// arguments know.
func TestHelp(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.Short == "" || cmd.Example == "" {
			t.Errorf("%s: no help, or no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			line, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if !ok {
				continue // what it prints
			}
			line, _, _ = strings.Cut(line, " #")
			_, args, ok := strings.Cut(line+" ", "rdx ")
			if !ok || strings.Contains(line, "|") || strings.Contains(line, "tool") {
				continue // of other programs, too
			}
			args, _, _ = strings.Cut(args, " > ")
			found, rest, err := newRootCmd().Find(strings.Fields(args))
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil && found.Args != nil {
				err = found.Args(found, found.Flags().Args())
			}
			if err != nil || !found.Runnable() {
				t.Errorf("%s shows %q: %v", cmd.CommandPath(), line, err)
			}
		}
	}
	visit(newRootCmd())
}

// Help is no wider than a terminal, and each command of rdx is in a group.
func TestHelpWidth(t *testing.T) {
	root := newRootCmd()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, sub := range root.Commands() {
		if sub.GroupID == "" && !sub.Hidden {
			t.Errorf("%s is in no group", sub.Name())
		}
	}
	for name, flags := range firstFlags {
		found := false
		var visit func(cmd *cobra.Command)
		visit = func(cmd *cobra.Command) {
			for _, sub := range cmd.Commands() {
				visit(sub)
			}
			if cmd.CommandPath() != "rdx "+name {
				return
			}
			found = true
			for _, f := range flags {
				if cmd.Flags().Lookup(f) == nil {
					t.Errorf("%s has no flag --%s, which would come first", cmd.CommandPath(), f)
				}
			}
		}
		visit(root)
		if !found {
			t.Errorf("no command is called %s", name)
		}
	}
	eachCommand(root, func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
				t.Errorf("%s --help has a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
	})
}

// eachCommand visits those that rdx has itself and shows.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	if c.Hidden || c.Name() == "completion" || c.Name() == "help" {
		return // the latter are cobra's
	}
	visit(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, visit)
	}
}

// Each help has the same form: a line that says what, usage, an example with a few lines of what it
// prints, the flags, and what else there is to know.
func TestHelpForm(t *testing.T) {
	t.Setenv("RDX_FLEET_SERVER", "") // a default
	files := 0
	eachCommand(newRootCmd(), func(cmd *cobra.Command) {
		files++
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if lines[0] != cmd.Short+"." || len(lines[0]) > 78 || strings.Contains(cmd.Short, ". ") || lines[1] != "" || lines[2] != "Usage:" {
			t.Errorf("%s --help begins %q: want one sentence, then the usage", cmd.CommandPath(), lines[:3])
		}
		at := -1
		for _, part := range []string{"\nUsage:\n", "\nExample:\n", "\nMore examples:\n", "\nFlags:\n", "\nMore flags:\n", "\n" + strings.SplitN(wrapped(cmd.Long), "\n", 2)[0]} {
			i := strings.LastIndex(out.String(), part)
			if i >= 0 && i < at || i < 0 && part[1] != 'M' && part != "\nFlags:\n" {
				t.Errorf("%s --help has %q at %d, behind %d", cmd.CommandPath(), part, i, at)
			}
			at = max(i, at)
		}
		h, err := readHelp(cmd)
		if err != nil {
			t.Fatal(err)
		}
		calls, shown := 0, 0
		for line := range strings.Lines(h.example) {
			if strings.HasPrefix(line, "$ ") {
				calls++
			} else if line != "...\n" {
				shown++
			}
		}
		if calls != 1 || shown < 1 || shown > 8 {
			t.Errorf("%s: %d examples come first, with %d lines of what they print", cmd.CommandPath(), calls, shown)
		}
		if cmd.HasParent() && !strings.Contains(h.example, cmd.CommandPath()+" ") && !strings.Contains(h.example, cmd.CommandPath()+"\n") && !cmd.HasSubCommands() {
			t.Errorf("%s: the example is of another command", cmd.CommandPath())
		}
	})
	if all, err := helpTexts.ReadDir("help"); err != nil || len(all) != files {
		t.Errorf("%d files for %d commands: %v", len(all), files, err)
	}
}

// A flag means the same, and is said in the same words, with all commands that have it.
func TestFlagsAlike(t *testing.T) {
	eachCommand(newRootCmd(), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			short := map[string]string{"output": "o", "quiet": "q", "verbose": "v", "number": "n", "duration": "d"}
			bad := short[f.Name] != "" && f.Shorthand != short[f.Name]
			bad = bad || f.Name == "quiet" && f.Usage != "print neither progress nor summary; warnings stay"
			bad = bad || f.Name == "format" && !strings.HasPrefix(f.Usage, "text") || f.Name == "format" && f.DefValue != "text"
			bad = bad || f.Name == "format" && strings.Contains(f.Usage, "csv") && !strings.HasPrefix(f.Usage, "text, json")
			bad = bad || f.Name == "json" && cmd.Flags().Lookup("format") == nil
			bad = bad || f.Name == "output" && cmd.Flags().Lookup("quiet") == nil && f.DefValue != "-"
			if path := cmd.CommandPath(); f.Name == "output" && path != "rdx run" && path != "rdx trace record" && path != "rdx engine build" {
				bad = bad || !strings.Contains(f.Usage, "- for standard output")
			}
			if bad {
				t.Errorf("%s: -%s, --%s %q: %s", cmd.CommandPath(), f.Shorthand, f.Name, f.DefValue, f.Usage)
			}
		})
	})
	for _, args := range [][]string{{"trace", "record", "-o", "-", "--", "true"}, {"run", "-o", "-", "--", "true"}, {"attach", "1", "--every", "5s", "-o", "-"},
		{"fleet", "get", "--server", "http://127.0.0.1:1", "--service", "x", "--every", "5s", "-o", "-"}} {
		if _, err := rdx(t, args...); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "-o -") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// A flag's value that is out of range, or that is not read at all, is refused, with what is wanted.
func TestFlagRanges(t *testing.T) {
	for args, want := range map[string]string{
		"attach 1 -d 10":                       "--duration 10: want a time with its unit, such as",
		"attach 1 -d 0s":                       "--duration 0s: want more than 0",
		"attach 1 --period 0s":                 "--period 0s: want 200µs or more",
		"attach 1 --gap 0s":                    "--period 0s: want 200µs or more", // its former name
		"attach 1 --period 2m":                 "and at most 1m0s",
		"attach 1 --hold-cost 1h":              "--hold-cost 1h0m0s: want 0 to 100ms",
		"attach 1 --hold-cost=-1s":             "--hold-cost -1s: want 0 to 100ms",
		"attach 1 --overhead 1e-9":             "--overhead 1e-09: want 0.0001 or more",
		"mrc --ways 5000 x":                    "--ways 5000: want 0 to 4096",
		"partition x y --least 5000":           "--least 5000: want 0 to 4096",
		"partition x y --least=-1":             "--least -1: want 0 to 4096",
		"group x y --caches 2000":              "--caches 2000: want 1 to 1024",
		"group x y --per=-1":                   "--per -1: want 1 or more",
		"compare x y --work Inf":               "--work +Inf: want more than 0 and at most a billion",
		"fleet top --server x --timeout 0s":    "--timeout 0s: want more than 0",
		"fleet top --server x --since=-1h":     "--since -1h0m0s: want more than 0",
		"attach 1 --slots 0":                   "--slots 0: want 1 to 4",
		"attach 1 --slots x":                   "--slots x: want a whole number",
		"attach 1 --seed=-1":                   "--seed -1: want a whole number, 0 or more",
		"attach 1 --overhead 0":                "--overhead 0: want a percentage above 0",
		"attach 1 --overhead 200":              "at most 100",
		"attach 1 --overhead x":                "--overhead x: want a number",
		"attach 1 --heap=x":                    "--heap x: want true or false",
		"attach 1 --caches 32M,1M":             "--caches 32M,1M: want the smallest first",
		"attach 1 --caches 1M,1M":              "each once",
		"attach 1 --until 20% --every 5s":      "--until ends one session",
		"exact --shards rate=2 x":              "want a rate above 0",
		"exact --engine x x":                   "--engine x: want valgrind",
		"exact --children x":                   "--children is for a program",
		"exact --engine qemu x":                "--engine is for a program",
		"exact --ordered -- true":              "--ordered is for --engine qemu",
		"exact --caches 1k x":                  "--caches is for -o and --patterns",
		"exact --seed 3 x":                     "--seed is for --sampled",
		"exact -o x --sizes 1k x":              "--sizes is for a report",
		"exact --gpu-segment 5 x":              "--gpu-segment is for --gpu",
		"agent --check --server x":             "want a URL",
		"agent --server http://x --overhead 0": "want more than 0 and at most 10 percent",
	} {
		if _, err := rdx(t, strings.Fields(args)...); exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("rdx %s: %v, want %q", args, err, want)
		}
	}
}

// helpData are the files that examples name, and where they are.
var helpData = map[string]string{
	"matmul.pb.gz":  "../../web/testdata/bad.pb.gz",
	"good.pb.gz":    "../../web/testdata/good.pb.gz",
	"threads.pb.gz": "../../web/testdata/sharing.pb.gz",
	"particles.c":   "../../demo/particles.c",
}

// The excerpts of what examples print are what they print. Those that were taken by hand, as they
// need root, a program or an engine, consist of lines that the source has a format for.
func TestHelpExamples(t *testing.T) {
	dir, literals := helpFolder(t), formats(t)
	t.Setenv("RDX_FLEET_SERVER", helpFleet(t))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	eachCommand(newRootCmd(), func(cmd *cobra.Command) {
		h, err := readHelp(cmd)
		if err != nil {
			t.Fatal(err)
		}
		call, shown, _ := strings.Cut(h.example, "\n")
		if h.take == "by hand" {
			whole := regexp.MustCompile(`\n +`).ReplaceAllString(shown, " ") // lines that go on
			for line := range strings.Lines(whole) {
				line = strings.TrimSuffix(strings.TrimSpace(line), "…")
				if line != "..." && !strings.HasPrefix(line, "http://127.0.0.1:") && !slices.ContainsFunc(literals, func(r *regexp.Regexp) bool { return r.MatchString(line) }) {
					t.Errorf("%s: no format of the source prints %q", cmd.CommandPath(), line)
				}
			}
			// Of the two that are there as files, too.
			if file := map[string]string{"rdx attach": "rdx.pb.gz", "rdx run": "before.pb.gz"}[cmd.CommandPath()]; file != "" {
				if line := regexp.MustCompile(`.* observations of .*\n`).FindString(shown); line == "" || !strings.Contains(ok(t, "top", file), line) {
					t.Errorf("%s: %q is not of %s", cmd.CommandPath(), line, file)
				}
			}
			return
		}
		args := strings.Fields(strings.ReplaceAll(strings.TrimPrefix(call, "$ rdx "), "http://pyro:4040", os.Getenv("RDX_FLEET_SERVER")))
		out, errs, err := rdxErr(t, "", args...)
		if err != nil {
			t.Errorf("%s: %v", call, err)
			return
		}
		n, pattern, _ := strings.Cut(h.take, " from ")
		count, err := strconv.Atoi(n)
		want := excerpt(out+errs, regexp.MustCompile(pattern), count)
		if err != nil || want == "" {
			t.Errorf("%s prints nothing of %q (%v):\n%s", call, h.take, err, out+errs)
		}
		if want == shown {
			return
		}
		if !*update {
			t.Errorf("%s prints\n%snot\n%s(go test ./cmd/rdx -run TestHelpExamples -update)", call, want, shown)
			return
		}
		text := "excerpt: " + h.take + "\n" + call + "\n" + want + "-- more --\n" + h.more + "-- about --\n" + h.about
		if err := os.WriteFile(filepath.Join(here, "help", helpFile(cmd)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// excerpt is count lines of a text from the first on that matches, no wider than help is.
func excerpt(text string, first *regexp.Regexp, count int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	at := slices.IndexFunc(lines, first.MatchString)
	if at < 0 {
		return ""
	}
	end := min(at+count, len(lines))
	var b strings.Builder
	if at > 0 {
		b.WriteString("...\n")
	}
	for _, line := range lines[at:end] {
		if r := []rune(line); len(r) > helpWidth-2 {
			line = string(r[:helpWidth-3]) + "…"
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if end < len(lines) {
		b.WriteString("...\n")
	}
	return b.String()
}

// helpFolder has what the examples read.
func helpFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := maps.Clone(helpData)
	names, err := filepath.Glob("testdata/help/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range names {
		files[filepath.Base(f)] = f
	}
	for name, from := range files {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	old := time.Unix(1e9, 0) // older than the profiles: a source that is newer is warned of
	if err := os.Chtimes(filepath.Join(dir, "particles.c"), old, old); err != nil {
		t.Fatal(err)
	}
	return dir
}

// helpFleet answers as a fleet's server does, with bad.pb.gz, and of version 42 with good.pb.gz.
func helpFleet(t *testing.T) (url string) {
	t.Helper()
	answers := map[string][]byte{} // with all columns, of which a query wants one
	for _, name := range []string{"bad", "good"} {
		p, err := loadProfile("../../web/testdata/" + name + ".pb.gz")
		if err != nil {
			t.Fatal(err)
		}
		if answers[name], err = (fleet.Window{Profile: p, Weight: 1, Time: time.Unix(1.8e9, 0)}).Pack(); err != nil {
			t.Fatal(err)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/proto")
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasSuffix(r.URL.Path, "SelectMergeProfile") {
			return
		}
		name := "bad"
		if bytes.Contains(body, []byte(`"42"`)) {
			name = "good"
		}
		p, err := profile.ParseData(answers[name])
		if err != nil {
			t.Error(err)
			return
		}
		asked := slices.IndexFunc(p.SampleType, func(v *profile.ValueType) bool { return bytes.Contains(body, []byte(":"+v.Type+":")) })
		if asked < 0 {
			t.Errorf("none of %v is asked for: %q", p.SampleType, body)
			return
		}
		p.SampleType = p.SampleType[asked : asked+1]
		for _, s := range p.Sample {
			s.Value = s.Value[asked : asked+1]
		}
		var b bytes.Buffer
		if err := p.WriteUncompressed(&b); err != nil {
			t.Error(err)
		}
		_, _ = w.Write(b.Bytes())
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// formats are patterns of the string literals of rdx's source that say enough to tell a line by.
func formats(t *testing.T) []*regexp.Regexp {
	t.Helper()
	verb := regexp.MustCompile(`%[-+ #0]*[0-9*]*(?:\\?\.[0-9*]+)?[a-zA-Z]`)
	var all []*regexp.Regexp
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			s, err := strconv.Unquote(lit.Value)
			s = strings.TrimSpace(s)
			if err == nil && utf8.ValidString(s) && len(s) < 300 && len(verb.ReplaceAllString(s, "")) >= 8 {
				all = append(all, regexp.MustCompile(verb.ReplaceAllString(regexp.QuoteMeta(s), ".+")))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Shells complete rdx's commands by what rdx prints for them.
func TestCompletion(t *testing.T) {
	for shell, says := range map[string]string{"bash": "__start_rdx", "zsh": "#compdef rdx", "fish": "complete -c rdx"} {
		cmd := newRootCmd()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"completion", shell})
		if err := cmd.Execute(); err != nil || !strings.Contains(out.String(), says) {
			t.Errorf("%s: %v, %d bytes without %q", shell, err, out.Len(), says)
		}
	}
	cmd := newRootCmd()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"__complete", "at"})
	if err := cmd.Execute(); err != nil || !strings.HasPrefix(out.String(), "attach\t") {
		t.Errorf("rdx at<tab>: %v, %q", err, &out)
	}
}

// A word that is no command is told what it was probably meant for.
func TestUnknownCommand(t *testing.T) {
	for args, want := range map[string]string{
		"1234":  "rdx attach 1234",
		"ls -l": "rdx run -- ls -l",
		"tpo":   "top",
	} {
		words := strings.Fields(args)
		_, err := rdx(t, words...)
		if err = hinted(err, words); exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("rdx %s: %v, want %q", args, err, want)
		}
	}
}
