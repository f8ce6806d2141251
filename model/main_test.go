package model

import (
	"os"
	"runtime/debug"
	"testing"
)

// Tests estimate thousands of small profiles, of which each leaves much garbage and little else: collecting that of ten at a time
// takes a quarter less of the processor.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
