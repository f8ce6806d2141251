package agent

import (
	"maps"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rdx-profiler/rdx/fleet"
)

const (
	serviceVariable   = "OTEL_SERVICE_NAME"
	resourceVariable  = "OTEL_RESOURCE_ATTRIBUTES"
	serviceLabel      = "service_name"
	overflowed        = "rdx_overflow"
	longestLabelValue = 128
)

// A Pod is what Kubernetes knows of a container.
type Pod struct {
	Namespace, Name, Container, App, Version string
}

// Namer makes labels of processes. It is for one goroutine.
type Namer struct {
	config   *Config
	host     string
	cpuModel string
	// pod looks a container's ID up, ok is false where that is not known.
	pod func(id string) (Pod, bool)
	// name is a container's, "" if not known.
	name func(id string) string

	sets  map[string]time.Time // of labels seen, with the last time
	Cut   int                  // label sets that were one too many
	clock func() time.Time
}

func newNamer(c *Config, proc Proc) *Namer {
	n := &Namer{config: c, host: c.Host, sets: map[string]time.Time{}, clock: time.Now,
		pod: func(string) (Pod, bool) { return Pod{}, false }, name: func(string) string { return "" }}
	if n.host == "" {
		n.host, _ = os.Hostname()
	}
	n.cpuModel = cpuModel(proc)
	return n
}

func cpuModel(proc Proc) string {
	b, err := readAtMost(path.Join(proc.Dir, "cpuinfo"), 1<<16)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "CPU part":
			return tidy(value)
		}
	}
	return "unknown"
}

// Labels of a process, those of the window's series but its name and configuration.
func (n *Namer) Labels(d *Details) map[string]string {
	l := maps.Clone(n.config.Labels)
	if l == nil {
		l = map[string]string{}
	}
	set := func(name, value string) {
		if value = tidy(value); value != "" {
			l[name] = value
		}
	}
	// From the least telling to what the user has said.
	place := placementOf(d.Cgroup)
	set(serviceLabel, d.Name)
	set(serviceLabel, path.Base(d.Exe))
	set(serviceLabel, serviceOfUnit(place.Unit))
	if place.Container != "" {
		if name := n.name(place.Container); name != "" {
			set("container", name)
			set(serviceLabel, name)
		}
		if pod, ok := n.pod(place.Container); ok {
			set("namespace", pod.Namespace)
			set("pod", pod.Name)
			set("container", pod.Container)
			set("version", pod.Version)
			set(serviceLabel, pod.Container)
			set(serviceLabel, pod.App)
		}
	}
	for key, label := range map[string]string{"service.name": serviceLabel, "service.version": "version", "service.namespace": "namespace"} {
		set(label, attribute(d.Env[resourceVariable], key))
	}
	set(serviceLabel, d.Env[serviceVariable])
	for i := range n.config.Rules {
		r := &n.config.Rules[i]
		if caught, ok := r.Match.of(d, l); ok {
			for name, template := range r.Set {
				set(name, caught(template))
			}
		}
	}
	l["host"], l["cpu_model"] = tidy(n.host), n.cpuModel
	return n.bounded(l)
}

// bounded gives what would be one set of labels too many a name in common: a process can
// call itself by another name every minute.
func (n *Namer) bounded(l map[string]string) map[string]string {
	now := n.clock()
	key := labelKey(l)
	if _, known := n.sets[key]; !known && len(n.sets) >= n.config.Series {
		for k, at := range n.sets {
			if now.Sub(at) > 24*time.Hour {
				delete(n.sets, k)
			}
		}
		if len(n.sets) >= n.config.Series {
			n.Cut++
			return map[string]string{serviceLabel: overflowed, "host": l["host"], "cpu_model": l["cpu_model"]}
		}
	}
	n.sets[key] = now
	return l
}

func labelKey(l map[string]string) string {
	v := url.Values{}
	for name, value := range l {
		v.Set(name, value)
	}
	return v.Encode()
}

// attribute is one of OTEL_RESOURCE_ATTRIBUTES: key=value,key=value with percent-encoding.
func attribute(list, key string) string {
	for part := range strings.SplitSeq(list, ",") {
		k, v, ok := strings.Cut(part, "=")
		if !ok || strings.TrimSpace(k) != key {
			continue
		}
		v = strings.TrimSpace(v)
		if plain, err := url.PathUnescape(v); err == nil {
			return plain
		}
		return v
	}
	return ""
}

// tidy makes a value out of whatever a process says.
func tidy(s string) string {
	if len(s) > 4*longestLabelValue {
		s = s[:4*longestLabelValue]
	}
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(s, "_"))
	if r := []rune(s); len(r) > longestLabelValue {
		s = string(r[:longestLabelValue])
	}
	return strings.TrimSpace(s)
}

// seriesLabels are those of a series, in order.
func seriesLabels(name, config string, l map[string]string) []fleet.Label {
	out := []fleet.Label{{Name: "__name__", Value: name}, {Name: fleet.ConfigLabel, Value: config}}
	for _, key := range slices.Sorted(maps.Keys(l)) {
		out = append(out, fleet.Label{Name: key, Value: l[key]})
	}
	return out
}
