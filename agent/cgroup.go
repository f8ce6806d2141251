package agent

import (
	"regexp"
	"strconv"
	"strings"
)

// Placement is what the path of a control group says of its processes.
type Placement struct {
	Runtime   string // docker, containerd, cri-o, podman; "" outside of containers or if that is not told
	Container string // 64 hex digits, "" outside
	Pod       string // its UID
	Unit      string // of systemd, the innermost service, or scope if there is none
}

var (
	containerRx = regexp.MustCompile(`^(?:(docker|cri-containerd|crio|libpod)-)?([0-9a-f]{64})(?:\.scope)?$`)
	podRx       = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})(?:\.slice)?$`)
	runtimes    = map[string]string{"docker": "docker", "cri-containerd": "containerd", "crio": "cri-o", "libpod": "podman"}
)

// placementOf reads a path. Containers lie in
//
//	/docker/ID, /system.slice/docker-ID.scope
//	/kubepods/burstable/podUID/ID, /kubepods.slice/.../kubepods-burstable-podUID.slice/cri-containerd-ID.scope, .../crio-ID.scope
//	/machine.slice/libpod-ID.scope, .../libpod-ID.scope/container, /libpod_parent/libpod-ID
func placementOf(path string) Placement {
	var p Placement
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if m := podRx.FindStringSubmatch(part); m != nil {
			p.Pod = strings.ReplaceAll(m[1], "_", "-")
		}
		if m := containerRx.FindStringSubmatch(part); m != nil {
			p.Container, p.Runtime = m[2], runtimes[m[1]]
			if p.Runtime == "" && i > 0 && parts[i-1] == "docker" {
				p.Runtime = "docker"
			}
			continue
		}
		service, scope := strings.HasSuffix(part, ".service"), strings.HasSuffix(part, ".scope")
		if service || scope && !strings.HasSuffix(p.Unit, ".service") {
			p.Unit = unescape(part)
		}
	}
	return p
}

// unescape undoes what systemd does to names: \x2d is a hyphen.
func unescape(unit string) string {
	var b strings.Builder
	for i := 0; i < len(unit); i++ {
		if strings.HasPrefix(unit[i:], `\x`) && i+4 <= len(unit) {
			if c, err := strconv.ParseUint(unit[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(unit[i])
	}
	return b.String()
}

// serviceOfUnit is a unit's name without what differs from instance to instance.
func serviceOfUnit(unit string) string {
	name, ok := strings.CutSuffix(unit, ".service")
	if !ok {
		return "" // scopes are sessions of users and the like
	}
	name, _, _ = strings.Cut(name, "@")
	return name
}
