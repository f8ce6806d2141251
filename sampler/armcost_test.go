// Needs: root, bpf, watchpoint. What it costs to watch a word in another thread, or on a CPU.
package sampler

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BenchmarkArmOther arms and takes down a watchpoint in a thread that sleeps,
// in one that runs, and on a CPU that runs it.
func BenchmarkArmOther(b *testing.B) {
	if unix.Geteuid() != 0 {
		b.Skip("needs root, for BPF")
	}
	k, err := Load(1, Needs{Others: true})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	word := uint64(uintptr(unsafe.Pointer(&newWords()[0].word)))
	for _, busy := range []bool{false, true} {
		tids, stop, ended := make(chan int), make(chan bool), make(chan bool)
		go func() {
			runtime.LockOSThread()
			tids <- unix.Gettid()
			for busy {
				select {
				case <-stop:
					close(ended)
					return
				default:
				}
			}
			<-stop
			close(ended)
		}()
		tid := <-tids
		name := map[bool]string{false: "sleeping", true: "running"}[busy]
		for _, c := range []struct {
			name  string
			reach Reach
		}{{name + " thread", Reach{TID: tid}}, {"CPU 0, thread " + name, Reach{CPU: 0}}, {"CPU 1, thread " + name, Reach{CPU: 1}}} {
			b.Run(c.name, func(b *testing.B) {
				for range b.N {
					w, err := k.ArmOther(c.reach, 0, word, true, 0)
					if err != nil {
						b.Fatal(err)
					}
					w.Close()
				}
			})
		}
		close(stop)
		<-ended
	}
}
