package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The test binary stands in for rdx where rdx starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") || os.Getenv("RDX_TEST_MAIN") != "" {
		main()
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "rdx-test-")
	if err == nil {
		// Ordinary users run what is built there.
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("RDX_TEST_DIR", dir)
	os.Setenv("RDX_CACHE", os.DevNull) // sessions measure nothing that they can't keep
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
