package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/report"
)

func newGenCmd() *cobra.Command {
	var g genFlags
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Generate a trace with a given histogram of stack distances",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return report.BadInput(fmt.Errorf("gen: argument %q is not known", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return g.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&g.hist, "hist", "", "CSV file with a histogram of stack distances")
	f.StringVar(&g.normal, "normal", "", "MEAN,SD: Normal law with this mean and standard deviation, in blocks")
	f.StringVar(&g.exp, "exp", "", "RATE: probability of distance k proportional to exp(-RATE k)")
	f.StringVar(&g.zipf, "zipf", "", "S: probability of distance k proportional to 1/(k+1)^S")
	f.Uint64VarP(&g.blocks, "blocks", "n", 0, "distinct blocks; 0, with --hist only: as many as its first accesses make")
	f.Uint64VarP(&g.length, "length", "t", 0, "accesses")
	f.Uint64Var(&g.seed, "seed", 1, "of the random numbers")
	f.StringVar(&g.block, "block", "line", "distance between addresses: word (8 bytes), line (64), page (4096), or a number of bytes")
	f.StringVarP(&g.output, "output", "o", "-", "file to write, - for standard output")
	return cmd
}

type genFlags struct {
	hist, normal, exp, zipf string
	blocks, length, seed    uint64
	block, output           string
}

func (g *genFlags) run(cmd *cobra.Command) error {
	bytes, err := blockBytes(g.block)
	if err != nil {
		return err
	}
	if g.length == 0 {
		return report.BadInput(errors.New("gen: say how many accesses with -t"))
	}
	law, err := g.law(cmd.ErrOrStderr(), bytes)
	if err != nil {
		return err
	}
	gen, err := exact.NewGenerator(law, g.blocks, g.seed)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if g.output != "-" {
		f, err := os.Create(g.output)
		if err != nil {
			return fmt.Errorf("create trace: %w", err)
		}
		if err := g.write(f, gen, uint64(bytes)); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("write trace: %w", err)
		}
	} else if err := g.write(out, gen, uint64(bytes)); err != nil {
		return err
	}
	if n := gen.Short(); n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "rdx: note: %d accesses asked for a distance before there were so many blocks and became first accesses\n", n)
	}
	return nil
}

// law makes the law of the one flag that gives it.
func (g *genFlags) law(stderr io.Writer, blockBytes int) (*exact.DistanceLaw, error) {
	given := 0
	for _, s := range []string{g.hist, g.normal, g.exp, g.zipf} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return nil, report.BadInput(errors.New("gen: give one of --hist, --normal, --exp, --zipf"))
	}
	if g.hist == "" && g.blocks == 0 {
		return nil, report.BadInput(errors.New("gen: say how many distinct blocks with -n"))
	}
	switch {
	case g.normal != "":
		v, err := numbers("normal", g.normal, 2)
		if err != nil {
			return nil, err
		}
		return exact.NormalLaw(v[0], v[1], g.blocks)
	case g.exp != "":
		v, err := numbers("exp", g.exp, 1)
		if err != nil {
			return nil, err
		}
		return exact.ExponentialLaw(v[0], g.blocks)
	case g.zipf != "":
		v, err := numbers("zipf", g.zipf, 1)
		if err != nil {
			return nil, err
		}
		return exact.ZipfLaw(v[0], g.blocks)
	}
	f, err := openInput(g.hist, os.Stdin)
	if err != nil {
		return nil, fmt.Errorf("open histogram: %w", err)
	}
	defer f.Close()
	table, err := exact.ReadLawTable(f, g.hist, blockBytes)
	if err != nil {
		return nil, err
	}
	if g.blocks > 0 {
		if s := table.ShareFrom(g.blocks); s > 0 {
			return nil, fmt.Errorf("%s: %s of the weight lies at distances of %d blocks or more (consider: a larger -n, or none)", g.hist, report.Percent(s, 1), g.blocks)
		}
		if s := table.ColdShare(); s > 0 {
			fmt.Fprintf(stderr, "rdx: note: with -n the first accesses are the first %d; the histogram's own (%s of it) are left out\n", g.blocks, report.Percent(s, 1))
		}
	}
	return table.Law(g.blocks)
}

// numbers reads a flag's comma-separated numbers.
func numbers(flag, s string, n int) ([]float64, error) {
	parts := strings.Split(s, ",")
	if len(parts) != n {
		return nil, report.BadInput(fmt.Errorf("--%s %q: want %d number(s)", flag, s, n))
	}
	v := make([]float64, n)
	for i, p := range parts {
		x, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, report.BadInput(fmt.Errorf("--%s: %q is not a finite number", flag, p))
		}
		v[i] = x
	}
	return v, nil
}

func (g *genFlags) write(w io.Writer, gen *exact.Generator, blockBytes uint64) error {
	out := bufio.NewWriterSize(w, 1<<16)
	blocks := make([]uint64, 4096)
	line := []byte("0x")
	for left := g.length; left > 0; {
		part := blocks[:min(left, uint64(len(blocks)))]
		if err := gen.Fill(part); err != nil {
			return err
		}
		for _, b := range part {
			line = append(strconv.AppendUint(line[:2], b*blockBytes, 16), '\n')
			if _, err := out.Write(line); err != nil {
				return fmt.Errorf("write trace: %w", err)
			}
		}
		left -= uint64(len(part))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}
