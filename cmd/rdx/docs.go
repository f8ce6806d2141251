package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rdx-profiler/rdx/internal/version"
	"github.com/rdx-profiler/rdx/report"
)

// newDocsCmd writes what packages install: manual pages and completions.
func newDocsCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "docs DIR",
		Short:   "Write manual pages and completions for packages",
		Example: `  rdx docs out`,
		Hidden:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return report.BadInput(errors.New("docs: name one folder"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return writeDocs(cmd.Root(), args[0]) },
	}
}

func writeDocs(root *cobra.Command, dir string) error {
	for _, sub := range []string{"man", "completion"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return fmt.Errorf("docs: %w", err)
		}
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.DisableAutoGenTag = true
	at := time.Unix(0, 0).UTC() // the same bytes each time
	if s := os.Getenv("SOURCE_DATE_EPOCH"); s != "" {
		var n int64
		if _, err := fmt.Sscan(s, &n); err != nil {
			return fmt.Errorf("docs: SOURCE_DATE_EPOCH: %w", err)
		}
		at = time.Unix(n, 0).UTC()
	}
	header := &doc.GenManHeader{Section: "1", Date: &at, Source: "rdx " + version.Get().Version, Manual: "rdx"}
	if err := doc.GenManTree(root, header, filepath.Join(dir, "man")); err != nil {
		return fmt.Errorf("docs: %w", err)
	}
	for shell, write := range map[string]func(io.Writer) error{
		"rdx.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"_rdx":     root.GenZshCompletion,
		"rdx.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	} {
		f, err := os.Create(filepath.Join(dir, "completion", shell))
		if err == nil {
			err = errors.Join(write(f), f.Close())
		}
		if err != nil {
			return fmt.Errorf("docs: %w", err)
		}
	}
	return nil
}

// commandReference is docs/reference/commands.md: the help of every command.
func commandReference(root *cobra.Command) (string, error) {
	var b strings.Builder
	b.WriteString("# Commands\n\nThe help of every command, as `rdx COMMAND --help` prints it. Made by\n" +
		"`go test ./cmd/rdx -run TestCommandReference -update`.\n")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var visit func(c *cobra.Command) error
	visit = func(c *cobra.Command) error {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return nil
		}
		c.InitDefaultHelpFlag()
		var out strings.Builder
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s```\n", c.CommandPath(), strings.TrimLeft(out.String(), "\n"))
		for _, sub := range c.Commands() {
			if err := visit(sub); err != nil {
				return err
			}
		}
		return nil
	}
	err := visit(root)
	return b.String(), err
}
