package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

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
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if strings.HasPrefix(cmd.CommandPath(), "rdx completion") || cmd.Hidden {
			return // cobra's own
		}
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
	}
	visit(root)
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
