package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/internal/version"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler"
)

// diagnosis is all that doctor finds.
type diagnosis struct {
	Version  version.Info    `json:"version"`
	Usable   bool            `json:"usable"`
	Checks   []sampler.Check `json:"checks"`
	SelfTest *selfTest       `json:"self_test,omitempty"`
	sampler.Live

	forced string // the flags that ask for a source or clock; "" if none do
}

// errUnusable ends doctor with exit code 1; all has been said by then.
var errUnusable = errors.New("doctor: rdx cannot profile here; the lines marked no say what to change")

func newDoctorCmd() *cobra.Command {
	var asJSON jsonFlag
	var cfg collector.Config
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can do, and what to change",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.CheckChoice(); err != nil {
				return err
			}
			json, err := asJSON.wanted()
			if err != nil {
				return err
			}
			d := diagnose(cfg)
			if json {
				err = report.WriteJSON(cmd.OutOrStdout(), d)
			} else {
				err = d.print(cmd.OutOrStdout())
			}
			if err == nil && !d.Usable {
				err = errUnusable
			}
			return err
		},
	}
	asJSON.register(cmd)
	cmd.Flags().StringVar(&cfg.Source, "source", collector.Auto, "source of the self-test: pebs, ibs, pmu, clock or auto")
	cmd.Flags().StringVar(&cfg.Clock, "clock", collector.Auto, "clock of the self-test: pmu, cpu-time or auto")
	return cmd
}

func diagnose(cfg collector.Config) diagnosis {
	d := diagnosis{Version: version.Get(), forced: forced(cfg)}
	machine := sampler.Machine{Proc: os.DirFS("/proc"), Sys: os.DirFS("/sys")}
	d.Checks = machine.Checks()
	live, found := sampler.ProbeLive(machine)
	d.Checks = append(d.Checks, live...)
	d.Live = found
	d.SelfTest = d.selfTest(cfg)
	d.Usable = !d.lacks()
	return d
}

// forced names the source and the clock that rdx is not to choose by itself, as
// flags.
func forced(cfg collector.Config) string {
	var flags []string
	if cfg.Source != collector.Auto {
		flags = append(flags, "--source "+cfg.Source)
	}
	if cfg.Clock != collector.Auto {
		flags = append(flags, "--clock "+cfg.Clock)
	}
	return strings.Join(flags, " ")
}

// lacks says whether something is missing that rdx needs.
func (d *diagnosis) lacks() bool {
	return slices.ContainsFunc(d.Checks, func(c sampler.Check) bool { return c.Needed && c.Grade == sampler.Missing })
}

func (d *diagnosis) selfTest(cfg collector.Config) *selfTest {
	c := sampler.Check{Name: "self-test", Grade: sampler.Good, Needed: true}
	if d.Live.Watchpoints == nil {
		cfg.Burst = collector.AutoBurst // all there is
	}
	t, err := runSelfTest(cfg, func(pid int) {
		d.Checks = append(d.Checks, sampler.ProbeSeize(pid))
	})
	switch {
	case err != nil:
		c.Grade, c.Found = sampler.Missing, err.Error()
		c.Consequence = "a session does not work here"
		c.Remedy = "mend what is missing above"
		if d.forced != "" && !d.lacks() {
			c.Consequence = "a session with " + d.forced + " does not work here"
			c.Remedy = "leave it out: rdx doctor says then what rdx takes by itself, and why"
		}
	case t.onlyRead():
		c.Found = fmt.Sprintf("%d accesses read ahead in %v, none watched; threads held p50 %v, p99 %v", t.ReadAhead, t.Duration, t.HeldP50, t.HeldP99)
	case t.Pairs < minPairs:
		c.Grade, c.Found = sampler.Missing, fmt.Sprintf("only %d reuse pairs in %v, %.0f%% of the samples lost", t.Pairs, t.Duration, 100*t.Lost)
		c.Consequence = "a profile would be empty"
		c.Remedy = "mend what is missing above; the losses: " + lossList(t)
	default:
		c.Found = fmt.Sprintf("%d reuse pairs in %v, %.1f%% within half an octave of the truth (median %.0f of %.0f %s), %.1f%% given up before, %.1f%% lost; threads held p50 %v, p99 %v",
			t.Pairs, t.Duration, 100*t.Right, t.Median, t.Expected, t.Unit, 100*t.Censored, 100*t.Lost, t.HeldP50, t.HeldP99)
		if t.Right < .9 || t.Lost > .05 {
			c.Grade = sampler.Degraded
			c.Consequence = "profiles will be that far off"
			c.Remedy = "try again on a less busy machine; the losses: " + lossList(t)
		}
	}
	if t != nil {
		d.Checks = append(d.Checks, t.choices()...)
	}
	d.Checks = append(d.Checks, c)
	return t
}

// choices say what the session took.
func (t *selfTest) choices() []sampler.Check {
	source := sampler.Check{Name: "access source", Grade: sampler.Good, Found: t.Source.Name}
	if !t.Source.Best {
		source.Grade = sampler.Degraded
		source.Consequence = because("samples fall on CPU time, so that slow accesses are preferred", t.Source.Why)
		source.Remedy = "use bare metal or a virtual machine with a virtual PMU"
	}
	clock := sampler.Check{Name: "access clock", Grade: sampler.Good, Found: t.Clock.Name}
	if t.Resolution > 0 { // where nothing is watched nothing is timed
		clock.Found += fmt.Sprintf(", resolution %.0f %s", t.Resolution, t.Unit)
	}
	if !t.Clock.Best {
		clock.Grade = sampler.Degraded
		clock.Consequence = because("reuse times are measured in "+t.Unit+", accesses only estimated from them", t.Clock.Why)
		clock.Remedy = "use bare metal or a virtual machine with a virtual PMU; or state --access-rate"
	}
	return []sampler.Check{source, clock}
}

func because(what, why string) string {
	if why == "" {
		return what // as asked for by a flag
	}
	return what + "; no better one, because " + why
}

func lossList(t *selfTest) string {
	if len(t.Losses) == 0 {
		return "none"
	}
	out := ""
	for i, l := range t.Losses {
		if i > 0 {
			out += ", "
		}
		why, _ := model.LostBecause.Why(l.Name)
		out += fmt.Sprintf("%s (%d)", why, l.N)
	}
	return out
}

func (d diagnosis) print(w io.Writer) error {
	for _, c := range d.Checks {
		if _, err := fmt.Fprintf(w, "%-9s %-22s %s\n", c.Grade, c.Name, c.Found); err != nil {
			return err
		}
		if c.Grade == sampler.Good {
			continue
		}
		for _, more := range []struct{ label, text string }{{"so", c.Consequence}, {"do", c.Remedy}} {
			if more.text != "" {
				if _, err := fmt.Fprintf(w, "%-9s %-22s %s: %s\n", "", "", more.label, more.text); err != nil {
					return err
				}
			}
		}
	}
	verdict := "rdx can profile on this machine"
	if !d.Usable {
		verdict = "rdx cannot profile on this machine"
	}
	if d.forced != "" {
		verdict += " with " + d.forced
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}
