package trace

import (
	"math/rand"
	"reflect"
	"slices"
	"testing"
)

// The assembly does what the Go code does that says what it is to do: on entries, marks,
// segments that are unknown or have another length, with little room, and up to the end
// of words in the midst of an entry.
func TestEncodeEntries(t *testing.T) {
	seed := rand.Int63()
	rng := rand.New(rand.NewSource(seed))
	for range 300 {
		table := make([]writtenSegment, 1+rng.Intn(300))
		states := 0
		var known []uint64
		for id := range table {
			if id == 0 || rng.Intn(10) == 0 {
				continue
			}
			s := &table[id]
			*s = writtenSegment{states: uint32(states), most: uint16(rng.Intn(2*maxSites + 1)), local: uint16(1 + rng.Intn(maxLocal))}
			if s.length = uint16(id % (shortWords + 1)); s.length > 0 {
				s.short = s.local
			} else {
				s.length = uint16(1 + rng.Intn(8)*rng.Intn(8))
			}
			states += int(s.length)
			known = append(known, uint64(id))
		}
		if len(known) == 0 {
			continue
		}
		var words []uint64
		for range rng.Intn(2000) {
			if rng.Intn(500) == 0 {
				words = append(words, rng.Uint64()>>rng.Intn(64)) // most of them of no segment
				continue
			}
			var entry [maxSites]uint64
			for i := range entry[:64] {
				entry[i] = uint64(rng.Intn(3)) * 8
				if rng.Intn(4) == 0 {
					entry[i] = rng.Uint64() >> rng.Intn(64)
				}
			}
			id := known[rng.Intn(min(len(known), 1+rng.Intn(20)))]
			n := int(table[id].length)
			if table[id].short == 0 {
				n--
			}
			words = appendEntry(words, uint32(id), entry[:n])
		}
		words = words[:len(words)-min(rng.Intn(3), len(words))]
		limit := 1 + rng.Intn(batchEntries)
		list := shortList + 64 + rng.Intn(maxSites)
		batch := func() *entryBatch {
			return &entryBatch{
				words: words, table: slices.Clone(table),
				codes: make([]byte, limit), ids: make([]byte, 2*limit), firsts: make([]byte, valueRoom*limit), list: make([]uint64, list),
			}
		}
		want, got := batch(), batch()
		wantStates, gotStates := make([]wordState, states+1), make([]wordState, states+1)
		for at := 0; at < len(words); at++ { // batches one behind the other, the next one behind what the one before did not take
			for _, x := range []*entryBatch{want, got} {
				x.at = at
				x.n, x.nids, x.nfirsts, x.nlist, x.accesses = 0, 0, 0, 0, 0
			}
			want.entries()
			encodeEntries(got)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, word %d of %d, room for %d: %d entries, %d ids, %d bytes, %d words, %d accesses up to %d, want %d, %d, %d, %d, %d, %d, or contents differ", seed, at, len(words), limit,
					got.n, got.nids, got.nfirsts, got.nlist, got.accesses, got.at, want.n, want.nids, want.nfirsts, want.nlist, want.accesses, want.at)
			}
			if want.at <= len(words) {
				list := want.list[:want.nlist]
				sizes, values := make([]byte, len(list)), make([]byte, len(list)*valueRoom)
				gotSizes, gotValues := make([]byte, len(list)), make([]byte, len(list)*valueRoom)
				n := listed(words, list, wantStates, sizes, values)
				if k := encodeListed(words, list, gotStates, gotSizes, gotValues); k != n || !slices.Equal(gotSizes, sizes) || !slices.Equal(gotValues, values) {
					t.Fatalf("seed %d, word %d of %d: %d words listed are %d bytes, want %d, or differ", seed, at, len(words), len(list), k, n)
				}
			}
			if want.n > 0 {
				at = want.at - 1
			}
		}
		if !slices.Equal(gotStates, wantStates) {
			t.Fatalf("seed %d: states differ", seed)
		}
	}
}

func TestPackNibbles(t *testing.T) {
	seed := rand.Int63()
	rng := rand.New(rand.NewSource(seed))
	for n := range 200 {
		b := make([]byte, (n+7)&^7)
		for i := range b {
			b[i] = byte(rng.Intn(16))
		}
		want := make([]byte, (n+1)/2)
		for i, x := range b[:n] {
			want[i/2] |= x << (i % 2 * 4)
		}
		if got := packNibbles(b, n); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d nibbles: %x, want %x", seed, n, got, want)
		}
	}
}
