package pprofout

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"reflect"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

func gz(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func foreign(t testing.TB) []byte {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 0); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadErrors(t *testing.T) {
	good, _ := write(t, sampleProfile())
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "empty"},
		// h is field 13, a number, which e is; l has no known type.
		{"text", []byte("hello\nworld\n"), "no pprof data: byte 2: an unknown type of field"},
		{"gzip of nothing", gz(nil), "no pprof data: the gzip holds nothing"},
		{"gzip of text", gz([]byte("hello\nworld\n")), "no pprof data: byte 2 unpacked: an unknown type"},
		{"truncated", good[:len(good)/2], fmt.Sprintf("cut off or damaged at byte %d, ", len(good)/2)},
		{"two bytes", good[:2], "gzip: byte 2: "},
		{"a field too long", []byte{0x32, 0, 0x32, 9, 1}, "byte 3: a field is longer than what is left"},
		{"a text that is a number", []byte{0x32, 0, 0x30, 1}, "byte 2: a field is not of its type"},
		{"a broken sample", []byte{0x32, 0, 0x12, 4, 0x10, 1, 0x08, 0x80}, "byte 7: a number is cut off"},
		{"a broken list", []byte{0x32, 0, 0x12, 4, 0x12, 2, 1, 0x80}, "byte 7: a number is cut off"},
		{"a broken line", []byte{0x22, 3, 0x22, 1, 0x0c}, "byte 4: an unknown type of field"},
		{"flipped", append(append([]byte{}, good[:len(good)-6]...), 0, 0, 0, 0, 0, 0), "cut off or damaged"},
		{"of another tool", foreign(t), "another tool, with sample types goroutine/count"},
	} {
		_, err := Read(bytes.NewReader(c.data))
		if err == nil || !strings.HasPrefix(err.Error(), "not an rdx profile: ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", c.name, err, c.want)
		}
	}
}

// Wherever an unpacked profile is cut, or a byte of it is changed, it is read or
// the error says where reading failed, within the file. What pprof's reader finds
// to be no message is found here, and nothing that it reads.
func TestReadErrorsGiveTheByte(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	_, out := write(t, sampleProfile())
	var raw bytes.Buffer
	if err := out.WriteUncompressed(&raw); err != nil {
		t.Fatal(err)
	}
	data := raw.Bytes()
	check := func(b []byte) {
		t.Helper()
		_, parse := profile.ParseUncompressed(b)
		at, what := brokenAt(b, 0, wireProfile)
		bad := parse != nil && (strings.Contains(parse.Error(), "varint") || strings.Contains(parse.Error(), "data") ||
			strings.Contains(parse.Error(), "wire type") || strings.Contains(parse.Error(), "mismatch"))
		if bad && what == "" || parse == nil && what != "" || at < 0 || at > len(b) {
			t.Errorf("pprof: %v; here: byte %d of %d: %q", parse, at, len(b), what)
		}
	}
	for i := range data {
		check(data[:i])
		for _, flip := range []byte{1, 4, 0x80, 0xff} {
			b := bytes.Clone(data)
			b[i] ^= flip
			check(b)
		}
	}
}

func TestReadDamaged(t *testing.T) {
	comment := func(c string) func(*profile.Profile) {
		return func(p *profile.Profile) { p.Comments = append(p.Comments, c) }
	}
	for want, change := range map[string]func(p *profile.Profile){
		`format "2" is not known`:         comment("rdx[ab] format=2"),
		`format "3", of rdx v9 (x),`:      func(p *profile.Profile) { p.Comments = append(p.Comments, "rdx[ab] writer=v9 (x)", "rdx[ab] format=3") },
		"comment 36":                      comment("rdx[ab] block=many"),
		"is not a finite number >= 0":     comment("rdx[ab] period=NaN"),
		"want level, size, ways and line": comment("rdx[ab] cache=L1"),
		"invalid syntax":                  comment(`rdx[ab] command="x`),
		"want a number and a name":        comment("rdx[ab] count=5"),
		"measured on do not grow":         comment("rdx[ab] cost_on=0 1 1 1"),
		"want the number of a cost":       comment("rdx[ab] cost.within=9 5"),
		"negative duration":               comment("rdx[ab] duration=-1s"),
		"no sample type l2_misses/count":  func(p *profile.Profile) { p.SampleType[4].Type = "x" },
		`kind "x" is not known`:           func(p *profile.Profile) { p.Sample[1].Label["kind"] = []string{"x"} },
		`kind "" is not known`:            func(p *profile.Profile) { p.Sample[1].Label = nil },
		"no locations":                    func(p *profile.Profile) { p.Sample[1].Location = nil },
		"without the frame [pruned]":      func(p *profile.Profile) { p.Sample[1].Location = p.Sample[1].Location[1:] },
		"is negative: the difference of":  func(p *profile.Profile) { p.Sample[1].Value[1] = -1 },
		"sample 1: negative time":         func(p *profile.Profile) { p.Sample[1].NumLabel[reuseTime][0] = -1 },
		"observations add up to more than": func(p *profile.Profile) {
			p.Sample[1].Value[0], p.Sample[2].Value[0] = 1<<62, 1<<62
			p.Sample[3].Value[0] = 1 << 62
		},
	} {
		_, out := write(t, sampleProfile())
		change(out)
		var b bytes.Buffer
		if err := out.Write(&b); err != nil {
			t.Fatal(err)
		}
		_, err := Read(&b)
		if err == nil || !strings.HasPrefix(err.Error(), "not an rdx profile: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %q", err, want)
		}
	}
}

