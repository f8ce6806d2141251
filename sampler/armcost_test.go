// Needs: root, bpf, watchpoint. What it costs to watch a word in another thread, or on a CPU.
package sampler

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BenchmarkArmOther arms and takes down a watchpoint in a thread that sleeps and
// in one that runs, and moves and parks a register of each CPU beside it.
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
		b.Run(name+" thread", func(b *testing.B) {
			for range b.N {
				w, err := k.ArmOther(tid, 0, word, true)
				if err != nil {
					b.Fatal(err)
				}
				w.Close()
			}
		})
		for cpu := range 2 {
			b.Run(fmt.Sprintf("CPU %d, thread %s", cpu, name), func(b *testing.B) {
				r := openRegister(b, k, cpu, 0, true)
				defer r.Close()
				for b.Loop() {
					if err := errors.Join(r.Move(word, OtherLimit), r.Park()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		close(stop)
		<-ended
	}
}
