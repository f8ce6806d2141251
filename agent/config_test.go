package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const fullConfig = `
server: {url: "https://pyroscope:4040", tenant: t, token_file: /x, ca_file: /y}
overhead: 0.5
target_overhead: 1
period: 30s
discover: 10s
sessions: 3
worth: 50ms
memory: 200MiB
spool: {dir: /var/lib/rdx/spool, size: 64MiB, age: 50m}
listen: unix:/run/rdx/agent.sock
host: h
labels: {cluster: west}
series: 50
rules: [{match: {cgroup: '/(.*)\.service', exe: x, name: y}, set: {service_name: $1}}]
exclude: [{name: '^secret'}]
only: [{exe: .}]
opt_out: NO_RDX
kubernetes: {url: "https://127.0.0.1:10250/pods", token_file: /t, ca_file: /c, insecure: false}
docker_dir: ""
log_level: warn
`

func TestConfig(t *testing.T) {
	c, err := ParseConfig([]byte(fullConfig))
	if err == nil {
		err = c.Check()
	}
	if err != nil || c.Sessions != 3 || c.Memory != 200<<20 || c.Server.Tenant != "t" || c.Rules[0].Set["service_name"] != "$1" {
		t.Fatalf("%+v: %v", c, err)
	}
	for bad, want := range map[string]string{
		"servr: {}": "servr",
		"overhead: 11\nserver: {url: 'http://x'}":   "overhead",
		"overhead: .nan\nserver: {url: 'http://x'}": "overhead",
		"period: 1s\nserver: {url: 'http://x'}":     "period",
		"memory: 10MiB\nserver: {url: 'http://x'}":  "memory",
		"memory: -1": "size",
		"listen: 0.0.0.0:1\nserver: {url: 'http://x'}":                           "other machines",
		"listen: ':4041'\nserver: {url: 'http://x'}":                             "other machines",
		"listen: 'x:1'\nserver: {url: 'http://x'}":                               "other machines",
		"exclude: [{}]\nserver: {url: 'http://x'}":                               "want cgroup",
		"exclude: [{name: '('}]":                                                 "missing closing",
		"rules: [{match: {name: x}, set: {host: y}}]\nserver: {url: 'http://x'}": "host",
		"labels: {__name__: x}\nserver: {url: 'http://x'}":                       "__name__",
		"labels: {'a-b': x}\nserver: {url: 'http://x'}":                          "a-b",
		"log_level: loud\nserver: {url: 'http://x'}":                             "log_level",
		"{}":            "no server",
		"a: b\n---\nc:": "field a",
	} {
		c, err := ParseConfig([]byte(bad))
		if err == nil {
			err = c.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
	for bad, want := range map[string]string{
		"server: {url: x}":                                     "want a URL",
		"server: {url: 'ftp://x'}":                             "want a URL",
		"server: {url: 'http://x', token_file: /nonesuch}":     "token_file",
		"server: {url: 'http://x'}\nkubernetes: {url: 'pods'}": "kubernetes: url",
		"server: {url: 'http://x'}":                            "",
	} {
		c, err := ParseConfig([]byte(bad))
		if err == nil {
			err = c.Check()
		}
		if err != nil {
			t.Errorf("%q: %v", bad, err)
			continue
		}
		if err = c.CheckAccess(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("labels: {a: '"+strings.Repeat("x", mostConfig)+"'}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConfig(path); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a large file: %v", err)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(fullConfig))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("period: 99999999999h"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseConfig(b)
		if err == nil && c.Check() == nil && (c.Overhead > 10 || c.Sessions > 64 || c.Memory < 1) {
			t.Errorf("%+v is taken", c)
		}
	})
}