// Samples that are decoded here are those of the whole, wherever in
// the file they are, and share locations and mappings.
func TestReadSamples(t *testing.T) {
	p := sampleProfile()
	const many = 2000
	for i := range many {
		r := p.Records[i%3]
		r.TID = 1000 + i
		p.Records = append(p.Records, r)
	}
	_, out := write(t, p)
	var raw bytes.Buffer
	if err := out.WriteUncompressed(&raw); err != nil {
		t.Fatal(err)
	}
	want, err := Decode(out)
	if err != nil {
		t.Fatal(err)
	}
	from := splitSamples(raw.Bytes(), leastPart)
	rest, samples := from.rest, from.samples
	var parts [][]byte
	for left := raw.Bytes(); len(left) > 0; {
		n := fieldSize(left)
		if left[0] == sampleField {
			parts = append(parts, left[:n])
		}
		left = left[n:]
	}
	if len(parts) != samples || samples != len(out.Sample) {
		t.Fatalf("%d samples, %d are counted, of %d", len(parts), samples, len(out.Sample))
	}
	backwards := slices.Clone(parts)
	slices.Reverse(backwards)
	for name, data := range map[string][]byte{
		"as written":    raw.Bytes(),
		"samples first": slices.Concat(slices.Concat(parts...), rest),
		"between":       slices.Concat(parts[0], rest, slices.Concat(parts[1:]...)),
	} {
		if !reflect.DeepEqual(read(t, data), want) {
			t.Errorf("%s: another profile", name)
		}
	}
	got := read(t, slices.Concat(rest, slices.Concat(backwards...)))
	if len(got.Records) != len(want.Records) || got.Records[0].TID == want.Records[0].TID {
		t.Errorf("%d records in another order, the first of thread %d; want %d", len(got.Records), got.Records[0].TID, len(want.Records))
	}
	locations := map[*model.Location]bool{}
	for _, r := range want.Records {
		for _, l := range slices.Concat(r.Use, r.Reuse) {
			locations[l] = true
		}
	}
	if len(locations) > 10 {
		t.Errorf("%d locations: those of each sample are others", len(locations))
	}

	// The exact profile of a large program has millions of samples: no one takes memory of its own.
	if n := testing.AllocsPerRun(2, func() { read(t, raw.Bytes()) }); n > float64(samples)/2 {
		t.Errorf("%v allocations for %d samples", n, samples)
	}
	// Samples too small to be any take no memory in advance.
	if _, err := Read(bytes.NewReader(append(slices.Clone(rest), bytes.Repeat([]byte{sampleField, 0}, 1<<20)...))); err == nil || !strings.Contains(err.Error(), "0 values") {
		t.Errorf("a million samples of nothing: %v", err)
	}

	// A number of a field in more bytes than it takes is allowed.
	odd := append(slices.Clone(rest), 0x92, 0x00)
	first := parts[0][:fieldSize(parts[0])]
	odd = append(odd, first[1:]...)
	if got, want := read(t, odd), read(t, slices.Concat(rest, first)); !reflect.DeepEqual(got, want) {
		t.Errorf("a sample of an unusual encoding is read as %+v, want %+v", got, want)
	}
}

