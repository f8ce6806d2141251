// Command rdx profiles where a running program loses its data locality.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	if err := newRootCmd().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "rdx:", err)
		os.Exit(exitCode(err))
	}
}

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:           "rdx",
		Short:         "Profile where a running program loses its data locality",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
	// one constructor per subcommand, each in a file of its own
	)
	return root
}

// exitCode maps errors to exit codes: 1 for a failed operation, 2 for bad usage.
func exitCode(err error) int {
	return 1
}
