// Command touch compares what a live profile says of how memory is touched with what an exact stream of the same program says:
// the class of each instruction's steps, and how much of a fetched line is used.
//
// Needs root, bpf, gcc and a built engine (rdx engine build valgrind). The programs are those of docs/cases. Instructions that have
// less than half a percent of the accesses of the functions that were sampled are left out.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

func main() {
	rdx := flag.String("rdx", "./rdx", "rdx to test")
	seconds := flag.Int("seconds", 8, "of each session")
	overhead := flag.String("overhead", "5", "of each session")
	only := flag.String("only", "split,list,column,hash,fuse", "cases, separated by commas")
	variant := flag.String("variant", "before", "before or after")
	flag.Parse()
	if err := run(*rdx, *seconds, *overhead, *variant, strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "touch:", err)
		os.Exit(1)
	}
}

func run(rdx string, seconds int, overhead, variant string, cases []string) error {
	dir, err := os.MkdirTemp("", "touch")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "cases")
	if out, err := exec.Command("gcc", "-O2", "-g", "-pthread", "-no-pie", "-o", bin, "docs/cases/cases.c").CombinedOutput(); err != nil {
		return fmt.Errorf("compile cases.c: %w: %s", err, out)
	}
	fmt.Printf("%-8s %12s %8s %s\n", "case", "instructions", "agree", "not as the exact stream says")
	for _, name := range cases {
		live, err := profile(rdx, bin, dir, name, variant, seconds, overhead)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		exact, err := patterns(rdx, bin, name, variant)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		compare(name, live, exact)
	}
	return nil
}

// instruction is one of one direction.
type instruction struct {
	pc uint64
	op string
}

// profile is what a session says of a case, by instruction.
func profile(rdx, bin, dir, name, variant string, seconds int, overhead string) (map[instruction][]*model.Touch, error) {
	target := exec.Command(bin, name, variant, "1000")
	if err := target.Start(); err != nil {
		return nil, err
	}
	defer target.Wait()
	defer target.Process.Kill()
	time.Sleep(2 * time.Second) // it prepares its data
	file := filepath.Join(dir, "p.pb.gz")
	cmd := exec.Command(rdx, "attach", "-q", "-p", strconv.Itoa(target.Process.Pid), "-d", fmt.Sprintf("%ds", seconds), "--overhead", overhead, "-o", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("attach: %w: %s", err, out)
	}
	p, err := pprofout.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[instruction][]*model.Touch{}
	for i := range p.Touches {
		t := &p.Touches[i]
		k := instruction{t.Use[0].Address, t.Op.String()}
		out[k] = append(out[k], t)
	}
	return out, nil
}

// pattern is what rdx exact --patterns says of an instruction.
type pattern struct {
	Address  string  `json:"address"`
	Function string  `json:"function"`
	Access   string  `json:"access"`
	Accesses float64 `json:"accesses"`
	Stride   string  `json:"stride"`
	Step     int64   `json:"step"`
	Caches   []struct {
		Fills float64  `json:"fills"`
		Use   *float64 `json:"line_use"`
	} `json:"caches"`
}

func patterns(rdx, bin, name, variant string) ([]pattern, error) {
	// What the program prints comes first.
	out, err := exec.Command(rdx, "exact", "--patterns", "--format", "json", "--", bin, name, variant, "0").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("exact: %w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, err
	}
	var report struct {
		Instructions []pattern `json:"instructions"`
	}
	at := strings.IndexByte(string(out), '{')
	if at < 0 {
		return nil, errors.New("exact: no report")
	}
	return report.Instructions, json.NewDecoder(strings.NewReader(string(out[at:]))).Decode(&report)
}

func compare(name string, live map[instruction][]*model.Touch, exact []pattern) {
	sampled, byPC := map[string]bool{}, map[instruction]*pattern{}
	for i := range exact {
		x := &exact[i]
		pc, _ := strconv.ParseUint(strings.TrimPrefix(x.Address, "0x"), 16, 64)
		k := instruction{pc, x.Access}
		byPC[k] = x
		if live[k] != nil && x.Function != "main" && x.Function != "prepare" && x.Function != "rnd" { // these prepare the data
			sampled[x.Function] = true
		}
	}
	all, agree, n := 0.0, 0.0, 0
	for _, x := range exact {
		if sampled[x.Function] {
			all += x.Accesses
		}
	}
	var wrong []string
	weighed := 0.0
	for k, x := range byPC {
		if !sampled[x.Function] || x.Accesses < 0.005*all {
			continue
		}
		n++
		weighed += x.Accesses
		class, step, _ := model.StrideOf(live[k])
		want, _ := model.ParseStride(x.Stride)
		same := class.ByAddress() == want.ByAddress()
		if same {
			agree += x.Accesses
		}
		off := lineUse(live[k], x)
		if !same || math.Abs(off) > 10 {
			wrong = append(wrong, fmt.Sprintf("%s %s %s %d for %s %d, line use off by %.0f", x.Address, x.Access, class, step, x.Stride, x.Step, off))
		}
	}
	fmt.Printf("%-8s %12d %7.1f%% %s\n", name, n, 100*agree/weighed, strings.Join(wrong, "; "))
}

// lineUse is by how many bytes of a line the live profile is off, in the first cache; 0 where hardly any line is fetched.
func lineUse(touches []*model.Touch, x *pattern) float64 {
	var used, fetches, accesses float64
	for _, t := range touches {
		used, fetches, accesses = used+t.Used, fetches+t.Fetches, accesses+t.Accesses
	}
	if len(x.Caches) == 0 || x.Caches[0].Use == nil || x.Caches[0].Fills < 0.01*x.Accesses || !(fetches > 0.01*accesses) {
		return 0
	}
	return used/fetches - *x.Caches[0].Use
}
