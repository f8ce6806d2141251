package sampler

import (
	"testing"
	"testing/fstest"
)

// A size is a whole number of bytes, 1 to 2^60, or an error.
func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"48K", "1.5M", "32MiB", "0x10", "1e3k", "nan", "-1", "0.5", "", "1ibk", "inf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err == nil && (n < 1 || n > 1<<60) || err != nil && n != 0 {
			t.Errorf("ParseSize(%q) = %d, %v", s, n, err)
		}
	})
}

// Whatever sysfs says of a PMU and whatever event is asked of it, there is an
// event or an error.
func FuzzPMU(f *testing.F) {
	f.Add("config:0-7,32-35", "event=0xcd,umask=0x1,ldlat=3", "ldlat=30")
	f.Add("config1:0-15", "mem-loads", "mem-loads")
	f.Add("config2:63", "field", "field=1,config=0xffffffffffffffff")
	f.Fuzz(func(t *testing.T, field, event, asked string) {
		p, err := ReadPMU(fstest.MapFS{
			eventSources + "/cpu/type":             {Data: []byte("4")},
			eventSources + "/cpu/format/field":     {Data: []byte(field)},
			eventSources + "/cpu/events/mem-loads": {Data: []byte(event)},
		}, "cpu")
		if err != nil {
			return
		}
		for _, terms := range []string{asked, "mem-loads"} {
			if e, err := p.Event(terms); err == nil && e.Type != 4 {
				t.Errorf("event %q of a PMU of type 4: %+v", terms, e)
			}
		}
	})
}
