package record

// Lap is a stretch of a thread right behind a hold that was read ahead and timed, from one trap to the next.
type Lap struct {
	Hold     int // its number, from 1
	Accesses int
	// Data and Code are lines that were not touched before in the hold: 0 both if that is not known.
	Data, Code int
	NS         float64 // less than 0 where the traps took less than they do on average
	Timed      bool
}
