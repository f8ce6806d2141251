package estimate

import (
	"cmp"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/sharing"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// What other threads take of lines that a thread comes back to soon is told by what was read ahead of both, see package
// sharing; of lines that it comes back to later, by watchpoints. Where these were used up before the use, what was
// read ahead tells again, and where that has not seen anybody write the line it is not known.

// leafKey is an instruction of a thread, or of any thread of the process where tid is 0.
type leafKey struct {
	process *target.Process
	tid     int
	pc      uint64
}

// stacksByLeaf are numbers of call stacks that were seen at an instruction.
func (s *stage) stacksByLeaf() map[leafKey]int {
	out := make(map[leafKey]int)
	if s.bare {
		return out
	}
	for _, o := range s.Seen {
		if o.State != record.Done {
			continue
		}
		numbers := []int{o.UseStack}
		if o.Kind == model.Reuse && o.EndTID == 0 {
			numbers = append(numbers, o.ReuseStack)
		}
		for _, n := range numbers {
			stack := s.Stacks.Stack(n)
			out[leafKey{o.Process, o.TID, stack[0]}] = n
			out[leafKey{o.Process, 0, stack[0]}] = n
		}
	}
	return out
}

// stackAt is a call stack that the thread was seen with at an instruction, or another thread, or the instruction alone.
func (m *recorder) stackAt(p *target.Process, tid int, pc uint64) []*model.Location {
	if m.bare {
		return nil
	}
	for _, tid := range []int{tid, 0} {
		if n, ok := m.seenAt[leafKey{p, tid, pc}]; ok {
			return m.stack(p, n)
		}
	}
	return m.locations.stack(p, []uint64{pc})
}

// codeKey is an instruction of a process.
type codeKey struct {
	process *target.Process
	pc      uint64
}

// beyond is what is known, of an instruction's touches whose line does not come back as far as was read ahead, of what
// others take.
type beyond struct {
	blind, seen    float64 // weight of what was watched of lines that others write, and of these of what traps can't tell
	watched, there float64 // weight of what is left to watchpoints: watched, and in all windows
	after          []float64
	n              int  // watched
	class          bool // all lines are told of by how often others write any
}

// joined says whether the windows tell of it: traps can't of what comes as fast as they do, or where they are used up.
func (b *beyond) joined() bool { return b != nil && (b.seen == 0 || b.blind > mostBlind*b.seen) }

const (
	// mostBlind is up to which share of watches may be blind for the others to stand for them.
	mostBlind = 0.2
	// trapsBetween is how many traps a time must be as long as for traps to tell who came in it: each delays its thread.
	trapsBetween = 3
)

// fewWatched is how many watches of an instruction's data are too few to go by.
const fewWatched = 12

// mostAfter is of how many times an instruction's data come back in each is tried.
const mostAfter = 16

// ofLine says whether an observation tells of its line's next touch, and not of the word alone.
func (s *stage) ofLine(o *record.Observation) bool {
	return o.State == record.Done && o.Stack == model.StackPrivate && o.LineSoon == 0 && o.Hold > 0 && s.Holds[o.Hold-1].Joined
}

// setBeyond goes through what was watched and what was read ahead.
func (m *recorder) setBeyond(weights []float64, scale float64) {
	m.beyond = make(map[codeKey]*beyond)
	of := func(p *target.Process, pc uint64) *beyond {
		key := codeKey{p, pc}
		if m.beyond[key] == nil {
			m.beyond[key] = &beyond{}
		}
		return m.beyond[key]
	}
	for _, o := range m.Seen {
		if !m.ofLine(o) || o.Word == 0 {
			continue
		}
		b := of(o.Process, o.PC)
		b.n++
		if m.join.Joins(o.Process, o.TID, o.Addr) {
			b.seen += o.Weight()
			if o.Blind || o.BlindLine || o.Kind == model.Reuse && o.Native < trapsBetween*m.Calibration.Cost {
				b.blind += o.Weight()
			}
		}
		if o.Kind == model.Reuse && o.Native > 0 && len(b.after) < mostAfter {
			b.after = append(b.after, m.touchesOf(o, o.Native))
		}
	}
	for key, b := range m.beyond {
		b.class = b.n < fewWatched && len(b.after) > 0 && m.join.Told(key.process, key.pc)
	}
	for _, o := range m.Seen {
		if m.ofLine(o) && o.Word != 0 {
			if b := of(o.Process, o.PC); !b.class && (!b.joined() || !m.join.Joins(o.Process, o.TID, o.Addr)) {
				b.watched += o.Weight() * m.perSource
			}
		}
	}
	for _, w := range m.Windows {
		m.join.Open(w, func(pc uint64, joined bool, share float64) {
			if b := of(w.Process, pc); !b.class && (!joined || !b.joined()) {
				b.there += weights[w.Hold-1] * scale * share
			}
		})
	}
}

// later implements sharing.Later.
func (m *recorder) later(p *target.Process, pc uint64) sharing.Beyond {
	b := m.beyond[codeKey{p, pc}]
	if b == nil || b.n == 0 {
		return sharing.Beyond{Joined: true} // nothing else tells of it
	}
	return sharing.Beyond{Joined: b.joined(), Class: b.class, After: b.after}
}

// addLines tells of the lines of what was watched, where they do not come back as far as was read ahead. Of an
// instruction all that was watched stands for as much as there is of it in the windows.
func (m *recorder) addLines(p *model.Profile) {
	for _, o := range m.Seen {
		if !m.ofLine(o) || o.Word == 0 {
			continue
		}
		b := m.beyond[codeKey{o.Process, o.PC}]
		joins := m.join.Joins(o.Process, o.TID, o.Addr)
		if b.class || joins && b.joined() || b.watched == 0 {
			continue
		}
		m.addLine(p, o, o.Weight()*m.perSource*b.there/b.watched)
	}
}

// addLine is for one of them, that stands for so many accesses.
func (m *recorder) addLine(p *model.Profile, o *record.Observation, accesses float64) {
	var r model.Record
	m.SetTime(&r, o, m.byWall)
	add := func(kind model.Kind, share float64) *model.Record {
		p.Records = append(p.Records, model.Record{Kind: kind, Use: m.stack(o.Process, o.UseStack), Op: o.Op, TID: o.TID,
			Data: m.data.of(m.Stacks, o, m.locations), Stack: o.Stack, Weight: model.Weight{Observations: 1, Accesses: accesses * share}, Cluster: model.Cluster{Group: m.partOf(o.Hold)}, Ending: model.Ending{Rare: &model.Words{Address: o.Addr &^ (WordBytes - 1)}}})
		return &p.Records[len(p.Records)-1]
	}
	switch {
	case o.Blind || o.BlindLine || m.lines.blind && o.Lined:
		add(model.UnknownSharing, 1)
		return
	case o.Kind == model.Invalidated:
		kind := model.TrueSharing
		if m.join.Apart(o.Process, o.TID, o.Word, m.Stacks.Stack(o.ReuseStack)[0]) {
			kind = model.FalseSharing
		}
		x := add(kind, 1)
		x.Reuse, x.Native, x.Time = m.stack(o.Process, o.ReuseStack), r.Native, r.Time
		x.SetWords(model.Words{EndTID: o.EndTID, Address: x.Rare.Address, Written: o.Word})
	}
	for i := range o.Line {
		w := &o.Line[i]
		if w.Seen == nil {
			continue
		}
		x := add(model.FalseSharing, m.lines.of(o, w))
		x.Reuse = m.stack(o.Process, w.Seen.Stack)
		x.SetWords(model.Words{EndTID: w.Seen.TID, Address: x.Rare.Address, Written: w.Addr})
		x.Native = uint64(math.Round(w.Seen.Wall * m.byWall.native))
		x.Time = uint64(math.Round(max(w.Seen.Wall*m.byWall.accesses, 1)))
	}
}

func kindOf(t sharing.Taken) model.Kind {
	switch {
	case t.Unknown:
		return model.UnknownSharing
	case t.True:
		return model.TrueSharing
	}
	return model.FalseSharing
}

// divide takes from a reuse of a word that others may write first what they do: where no trap can tell it, as the
// reuse was read ahead or others' watchpoints were used up. known is false where others may have written the word unseen and
// what was read ahead knows nobody who does: then it is not known how its reuse ended.
func (m *recorder) divide(p *model.Profile, o *record.Observation, r *model.Record) (known bool) {
	reuse := r.Kind == model.Reuse && !o.Checked && (o.Soon > 0 || o.Blind)
	blind := o.Blind && (r.Kind == model.Reuse || r.Kind == model.Censored)
	if o.Stack != model.StackPrivate || !reuse && !blind {
		return true
	}
	taken, ok := m.join.Lost(o, true, float64(r.Time))
	if blind && (!ok || len(taken) == 0) {
		return false
	}
	if !reuse {
		return true
	}
	whole := r.Accesses
	for _, t := range taken {
		x := *r
		x.Kind, x.Accesses, x.Observations, x.Exact, x.Distinct, x.After = model.Invalidated, whole*t.Share, 0, false, 0, 0
		x.Reuse = m.stackAt(o.Process, t.Writer, t.By)
		word := o.Addr &^ (WordBytes - 1)
		x.SetWords(model.Words{EndTID: t.Writer, Address: word, Written: word})
		r.Accesses = max(r.Accesses-x.Accesses, 0)
		p.Records = append(p.Records, x)
	}
	return true
}

// partOf is the part of the jackknife that a hold belongs to.
func (m *recorder) partOf(hold int) int { return 1 + int(m.holdNumber(hold)%model.JackknifeGroups) }

// takenKey is what one instruction takes from another, by part of the holds.
type takenKey struct {
	process       *target.Process
	tid, writer   int
	reader, by    uint64
	kind          model.Kind
	part          int
	read, written uint8
	line          uint64
}

type takenSum struct {
	accesses, soon float64
	holds          int
}

// addTaken adds what others take of lines that their threads come back to soon.
func (m *recorder) addTaken(p *model.Profile) {
	weights := m.holdWeights()
	m.weighWaits(weights)
	private, all := 0.0, 0.0
	for i := range p.Records {
		if r := &p.Records[i]; r.Kind != model.Lost && !r.Kind.OfLine() {
			all += r.Accesses
			if r.Stack == model.StackPrivate {
				private += r.Accesses
			}
		}
	}
	joined, kept := 0.0, 0.0
	for i := range m.Holds {
		if m.Holds[i].Joined {
			joined += weights[i]
		}
	}
	for _, w := range m.Windows {
		kept += weights[w.Hold-1]
	}
	if !(private > 0 && kept > 0) {
		return
	}
	// A hold tells of both stacks, but counts as its observations do.
	scale := m.perSource * joined / kept * private / all
	p.AddCount(model.JoinedHolds, uint64(len(m.Windows)))
	late := 0.0
	for _, w := range m.Windows {
		late += w.Late
	}
	p.AddCount(model.LateHolds, uint64(math.Round(late)))
	m.setBeyond(weights, scale)
	m.addLines(p)
	sums := make(map[takenKey]*takenSum)
	var taken, turns, least, apart float64
	for _, w := range m.Windows {
		weight := weights[w.Hold-1] * scale
		for _, t := range m.join.Of(w, m.later) {
			if !t.Unknown {
				taken += weight * t.Share
				least += weight * t.Least
				apart += weight * t.Apart
				if t.Turns {
					turns += weight * t.Share
				}
			}
			if t.Share == 0 {
				continue
			}
			key := takenKey{process: w.Process, tid: w.TID, writer: t.Writer, reader: t.Reader, by: t.By, kind: kindOf(t), part: m.partOf(w.Hold), read: t.Read, written: t.Written, line: t.Line}
			s := sums[key]
			if s == nil {
				s = &takenSum{}
				sums[key] = s
			}
			s.accesses += weight * t.Share
			s.soon += weight * t.Share * t.Soon
			s.holds++
		}
	}
	p.AddCount(model.ApartAccesses, uint64(math.Round(apart)))
	if turns > 0 {
		p.AddCount(model.TurnHolds, uint64(math.Ceil(turns/taken*float64(len(m.Windows)))))
	}
	if taken > 0 {
		all := taken
		for i := range p.Records { // what watchpoints saw did happen
			if k := p.Records[i].Kind; k == model.TrueSharing || k == model.FalseSharing {
				all += p.Records[i].Accesses
			}
		}
		p.AddCount(model.SwiftHolds, uint64(math.Round(max(taken-least, 0)/all*float64(len(m.Windows)))))
	}
	m.addSums(p, sums)
}

// mostWords is how many words of a pair of instructions are told of in each part of the holds; the
// others count with the foremost.
const mostWords = 4

// addSums makes records.
func (m *recorder) addSums(p *model.Profile, sums map[takenKey]*takenSum) {
	pairs := make(map[takenKey][]takenKey)
	for k := range sums {
		pair := k
		pair.line, pair.read, pair.written = 0, 0, 0
		pairs[pair] = append(pairs[pair], k)
	}
	var order []takenKey
	for _, keys := range pairs {
		slices.SortFunc(keys, func(a, b takenKey) int {
			return cmp.Or(cmp.Compare(sums[b].accesses, sums[a].accesses), cmp.Compare(a.line, b.line), cmp.Compare(a.read, b.read), cmp.Compare(a.written, b.written))
		})
		for _, k := range keys[min(len(keys), mostWords):] {
			sums[keys[0]].accesses += sums[k].accesses
			sums[keys[0]].soon += sums[k].soon
		}
		order = append(order, keys[:min(len(keys), mostWords)]...)
	}
	slices.SortFunc(order, func(a, b takenKey) int {
		return cmp.Or(cmp.Compare(a.process.PID, b.process.PID), cmp.Compare(a.tid, b.tid), cmp.Compare(a.writer, b.writer), cmp.Compare(a.reader, b.reader), cmp.Compare(a.by, b.by),
			cmp.Compare(a.part, b.part), cmp.Compare(a.line, b.line), cmp.Compare(a.read, b.read), cmp.Compare(a.written, b.written), cmp.Compare(a.kind, b.kind))
	})
	for _, k := range order {
		s := sums[k]
		if !(s.accesses > 0) {
			continue // of holds of which all observations were lost, and are counted as such
		}
		addr := k.line*LineBytes + uint64(k.read)
		words := model.Words{EndTID: k.writer, Address: addr}
		r := model.Record{Kind: k.kind, Use: m.stackAt(k.process, k.tid, k.reader), TID: k.tid,
			Stack: model.StackPrivate, Weight: model.Weight{Observations: int64(s.holds), Accesses: s.accesses}, Cluster: model.Cluster{Group: k.part}, Data: m.datumAt(k.process, addr)}
		if k.kind == model.UnknownSharing {
			r.SetWords(words)
			p.Records = append(p.Records, r)
			continue
		}
		words.Written = k.line*LineBytes + uint64(k.written)
		r.Reuse = m.stackAt(k.process, k.writer, k.by)
		r.SetWords(words)
		r.Time = max(uint64(math.Round(s.soon/s.accesses)), 1)
		r.Native = uint64(math.Round(float64(r.Time) / m.touchesIn(1)))
		p.Records = append(p.Records, r)
	}
}

// datumAt is what lies at an address, by the mappings as last read.
func (m *recorder) datumAt(p *target.Process, addr uint64) *model.Data {
	d := p.Datum(addr)
	if d.Kind == model.DataOtherStack || d.Kind == model.DataStack {
		return &d
	}
	key := dataKey{kind: d.Kind, mapping: d.Mapping, name: d.Name, address: d.Address}
	if m.data[key] == nil {
		m.data[key] = &d
	}
	return m.data[key]
}

// weighWaits has a hold that came while its thread waited stand for as many touches as a wait makes, in a process where any did:
// what was read ahead of it shows the turn that came next, and it was weighed by that.
func (m *recorder) weighWaits(weights []float64) {
	if !m.timed() {
		return
	}
	windows := m.windowTimes()
	perTouch := func(hold int) float64 {
		if m.foretold != nil {
			if w, ok := m.foretold.windows[hold]; ok {
				return m.foretold.perAccess(w, 1)
			}
		}
		if w, ok := windows[hold]; ok {
			return w.all()
		}
		return 1
	}
	m.join.SetPaces(perTouch)
	type sum struct{ before, after float64 }
	sums := make(map[*target.Process]*sum)
	for _, w := range m.Windows {
		s := sums[w.Process]
		if s == nil {
			s = &sum{}
			sums[w.Process] = s
		}
		s.before += weights[w.Hold-1]
		s.after += weights[w.Hold-1] * perTouch(w.Hold) * m.join.Pace(w.Hold)
	}
	for _, w := range m.Windows {
		if s := sums[w.Process]; m.join.Waits(w.Process) && s.after > 0 {
			weights[w.Hold-1] *= perTouch(w.Hold) * m.join.Pace(w.Hold) * s.before / s.after
		}
	}
}

// holdWeights is for how much each hold's observations stand, as if all had been kept, in the source's unit.
func (m *recorder) holdWeights() []float64 {
	weights, shares := make([]float64, len(m.Holds)), make([]float64, len(m.Holds))
	for _, o := range m.Seen {
		if o.Hold == 0 || o.State != record.Done {
			continue
		}
		weights[o.Hold-1] += o.Weight()
		shares[o.Hold-1] += o.Times() / float64(max(m.PerHold, 1))
	}
	for i, s := range shares {
		if s > 0 {
			weights[i] /= s
		}
	}
	return weights
}
