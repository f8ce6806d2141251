// Command mutants takes mends back, one at a time, and wants a test to fail each time: a test that passes all the
// same tests nothing. Sources are left alone, the go command is told of the changed file (go help build, -overlay). It
// takes the time of all those tests, many of which need root: make mutants.
//
// usage: mutants [REGEXP]: those whose file or test matches
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	which := regexp.MustCompile(".")
	if len(args) > 0 {
		var err error
		if which, err = regexp.Compile(args[0]); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp("", "rdx-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	killed, survived, skipped, broken := 0, 0, 0, 0
	passes := make(map[string]bool) // tests, with all mends, that were run
	for i := range mutants {
		m := &mutants[i]
		if !which.MatchString(m.file) && !which.MatchString(m.test) {
			continue
		}
		start := time.Now()
		name := m.folder() + " " + m.test
		if _, ran := passes[name]; !ran {
			out, failed := m.testWith("")
			if passes[name] = !failed; failed {
				fmt.Printf("%s\n", out)
			}
		}
		if !passes[name] {
			broken++
			fmt.Printf("%-8s %5.1f s  %s\n", "broken", time.Since(start).Seconds(), m)
			continue
		}
		end, err := m.try(tmp)
		if err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		switch end {
		case "killed":
			killed++
		case "skipped":
			skipped++
		default:
			survived++
		}
		fmt.Printf("%-8s %5.1f s  %s\n", end, time.Since(start).Seconds(), m)
	}
	fmt.Printf("%d mends taken back: %d noticed, %d not, %d not to be told, as what their test needs is not here\n", killed+survived+skipped, killed, survived, skipped)
	if broken > 0 {
		return fmt.Errorf("the tests of %d mends fail with them, too", broken)
	}
	if survived > 0 {
		return errors.New("some tests pass without what they test")
	}
	return nil
}

// mutant is a mend, and the test that is there for it.
type mutant struct {
	why      string // what is without it
	file     string
	old, new string
	test     string // NAME, or NAME/SUBTEST
	in       string // its package; "": the file's
}

func (m *mutant) String() string { return fmt.Sprintf("%s: %s (%s)", m.test, m.why, m.file) }

func (m *mutant) folder() string {
	if m.in != "" {
		return m.in
	}
	return filepath.Dir(m.file)
}

// changed is the file without the mend.
func (m *mutant) changed() ([]byte, error) {
	b, err := os.ReadFile(m.file)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(b, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("the text that it changes is there %d times, want once", n)
	}
	return bytes.Replace(b, []byte(m.old), []byte(m.new), 1), nil
}

// try says what became of it.
func (m *mutant) try(tmp string) (end string, err error) {
	b, err := m.changed()
	if err != nil {
		return "", err
	}
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	file := filepath.Join(tmp, "changed.go")
	overlay := filepath.Join(tmp, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.file): file}})
	if err == nil {
		err = errors.Join(os.WriteFile(file, b, 0o600), os.WriteFile(overlay, replace, 0o600))
	}
	if err != nil {
		return "", err
	}
	out, failed := m.testWith("-overlay=" + overlay)
	first, _, _ := strings.Cut(m.test, "/")
	switch {
	case !bytes.Contains(out, []byte("=== RUN   "+first)):
		return "", fmt.Errorf("it does not build, or there is no such test: %s", out)
	case failed:
		return "killed", nil
	case bytes.Contains(out, []byte("--- SKIP: "+first)):
		return "skipped", nil
	default:
		return "survived", nil
	}
}

// testWith runs the test with flags of the go command. Tests build rdx by themselves, and so get them, too.
func (m *mutant) testWith(flags string) (out []byte, failed bool) {
	name := "^" + strings.ReplaceAll(m.test, "/", "$/^") + "$"
	cmd := exec.Command("go", "test", "-count=1", "-v", "-vet=off", "-timeout=8m", "-run", name, "./"+m.folder())
	cmd.Env = append(os.Environ(), "GOFLAGS="+flags)
	out, err := cmd.CombinedOutput()
	return out, err != nil
}
