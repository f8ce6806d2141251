package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// A hold among accesses of four words each and one among accesses of one, of the same CPU
// time: as many touches in each. So there are four of the narrow accesses for a wide one, 1.6
// words an access, and a wide access that is sampled stands for as many touches as a narrow one.
func TestOverlap(t *testing.T) {
	wide, narrow := ahead.Located{Addr: 0x1000, Size: 32}, ahead.Located{Addr: 0x2000, Size: 8}
	holds := []ahead.Ahead{
		{Followed: ahead.Followed{Use: wide}, Accesses: 2000, Touches: 8000},
		{Followed: ahead.Followed{Use: narrow}, Accesses: 500, Touches: 500},
	}
	after := func(counted bool, r Rates) (*stage, []float64) {
		s := &stage{Rates: r, Input: Input{Block: WordBytes}}
		for i := range holds {
			use := holds[i].Use
			s.readAhead += holds[i].Accesses
			s.touched += holds[i].Touches
			s.Overlaps.Note(use.Blocks(s.Block), holds[i].Touches, holds[i].Accesses, !counted)
			s.Seen = append(s.Seen, &record.Observation{Stands: 8, Overlap: s.Overlaps.Latest})
		}
		s.weighByOverlap()
		var touches []float64
		for _, o := range s.Seen {
			touches = append(touches, o.Touches())
			if o.Rate != 0 {
				t.Errorf("an access rate of %v: time would be turned into touches by it, too", o.Rate)
			}
		}
		return s, touches
	}
	s, touches := after(false, Rates{Fixed: 2})
	if per := s.touchesPerAccess(); math.Abs(per-1.6) > 1e-9 || math.Abs(s.touchesIn(10)-32) > 1e-9 {
		t.Errorf("%v touches an access, %v in 10 ns at 2 accesses a nanosecond", per, s.touchesIn(10))
	}
	if math.Abs(touches[0]-touches[1]) > 1e-9 || math.Abs(touches[0]+touches[1]-2*8*1.6) > 1e-9 {
		t.Errorf("touches %v: want 12.8 each, 1.6 for each of the 16 accesses", touches)
	}
	// Nothing is assumed where accesses are counted, or where the rates of the code are known.
	for name, c := range map[string]struct {
		counted bool
		rates   Rates
	}{
		"accesses are counted": {true, Rates{Fixed: 1}},
		"rates by code":        {false, Rates{Source: "measured", codeRates: codeRates{whole: 2}}},
	} {
		s, touches := after(c.counted, c.rates)
		if per := s.touchesPerAccess(); math.Abs(per-3.4) > 1e-9 || touches[0] != 32 || touches[1] != 8 {
			t.Errorf("%s: %v touches an access, %v touches", name, per, touches)
		}
	}
	// Where an instruction can't be read ahead, there is the one access that was decoded.
	var o Overlaps
	if o.Note(wide.Blocks(WordBytes), 0, 0, true); o.Latest != 4 {
		t.Errorf("one access to four words: %v", o.Latest)
	}
}
