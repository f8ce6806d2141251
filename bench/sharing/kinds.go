package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// kindsSource are programs that share lines, or do not, each in a way of its own.
const kindsSource = "bench/sharing/testdata/kinds.c"

// kind of it, and whether most of what is taken is of words that who finds them gone touches, too.
type kind struct {
	name   string
	shares bool
	truly  bool
}

var kinds = []kind{
	{"bare", true, false}, {"near", true, false}, {"same", true, true}, {"far", true, false}, {"stats", true, false}, {"heap", true, false},
	{"uneven", true, false}, {"array", true, false}, {"beside", true, false}, {"config", true, true}, {"refcount", true, true}, {"refhot", true, true},
	{"spin", true, true}, {"spindata", true, true}, {"spinhot", true, true}, {"ticket", true, true}, {"turns", true, true}, {"turnslong", true, true},
	{"buffer", true, true}, {"queue", true, true}, {"pool", true, true},
	{"padded", false, false}, {"own", false, false}, {"halves", false, false}, {"readonly", false, false}, {"once", false, false}, {"ownlock", false, false},
	{"ownatomic", false, false}, {"copies", false, false}, {"onstack", false, false}, {"tls", false, false}, {"blocks", false, false}, {"input", false, false}, {"swap", false, false},
}

// sharingFound is what rdx top --by invalidations says.
type sharingFound struct {
	Sharing struct {
		True, False, Unknown, Low, High, Turns, Served float64
	}
	Findings []struct{} // in plain words
	Pairs    []struct {
		Kind           string
		Writer, Reader struct{ Function string }
	}
}

// kindScore is of all sessions.
type kindScore struct{ sessions, inBand, near, kind, pair int }

// compareKinds prints how what sessions of so many seconds find agrees with what is so.
func compareKinds(seconds float64, sessions int) error {
	dir, err := os.MkdirTemp("", "rdx-kinds")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, ordered := filepath.Join(dir, "kinds"), filepath.Join(dir, "ordered")
	for _, args := range [][]string{{"-O2", "-g", "-fno-omit-frame-pointer", "-pthread", "-o", program, kindsSource},
		{"-O1", "-DORDERED", "-pthread", "-o", ordered, kindsSource}} {
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("compile %s: %w: %s", kindsSource, err, out)
		}
	}
	fmt.Printf("%-10s %8s %30s  %s\n", "kind", "truth", "found, %: true, false, unknown", "band, of the truth, had a processor, first pair")
	var shared, alone kindScore
	one := slices.ContainsFunc(kinds, func(k kind) bool { return k.name == *only })
	for _, k := range kinds {
		if one && k.name != *only || !strings.Contains(k.name, *only) {
			continue
		}
		truth, err := orderedTruth(ordered, k.name)
		if err != nil {
			return err
		}
		var touches, taken float64
		for range sessions {
			out := filepath.Join(dir, "p.pb.gz")
			counted, err := run("run", "-q", "--stack", "private", "--overhead", *overhead, "-o", out, "--", program, k.name, fmt.Sprint(math.Ceil(seconds)))
			if err != nil {
				return err
			}
			if _, err := fmt.Sscan(string(counted), &touches, &taken); err == nil { // of this run
				truth = taken / touches
			}
			text, err := run("top", "--by", "invalidations", "--format", "json", out)
			if err != nil {
				return err
			}
			var found sharingFound
			if err := json.Unmarshal(text, &found); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			if k.shares {
				shared.add(k.name, truth, k.truly, &found)
			} else {
				alone.add(k.name, 0, false, &found)
			}
		}
	}
	fmt.Printf("sharing: %d sessions, the truth in the band of %d, within 30 %% or in the band in %d, kind right in %d, first pair in %d\n", shared.sessions, shared.inBand, shared.near, shared.kind, shared.pair)
	fmt.Printf("without: %d sessions, nothing reported in %d\n", alone.sessions, alone.near)
	return nil
}

// orderedTruth is the share of accesses that find their line gone.
func orderedTruth(program, kind string) (float64, error) {
	out, err := exec.Command(program, kind, fmt.Sprint(runtime.NumCPU())).Output()
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", program, kind, err)
	}
	var touches, taken float64
	if _, err := fmt.Sscan(string(out), &touches, &taken); err != nil {
		return 0, fmt.Errorf("%s of %s: %w", program, kind, err)
	}
	return taken / touches, nil
}

func (c *kindScore) add(name string, truth float64, truly bool, found *sharingFound) {
	s := &found.Sharing
	got := s.True + s.False
	pair := "-"
	ok := false
	if len(found.Pairs) > 0 {
		p := &found.Pairs[0]
		pair = p.Writer.Function + " -> " + p.Reader.Function
		ok = strings.HasPrefix(p.Writer.Function, name+"_") && strings.HasPrefix(p.Reader.Function, name+"_")
	}
	c.sessions++
	in := s.Low <= truth && truth <= s.High
	if in {
		c.inBand++
	}
	if in && truth > 0 || math.Abs(got-truth) <= 0.3*truth || truth == 0 && len(found.Findings) == 0 {
		c.near++
	}
	if ok {
		c.pair++
	}
	if got > 0 && truly == (s.True > s.False) {
		c.kind++
	}
	fmt.Printf("%-10s %8.3f %8.3f: %6.3f %6.3f %6.3f  [%.3f, %.3f] x %.2f %.2f %s\n", name, 100*truth, 100*got, 100*s.True, 100*s.False, 100*s.Unknown, 100*s.Low, 100*s.High, got/truth, s.Served, pair)
}
