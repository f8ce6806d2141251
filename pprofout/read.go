package pprofout

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"

	"github.com/rdx-profiler/rdx/model"
)

// maxSize bounds what a profile may unpack to, so that a small malicious file
// cannot take all memory.
const maxSize = 1 << 30

// leastSample is less than what a sample takes in a profile of rdx, in bytes.
const leastSample = 40

// Read reads a profile that Write wrote, or several such merged by pprof's
// rules. Derived fields are those of the file.
//
// Whatever else r holds gives an error of one line that begins with "not an
// rdx profile" and gives the offset of the byte at which reading failed.
func Read(r io.Reader) (*model.Profile, error) {
	packed, err := readAll(r)
	if err != nil {
		return nil, err
	}
	u, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	samples := splitSamples(u.data, leastPart)
	samples.passed = u.drop
	p, err := readSamples(u.data, samples, min(runtime.GOMAXPROCS(0), mostParts))
	u.free() // texts and all else that is kept are copies
	if err == nil {
		return p, nil
	}
	// Whatever it was: bytes that are no message are the cause. Those that were passed are unpacked again.
	if u, again := unpack(packed); again == nil {
		defer u.free()
		if at, what := brokenAt(u.data, 0, wireProfile); what != "" {
			err = notRdx("no pprof data: byte %d%s: %s", at, u.where, what)
		}
	}
	return nil, err
}

func parse(data []byte) (*profile.Profile, error) {
	in, err := profile.ParseUncompressed(data)
	if err == nil {
		err = in.CheckValid()
	}
	if err != nil {
		return nil, notRdx("no pprof data: %v", err)
	}
	return in, nil
}

// notRdx makes an error of one line, whatever the file put into it.
func notRdx(format string, args ...any) error {
	msg := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	return errors.New("not an rdx profile: " + msg)
}

// readAll reads all of r, as far as it is not too large.
func readAll(r io.Reader) ([]byte, error) {
	all := bytes.NewBuffer(make([]byte, 0, sizeOf(r)+bytes.MinRead))
	if _, err := all.ReadFrom(io.LimitReader(r, maxSize+1)); err != nil {
		return nil, fmt.Errorf("read profile: byte %d: %w", all.Len(), err)
	}
	return all.Bytes(), nil
}

// unpacked is an encoded profile.
type unpacked struct {
	data  []byte
	where string // in messages about its bytes: whether they were packed
	room  room
}

// unpack unpacks what is a gzip.
func unpack(data []byte) (*unpacked, error) {
	u := &unpacked{data: data}
	if len(data) == 0 {
		return nil, notRdx("the file is empty")
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		u.where = " unpacked"
		if err := u.inflate(data); err != nil {
			u.free()
			return nil, err
		}
	}
	if len(u.data) > maxSize {
		u.free()
		return nil, notRdx("more than %d bytes unpacked", maxSize)
	}
	return u, nil
}

// inflate unpacks a gzip, as far as it is not too large.
func (u *unpacked) inflate(packed []byte) error {
	in := bytes.NewReader(packed)
	size := in.Len()
	z, err := gzip.NewReader(in)
	if err != nil {
		return notRdx("gzip: byte %d: %v", size-in.Len(), err)
	}
	u.room = outside(unpackedSize(packed))
	all := bytes.NewBuffer(u.room.bytes[:0])
	_, err = all.ReadFrom(io.LimitReader(z, maxSize+1))
	if u.data = all.Bytes(); err != nil {
		return notRdx("gzip is cut off or damaged at byte %d, %d unpacked: %v", size-in.Len(), len(u.data), err)
	}
	if len(u.data) == 0 {
		return notRdx("no pprof data: the gzip holds nothing")
	}
	return nil
}

// drop gives back the memory of bytes that nobody will read any more, and says of how many: of some behind them it can do so later.
func (u *unpacked) drop(bytes []byte) int {
	if len(bytes) == 0 || !u.room.has(u.data) {
		return len(bytes)
	}
	return u.room.drop(bytes)
}

// free gives back all of it. Nothing of data may be used after that.
func (u *unpacked) free() { u.room.free() }

// sizeOf is how long a file is, or what knows its size, 0 of others.
func sizeOf(r io.Reader) int {
	switch f := r.(type) {
	case *os.File:
		if i, err := f.Stat(); err == nil && i.Mode().IsRegular() {
			return int(min(i.Size(), maxSize))
		}
	case interface{ Size() int64 }:
		return int(min(f.Size(), maxSize))
	}
	return 0
}