// inParts wants samples that are decoded by several goroutines to be what one makes of them, errors included.
func inParts(t *testing.T, data []byte, parts int) {
	t.Helper()
	want, one := readSamples(data, splitSamples(data, 1), 1)
	got, several := readSamples(data, splitSamples(data, 1), parts)
	if fmt.Sprint(one) != fmt.Sprint(several) && !strings.Contains(fmt.Sprint(one), "add up") { // over several no one sample is too many
		t.Errorf("%d parts: error %v, want %v", parts, several, one)
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) && !reflect.DeepEqual(got, want) { // no NaN is what another is
		t.Errorf("%d parts: another profile: %+v, want %+v", parts, got, want)
	}
}

// TestReadInParts: what is read by several is what is read by one, and shares locations, stacks and data.
func TestReadInParts(t *testing.T) {
	_, out := write(t, sampleProfile())
	var raw bytes.Buffer
	if err := out.WriteUncompressed(&raw); err != nil {
		t.Fatal(err)
	}
	data := raw.Bytes()
	from := splitSamples(data, 1)
	for parts := range 2 * from.samples {
		inParts(t, data, parts)
	}
	doubled := append(slices.Clone(data), data[from.at[0]:from.at[from.samples-1]]...)
	for parts := range 5 {
		inParts(t, doubled, parts)
	}
	p, err := readSamples(doubled, splitSamples(doubled, 1), 2)
	if err != nil {
		t.Fatal(err)
	}
	half := len(p.Records) / 2
	if a, b := &p.Records[0], &p.Records[half+1]; &a.Use[0] != &b.Use[0] || a.Data != b.Data {
		t.Errorf("parts have stacks or data of their own: %+v, %+v", a, b)
	}

	// Samples of fewer bytes than any has find no room where they belong.
	short := slices.Clone(from.rest)
	for at := range from.at {
		one := data[from.at[at]:]
		short = append(short, one[:fieldSize(one)]...)
	}
	parted := splitSamples(short, 1)
	for _, room := range []int{0, 1, 3, parted.samples} {
		in, err := parse(parted.rest)
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDecoder(in, make([]model.Record, 0, room))
		if err != nil {
			t.Fatal(err)
		}
		var all []*decoder
		for i := range 3 {
			first, end := parted.part(i, 3)
			q := d.part(first, end)
			if err := q.decode(newSampleReader(in, parted.rest), short[parted.offset(first):], end-first); err != nil {
				t.Fatal(err)
			}
			all = append(all, q)
		}
		if err := d.join(all); err != nil {
			t.Fatal(err)
		}
		if got, want := d.finish(), read(t, data); !reflect.DeepEqual(got, want) {
			t.Errorf("room for %d: %+v, want %+v", room, got, want)
		}
	}
}

// A key that a later version adds is ignored.
func TestReadUnknownKey(t *testing.T) {
	_, out := write(t, sampleProfile())
	id := out.Comments[0][:strings.Index(out.Comments[0], " ")]
	out.Comments = append(out.Comments, id+" colour=blue")
	if _, err := Decode(out); err != nil {
		t.Error(err)
	}
}

// What is read is written again, whatever it was.
func FuzzRead(f *testing.F) {
	good, out := write(f, sampleProfile())
	var raw bytes.Buffer
	if err := out.WriteUncompressed(&raw); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/3])
	f.Add(raw.Bytes())
	f.Add(foreign(f))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(bytes.NewReader(data))
		if u, e := unpack(data); e == nil {
			inParts(t, u.data, 3)
			u.free()
		}
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
			return
		}
		var b bytes.Buffer
		if err := Write(&b, p); err != nil {
			return // such as a total that is too large
		}
		if _, err := Read(&b); err != nil {
			t.Errorf("reading again: %v", err)
		}
	})
}

// What a gzip says of its size is believed as far as it is likely.
func TestUnpackedSize(t *testing.T) {
	for _, c := range []struct {
		packed []byte
		most   int
	}{
		{nil, 0}, {[]byte{1, 2}, 0}, {append(make([]byte, 96), 0xff, 0xff, 0xff, 0xff), 1600}, {append(make([]byte, 96), 0, 1, 0, 0), 256},
	} {
		if got := unpackedSize(c.packed); got < c.most || got > c.most+bytes.MinRead {
			t.Errorf("%d bytes: %d, want %d", len(c.packed), got, c.most)
		}
	}
}
