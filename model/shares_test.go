package model

import (
	"math"
	"testing"
)

// Where other programs have the processors it is not known whether threads ever work at once.
func TestSharingOfLateThreads(t *testing.T) {
	taken := 2.0
	swift := uint64(0)
	band := func(late uint64) (low, high float64) {
		p := &Profile{}
		for hold := range uint64(64) {
			use := Record{Stack: StackPrivate, Kind: Reuse}
			use.Observations, use.Accesses, use.Hold = 8, 98, hold+1
			gone := Record{Stack: StackPrivate, Kind: FalseSharing}
			gone.Observations, gone.Accesses, gone.Group = 1, taken, 1+int(hold%JackknifeGroups)
			p.Records = append(p.Records, use, gone)
		}
		p.AddCount(JoinedHolds, 64)
		p.AddCount(LateHolds, late)
		p.AddCount(SwiftHolds, swift)
		s := p.Sharing()
		return s.Low, s.High
	}
	low, high := band(6)
	if plain, _ := band(0); math.Abs(low-plain*58/(58+fasterAlone*6)) > 1e-12 || low == 0 {
		t.Errorf("from %v where they hardly wait for one, from %v where they don't", low, plain)
	}
	if l, h := band(48); l != 0 || h < 3.9*high || h > 4.1*high {
		t.Errorf("[%v, %v] with a quarter of the time, [%v, %v] with nearly all", l, h, low, high)
	}
	plain, _ := band(0)
	swift = 48
	if l, h := band(0); math.Abs(l-plain/4) > 1e-12 || h != high {
		t.Errorf("[%v, %v] where three quarters may be of lines that can't move so soon, [%v, %v] without", l, h, plain, high)
	}
	swift = 0
	taken = 0
	_, high = band(0)
	if _, h := band(48); h != high {
		t.Errorf("none is seen: up to %v with a quarter of the time, %v with all", h, high)
	}
}

// Of threads that wait for each other the band is wider, by as much as is theirs.
func TestSharingOfTurns(t *testing.T) {
	width := func(turns uint64) float64 {
		p := &Profile{}
		for hold := range uint64(64) {
			use := Record{Stack: StackPrivate, Kind: Reuse}
			use.Observations, use.Accesses, use.Hold = 8, 98, hold+1
			taken := Record{Stack: StackPrivate, Kind: TrueSharing}
			taken.Observations, taken.Accesses = 1, 2
			taken.Group = 1 + int(hold%JackknifeGroups)
			p.Records = append(p.Records, use, taken)
		}
		p.AddCount(JoinedHolds, 64)
		p.AddCount(TurnHolds, turns)
		s := p.Sharing()
		if want := float64(turns) / 64; s.Turns != want {
			t.Errorf("%v of %d holds by turns", s.Turns, turns)
		}
		if share := s.True; share < s.Low || share > s.High {
			t.Errorf("%v is not in [%v, %v]", share, s.Low, s.High)
		}
		return (s.High - s.Low) / s.True
	}
	none, half, all := width(0), width(32), width(64)
	if !(none < half && half < all) || all < 2*turnsError {
		t.Errorf("bands of %v, %v and %v of the share", none, half, all)
	}
}
