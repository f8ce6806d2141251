package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/fleet"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
)

func newFleetCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Ask what the agents of a fleet have found",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return report.BadInput(fmt.Errorf("fleet: no command %q (see rdx fleet --help)", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFleetTopCmd(), newFleetMrcCmd(), newFleetDiffCmd(), newFleetGetCmd())
	return cmd
}

// fleetFlags say which server is asked, and for what.
type fleetFlags struct {
	access   fleet.Access
	service  string
	labels   []string
	since    time.Duration
	from, to string
	mix      bool
	timeout  time.Duration

	now func() time.Time
}

func (f *fleetFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.now = time.Now
	fs.StringVar(&f.access.Server, "server", os.Getenv("RDX_FLEET_SERVER"), "URL of Pyroscope, such as http://127.0.0.1:4040 (default: that in RDX_FLEET_SERVER)")
	fs.StringVar(&f.access.Tenant, "tenant", "", "tenant, sent as X-Scope-OrgID")
	fs.StringVar(&f.access.TokenFile, "token-file", "", "file with a bearer token")
	fs.StringVar(&f.access.User, "user", "", "user of basic authentication")
	fs.StringVar(&f.access.PasswordFile, "password-file", "", "file with the user's password")
	fs.StringVar(&f.access.CAFile, "ca-file", "", "certificates that the server's must be signed by, PEM")
	fs.StringVar(&f.access.CertFile, "cert-file", "", "client certificate, PEM")
	fs.StringVar(&f.access.KeyFile, "key-file", "", "its key, PEM")
	fs.StringVar(&f.access.Proxy, "proxy", "", "URL of a proxy (default: as HTTPS_PROXY and its kin say)")
	fs.StringVar(&f.service, "service", "", "label service_name")
	fs.StringArrayVar(&f.labels, "label", nil, "another label, NAME=VALUE, !=, =~REGEXP or !~REGEXP; may be given again")
	fs.DurationVar(&f.since, "since", time.Hour, "how far back to look")
	fs.StringVar(&f.from, "from", "", "or from when on, such as 2026-03-04T05:06:07Z")
	fs.StringVar(&f.to, "to", "", "and up to when (default: now)")
	fs.BoolVar(&f.mix, "mix", false, "merge machines with different caches or clocks")
	fs.DurationVar(&f.timeout, "timeout", time.Minute, "for the server to answer one request")
}

// open makes a client and the query that the flags are.
func (f *fleetFlags) open() (*fleet.Client, fleet.Query, error) {
	q := fleet.Query{Labels: slices.Clone(f.labels), Mix: f.mix, To: f.now()}
	if f.access.Server == "" {
		return nil, q, report.BadInput(errors.New("fleet: no --server"))
	}
	if f.timeout <= 0 {
		return nil, q, report.BadInput(fmt.Errorf("--timeout %v: want more than 0, such as 30s", f.timeout))
	}
	if f.since <= 0 && f.from == "" {
		return nil, q, report.BadInput(fmt.Errorf("--since %v: want more than 0, such as 1h", f.since))
	}
	if f.service != "" {
		q.Labels = append([]string{"service_name=" + f.service}, q.Labels...)
	}
	if _, err := fleet.Selector(q.Labels); err != nil {
		return nil, q, report.BadInput(fmt.Errorf("--label: %w", err))
	}
	var err error
	if f.to != "" {
		if q.To, err = time.Parse(time.RFC3339, f.to); err != nil {
			return nil, q, report.BadInput(fmt.Errorf("--to: %w", err))
		}
	}
	q.From = q.To.Add(-f.since)
	if f.from != "" {
		if q.From, err = time.Parse(time.RFC3339, f.from); err != nil {
			return nil, q, report.BadInput(fmt.Errorf("--from: %w", err))
		}
	}
	if !q.From.Before(q.To) {
		return nil, q, report.BadInput(fmt.Errorf("fleet: the range from %s to %s is empty (see --since, --from and --to)", q.From.Format(time.RFC3339), q.To.Format(time.RFC3339)))
	}
	c, err := fleet.NewClient(f.access, f.timeout)
	if err != nil {
		return nil, q, report.BadInput(err)
	}
	return c, q, nil
}

// interruptible ends requests on Ctrl-C.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt)
}

