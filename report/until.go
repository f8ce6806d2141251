package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// Until is how well a miss ratio is to be known, and how well it is by now. Its zero value asks for nothing.
type Until struct {
	Within float64 // half of the band, as a share of the ratio
	Size   int64   // of the cache, bytes

	last  *model.Point
	looks []look
}

// look is how well it was known once: the square of half of the band, as a share of the ratio.
type look struct {
	after  time.Duration
	within float64
}

// matters is the ratio below which it is enough to know that it is lower.
const matters = 0.001

// ParseUntil reads "20%", "20" or "0.2" likewise.
func ParseUntil(s string) (within float64, err error) {
	number := strings.TrimSuffix(s, "%")
	v, err := strconv.ParseFloat(number, 64)
	if err == nil && (v >= 1 || number != s) {
		v /= 100
	}
	if err != nil || !(v >= 0.01 && v < 1) {
		return 0, fmt.Errorf("--until %s: want a share of the miss ratio from 1 to 99 percent, such as 20%%", s)
	}
	return v, nil
}

// See takes what is known after a time; it says whether that is enough.
func (u *Until) See(after time.Duration, p *model.Point) (enough bool) {
	if p == nil || u.Within == 0 {
		return false
	}
	u.last = p
	if w := halfBand(p); !math.IsInf(w, 1) {
		u.looks = append(u.looks, look{after, w * w})
	}
	return u.enough()
}

func (u *Until) enough() bool {
	p := u.last
	return p.Quote == model.Quoted && halfBand(p) <= u.Within || p.High <= matters
}

// halfBand is half of the band as a share of the ratio, infinite where there is none.
func halfBand(p *model.Point) float64 {
	if !(p.MissRatio > 0) {
		return math.Inf(1)
	}
	return (p.High - p.Low) / 2 / p.MissRatio
}

// left is how long it will take, and the least that the band can become: its square goes with one over the time, but for
// a part that the time does not change, as the access rate's error. known is false of too few looks.
func (u *Until) left() (more time.Duration, least float64, known bool) {
	looks := u.looks[len(u.looks)/2:] // the first ones tell little
	if len(looks) < 4 {
		return 0, 0, false
	}
	var n, sx, sy, sxx, sxy float64
	for _, l := range looks {
		x := 1 / l.after.Seconds()
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+l.within, sxx+x*x, sxy+x*l.within
	}
	slope := (sxy - sx*sy/n) / (sxx - sx*sx/n)
	stays := max(sy/n-slope*sx/n, 0)
	if slope = (sy/n - stays) / (sx / n); !(slope > 0) {
		return 0, math.Sqrt(stays), true
	}
	at := slope / max(u.Within*u.Within-stays, 0) // seconds
	return time.Duration(min((at-looks[len(looks)-1].after.Seconds())*1e9, math.MaxInt64/2)), math.Sqrt(stays), true
}

// Ended is String when the session is over, and says where it did not come to what was asked.
func (u *Until) Ended() string {
	if u.Within == 0 {
		return ""
	}
	short := fmt.Sprintf("not within %s, as was asked", WholePercent(u.Within))
	switch said := u.String(); {
	case u.last == nil:
		return fmt.Sprintf("misses at %s: %s: profile longer", Bytes(float64(u.Size)), short)
	case u.enough():
		return said
	case u.bounded(): // more time would not do
		return said + "; " + short
	default:
		return said + "; " + short + ": profile longer"
	}
}

// bounded says whether the band will not become as narrow as was asked, however long it takes.
func (u *Until) bounded() bool {
	_, least, known := u.left()
	return u.last.Quote == model.Quoted && known && least >= u.Within
}

// String says how well it is known by now, and how long it will take: "" before there was anything.
func (u *Until) String() string {
	p := u.last
	if p == nil {
		return ""
	}
	said := fmt.Sprintf("misses at %s: ", Bytes(float64(u.Size)))
	if p.Quote != model.Quoted {
		return said + fmt.Sprintf("below %.3g%% so far", 100*p.High)
	}
	said += fmt.Sprintf("%.2g%% [%.2g, %.2g], within %s", 100*p.MissRatio, 100*p.Low, 100*p.High, WholePercent(halfBand(p)))
	if u.enough() {
		return said
	}
	switch more, least, _ := u.left(); {
	case u.bounded():
		said += fmt.Sprintf("; it will not come below %s (--access-rate, if you know it)", WholePercent(least))
	case more > 0:
		said += fmt.Sprintf("; about %v more", more.Round(time.Second))
	}
	return said
}
