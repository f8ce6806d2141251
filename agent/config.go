package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rdx-profiler/rdx/fleet"
)

// Config of the agent, as its file says it. Unknown keys are errors.
type Config struct {
	Server fleet.Access `yaml:"server"`

	// Overhead is the percentage of the machine's CPU time that all may cost: threads held,
	// sessions, the agent.
	Overhead float64 `yaml:"overhead"`
	// TargetOverhead is the percentage of its own CPU time that a sampled process may lose.
	TargetOverhead float64       `yaml:"target_overhead"`
	Period         time.Duration `yaml:"period"`
	Discover       time.Duration `yaml:"discover"` // how often processes are looked for
	Sessions       int           `yaml:"sessions"` // at most at once
	// Worth is the CPU time in a period below which a process is not worth a session.
	Worth  time.Duration `yaml:"worth"`
	Memory Size          `yaml:"memory"` // of the agent and its sessions, together

	Spool  SpoolConfig `yaml:"spool"`
	Listen string      `yaml:"listen"` // of /metrics and /healthz; "" for nowhere
	// ListenAnywhere allows an address that other machines can reach.
	ListenAnywhere bool `yaml:"listen_anywhere"`

	Host   string            `yaml:"host"`   // its label; default: the hostname
	Labels map[string]string `yaml:"labels"` // of all series
	// Series bounds how many different sets of labels a day sees; more are counted and become one.
	Series     int              `yaml:"series"`
	Rules      []Rule           `yaml:"rules"`
	Exclude    []Match          `yaml:"exclude"`
	Only       []Match          `yaml:"only"`
	OptOut     string           `yaml:"opt_out"` // variable by which a process asks not to be sampled
	Kubernetes KubernetesConfig `yaml:"kubernetes"`
	// DockerDir is where names of containers are read from, "" for nowhere.
	DockerDir string `yaml:"docker_dir"`

	LogLevel string `yaml:"log_level"`
}

// SpoolConfig says where windows wait, and how many.
type SpoolConfig struct {
	Dir  string        `yaml:"dir"`
	Size Size          `yaml:"size"`
	Age  time.Duration `yaml:"age"` // older ones the server would not take
}

// KubernetesConfig says where pods are listed: by the node's kubelet, or by the API server with
// a field selector for the node.
type KubernetesConfig struct {
	URL       string `yaml:"url"`
	TokenFile string `yaml:"token_file"`
	CAFile    string `yaml:"ca_file"`
	// Insecure does not check the kubelet's certificate, which is self-signed by default.
	Insecure bool `yaml:"insecure"`
}

// Match is a set of conditions which all must hold. An empty one never does.
type Match struct {
	Cgroup *Pattern           `yaml:"cgroup"`
	Exe    *Pattern           `yaml:"exe"`
	Name   *Pattern           `yaml:"name"`
	Labels map[string]Pattern `yaml:"labels"`
}

// Rule sets labels of processes. $1 and its kin are what the first pattern of the match, in the
// order cgroup, exe, name, has caught.
type Rule struct {
	Match Match             `yaml:"match"`
	Set   map[string]string `yaml:"set"`
}

// Pattern is a regular expression in a file.
type Pattern struct{ *regexp.Regexp }

// UnmarshalYAML compiles it.
func (p *Pattern) UnmarshalYAML(n *yaml.Node) error {
	var s string
	if err := n.Decode(&s); err != nil {
		return err
	}
	rx, err := regexp.Compile(s)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	p.Regexp = rx
	return nil
}

// Size is a number of bytes, such as 150MiB.
type Size int64

// UnmarshalYAML reads it.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	var text string
	if err := n.Decode(&text); err != nil {
		return err
	}
	v, err := ParseSize(text)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*s = v
	return nil
}

// ParseSize reads a number of bytes with KiB, MiB, GiB or nothing behind it.
func ParseSize(text string) (Size, error) {
	number, factor := strings.TrimSpace(text), int64(1)
	for unit, f := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if n, ok := strings.CutSuffix(number, unit); ok {
			number, factor = strings.TrimSpace(n), f
			break
		}
	}
	var v int64
	if _, err := fmt.Sscanf(number+"\n", "%d\n", &v); err != nil || v < 0 || v > 1<<50/factor {
		return 0, fmt.Errorf("size %q: want a number of bytes such as 150MiB", text)
	}
	return Size(v * factor), nil
}

// Defaults is the configuration of an empty file.
func Defaults() Config {
	return Config{Overhead: 1, TargetOverhead: 1, Period: time.Minute, Discover: 10 * time.Second, Sessions: 2, Worth: 100 * time.Millisecond,
		Memory: 150 << 20, Spool: SpoolConfig{Dir: "/var/lib/rdx/spool", Size: 256 << 20, Age: 55 * time.Minute},
		Listen: "127.0.0.1:4041", Series: 200, OptOut: "RDX_PROFILE", DockerDir: "/var/lib/docker/containers", LogLevel: "info"}
}

// mostConfig bounds what a configuration may have, in bytes.
const mostConfig = 1 << 20