// unpackedSize is what a gzip says in its last bytes (RFC 1952, section 2.3.1) that it unpacks to, as far as that is
// likely, and some room to see that it ends there: memory that grows with what is read is taken several times over.
func unpackedSize(packed []byte) int {
	const usual = 16 // times; what packs better takes memory as it comes
	last := packed[max(len(packed)-4, 0):]
	if len(last) < 4 {
		return 0
	}
	return min(int(binary.LittleEndian.Uint32(last)), usual*len(packed), maxSize) + bytes.MinRead
}

// Decode is Read for a profile that is parsed already.
func Decode(in *profile.Profile) (*model.Profile, error) {
	d, err := newDecoder(in, make([]model.Record, 0, len(in.Sample)))
	if err != nil {
		return nil, err
	}
	if err := d.parsed(in.Sample); err != nil {
		return nil, err
	}
	return d.finish(), nil
}

// newDecoder is for samples of a profile of which all else is in. There is room for their records.
func newDecoder(in *profile.Profile, room []model.Record) (*decoder, error) {
	sessions, other, err := parseComments(in.Comments)
	if err != nil {
		return nil, notRdx("%v", err)
	}
	if len(sessions) == 0 {
		var types []string
		for _, t := range in.SampleType {
			types = append(types, t.Type+"/"+t.Unit)
		}
		return nil, notRdx("a pprof profile of another tool, with sample types %.200s", strings.Join(types, " "))
	}
	p, err := combine(sessions)
	if err != nil {
		return nil, notRdx("%v", err)
	}
	p.Comments = append(p.Comments, other...)
	if in.DurationNanos > 0 {
		p.Duration = time.Duration(in.DurationNanos) // merging adds it up
	}
	d := &decoder{p: p, in: in, sessions: sessions, tables: newTables(len(in.Location)), single: make([][]*model.Location, len(in.Location)+1), stacks: map[string][]*model.Location{}, losses: map[model.CountName]int64{}}
	if err := d.columns(); err != nil {
		return nil, notRdx("%v", err)
	}
	p.Records = room
	return d, nil
}

