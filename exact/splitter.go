package exact

import "github.com/rdx-profiler/rdx/model"

// splitter cuts accesses into touches of single blocks, and puts runs of
// them together.
type splitter struct {
	done  uint64        // blocks of the first access of the next fill that are done
	count model.Touches // without the blocks
}

// fill sets blocks and runs as in Touches, for as many as there is room for, or
// until they have most touches. It returns their number, that of their touches and the accesses that
// are left, the first of them perhaps done in part.
func (t *splitter) fill(g model.Granularity, accesses []model.Access, blocks []uint64, runs []uint8, most int) (n, touches int, rest []model.Access) {
	room := most
	runs = runs[:len(blocks)]
	f := filling{n: -1, run: maxRun<<1 - 2} // what is the first begins a run
	for {
		if t.done == 0 {
			k := t.fillSingle(g, accesses[:min(len(accesses), most, len(blocks)-1-f.n)], blocks, runs, &f)
			accesses, most = accesses[k:], most-k
		}
		if len(accesses) == 0 {
			return f.n + 1, room - most, nil
		}
		// One that spans blocks, or there is no room.
		a := &accesses[0]
		first, last := g.Span(a)
		for b := first + t.done; ; b++ {
			if f.n == len(blocks)-1 || most == 0 {
				t.done = b - first
				return f.n + 1, room - most, accesses
			}
			most--
			store := oneIf(a.Op == model.Store)
			t.count.Repeats[store] += 1 - f.add(b, store)
			blocks[f.n], runs[f.n] = b, uint8(f.run)
			if b == last {
				break
			}
		}
		t.done = 0
		t.count.Ops[min(a.Op, model.Store)]++
		accesses = accesses[1:]
	}
}

// filling is where a fill is: at the n-th run, which is of the block before, and
// run as in Touches.
type filling struct {
	n           int
	before, run uint64
}

// add takes a touch to its run, and returns 1 if it begins one. No branch: what continues
// a run cannot be foretold.
func (f *filling) add(b, store uint64) (begins uint64) {
	other := b ^ f.before
	begins = (other|-other)>>63 | (f.run+2)>>7
	f.n += int(begins)
	f.run = (f.run+2)&(begins-1) | store&-begins
	f.before = b
	return begins
}

func oneIf(is bool) (one uint64) {
	if is {
		one = 1
	}
	return one
}

// fillSingle is fill of accesses for which there is room, up to the first that spans
// blocks; it returns how many that is. Most accesses are such ones; apart from them, all it needs is in registers.
func (t *splitter) fillSingle(g model.Granularity, accesses []model.Access, blocks []uint64, runs []uint8, at *filling) int {
	f, shift := *at, g.Shift()&63
	runs = runs[:len(blocks)]
	var ops [2]uint64  // loads and stores
	var repeats uint64 // by stores
	k := 0
	for k < len(accesses) {
		a := &accesses[k]
		b := a.Addr >> shift
		if uint64(a.Size) > (b+1)<<shift-a.Addr {
			break
		}
		ops[0] += oneIf(a.Op == model.Load)
		ops[1] += oneIf(a.Op >= model.Store)
		store := oneIf(a.Op == model.Store)
		repeats += store &^ f.add(b, store)
		blocks[f.n], runs[f.n] = b, uint8(f.run)
		k++
	}
	t.count.Ops[model.OpUnknown] += uint64(k) - ops[0] - ops[1]
	t.count.Ops[model.Load] += ops[0]
	t.count.Ops[model.Store] += ops[1]
	t.count.Repeats[0] += uint64(k) - uint64(f.n-at.n) - repeats
	t.count.Repeats[1] += repeats
	*at = f
	return k
}

// add counts what is known of touches without their blocks.
func (t *splitter) add(o *model.Touches) {
	for op, n := range o.Ops {
		t.count.Ops[op] += n
	}
	for store, n := range o.Repeats {
		t.count.Repeats[store] += n
	}
}

// counted adds what the splitter has counted, and begins anew.
func (t *splitter) counted(c *Counts) {
	c.repeated(&t.count)
	t.count = model.Touches{}
}
