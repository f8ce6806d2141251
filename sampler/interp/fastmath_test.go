// Needs ptrace, amd64, Linux and gcc.

//go:build linux && amd64

package interp

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// floatWork computes between two marks, with MXCSR as its first argument says, or as
// -ffast-math has set it.
const floatWork = `
#define _GNU_SOURCE
#include <complex.h>
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <xmmintrin.h>
enum { N = 500 };
static float a[N], b[N], c[N];
static double x[N], y[N], z[N];
static int k[N];
static float complex u[N], v[N];
volatile double sink;
static void mark(void) { kill(getpid(), SIGSTOP); }
static void __attribute__((noinline)) work(int seed) {
	for (int i = 0; i < N; i++) a[i] = (i * 7919 + seed) % 1000 * 1e-3f, b[i] = a[i] * 1e-37f, x[i] = a[i] + 0.5, y[i] = x[i] * 1e-308, u[i] = a[i] + b[i] * I;
	for (int i = 0; i < N; i++) c[i] = a[i] * b[i] + c[i], z[i] = x[i] * y[i] - z[i];
	float s = 1; /* a filter that rings down to denormals */
	for (int i = 0; i < N; i++) s = s * 0.7f + a[i] * 1e-38f, c[i] += s;
	for (int i = 0; i < N; i++) z[i] = z[i] / x[i] + sqrt(x[i]), c[i] = 1 / sqrtf(a[i] + 1) + a[i] / (b[i] + 1), k[i] = x[i] * 1e4;
	for (int i = 0; i < N; i++) v[i] = u[i] * u[(i + 1) % N], x[i] += k[i] * 0.1, a[i] = (float)x[i], y[i] = fmax(x[i], z[i]) + floor(x[i]) + rint(z[i]);
	for (int i = 0; i < N; i += 4) y[i] = sin(x[i]) + exp(-a[i]) + pow(x[i], 0.3) + log(x[i] + 2), c[i] = sinf(a[i]) * expf(b[i]) + cbrtf(a[i]);
	double sum = 0;
	for (int i = 0; i < N; i++) sum += c[i] + z[i] + y[i] + crealf(v[i]) + (a[i] < x[i]);
	long double l = sum;
	for (int i = 1; i < 40; i++) l = l * 1.0001L + sqrtl(i) / 3;
	sink = sum + (double)l;
}
int main(int argc, char **argv) {
	if (argc > 2) _mm_setcsr(strtoul(argv[2], 0, 0));
	if (argc > 3) fesetround(strtoul(argv[3], 0, 0));
	work(atoi(argv[1]));
	mark();
	work(atoi(argv[1]) + 1);
	mark();
	return 0;
}
`

func compileFloatWork(t *testing.T, flags ...string) string {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skipf("needs gcc: %v", err)
	}
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "f.c"), filepath.Join(dir, "f")
	if err := os.WriteFile(src, []byte(floatWork), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append(flags, "-w", "-Wl,-z,now", "-o", bin, src, "-lm")
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return bin
}

// atMark starts the program and runs it to its first mark.
func atMark(t *testing.T, m *Machine, rnd *rand.Rand, argv ...string) *walk {
	w := &walk{t: t, m: m, rnd: rnd, child: start(t, nil, argv...), unsupported: map[string]int{}}
	if !w.away(time.Minute) {
		t.Fatal("the program ended early")
	}
	return w
}

// TestFastMath reads ahead over a whole computation, from its begin to its end,
// and compares all that it has left with what the program has when it gets there.
func TestFastMath(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rnd := seeded(t)
	fast := compileFloatWork(t, "-O3", "-ffast-math", "-march=native")
	sse := compileFloatWork(t, "-O3", "-ffast-math")
	exact := compileFloatWork(t, "-O2", "-march=native")
	m := New()
	for name, argv := range map[string][]string{
		"-ffast-math": {fast, "1"}, "-ffast-math without AVX": {sse, "2"},
		"down": {exact, "3", "0x3f80", "0x400"}, "up, flushing": {exact, "4", "0xdf80", "0x800"}, "to zero, no denormals": {exact, "5", "0x7fc0", "0xc00"},
		"nothing raised is not masked": {exact, "6", "0x1d00"}, // division by zero and invalid
	} {
		t.Run(name, func(t *testing.T) {
			w := atMark(t, m, rnd, argv...)
			var r, mine Regs
			w.regs(&r)
			w.vector(&r.Vector)
			if r.Vector.MXCSR&0xffc0 == 0x1f80 {
				t.Fatalf("MXCSR is %#x", r.Vector.MXCSR)
			}
			w.m.Start(&r, w.child)
			instructions := 0
			for calls := 0; ; {
				end := w.m.Run(Limit{Accesses: 1 << 20, Instructions: 1 << 24})
				instructions += end.Instructions
				if end.Cause != Syscall {
					t.Fatalf("after %d instructions: %+v", instructions, end)
				}
				number, _ := w.m.Called()
				if number == syscall.SYS_KILL {
					break
				}
				if calls++; calls > 10 {
					t.Fatalf("system call %d", number)
				}
				w.m.Return(uint64(w.pid)) // getpid
			}
			t.Logf("%d instructions", instructions)
			if instructions < 10000 {
				t.Errorf("%d instructions are not the whole computation", instructions)
			}
			w.m.Regs(&mine)
			w.native = Regs{}
			if !w.away(time.Minute) {
				t.Fatal("the program ended early")
			}
			w.regs(&w.native)
			w.vector(&w.native.Vector)
			mine.GPR[RAX], mine.GPR[RCX], mine.GPR[R11], mine.RIP = 0, w.native.RIP, w.native.GPR[R11], mine.RIP+2 // what kill leaves
			if diff := compare(&mine, &w.native, 0); diff != "" || mine.Vector.MXCSR != w.native.Vector.MXCSR {
				t.Errorf("%s MXCSR %#x, CPU %#x", diff, mine.Vector.MXCSR, w.native.Vector.MXCSR)
			}
			w.compareMemory()
		})
	}
}

// TestFloatModes walks through the computation an instruction at a time, in every
// rounding mode, with denormals kept and not.
func TestFloatModes(t *testing.T) {
	rnd := seeded(t)
	bins := []string{compileFloatWork(t, "-O3", "-march=native"), compileFloatWork(t, "-O1")}
	total := 0
	m := New()
	for mode := range uint32(4) {
		for flush := range uint32(4) {
			mxcsr := 0x1f80 | mode<<13 | flush>>1<<15 | flush&1<<6
			w := atMark(t, m, rnd, bins[rnd.IntN(2)], fmt.Sprint(rnd.IntN(1000)), fmt.Sprint(mxcsr), fmt.Sprint(mode<<10))
			for range rnd.IntN(4000) {
				if s, ok := w.step(0); !ok || s == syscall.SIGSTOP {
					t.Fatal("the program ended early")
				}
			}
			w.window(1000)
			for op, count := range w.unsupported {
				t.Errorf("MXCSR %#x: not supported: %s, %d times", mxcsr, op, count)
			}
			total += w.compared
		}
	}
	t.Logf("%d instructions compared", total)
}
