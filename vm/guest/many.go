package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// manyArg makes this program one of many threads, of which two write each word of an
// array by turns. It ends with its standard input.
const manyArg = "many"

const (
	manyIdle  = 20
	turnWords = 1 << 14
	// fewestForeign observations of each stack must have been ended by the other thread.
	fewestForeign = 5
)

func runMany() {
	runtime.GOMAXPROCS(4) // the kernel switches, on one CPU, too
	array := make([]uint64, turnWords)
	for range manyIdle {
		go func() {
			runtime.LockOSThread()
			select {}
		}()
	}
	turns := [2]chan bool{make(chan bool), make(chan bool)}
	for me := range turns {
		go func() {
			runtime.LockOSThread()
			for n := uint64(0); ; n++ {
				<-turns[me]
				for i := range array {
					array[i] = n
				}
				turns[1-me] <- true
			}
		}()
	}
	fmt.Println("ready")
	turns[0] <- true
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// many profiles it by registers of the CPUs, for both stacks. It fails if these are not taken once and
// moved, or if it is not the other thread that ends what is watched. On x86 it is enough that they
// trap in it wherever they were moved: the emulator reports but one of the two registers, the thread's and the
// CPU's, that watch a word, where a processor reports both, so that most uses are not seen.
func many() error {
	cmd := exec.Command("/proc/self/exe", manyArg)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		return err
	}
	p, err := profileUntilEnd(cmd, stdin, "--stack", "both")
	if err != nil {
		return err
	}
	var taken, cpus, words int
	for _, c := range p.Comments {
		fmt.Println(c)
		if _, rest, ok := strings.Cut(c, "other threads: "); ok && strings.HasPrefix(c, "watched by CPU") {
			if _, err := fmt.Sscanf(rest, "%d debug registers of %d CPUs taken, moved to %d words", &taken, &cpus, &words); err != nil {
				return fmt.Errorf("%q: %w", c, err)
			}
		}
	}
	for _, c := range p.Counts {
		fmt.Println(c.Name, c.N)
	}
	traps := p.CountOf(model.TrapsElsewhere)
	if taken == 0 || taken != 2*cpus || words < 2*fewestForeign || traps < int64(words) {
		return fmt.Errorf("%d debug registers of %d CPUs were taken and moved to %d words, where the other thread trapped %d times", taken, cpus, words, traps)
	}
	if runtime.GOARCH == "amd64" {
		return nil
	}
	var private, shared, ownStack int64
	for _, r := range p.Records {
		switch {
		case r.Kind == model.Invalidated:
			private += r.Observations
		case r.Kind == model.Reuse && r.Words().EndTID != 0:
			shared += r.Observations
		case r.Kind == model.Reuse && !r.Exact: // not read ahead
			ownStack += r.Observations
		}
	}
	// What else the threads touch, to take turns, is their own.
	if private < fewestForeign || shared < fewestForeign || ownStack > (private+shared)/3 {
		return fmt.Errorf("%d words were written by the other thread, %d touched first by it, %d not", private, shared, ownStack)
	}
	return nil
}
