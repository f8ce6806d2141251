package exact

const (
	trialTouches = 1 << 12 // touches after which it is seen how many were found
	trialShare   = 4       // one in so many makes it worth while
	trialPause   = 16 * trialTouches
)

// trial tells whether it is worth while to keep the top of a stack: of tried touches, found
// were in it. Where those are few, it pauses for off touches.
type trial struct {
	tried, found, off int
	pauses            int
}

// useless is whether too few touches are found.
func (t *trial) useless() bool {
	if t.tried < trialTouches {
		return false
	}
	few := t.found < t.tried/trialShare
	t.tried, t.found = 0, 0
	return few
}

func (t *trial) pause() {
	t.off = trialPause
	t.pauses++
}
