package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// SessionArg is the hidden command with which rdx becomes a session.
const SessionArg = "__agent-window"

// An outcome is what became of a session.
type outcome struct {
	Request
	Result
	people, raw []byte
	cpu         time.Duration // CPU time of the session's process
	told        time.Duration // of that, what was told while it ran
	memory      int64         // its most, bytes
	err         error
	killed      string // why the agent has killed it
}

// A child is one session in a process of its own.
type child struct {
	args   []string
	memory int64               // limit, bytes
	grace  time.Duration       // to end in, beyond the window
	spend  func(time.Duration) // is told each second what CPU time it has used since
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 2000
	t.b = append(t.b, p...)
	if len(t.b) > most {
		t.b = append(t.b[:0], t.b[len(t.b)-most:]...)
	}
	return len(p), nil
}

// run runs a session to its end. When ctx ends the session is asked to end at once, with what
// it has by then.
func (c child) run(ctx context.Context, r Request) outcome {
	o := outcome{Request: r}
	fail := func(err error) outcome {
		o.err = fmt.Errorf("session of process %d: %w", r.PID, err)
		return o
	}
	request, err := json.Marshal(r)
	if err != nil {
		return fail(err)
	}
	cmd := exec.Command(c.args[0], c.args[1:]...)
	// A soft limit below the hard one, which garbage collection keeps to.
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GOMAXPROCS=2", fmt.Sprintf("GOMEMLIMIT=%d", c.memory*8/10)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the agent
	var said tail
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return fail(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	stop := c.watch(ctx, cmd.Process, in, r.Duration+c.grace, &o)
	_, err = in.Write(append(request, '\n'))
	var res Result
	if err == nil {
		res, o.people, o.raw, err = readResult(out)
	}
	if err != nil {
		_ = cmd.Process.Kill() // whatever it is about
	}
	waited := cmd.Wait()
	stop()
	o.Result = res
	o.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		o.memory = ru.Maxrss << 10
	}
	switch {
	case o.killed != "":
		return fail(errors.New("killed: " + o.killed))
	case res.Error != "":
		return fail(errors.New(tidyError(res.Error)))
	case err != nil || waited != nil:
		return fail(fmt.Errorf("%w %v: %s", err, waited, tidyError(string(said.b))))
	}
	return o
}

func tidyError(s string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(s, "_")), " ")
}

// watch ends the session when it must end, and kills it when it takes too long or too much
// memory: its target runs on, as rdx may be killed at any time.
func (c child) watch(ctx context.Context, p *os.Process, in io.Closer, most time.Duration, o *outcome) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		late := time.NewTimer(most)
		defer late.Stop()
		asked := ctx.Done()
		for {
			select {
			case <-done:
				return
			case <-asked:
				asked = nil
				in.Close()
				late.Reset(c.grace)
			case <-late.C:
				o.killed = "it did not end in time"
				_ = p.Kill()
				return
			case <-tick.C:
				c.tellSpent(p.Pid, o)
				if anonymous(p.Pid) > c.memory {
					o.killed = fmt.Sprintf("more than %d MiB of memory", c.memory>>20)
					_ = p.Kill()
					return
				}
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		in.Close()
	}
}

func (c child) tellSpent(pid int, o *outcome) {
	p, err := Proc{"/proc"}.Process(pid)
	if err != nil || c.spend == nil || p.CPU <= o.told {
		return
	}
	c.spend(p.CPU - o.told)
	o.told = p.CPU
}

// anonymous is a process's memory in bytes that is its own, 0 if not known.
func anonymous(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, resident, shared int64
	if _, err := fmt.Fscan(bytes.NewReader(b), &size, &resident, &shared); err != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}
