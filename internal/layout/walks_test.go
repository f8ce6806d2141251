package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var codeRx = regexp.MustCompile("`([^`]+)`")

// walk is a numbered list of docs/explanation/design.md: by step the files and names in code font.
func walk(t *testing.T, heading string) (steps [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "explanation", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("no heading %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n\n")
	starts := regexp.MustCompile(`(?m)^\d+\. `).FindAllStringIndex(rest, -1)
	for i, at := range starts {
		end := len(rest)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		var said []string
		for _, m := range codeRx.FindAllStringSubmatch(rest[at[0]:end], -1) {
			said = append(said, m[1])
		}
		steps = append(steps, said)
	}
	return steps
}

// isFile says whether a word in code font is a file, and not a name in the one before.
func isFile(said string) bool { return strings.ContainsAny(said, "/.") }

// What the walks say is there: each file, and each name in the file named before it.
func TestWalks(t *testing.T) {
	for _, heading := range []string{"## The walk of a sample, and of its traps", "## The walk of a recorded access"} {
		steps := walk(t, heading)
		if len(steps) != 10 {
			t.Errorf("%s: %d steps, want 10", heading, len(steps))
		}
		name, text, names := "", "", 0
		for i, step := range steps {
			for _, said := range step {
				if isFile(said) {
					b, err := os.ReadFile(filepath.Join("..", "..", said))
					if err != nil {
						t.Errorf("%s, step %d: %v", heading, i+1, err)
						continue
					}
					name, text = said, string(b)
					continue
				}
				declared := `(?m)^func (\([^)]*\) )?` + said + `[(\[]`
				if !strings.HasSuffix(name, ".go") {
					declared = `(?m)^[^/\n]*\b` + said + `\(`
				}
				if names++; name == "" || isDir(said) {
					continue
				}
				if !regexp.MustCompile(declared).MatchString(text) {
					t.Errorf("%s, step %d: %s is not declared in %s", heading, i+1, said, name)
				}
			}
		}
		if names < 8 {
			t.Errorf("%s: %d names", heading, names)
		}
	}
}

// isDir says whether a word is a folder of the tree.
func isDir(said string) bool {
	st, err := os.Stat(filepath.Join("..", "..", said))
	return err == nil && st.IsDir()
}

// mostPassed is how many files of the collector a trap may pass.
const mostPassed = 6

// A trap goes through the collector forward: by few files, and by none again that it has left.
func TestTrapGoesForward(t *testing.T) {
	var passed []string
	for _, step := range walk(t, "## The walk of a sample, and of its traps")[4:8] { // from the trap to what stays
		for _, said := range step {
			if isFile(said) && strings.HasPrefix(said, "collector/") && (len(passed) == 0 || passed[len(passed)-1] != said) {
				passed = append(passed, said)
			}
		}
	}
	if len(passed) < 3 || len(passed) > mostPassed {
		t.Errorf("a trap passes %d files, %d at most: %v", len(passed), mostPassed, passed)
	}
	for i, f := range passed {
		if slices.Contains(passed[:i], f) {
			t.Errorf("a trap comes back to %s: %v", f, passed)
		}
	}
}
