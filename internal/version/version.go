// Package version says which rdx this is: profiles, recordings, the agent and doctor name it, so
// that a result can be traced to the code that made it.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/rdx-profiler/rdx/bpf"
)

// release and commit are set by the linker, as make build and make release do: -X
// .../internal/version.release=v1.2.3. What is not set is what the Go tool has recorded.
var release, commit string

// unknown stands for what the build did not record.
const unknown = "unknown"

// Info is what a build of rdx is made of.
type Info struct {
	Version  string `json:"version"`            // of the release or the module, a pseudo-version between two
	Commit   string `json:"commit"`             // whole hash, or unknown
	Modified bool   `json:"modified,omitempty"` // built of files that were not committed
	Go       string `json:"go"`                 // compiler
	Platform string `json:"platform"`           // such as linux/amd64
	BPF      string `json:"bpf"`                // first 12 digits of the SHA-256 of the BPF objects
}

// Get is this rdx.
var Get = sync.OnceValue(func() Info {
	info, _ := debug.ReadBuildInfo()
	return of(info, release, commit)
})

// of reads what the Go tool recorded; info may be nil.
func of(info *debug.BuildInfo, release, commit string) Info {
	i := Info{Version: release, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, BPF: bpf.Digest()[:12]}
	if info != nil {
		if i.Version == "" && info.Main.Version != "" {
			i.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				if i.Commit == "" {
					i.Commit = s.Value
				}
			case "vcs.modified":
				i.Modified = s.Value == "true"
			}
		}
	}
	if i.Version == "" {
		i.Version = unknown
	}
	if i.Commit == "" {
		i.Commit = unknown
	}
	return i
}

// String is all of it in one line, such as "v1.2.3 (commit 0123456789ab, go1.26.0, linux/amd64, BPF 0123456789ab)".
func (i Info) String() string {
	commit := i.Commit
	if len(commit) > 12 {
		commit = commit[:12]
	}
	if i.Modified && !strings.HasSuffix(i.Version, "+dirty") {
		commit += ", modified"
	}
	return fmt.Sprintf("%s (commit %s, %s, %s, BPF %s)", i.Version, commit, i.Go, i.Platform, i.BPF)
}