// parsed adds samples that are parsed.
func (d *decoder) parsed(samples []*profile.Sample) error {
	var s sample
	for _, from := range samples {
		s.set(from)
		if err := d.add(&s); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) add(s *sample) error {
	if err := d.sample(s); err != nil {
		return notRdx("sample %d: %v", d.samples, err)
	}
	d.samples++
	return nil
}

func (d *decoder) finish() *model.Profile {
	if len(d.p.Records) == 0 {
		d.p.Records = nil
	}
	d.addLosses(d.losses)
	d.compareTotals(d.sessions)
	d.p.SetDesignEffect()
	return d.p
}

type decoder struct {
	p        *model.Profile
	in       *profile.Profile
	sessions []*session
	samples  int   // so far
	column   []int // of the file, per sample type of the profile
	// latencies: the file has a column of them.
	latencies bool
	squares   bool // likewise
	windows   bool // likewise

	tables *tables
	// Those stacks of the tables that were asked for: of one frame and of several, by the numbers of their locations.
	single [][]*model.Location // by number, of those that are not large
	stacks map[string][]*model.Location
	key    []byte
	data   *model.Data // the one asked for last
	misses []float64   // of records, the last one's at the end
	losses map[model.CountName]int64
	total  int64                  // observations
	grown  bool                   // there were more records than a file of that size should have
	passed func(bytes []byte) int // see parted
}

// columns finds the sample types by name: other tools may reorder them.
func (d *decoder) columns() error {
	index := func(want *profile.ValueType) int { return columnOf(d.in.SampleType, want) }
	d.latencies = index(latencyType) >= 0
	d.squares = index(squaresType) >= 0
	d.windows = index(windowTypes[0]) >= 0
	for _, want := range sampleTypes(d.p.Caches, columns{d.squares, d.windows, d.latencies}) {
		i := index(want)
		if i < 0 {
			return fmt.Errorf("no sample type %s/%s", want.Type, want.Unit)
		}
		d.column = append(d.column, i)
	}
	return nil
}

func (d *decoder) sample(s *sample) error {
	word := s.text(ofKind)
	kind, ok := model.ParseKind(word)
	if !ok && word != latency && word != touchKind && word != cpuKind {
		return fmt.Errorf("kind %.40q is not known", word)
	}
	for _, i := range d.column {
		if v := s.values[i]; v < 0 {
			return fmt.Errorf("value %d of %s is negative: the difference of two profiles is not a profile", v, d.in.SampleType[i].Type)
		}
	}
	n := s.values[d.column[0]]
	if n > math.MaxInt64-d.total {
		return fmt.Errorf("observations add up to more than %d", int64(math.MaxInt64))
	}
	d.total += n

	stack := s.stack
	if len(stack) == 0 {
		return fmt.Errorf("no locations")
	}
	switch word {
	case latency:
		return d.useLatency(s)
	case touchKind, cpuKind:
		return d.window(word, s)
	}
	if name := lossOf(frameName(stack[0])); kind == model.Lost && name != "" {
		d.losses[name] += n
		return nil
	}

	r := model.Record{Kind: kind}
	d.weights(&r, s)
	if err := d.labels(&r, s); err != nil {
		return err
	}
	if err := d.times(&r, s); err != nil {
		return err
	}
	if err := d.useAndEnd(&r, stack); err != nil {
		return err
	}
	d.p.Records = append(d.p.Records, r)
	return nil
}

// weights takes a sample's values.
func (d *decoder) weights(r *model.Record, s *sample) {
	value := func(i int) int64 { return s.values[d.column[i]] }
	r.Observations, r.Accesses, r.Reuses = value(0), float64(value(1)), float64(value(2))
	last := 3 + len(d.p.Caches)
	r.Misses = d.missesOf(s)
	r.Distance = float64(value(last))
	if d.squares {
		r.Squares = float64(value(last+1)) * squareUnit
	}
}

// labels takes what a sample's labels say, but for times.
func (d *decoder) labels(r *model.Record, s *sample) error {
	var ok bool
	r.DataSource = s.text(ofSource)
	r.Op = parseOp(s.text(ofAccess))
	r.BelowResolution = s.text(ofBelow) == "true"
	r.Exact = s.text(ofExact) == "true"
	if name := s.text(ofData); name != "" {
		r.Data = d.datum(name)
	}
	if n := s.number(ofDistinct); n > 0 {
		r.Distinct = uint64(n)
	}
	r.After, r.Hot = uint64(max(0, s.number(ofReadAhead))), uint64(max(0, s.number(ofHot)))
	if word := s.text(ofPair); word != "" {
		r.Half = true
		if r.Pair, ok = model.ParseKind(word); !ok {
			return fmt.Errorf("pair %.40q is not known", word)
		}
		r.PairTime = uint64(max(0, s.number(ofPairTime)))
	}
	r.TID = int(s.number(ofTID))
	r.Epoch = int(s.number(ofEpoch))
	r.Hold = uint64(s.number(ofHold))
	r.Open = min(max(float64(s.number(ofOpen))/1e6, 0), 1)
	if g := s.number(ofGroup); g > 0 && g <= model.JackknifeGroups {
		r.Group = int(g)
	}
	if r.Stack, ok = model.ParseStackKind(cmp.Or(s.text(ofStack), model.StackOwn.String())); !ok {
		return fmt.Errorf("stack %.40q is not known", s.text(ofStack))
	}
	r.SetWords(model.Words{EndTID: int(s.number(ofEnd)), Address: uint64(s.number(ofUsed)), Written: uint64(s.number(ofWritten)), Member: s.text(ofMember), WrittenMember: s.text(ofWrittenMember)})
	return nil
}

// times takes how long the reuse was.
func (d *decoder) times(r *model.Record, s *sample) error {
	t, native := s.number(ofReuseTime), s.number(ofCPUTime)
	if t < 0 || native < 0 {
		return fmt.Errorf("negative time")
	}
	r.Time, r.Native = uint64(t), uint64(native)
	if d.p.Clock.Unit != nanoseconds && r.Kind.Parts().Timed {
		r.Native = d.native(r.Time)
	}
	return nil
}

// useAndEnd takes the stacks of the use and of what ended it, which the frame of the kind parts.
func (d *decoder) useAndEnd(r *model.Record, stack []*profile.Location) error {
	marker := slices.IndexFunc(stack, func(l *profile.Location) bool { return frameName(l) == pseudoFrames[r.Kind] })
	switch {
	case r.Kind.Parts().Ended && marker < 0:
		r.Reuse = d.stack(stack)
	case r.Kind.Parts().Ended:
		r.Reuse, r.Use = d.stack(stack[:marker]), d.stack(stack[marker+1:])
	case marker == 0:
		r.Use = d.stack(stack[1:])
	default:
		return fmt.Errorf("kind %s without the frame %s", r.Kind, pseudoFrame(r.Kind))
	}
	return nil
}

// missesAtOnce are taken together.
const missesAtOnce = 1 << 14

// missesOf are a sample's in each cache. Samples that follow each other often have the same, which are there once then.
func (d *decoder) missesOf(s *sample) []float64 {
	n := len(d.p.Caches)
	if n == 0 {
		return nil
	}
	if cap(d.misses)-len(d.misses) < n {
		d.misses = make([]float64, 0, max(n, missesAtOnce))
	}
	from := len(d.misses)
	for _, i := range d.column[3 : 3+n] {
		d.misses = append(d.misses, float64(s.values[i]))
	}
	if from >= n && slices.Equal(d.misses[from-n:from], d.misses[from:]) {
		from, d.misses = from-n, d.misses[:from]
	}
	return d.misses[from:len(d.misses):len(d.misses)]
}

// useLatency reads a sample of cycles that uses took.
func (d *decoder) useLatency(s *sample) error {
	if !d.latencies {
		return fmt.Errorf("cycles without the sample type %s/%s", latencyType.Type, latencyType.Unit)
	}
	l := model.Latency{Use: d.stack(s.stack), TID: int(s.number(ofTID)), DataSource: s.text(ofSource),
		Cycles: float64(s.values[d.column[len(d.column)-1]])}
	l.Op = parseOp(s.text(ofAccess))
	d.p.Latencies = append(d.p.Latencies, l)
	return nil
}

func parseOp(word string) model.Op {
	for _, op := range []model.Op{model.Load, model.Store} {
		if word == op.String() {
			return op
		}
	}
	return model.OpUnknown
}

// datum returns the one data object of a name.
func (d *decoder) datum(name string) *model.Data {
	if d.data == nil || d.data.Name != name {
		d.data = d.tables.datum(name)
	}
	return d.data
}

// native turns accesses into the unit of a clock that has no label of its own.
func (d *decoder) native(t uint64) uint64 {
	rate := d.p.Clock.TouchRate()
	if !(rate > 0) || rate == 1 {
		return t
	}
	return uint64(min(math.Round(float64(t)/rate), math.MaxInt64))
}

// frameName is the name of a pseudo-frame, "" for a location of the program.
func frameName(l *profile.Location) string {
	if l.Address != 0 || l.Mapping != nil || len(l.Line) != 1 {
		return ""
	}
	return l.Line[0].Function.Name
}

// stack is that of locations, leaf first, the same one for the same ones: it is not to be changed.
func (d *decoder) stack(locs []*profile.Location) []*model.Location {
	if len(locs) == 0 {
		return nil
	}
	if id := locs[0].ID; len(locs) == 1 && id < uint64(len(d.single)) {
		if d.single[id] == nil {
			d.single[id] = d.tables.one(locs[0])
		}
		return d.single[id]
	}
	d.key = d.key[:0]
	for _, l := range locs {
		d.key = binary.AppendUvarint(d.key, l.ID)
	}
	s := d.stacks[string(d.key)]
	if s == nil {
		key := string(d.key)
		s = d.tables.stack(key, locs)
		d.stacks[key] = s
	}
	return s
}

// lossOf is the count of a loss that a pseudo frame stands for, "" if it is another's.
func lossOf(frame string) model.CountName {
	name, ok := strings.CutPrefix(frame, "[")
	if !ok || !model.LostBecause.Has(model.CountName(name)) {
		return ""
	}
	return model.CountName(strings.TrimSuffix(name, "]"))
}

// addLosses raises the counts that comments gave to what the samples say.
func (d *decoder) addLosses(losses map[model.CountName]int64) {
	for name, n := range losses {
		i := slices.IndexFunc(d.p.Counts, func(c model.Count) bool { return c.Name == name })
		if i < 0 {
			d.p.Counts = append(d.p.Counts, model.Count{Name: name, N: n})
		} else {
			d.p.Counts[i].N = max(d.p.Counts[i].N, n)
		}
	}
	sortCounts(d.p.Counts)
}

// compareTotals remarks where a tool has dropped or scaled samples.
func (d *decoder) compareTotals(sessions []*session) {
	var written int64
	for _, s := range sessions {
		written += s.observations
	}
	if d.total != written {
		d.p.Comments = appendNew(d.p.Comments, fmt.Sprintf(model.ChangedSince+": holds %d of %d observations", d.total, written))
	}
}
