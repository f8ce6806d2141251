// Needs: root, bpf, watchpoint, gcc, x86-64.
package main_test

import "testing"

// Text that was moved to anonymous memory has the names of the file that it is a copy of.
func TestRemappedText(t *testing.T) {
	needRoot(t)
	p := target(t, compile(t, "remap", "-g"))
	var profile = attach(t, p.pid, "-d", "3s").profile()
	bySessions(t, "observations", func() bool {
		_, n := useNames(profile)
		if n > 10 {
			return true
		}
		profile = attach(t, p.pid, "-d", "3s").profile()
		return false
	})
	assertNamed(t, profile, "walk_remapped")
	p.end()
}
