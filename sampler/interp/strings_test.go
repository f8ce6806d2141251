// Needs ptrace, amd64, Linux and gcc.

//go:build linux && amd64

package interp

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const stringWork = `
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <wchar.h>
static char a[20000] __attribute__((aligned(4096))), b[20000] __attribute__((aligned(4096)));
volatile size_t sink;
static void mark(void) { kill(getpid(), SIGSTOP); }
int main(int argc, char **argv) {
	static const int sizes[] = {0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 200, 256, 300, 511, 700, 1024, 1500, 2500, 5000};
	unsigned seed = atoi(argv[1]);
	mark();
	for (int i = 0; i < sizeof sizes / sizeof *sizes; i++)
	for (int k = 0; k < 2; k++) {
		size_t n = sizes[i], x = (seed = seed * 1103515245 + 12345) / 65536 % 80, y = (seed / 65536) % 97;
		if (k) x = 4096 - n % 64, y = 4096 - n / 2 % 64;
		memset(a + x, 'a', n); a[x + n] = 0;
		memset(b, 0, sizes[i] + y); memset(b + y, 'a', n); b[y + n] = 0;
		sink += strlen(a + x) + strnlen(a + x, n / 2 + 1) + (size_t)memchr(a + x, 'b', n) + (size_t)memrchr(a + x, 'b', n);
		sink += strcmp(a + x, b + y) + strncmp(a + x, b + y, n) + memcmp(a + x, b + y, n) + strcasecmp(a + x, b + y) + strncasecmp(a + x, b + y, n);
		if (n) b[y + n - 1] = 'z';
		sink += strcmp(a + x, b + y) + strncmp(a + x, b + y, n) + memcmp(a + x, b + y, n) + strcasecmp(a + x, b + y);
		sink += (size_t)strchr(b + y, 'z') + (size_t)strrchr(a + x, 'a') + (size_t)strchrnul(a + x, 'q') + (size_t)rawmemchr(a + x, 0);
		memcpy(b + y, a + x, n); memmove(b + y + n / 3, b + y, n); memmove(b + y, b + y + n / 5, n); mempcpy(a + x, b + y, n);
		a[x + n] = b[y + n] = 0;
		strcpy(b + y, a + x); stpcpy(a + x, b + y); strncpy(b + y, a + x, n + 20); strcat(b + y, "tail"); strncat(b + y, "tail", 2);
		sink += (size_t)strstr(b + y, "aat") + strspn(a + x, "abc") + strcspn(a + x, "xyz") + (size_t)strpbrk(a + x, "qz") + (size_t)memmem(a + x, n, "aab", 3);
		wmemset((wchar_t *)(a + x / 4 * 4), L'c', n / 4); ((wchar_t *)(a + x / 4 * 4))[n / 4] = 0;
		sink += wcslen((wchar_t *)(a + x / 4 * 4)) + (size_t)wcschr((wchar_t *)(a + x / 4 * 4), L'd') + (size_t)wmemchr((wchar_t *)(a + x / 4 * 4), L'd', n / 4);
	}
	mark();
	return 0;
}
`

// TestStringFunctions walks through glibc's string functions, in the variants
// for this CPU and in those for older ones: all must run through.
func TestStringFunctions(t *testing.T) {
	rnd := seeded(t)
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skipf("needs gcc: %v", err)
	}
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "s.c"), filepath.Join(dir, "s")
	if err := os.WriteFile(src, []byte(stringWork), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-O1", "-fno-builtin", "-w", "-Wl,-z,now", "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	for _, v := range []struct{ name, hwcaps string }{
		{"this CPU", ""},
		{"without AVX512BW", "-AVX512BW,-AVX512VL"},
		{"without AVX2", "-AVX512BW,-AVX512VL,-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load,-ERMS"},
		{"without SSSE3", "-AVX512BW,-AVX512VL,-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load,-SSE4_2,-SSE4_1,-SSSE3,-ERMS,-FSRM"},
	} {
		t.Run(v.name, func(t *testing.T) {
			var env []string
			if v.hwcaps != "" {
				env = []string{"GLIBC_TUNABLES=glibc.cpu.hwcaps=" + v.hwcaps}
			}
			w := &walk{t: t, m: New(), child: start(t, env, bin, "12345"), unsupported: map[string]int{}}
			if !w.away(time.Minute) { // until its first mark
				t.Fatal("the program ended early")
			}
			n := 4000
			if long() {
				n = 1 << 30
			} else {
				// Walk a part of the run, which begins at a random point.
				for range rnd.IntN(20000) {
					if s, ok := w.step(0); !ok || s == syscall.SIGSTOP {
						t.Fatal("the program ended early")
					}
				}
			}
			w.window(n)
			w.report(1)
			for op, count := range w.unsupported {
				t.Errorf("not supported: %s, %d times", op, count)
			}
		})
	}
}
