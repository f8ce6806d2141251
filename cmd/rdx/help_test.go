package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command says what it is for, and shows a call that its own flags and
// arguments know.
func TestHelp(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.HasSubCommands() && cmd.HasParent() {
			return // its own commands have examples
		}
		if cmd.Short == "" || cmd.Example == "" {
			t.Errorf("%s: no help, or no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			_, args, ok := strings.Cut(line+" ", "rdx ")
			if !ok || strings.Contains(line, "|") || strings.Contains(line, "tool") {
				continue // of other programs, too
			}
			args, _, _ = strings.Cut(args, " > ")
			args = strings.NewReplacer("$(pidof sqlite3)", "1", "'", "", `"`, "").Replace(args)
			found, rest, err := cmd.Root().Find(strings.Fields(args))
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
