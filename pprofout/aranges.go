package pprofout

import (
	"debug/dwarf"
	"encoding/binary"
	"math"
	"slices"
)

// idleUnits are the offsets of the units whose code is in .debug_aranges (DWARF 5, section 6.1.2), with none of the
// sorted addresses in it. Compilers need not list all units, so that nothing is known of others. There are none if the
// section is damaged, or of a form that no compiler makes.
func idleUnits(aranges []byte, order binary.ByteOrder, pcs []uint64) map[uint32]bool {
	const header, address = 12, 8 // of 32-bit DWARF of a 64-bit machine
	idle := map[uint32]bool{}
	for at := 0; at < len(aranges); {
		set := aranges[at:]
		if len(set) < header || order.Uint16(set[4:]) != 2 || set[10] != address || set[11] != 0 {
			return nil
		}
		size, unit := 4+uint64(order.Uint32(set)), order.Uint32(set[6:])
		if size < header || size > uint64(len(set)) {
			return nil
		}
		is, known := idle[unit]
		is = is || !known
		any := false
		for p := header + (2*address-header%(2*address))%(2*address); p+2*address <= int(size); p += 2 * address {
			from, n := order.Uint64(set[p:]), order.Uint64(set[p+address:])
			if n == 0 {
				continue // the end, or nothing
			}
			any = true
			if i, _ := slices.BinarySearch(pcs, from); i < len(pcs) && pcs[i]-from < n {
				is = false
			}
		}
		if any {
			idle[unit] = is
		}
		at += int(size)
	}
	return idle
}

// newDWARF is dwarf.New, but for idle units: most of its time goes by tables of abbreviations, of which each unit has one. To
// read an entry of an idle unit is an error.
func newDWARF(sections map[string][]byte, idle map[uint32]bool, order binary.ByteOrder) (*dwarf.Data, error) {
	info, abbrev := sections["info"], sections["abbrev"]
	if last := len(abbrev) - 1; last >= 0 && abbrev[last] == 0 { // a table without any
		for unit, is := range idle {
			if at := abbrevOffset(info, unit, order); is && at != nil {
				defer order.PutUint32(at, order.Uint32(at))
				order.PutUint32(at, uint32(last))
			}
		}
	}
	d, err := dwarf.New(abbrev, nil, nil, info, sections["line"], nil, sections["ranges"], sections["str"])
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"addr", "line_str", "str_offsets", "rnglists"} {
		if err := d.AddSection(".debug_"+name, sections[name]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// abbrevOffset is where a unit's header tells of its abbreviations, nil if that is not known.
func abbrevOffset(info []byte, unit uint32, order binary.ByteOrder) []byte {
	const header = 12
	if uint64(unit)+header > uint64(len(info)) {
		return nil
	}
	h := info[unit:]
	switch version := order.Uint16(h[4:]); {
	case order.Uint32(h) == math.MaxUint32: // 64-bit DWARF
		return nil
	case version < 5:
		return h[6:10]
	}
	return h[8:12]
}
