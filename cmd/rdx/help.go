package main

import (
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
	{"read", "Read a profile:", []string{"top", "hist", "mrc", "threads", "phases", "diff", "annotate", "web", "report", "why", "advise"}},
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
	"trace record": {"output", "max-size", "children", "engine", "quiet"},
	"top":          {"by", "number", "cover", "cache", "format"},
	"agent":        {"config", "server", "overhead", "check"},
	"mrc":          {"sizes", "stack", "format"},
	"diff":         {"by", "number", "sizes", "format"},
	"phases":       {"sizes", "format"},
}

// arrangeHelp gives root and the commands below it their help: in groups, flags
// that are needed first before the others, and nothing wider than 80 columns.
func arrangeHelp(root *cobra.Command) {
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
	root.SetHelpTemplate(`{{with (or .Long .Short)}}{{wrapped .}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}`)
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
