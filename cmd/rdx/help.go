package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is how many columns help has.
const helpWidth = 80

// commandGroups are the headings of rdx --help, with the commands below each.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"sample", "Profile a program:", []string{"attach", "run", "doctor"}},
	{"read", "Read a profile:", []string{"top", "hist", "mrc", "threads", "phases", "diff", "annotate", "web", "report", "why"}},
	{"exact", "Exact answers:", []string{"exact", "trace", "compare", "gen", "engine"}},
	{"share", "Programs that share a cache:", []string{"compose", "partition", "group"}},
	{"fleet", "Every machine of a fleet:", []string{"agent", "fleet"}},
	{"about", "rdx itself:", []string{"version", "completion", "help"}},
}

// firstFlags are those of a command that people need first; of commands that are not here, all
// are. The rest is under "More flags".
var firstFlags = map[string][]string{
	"attach":       {"output", "duration", "overhead", "tree", "container", "cgroup", "follow", "every", "heap", "stack", "quiet", "verbose"},
	"run":          {"output", "duration", "overhead", "follow", "heap", "stack", "quiet", "verbose"},
	"exact":        {"output", "block", "stack", "sizes", "format", "engine"},
	"fleet top":    {"server", "service", "since", "label", "by", "by-label", "number", "format"},
	"fleet mrc":    {"server", "service", "since", "label", "by", "sizes", "format"},
	"fleet diff":   {"server", "service", "since", "by", "number", "sizes", "format"},
	"fleet get":    {"server", "service", "since", "label", "every", "output", "quiet"},
	"web":          {"listen", "source", "sizes", "server", "service", "by"},
	"compare":      {"by", "number", "work", "format"},
	"trace record": {"output", "max-size", "children", "engine", "quiet"},
	"top":          {"by", "number", "cover", "cache", "format"},
	"agent":        {"config", "server", "overhead", "check"},
	"mrc":          {"sizes", "stack", "format"},
	"diff":         {"by", "number", "sizes", "format"},
	"phases":       {"sizes", "format"},
}

// helpTexts has a file for each command, named by its path. Its first line says which part of the
// output TestHelpExamples takes as the excerpt, "N from PATTERN", or that it was taken by hand; then
// come the example with the excerpt, other examples, and what else there is to know.
//
//go:embed help/*.txt
var helpTexts embed.FS

// helpText is a file of helpTexts.
type helpText struct{ take, example, more, about string }

// readHelp reads the file of a command.
func readHelp(c *cobra.Command) (helpText, error) {
	b, err := helpTexts.ReadFile("help/" + helpFile(c))
	if err != nil {
		return helpText{}, err
	}
	text, about, ok := strings.Cut(string(b), "-- about --\n")
	text, more, ok2 := strings.Cut(text, "-- more --\n")
	take, example, ok3 := strings.Cut(strings.TrimPrefix(text, "excerpt: "), "\n")
	if !ok || !ok2 || !ok3 {
		return helpText{}, fmt.Errorf("%s lacks a part", helpFile(c))
	}
	return helpText{take, example, more, about}, nil
}

// helpFile is the name of a command's file.
func helpFile(c *cobra.Command) string {
	_, path, below := strings.Cut(c.CommandPath(), " ")
	if !below {
		path = c.Name()
	}
	return strings.ReplaceAll(path, " ", "_") + ".txt"
}

// setHelp gives a command, and those below it, the texts of their files.
func setHelp(c *cobra.Command) {
	for _, sub := range c.Commands() {
		setHelp(sub)
	}
	if c.HasSubCommands() {
		c.DisableFlagsInUseLine = true
	}
	if c.Hidden {
		return
	}
	t, err := readHelp(c)
	if err != nil {
		panic(err) // the files are in the binary, and a test reads each
	}
	c.Long = strings.TrimSpace(t.about)
	c.Example = indented(t.example)
	if t.more != "" {
		c.Example += "\n\nMore examples:\n" + indented(t.more)
	}
}

// indented has two spaces before each line that is not empty.
func indented(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = "  " + l
		}
	}
	return strings.Join(lines, "\n")
}

// arrangeHelp gives root and the commands below it their help: a line that says what it does, usage, an example
// with what it prints, flags that are needed first, the others, and what else there is to know.
func arrangeHelp(root *cobra.Command) {
	setHelp(root)
	cobra.AddTemplateFunc("wrapped", wrapped)
	cobra.AddTemplateFunc("firstFlags", func(c *cobra.Command) string { return flagUsages(c, true) })
	cobra.AddTemplateFunc("moreFlags", func(c *cobra.Command) string { return flagUsages(c, false) })
	byName := map[string]*cobra.Command{}
	for _, c := range root.Commands() {
		byName[c.Name()] = c
	}
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			if c := byName[name]; c != nil {
				c.GroupID = g.id
			}
		}
	}
	root.SetHelpCommandGroupID("about")
	root.SetCompletionCommandGroupID("about")
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate(`{{with .Short}}{{.}}.

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}{{with .Long}}
{{wrapped .}}
{{end}}`)
}

const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Example:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{if eq (len .Groups) 0}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if not .AllChildCommandsHaveGroup}}

More commands:{{range $cmds}}{{if (and (eq .GroupID "") .IsAvailableCommand)}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{with firstFlags .}}

Flags:
{{.}}{{end}}{{with moreFlags .}}

More flags:
{{.}}{{end}}{{if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help says more of a command.{{end}}
`

// flagUsages are the lines of those flags of a command that come first, or of the others.
func flagUsages(c *cobra.Command, first bool) string {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	names, chosen := firstFlags[path]
	some := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		is := !chosen
		for _, n := range names {
			is = is || n == f.Name
		}
		if f.Name == "help" || f.Name == "version" {
			is = !c.HasParent() // of rdx alone, as all have it
			if c.HasParent() {
				return
			}
		}
		if is == first {
			some.AddFlag(f)
		}
	})
	return strings.TrimRight(some.FlagUsagesWrapped(helpWidth), "\n")
}

// wrapped breaks paragraphs anew at 80 columns; lines that begin with a space stay as they are.
func wrapped(text string) string {
	var out []string
	var words []string
	flush := func() {
		line := ""
		for _, w := range words {
			if line != "" && len(line)+1+len(w) > helpWidth {
				out = append(out, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += w
		}
		if line != "" {
			out = append(out, line)
		}
		words = nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line == "" || line[0] == ' ' {
			flush()
			out = append(out, line)
			continue
		}
		words = append(words, strings.Fields(line)...)
	}
	flush()
	return strings.Join(out, "\n")
}
