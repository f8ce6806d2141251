package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// head is what all records of a window have in common and no column can hold.
type head struct {
	block, bins int
	clock       model.Clock // name, unit and source of the rate
	source      string
	caches      []model.Cache
}

func headOf(p *model.Profile) head {
	return head{block: p.Block, bins: PackBins, source: p.Source, caches: p.Caches,
		clock: model.Clock{Name: p.Clock.Name, Unit: p.Clock.Unit, RateSource: p.Clock.RateSource}}
}

func (h head) values() url.Values {
	v := url.Values{"block": {strconv.Itoa(h.block)}, "bins": {strconv.Itoa(h.bins)}, "clock": {h.clock.Name}, "unit": {h.clock.Unit}}
	for _, c := range h.caches {
		v.Add("cache", fmt.Sprintf("%s %d %d %d", c.Level, c.Size, c.Ways, c.Line))
	}
	return v
}

func (h head) String() string {
	v := h.values()
	v.Set("head", "1")
	v.Set("rate", h.clock.RateSource)
	v.Set("source", h.source)
	return tagPrefix + v.Encode()
}

// Config is a short hash of what profiles must share to be merged without a word: the
// caches, the clock, the block.
func Config(p *model.Profile) string {
	return headOf(p).config()
}

func parseHead(v url.Values) (head, error) {
	h := head{source: v.Get("source"), clock: model.Clock{Name: v.Get("clock"), Unit: v.Get("unit"), RateSource: v.Get("rate")}}
	var err error
	if h.block, err = strconv.Atoi(v.Get("block")); err != nil || h.block < 1 || h.block > 1<<30 {
		return h, fmt.Errorf("block of %.40q bytes", v.Get("block"))
	}
	if h.bins, err = strconv.Atoi(v.Get("bins")); err != nil || h.bins < 1 || h.bins > 4096 {
		return h, fmt.Errorf("%.40q bins to an octave", v.Get("bins"))
	}
	for _, s := range v["cache"] {
		f := strings.Fields(s)
		if len(f) != 4 {
			return h, fmt.Errorf("cache %.40q: want level, size, ways and line", s)
		}
		c := model.Cache{Level: f[0]}
		var errs [3]error
		c.Size, errs[0] = strconv.ParseInt(f[1], 10, 64)
		c.Ways, errs[1] = strconv.Atoi(f[2])
		c.Line, errs[2] = strconv.Atoi(f[3])
		for _, err := range errs {
			if err != nil {
				return h, fmt.Errorf("cache %.40q: %w", s, err)
			}
		}
		h.caches = append(h.caches, c)
	}
	return h, nil
}

func (h head) config() string {
	sum := sha256.Sum256([]byte(h.values().Encode()))
	return hex.EncodeToString(sum[:4])
}

// describe is a head for people.
func (h head) describe() string {
	s := fmt.Sprintf("blocks of %d bytes, clock %s in %s", h.block, h.clock.Name, h.clock.Unit)
	for _, c := range h.caches {
		s += fmt.Sprintf(", %s %d KiB", c.Level, c.Size>>10)
	}
	return s
}

// Names of sums, which are integers: what is added up over windows.
const (
	sumDuration = "duration_ns"
	// Weighted by observations, in millionths.
	sumRate       = "rate_x_observations_e6"
	sumTouches    = "touches_x_observations_e6"
	sumResolution = "resolution_x_observations_e6"
	sumRateLow    = "rate_low_x_observations_e6"
	sumRateHigh   = "rate_high_x_observations_e6"
)
