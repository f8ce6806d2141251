package exact

const (
	frontTrial = 1 << 12 // touches after which it is seen how many were found
	frontLeast = 4       // one in so many makes it worth while
	frontPause = 16 * frontTrial
)

// trial tells whether it is worth while to keep the top of a stack: of tried touches, found
// were in it. Where those are few, it pauses for off touches.
type trial struct {
	tried, found, off int
	pauses            int
}

// useless is whether too few touches are found.
func (t *trial) useless() bool {
	if t.tried < frontTrial {
		return false
	}
	few := t.found < t.tried/frontLeast
	t.tried, t.found = 0, 0
	return few
}

func (t *trial) pause() {
	t.off = frontPause
	t.pauses++
}
