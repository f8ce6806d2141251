package version

import (
	"regexp"
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	built := &debug.BuildInfo{Main: debug.Module{Version: "v0.1.1-0.20260102030405-0123456789ab+dirty"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.modified", Value: "true"}}}
	for _, c := range []struct {
		info            *debug.BuildInfo
		release, commit string
		want            string
	}{
		{built, "", "", `^v0\.1\.1-0\.20260102030405-0123456789ab\+dirty \(commit 0123456789ab, go`},
		{built, "v2.0.0", "", `^v2\.0\.0 \(commit 0123456789ab, modified, go`},
		{&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "", "", `^v1\.2\.3 \(commit unknown, go`},
		{nil, "v3", "abc", `^v3 \(commit abc, go`},
		{nil, "", "", `^unknown \(commit unknown, go`},
	} {
		got := of(c.info, c.release, c.commit).String()
		if !regexp.MustCompile(c.want + `[^ ]*, [a-z0-9]+/[a-z0-9]+, BPF [0-9a-f]{12}\)$`).MatchString(got) {
			t.Errorf("%q, want %s", got, c.want)
		}
	}
}
