// Command rdx-gpu is the part of rdx that runs on a GPU. It is not for users: rdx exact --gpu starts it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"

	"github.com/rdx-profiler/rdx/gpu"
	"github.com/rdx-profiler/rdx/gpu/device"
	"github.com/rdx-profiler/rdx/gpu/opencl"
)

func main() {
	// Of a program that is analysed while it runs, it decides what an interrupt is.
	signal.Ignore(os.Interrupt)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rdx-gpu:", err)
		os.Exit(1)
	}
}

func load() (*opencl.API, error) { return opencl.Load(opencl.Libraries...) }

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == gpu.ListArg:
		api, err := load()
		if err != nil {
			return err
		}
		all, err := device.List(api)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(all)
	case len(args) == 1 && args[0] == gpu.ServeArg:
		shared, err := gpu.MapShared(gpu.SharedFD)
		if err != nil {
			return err
		}
		return device.Serve(load, shared, os.Stdin, os.Stdout)
	}
	return fmt.Errorf("a part of rdx, which starts it (see rdx exact --gpu)")
}
