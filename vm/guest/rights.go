package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// rightsArg on the kernel's command line asks for what follows in place of the
// other tests: at each setting of yama, users with exactly some capabilities
// profile processes of theirs and of others.
const rightsArg = "rdx.rights"

const yamaScope = "/proc/sys/kernel/yama/ptrace_scope"

// Two users who are not root.
const one, other = 1234, 65534

// without is a user's capabilities: those that rdx needs, but for the one to trace
// processes of others; tracing has that, too.
var (
	without = []uintptr{unix.CAP_BPF, unix.CAP_PERFMON}
	tracing = append([]uintptr{unix.CAP_SYS_PTRACE}, without...)
)

// whom says what may be profiled at each setting of yama, 0 to 3.
var whom = []struct {
	who, process string
	caps         []uintptr
	of           uint32 // whose the process is; 0: rdx starts it
	allowed      [4]bool
}{
	{"CAP_SYS_PTRACE", "another user's", tracing, one, [4]bool{true, true, true, false}},
	{"no CAP_SYS_PTRACE", "another user's", without, one, [4]bool{}},
	{"no CAP_SYS_PTRACE", "the user's own", without, other, [4]bool{true, false, false, false}},
	{"no CAP_SYS_PTRACE", "started by rdx", without, 0, [4]bool{true, true, false, false}},
}

// testRights prints a line of a table for each setting and process. The last
// setting can't be taken back.
func testRights(kernel string) {
	if err := ownedBy(other); err != nil {
		row(kernel, "FAILED", err.Error())
		return
	}
	paranoia(kernel)
	for scope := range len(whom[0].allowed) {
		text := strconv.Itoa(scope)
		if err := os.WriteFile(yamaScope, []byte(text), 0); err != nil {
			row(kernel, text, "FAILED: "+err.Error())
			continue
		}
		for _, w := range whom {
			said, err := profileAs(w.caps, w.of, w.allowed[scope], "ptrace_scope")
			row(kernel, text, w.who, w.process, said, verdictOf(err))
		}
		for _, w := range whom {
			if w.of == other || w.of == one && len(w.caps) == len(without) {
				continue // doctor holds a child
			}
			said, err := doctorAs(w.caps, w.allowed[scope], scope)
			row(kernel, text, w.who, "rdx doctor", said, verdictOf(err))
		}
	}
	said, err := inUserNamespace()
	row(kernel, "3", "root of a user namespace", "rdx doctor", said, verdictOf(err))
}

const paranoid = "/proc/sys/kernel/perf_event_paranoid"

// paranoia prints a line for the highest setting of perf_event_paranoid, with which kernels differ in
// whether CAP_PERFMON is enough. It leaves the level at which that is told to be.
func paranoia(kernel string) {
	if err := os.WriteFile(paranoid, []byte("3"), 0); err != nil {
		row(kernel, "FAILED", err.Error())
		return
	}
	d, text, err := examine(as(other, tracing))
	if err != nil {
		row(kernel, "FAILED", err.Error())
		return
	}
	said, err := profileAs(tracing, one, d.Usable, "perf_event_paranoid")
	if err == nil && !d.Usable && !strings.Contains(text, "sysctl kernel.perf_event_paranoid=2") {
		err = errors.New("rdx doctor does not say what to do")
	}
	row(kernel, "default; perf_event_paranoid 3", "CAP_SYS_PTRACE", "another user's", said+", usable: "+yes(d.Usable), verdictOf(err))
	if err := os.WriteFile(paranoid, []byte("2"), 0); err != nil {
		row(kernel, "FAILED", err.Error())
	}
}

func verdictOf(err error) string {
	if err != nil {
		return "FAILED: " + strings.Join(strings.Fields(err.Error()), " ")
	}
	return "ok"
}

// outputs is where profiles go.
const outputs = "/tmp/rights"

func ownedBy(uid int) error {
	return errors.Join(os.MkdirAll(outputs, 0o755), os.Chown(outputs, uid, uid))
}

// as has a program run by a user with these capabilities alone.
func as(uid uint32, caps []uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, AmbientCaps: caps}
}

// profileAs has the other user profile a process, and says what came of it: a
// profile with samples if that is allowed, else one line that names the reason.
func profileAs(caps []uintptr, of uint32, allowed bool, reason string) (said string, err error) {
	args := []string{"run", "--", "/init", sleeperArg} // which ends by itself
	if of != 0 {
		cmd, end, err := startAs(of)
		if err != nil {
			return "", err
		}
		defer cmd.Wait()
		defer end.Close()
		args = []string{"attach", "--duration", "1s", "-p", strconv.Itoa(cmd.Process.Pid)}
	}
	const out = outputs + "/p.pb.gz"
	_ = os.Remove(out)
	cmd := exec.Command("/rdx", append([]string{args[0], "--overhead", "50", "--source", "clock", "--caches", "32K", "-o", out}, args[1:]...)...)
	cmd.SysProcAttr = as(other, caps)
	text, err := cmd.CombinedOutput()
	if !allowed {
		if err == nil {
			return "profiled", errors.New("want it refused")
		}
		if !strings.Contains(string(text), reason) {
			return "refused", fmt.Errorf("rdx does not name %s: %.300s", reason, text)
		}
		return "refused", nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: %.300s", err, text)
	}
	u, err := usesOf(out)
	if err == nil && u.seen+u.interrupted == 0 {
		err = fmt.Errorf("no use was seen: %.300s", text)
	}
	return "profiled", err
}

// startAs starts a program of a user's, without capabilities, that ends with what it
// reads from.
func startAs(uid uint32) (*exec.Cmd, io.Closer, error) {
	cmd := exec.Command("/init", signalledArg)
	cmd.SysProcAttr = as(uid, nil)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	if _, err := stdout.Read(make([]byte, 64)); err != nil {
		stdin.Close()
		return nil, nil, errors.Join(err, cmd.Wait())
	}
	return cmd, stdin, nil
}

// doctorAs has rdx doctor say whether this user can profile, and what it makes of
// yama.
func doctorAs(caps []uintptr, usable bool, scope int) (said string, err error) {
	d, text, err := examine(as(other, caps))
	if err != nil {
		return "", err
	}
	for _, c := range d.Checks {
		said += map[string]string{"rights": "rights " + c.Grade, "ptrace_scope": ", ptrace_scope " + c.Grade}[c.Name]
	}
	want := "rights ok, ptrace_scope ok"
	switch {
	case len(caps) == len(without) && scope < 2:
		want = "rights degraded, ptrace_scope ok"
	case len(caps) == len(without) && scope == 2:
		want = "rights no, ptrace_scope ok"
	case len(caps) == len(without):
		want = "rights no, ptrace_scope no"
	case scope == 3:
		want = "rights ok, ptrace_scope no"
	}
	if d.Usable != usable || said != want {
		fmt.Println(text)
		return said, fmt.Errorf("usable: %v, want %v; want %s", d.Usable, usable, want)
	}
	return fmt.Sprintf("%s, usable: %s", said, yes(usable)), nil
}

// inUserNamespace has rdx doctor run with all capabilities of a user namespace.
func inUserNamespace() (said string, err error) {
	d, _, err := examine(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: other, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: other, Size: 1}}})
	if err != nil {
		return "", err
	}
	for _, c := range d.Checks {
		if c.Name == "rights" {
			said = "rights " + c.Grade + ": " + c.Found
		}
	}
	if d.Usable || !strings.Contains(said, "user namespace") {
		return said, errors.New("want it told that the namespace's rights do not count")
	}
	return said, nil
}
