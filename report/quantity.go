package report

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"unicode"
)

// Amount writes a number with three digits and a decimal suffix: 757, 1.50M.
func Amount(f float64) string {
	return scaled(f, 1000, []string{"", "k", "M", "G", "T", "P", "E"})
}

// Bytes writes a number of bytes with a binary suffix: 64B, 1.50MiB.
func Bytes(f float64) string {
	return scaled(f, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"})
}

// Nanoseconds writes a time given in nanoseconds: 490ns, 1.50ms, 90.0s.
func Nanoseconds(f float64) string {
	return scaled(f, 1000, []string{"ns", "us", "ms", "s", "ks", "Ms", "Gs"})
}

func scaled(f, base float64, units []string) string {
	i := 0
	for i < len(units)-1 && f >= base*(1-0.0005) {
		f /= base
		i++
	}
	digits := 0
	if i > 0 || f != math.Trunc(f) {
		digits = max(0, 2-int(math.Log10(max(f, 1))))
	}
	return fmt.Sprintf("%.*f%s", digits, f, units[i])
}

// Percent writes part of whole; what is not zero never reads 0.0%.
func Percent(part, whole float64) string {
	if !(whole > 0) {
		return "-"
	}
	p := 100 * part / whole
	if p > 0 && p < 0.05 {
		return "<0.1%"
	}
	return fmt.Sprintf("%.1f%%", p)
}

// WholePercent writes a share without decimals, of what is not known to any.
func WholePercent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// below is a bound on a share.
func below(part float64) string { return "<" + strings.TrimPrefix(Percent(part, 1), "<") }

// Shorten cuts the middle out of what is longer than n letters.
func Shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	tail := (n - 3) / 2
	return string(r[:n-3-tail]) + "..." + string(r[len(r)-tail:])
}

// shortCommand is a command line of at most so many characters: its program loses its folder before anything else goes.
func shortCommand(command string, n int) string {
	if program, rest, _ := strings.Cut(command, " "); len([]rune(command)) > n && strings.HasPrefix(program, "/") {
		command = strings.TrimSuffix(filepath.Base(program)+" "+rest, " ")
	}
	return Shorten(command, n)
}

// Plural is a number of things in words: "1 pair", "2 pairs".
func Plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Printable replaces what a terminal would act on: names and command lines are
// the target's, and rdx is often run by root.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u202e' { // right-to-left override
			return '?'
		}
		return r
	}, s)
}

// OneOf reports a flag value that is none of the words.
func OneOf(flag, value string, words []string) error {
	for _, w := range words {
		if w == value {
			return nil
		}
	}
	return BadInput(fmt.Errorf("--%s %q is not known: use one of %s", flag, value, strings.Join(words, ", ")))
}
