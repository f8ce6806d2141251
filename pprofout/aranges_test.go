// Needs: gcc.

package pprofout

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Of units without any of the addresses nothing is read, but what others refer to.
func TestIdleUnits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	one, two := source(t, "one.c", "int other(int); int main(void) { return other(1); }\n"), source(t, "two.c", "int other(int x) { return x - 1; }\n")
	bin := filepath.Join(t.TempDir(), "prog")
	command(t, "gcc", "-g", "-O1", "-o", bin, one, two)
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pcs := functions(t, bin, func(name string) bool { return name == "main" })
	all, some := debugSource{elf: f, limit: newTimeLimit(f)}, debugSource{elf: f, limit: newTimeLimit(f)}
	if err := all.load(); err != nil {
		t.Fatal(err)
	}
	if err := some.loadFor(pcs); err != nil {
		t.Fatal(err)
	}
	if len(all.roots) != 2 || len(some.roots) != 1 || some.roots[0] != all.roots[0] {
		t.Fatalf("units %v, of which with addresses %v", all.roots, some.roots)
	}
	found := map[uint64][]model.Line{}
	if err := lookupDWARF(&debugSource{elf: f}, pcs, found); err != nil || len(found) != len(pcs) {
		t.Errorf("%d of %d addresses found, %v", len(found), len(pcs), err)
	}

	u := &unit{source: &some, data: some.data}
	for r := all.data.Reader(); ; {
		e, err := r.Next()
		if err != nil || e == nil {
			t.Fatal("no function other: ", err)
		}
		if e.Tag != dwarf.TagSubprogram || e.Offset < all.roots[1] {
			continue
		}
		inlined := &dwarf.Entry{Field: []dwarf.Field{{Attr: dwarf.AttrAbstractOrigin, Val: e.Offset, Class: dwarf.ClassReference}}}
		if l := u.name(inlined); l.Function != "other" {
			t.Errorf("what refers to another unit's function has the name %q", l.Function)
		}
		break
	}
}

// Damaged tables of ranges neither end the look-up nor are they believed in part.
func TestIdleUnitsDamaged(t *testing.T) {
	set := []byte{44, 0, 0, 0, 2, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0, 0,
		0, 16, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	order := binary.LittleEndian
	for pc, idle := range map[uint64]bool{0xfff: true, 0x1000: false, 0x101f: false, 0x1020: true} {
		if got := idleUnits(set, order, []uint64{pc}); len(got) != 1 || got[7] != idle {
			t.Errorf("%#x: %v", pc, got)
		}
	}
	for n := 1; n < len(set); n++ {
		if got := idleUnits(set[:n], order, nil); got != nil {
			t.Errorf("%d bytes: %v", n, got)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 100_000 {
		b := append([]byte(nil), set...)
		b[rng.IntN(len(b))] = byte(rng.Uint32())
		idle := idleUnits(b, order, []uint64{0x1000})
		for unit := range idle {
			abbrevOffset(b, unit, order)
		}
	}
}