// ReadConfig reads a file over the defaults. It does not check: see Check.
func ReadConfig(path string) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostConfig+1))
	if err == nil && len(b) > mostConfig {
		err = fmt.Errorf("more than %d bytes", mostConfig)
	}
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %s: %w", path, err)
	}
	c, err := ParseConfig(b)
	if err != nil {
		return c, fmt.Errorf("read configuration: %s: %w", path, err)
	}
	return c, nil
}

// ParseConfig is ReadConfig of what a file holds.
func ParseConfig(b []byte) (Config, error) {
	c := Defaults()
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return c, errors.New("more than one document")
	}
	return c, nil
}

var labelRx = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// ownLabels are set by the agent alone.
var ownLabels = []string{"__name__", fleet.ConfigLabel, "host", "cpu_model"}

// Check says what is wrong with a configuration.
func (c *Config) Check() error {
	switch {
	case c.Server.Server == "":
		return errors.New("no server (use --server URL, or server: {url: ...} in the configuration)")
	case !(c.Overhead > 0 && c.Overhead <= 10):
		return fmt.Errorf("overhead %g: want more than 0 and at most 10 percent", c.Overhead)
	case !(c.TargetOverhead > 0 && c.TargetOverhead <= 10):
		return fmt.Errorf("target_overhead %g: want more than 0 and at most 10 percent", c.TargetOverhead)
	case c.Period < 10*time.Second || c.Period > time.Hour/4:
		return fmt.Errorf("period %v: want 10s to 15m", c.Period)
	case c.Discover < time.Second || c.Discover > c.Period:
		return fmt.Errorf("discover %v: want 1s to the period, %v", c.Discover, c.Period)
	case c.Sessions < 1 || c.Sessions > 64:
		return fmt.Errorf("sessions %d: want 1 to 64", c.Sessions)
	case c.Worth < 0 || c.Worth > c.Period:
		return fmt.Errorf("worth %v: want 0 to the period, %v", c.Worth, c.Period)
	case c.Memory < 100<<20:
		return fmt.Errorf("memory %d: want 100MiB or more", c.Memory)
	case c.Spool.Dir == "":
		return errors.New("spool: no dir")
	case c.Spool.Size < 1<<20:
		return fmt.Errorf("spool: size %d: want 1MiB or more", c.Spool.Size)
	case c.Spool.Age < time.Minute:
		return fmt.Errorf("spool: age %v: want 1m or more", c.Spool.Age)
	case c.Series < 1 || c.Series > 100_000:
		return fmt.Errorf("series %d: want 1 to 100000", c.Series)
	}
	if _, ok := levels[c.LogLevel]; !ok {
		return fmt.Errorf("log_level %q: want debug, info, warn or error", c.LogLevel)
	}
	for name := range c.Labels {
		if err := checkLabel(name); err != nil {
			return fmt.Errorf("labels: %w", err)
		}
	}
	for i, r := range c.Rules {
		for name := range r.Set {
			if err := checkLabel(name); err != nil {
				return fmt.Errorf("rule %d: %w", i+1, err)
			}
		}
		if r.Match.empty() || len(r.Set) == 0 {
			return fmt.Errorf("rule %d: want match and set", i+1)
		}
	}
	for i, m := range slices.Concat(c.Exclude, c.Only) {
		if m.empty() {
			return fmt.Errorf("exclude or only, %d: want cgroup, exe, name or labels", i+1)
		}
	}
	return c.checkListen()
}

// CheckAccess says what is wrong with what a configuration names: the server's and Kubernetes' URLs, and their files.
func (c *Config) CheckAccess() error {
	_, err := fleet.NewClient(c.Server, time.Second)
	_, podsErr := newPodLister(c.Kubernetes)
	return errors.Join(err, podsErr)
}

func checkLabel(name string) error {
	if !labelRx.MatchString(name) || slices.Contains(ownLabels, name) {
		return fmt.Errorf("label %q: want a name of letters, digits and _, other than %s", name, strings.Join(ownLabels, ", "))
	}
	return nil
}

func (c *Config) checkListen() error {
	if c.Listen == "" || strings.HasPrefix(c.Listen, "unix:/") {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen %q: want an address such as 127.0.0.1:4041, or unix:/run/rdx/agent.sock", c.Listen)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() || c.ListenAnywhere {
		return nil
	}
	return fmt.Errorf("listen %q: other machines can reach that (use 127.0.0.1 or a unix socket, or say listen_anywhere: true)", c.Listen)
}

func (m *Match) empty() bool {
	return m.Cgroup == nil && m.Exe == nil && m.Name == nil && len(m.Labels) == 0
}

// of says whether a process matches, and what is caught for $1 and its kin.
func (m *Match) of(d *Details, labels map[string]string) (caught func(template string) string, ok bool) {
	if m.empty() {
		return nil, false
	}
	caught = func(s string) string { return s }
	first := true
	for _, c := range []struct {
		p *Pattern
		s string
	}{{m.Cgroup, d.Cgroup}, {m.Exe, d.Exe}, {m.Name, d.Name}} {
		if c.p == nil {
			continue
		}
		at := c.p.FindStringSubmatchIndex(c.s)
		if at == nil {
			return nil, false
		}
		if first {
			first = false
			caught = func(template string) string { return string(c.p.ExpandString(nil, template, c.s, at)) }
		}
	}
	for name, p := range m.Labels {
		if !p.MatchString(labels[name]) {
			return nil, false
		}
	}
	return caught, true
}