// one is the merge of a query, with one kind of stack.
func one(ctx context.Context, c *fleet.Client, q fleet.Query) (*model.Profile, error) {
	p, err := c.Profile(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if p, err = report.OnStack(p, ""); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	return p, nil
}

// parts are the merges by the values of a label, in their order.
func parts(ctx context.Context, c *fleet.Client, q fleet.Query, by string, each func(value string, p *model.Profile) error) error {
	values, err := c.Values(ctx, q, by)
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	if len(values) == 0 {
		selector, _ := fleet.Selector(q.Labels)
		if _, err := c.Profile(ctx, q); err != nil {
			return fmt.Errorf("fleet: %w", err)
		}
		return fmt.Errorf("fleet: no profile with %s has a label %q", selector, by)
	}
	const most = 100
	if len(values) > most {
		return fmt.Errorf("fleet: %d values of %s are more than %d: select some by --label %s=~REGEXP", len(values), by, most, by)
	}
	for _, v := range values {
		p, err := one(ctx, c, q.With(by, v))
		if _, empty := errors.AsType[*fleet.ErrEmpty](err); empty {
			continue // its series begins or ends at the range's border
		}
		if err == nil {
			err = each(v, p)
		}
		if err != nil {
			return fmt.Errorf("%s=%s: %w", by, report.Printable(v), err)
		}
	}
	return nil
}

func newFleetMrcCmd() *cobra.Command {
	var f fleetFlags
	var curves curveFlags
	var by, format string
	cmd := &cobra.Command{
		Use:   "mrc",
		Short: "Draw the miss ratio curve of a service over all its machines",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := report.OneOf("format", format, append([]string{"svg"}, report.Formats...)); err != nil {
				return err
			}
			options, err := curves.options()
			if err != nil {
				return err
			}
			c, q, err := f.open()
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd)
			defer stop()
			r := report.MissRatios{Model: options.Model, Ways: options.Ways}
			add := func(name string, p *model.Profile) error {
				curve, err := report.NewMissCurve(p, curves.sizes, options)
				if err != nil {
					return err
				}
				curve.File = name
				r.Curves = append(r.Curves, curve)
				return nil
			}
			if by != "" {
				err = parts(ctx, c, q, by, func(value string, p *model.Profile) error {
					if !report.Observed(p) {
						fmt.Fprintf(cmd.ErrOrStderr(), "rdx: %s=%s has no observations, and no curve\n", by, report.Printable(value))
						return nil
					}
					return add(by+"="+value, p)
				})
			} else {
				var p *model.Profile
				if p, err = one(ctx, c, q); err == nil {
					err = add(p.Command, p)
				}
			}
			if err != nil {
				return err
			}
			if format == "svg" {
				return r.WriteSVG(cmd.OutOrStdout())
			}
			return write(cmd, format, &r)
		},
	}
	f.register(cmd)
	curves.register(cmd)
	detailFlag(cmd)
	cmd.Flags().StringVar(&by, "by", "", "a curve for each value of this label, such as version or host")
	cmd.Flags().StringVar(&format, "format", "text", "text, json, csv or svg")
	return cmd
}

func newFleetDiffCmd() *cobra.Command {
	var f fleetFlags
	var curves curveFlags
	var by, format string
	var n int
	cmd := &cobra.Command{
		Use:   "diff LABEL=BEFORE LABEL=AFTER",
		Short: "Compare two versions of a service, or any two labels",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return report.BadInput(errors.New("fleet diff: name two labels, such as version=41 version=42"))
			}
			if _, err := fleet.Selector(args); err != nil {
				return report.BadInput(fmt.Errorf("fleet diff: %w", err))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, report.Formats); err != nil {
				return err
			}
			if n < 1 {
				return report.BadInput(fmt.Errorf("-n %d: want 1 or more", n))
			}
			options, err := curves.options()
			if err != nil {
				return err
			}
			c, q, err := f.open()
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd)
			defer stop()
			var p [2]*model.Profile
			for i, label := range args {
				side := q
				side.Labels = append(slices.Clone(q.Labels), label)
				if p[i], err = one(ctx, c, side); err != nil {
					return err
				}
			}
			d, err := report.NewDiff(p[0], p[1], curves.sizes, options, by)
			if err != nil {
				return fmt.Errorf("%s and %s: %w", args[0], args[1], err)
			}
			d.Pairs = d.Pairs[:min(n, d.All)]
			return write(cmd, format, d)
		},
	}
	f.register(cmd)
	curves.register(cmd)
	cmd.Flags().StringVar(&by, "by", "misses", "what pairs are compared by: misses (of the last level), reuses, accesses, or a cache level such as l1d, l2, l3")
	cmd.Flags().IntVarP(&n, "number", "n", 10, "how many pairs to show")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	return cmd
}

func newFleetGetCmd() *cobra.Command {
	var f fleetFlags
	var output string
	var every time.Duration
	var quiet bool
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Write a merge as a profile, for every other command",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, q, err := f.open()
			if err != nil {
				return err
			}
			if every < 0 || every > 0 && every < time.Second {
				return report.BadInput(fmt.Errorf("--every %v: want 1s or more", every))
			}
			if every > 0 && output == "-" {
				return report.BadInput(errOneStream)
			}
			if err := pprofout.CheckWritable(output); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd)
			defer stop()
			if every == 0 {
				p, err := c.Profile(ctx, q)
				if err != nil {
					return fmt.Errorf("fleet: %w", err)
				}
				if err := pprofout.WriteFile(output, p); err != nil || quiet || output == "-" {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "rdx: wrote %s\n", output)
				return nil
			}
			written := 0
			for at, i := q.From, 1; at.Before(q.To); at, i = at.Add(every), i+1 {
				part := q
				part.From, part.To = at, at.Add(every-time.Millisecond)
				if part.To.After(q.To) {
					part.To = q.To
				}
				p, err := c.Profile(ctx, part)
				if _, empty := errors.AsType[*fleet.ErrEmpty](err); empty {
					continue
				}
				if err == nil {
					err = pprofout.WriteFile(numbered(output, i), p)
				}
				if err != nil {
					return fmt.Errorf("fleet: %w", err)
				}
				written++
			}
			if written == 0 {
				selector, _ := fleet.Selector(q.Labels)
				return fmt.Errorf("fleet: %w", &fleet.ErrEmpty{Selector: selector, From: q.From, To: q.To})
			}
			if !quiet {
				fmt.Fprintf(cmd.ErrOrStderr(), "rdx: %d profiles written\n", written)
			}
			return nil
		},
	}
	f.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "fleet.pb.gz", "profile to write; - for standard output")
	quietFlag(cmd, &quiet)
	cmd.Flags().DurationVar(&every, "every", 0, "write one for each so long part of the range")
	return cmd
}

// errOneStream says that profiles with numbers in their names have no place on standard output.
var errOneStream = errors.New("-o - takes one profile, and --every writes several: name a file")

// numbered puts a number into the name of a file, before .pb.gz.
func numbered(path string, n int) string {
	dir, name := filepath.Split(path)
	base, ext := name, ""
	if i := strings.IndexByte(name[min(1, len(name)):], '.'); i >= 0 {
		base, ext = name[:i+1], name[i+1:]
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%04d%s", base, n, ext))
}
