package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/agent"
	"github.com/rdx-profiler/rdx/internal/version"
	"github.com/rdx-profiler/rdx/report"
)

func newAgentCmd() *cobra.Command {
	var file, server, tokenFile, spool, listen, logLevel string
	var overhead float64
	var check bool
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Sample every process of this machine, for a fleet's server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			read := func() (agent.Config, error) {
				c := agent.Defaults()
				if file != "" {
					var err error
					if c, err = agent.ReadConfig(file); err != nil {
						return c, err
					}
				}
				for _, f := range []struct {
					name string
					take func()
				}{
					{"server", func() { c.Server.Server = server }},
					{"token-file", func() { c.Server.TokenFile = tokenFile }},
					{"overhead", func() { c.Overhead = overhead }},
					{"spool", func() { c.Spool.Dir = spool }},
					{"listen", func() { c.Listen = listen }},
					{"log-level", func() { c.LogLevel = logLevel }},
				} {
					if cmd.Flags().Changed(f.name) {
						f.take()
					}
				}
				return c, nil
			}
			c, err := read()
			if err == nil && check {
				if err = c.Check(); err == nil {
					err = c.CheckAccess()
				}
			}
			if err != nil {
				return report.BadInput(err)
			}
			if check {
				return nil
			}
			return runAgent(cmd.Context(), c, read)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&file, "config", "", "file with the configuration (YAML); flags win over it")
	fs.StringVar(&server, "server", "", "URL of Pyroscope, such as http://127.0.0.1:4040")
	fs.StringVar(&tokenFile, "token-file", "", "file with a bearer token")
	fs.Float64Var(&overhead, "overhead", 1, "percent of the machine's CPU time that everything may cost together")
	fs.StringVar(&spool, "spool", agent.Defaults().Spool.Dir, "folder in which windows wait for the server")
	fs.StringVar(&listen, "listen", agent.Defaults().Listen, "where /metrics and /healthz are: an address of loopback, unix:PATH, or \"\" for nowhere")
	fs.StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
	fs.BoolVar(&check, "check", false, "read the configuration, say what is wrong with it, and end")
	return cmd
}

func runAgent(ctx context.Context, c agent.Config, read func() (agent.Config, error)) error {
	if err := c.Check(); err != nil {
		return report.BadInput(err)
	}
	log := agent.Logger(c.LogLevel)
	defer log.Sync()
	// Garbage is collected the sooner the nearer this comes.
	debug.SetMemoryLimit(40 << 20)
	// Before it takes over the spool: what it finds there of an agent before it, it must get to say.
	ctx, stop := signal.NotifyContext(ctx, unix.SIGTERM, os.Interrupt)
	defer stop()
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, unix.SIGHUP)
	defer signal.Stop(reload)
	a, err := agent.New(agent.Options{Config: c, Reload: read, Version: version.Get().String(), Log: log})
	if err != nil {
		return err
	}
	go func() { // whatever it hangs at
		<-ctx.Done()
		time.Sleep(agent.Ending)
		log.Error("the agent did not end in time, and ends at once")
		os.Exit(exitFailed)
	}()
	if err := a.Run(ctx, reload); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
