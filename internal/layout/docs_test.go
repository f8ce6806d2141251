package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// docsWidth is how long a line of a document may be; a table's row and what can't be broken may
// be longer.
const docsWidth = 100

// eachDocument reads the documents of rdx, without those of test data.
func eachDocument(t *testing.T, f func(name, text string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && path != root && (n == ".git" || n == "testdata" || n == "node_modules" || n == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		seen++
		f(filepath.ToSlash(name), string(text))
		return err
	})
	if err != nil || seen < 20 {
		t.Fatalf("%v, %d documents", err, seen)
	}
}

// prose calls f with the lines that are not code.
func prose(text string, f func(line string)) {
	code := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		if !code && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "\t") {
			f(line)
		}
	}
}

var (
	linkRx    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the fragments that a document's headings have on GitHub.
func anchors(text string) []string {
	var found []string
	prose(text, func(line string) {
		if h, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			found = append(found, strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(h), ""), " ", "-"))
		}
	})
	return found
}

func TestLinks(t *testing.T) {
	texts := map[string]string{}
	eachDocument(t, func(name, text string) { texts[name] = text })
	links := 0
	for name, text := range texts {
		prose(text, func(line string) {
			for _, m := range linkRx.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				links++
				path, anchor, _ := strings.Cut(m[1], "#")
				to := name
				if path != "" {
					to = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
				}
				if _, err := os.Stat(filepath.Join("..", "..", to)); err != nil {
					t.Errorf("%s: %s is not there", name, m[1])
				} else if anchor != "" && !slices.Contains(anchors(texts[to]), anchor) {
					t.Errorf("%s: %s has no such heading", name, m[1])
				}
			}
		})
	}
	if links < 30 {
		t.Errorf("%d links were looked at", links)
	}
}

// What comments, help and scripts say of documents is there.
func TestMentions(t *testing.T) {
	rx := regexp.MustCompile(`\bdocs/[a-z/-]+\.(?:md|svg|png)\b`)
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && path != root && (n == ".git" || n == "testdata" || n == "node_modules" || n == "bin") {
			return filepath.SkipDir
		}
		if !slices.Contains([]string{".go", ".sh", ".c", ".h", ".cl", ".service", ".yaml", ".yml"}, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range rx.FindAllString(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, m)); err != nil {
				t.Errorf("%s: %s is not there", path, m)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLineLengths(t *testing.T) {
	eachDocument(t, func(name, text string) {
		prose(text, func(line string) {
			if utf8.RuneCountInString(line) <= docsWidth || strings.HasPrefix(strings.TrimSpace(line), "|") || len(strings.Fields(line)) < 3 {
				return
			}
			t.Errorf("%s: a line of %d characters: %.60s...", name, utf8.RuneCountInString(line), line)
		})
	})
}

// The first page is short.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 120 {
		t.Errorf("README.md has %d lines, want 120 at most", n)
	}
}

// A test that a document names as what keeps a statement is there.
func TestTestsAreThere(t *testing.T) {
	root := filepath.Join("..", "..")
	var tests strings.Builder
	var docs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch n := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(n, ".") || n == "node_modules" || n == "bin"):
			return filepath.SkipDir
		case strings.HasSuffix(n, ".md"):
			docs = append(docs, path)
		case strings.HasSuffix(n, "_test.go"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			tests.Write(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rx := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	for _, path := range docs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range rx.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(tests.String(), "\nfunc "+m[1]) {
				t.Errorf("%s: there is no %s", path, m[1])
			}
		}
	}
}
