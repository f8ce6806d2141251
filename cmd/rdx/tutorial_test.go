package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
)

// Needs: root, bpf, watchpoint, gcc. Every command of the tutorial does what it says there.
func TestTutorial(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needTool(t, "gcc")
	page, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("../../demo")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(source, filepath.Join(dir, "demo")); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{} // by the command's first words
	commands := 0
	for line := range strings.Lines(string(page)) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			continue
		}
		commands++
		words := strings.Fields(strings.TrimPrefix(command, "sudo "))
		name := strings.Join(words[:min(3, len(words))], " ")
		if words[0] == "rdx" {
			words[0] = rdxPath(t)
		}
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		if strings.HasPrefix(words[0], "./") {
			cmd.Path = filepath.Join(dir, words[0])
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		said[name] += string(out)
	}
	if commands < 8 {
		t.Fatalf("%d commands in the tutorial", commands)
	}
	for name, want := range map[string]string{
		"rdx top before.pb.gz":  "total  particles.c:",
		"rdx top --by":          "particles: particle.mass",
		"rdx run -o":            "predicted to miss L1d ",
		"rdx diff before.pb.gz": "* [",
	} {
		if !strings.Contains(said[name], want) {
			t.Errorf("%s does not say %q:\n%s", name, want, said[name])
		}
	}
}
