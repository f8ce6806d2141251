package agent

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
)

const id = "3f4e8b1d2c5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"

func TestPlacement(t *testing.T) {
	const uid = "0b9f5a3c-1d2e-4f60-8a7b-9c0d1e2f3a4b"
	for path, want := range map[string]Placement{
		"/":                                     {},
		"/system.slice/docker-" + id + ".scope": {Runtime: "docker", Container: id},
		"/docker/" + id:                         {Runtime: "docker", Container: id},
		"/kubepods/burstable/pod" + uid + "/" + id: {Container: id, Pod: uid},
		"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + id + ".scope": {Runtime: "containerd", Container: id, Pod: uid},
		"/kubepods.slice/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/crio-" + id + ".scope/container":                                      {Runtime: "cri-o", Container: id, Pod: uid},
		"/machine.slice/libpod-" + id + ".scope/container":                                 {Runtime: "podman", Container: id},
		"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope": {Runtime: "podman", Container: id, Unit: "user@1000.service"},
		"/system.slice/nginx.service":                                                      {Unit: "nginx.service"},
		`/system.slice/my\x2dapp.service`:                                                  {Unit: "my-app.service"},
		"/user.slice/user-0.slice/session-3.scope":                                         {Unit: "session-3.scope"},
		"/system.slice/a b'\"c.service/init.scope":                                         {Unit: `a b'"c.service`},
		"/../docker-" + id[:63] + ".scope":                                                 {Unit: "docker-" + id[:63] + ".scope"},
		`/system.slice/\x.service/\xzz`:                                                    {Unit: `\x.service`},
	} {
		if got := placementOf(path); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	for unit, want := range map[string]string{"nginx.service": "nginx", "getty@tty1.service": "getty", "session-3.scope": "", "": ""} {
		if got := serviceOfUnit(unit); got != want {
			t.Errorf("%s: %q, want %q", unit, got, want)
		}
	}
}

func TestCgroupFile(t *testing.T) {
	for file, want := range map[string]string{
		"0::/system.slice/x.service\n":                       "/system.slice/x.service",
		"12:cpu:/docker/1\n1:name=systemd:/docker/1\n0::/\n": "/docker/1",
		"0::/a:b/c\n": "/a:b/c", "": "/", "garbage\n\n:::\n": ":",
	} {
		if got := cgroupPath(file); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
}

func namer(c Config) *Namer {
	n := newNamer(&c, Proc{"/proc"})
	n.host, n.cpuModel = "h", "cpu"
	return n
}

func TestLabels(t *testing.T) {
	c, err := ParseConfig([]byte(`
labels: {cluster: west}
rules:
- {match: {exe: '^/opt/([a-z]+)/bin/'}, set: {service_name: 'app-$1', team: payments}}
- {match: {labels: {service_name: '^app-'}}, set: {tier: gold}}
`))
	if err != nil {
		t.Fatal(err)
	}
	n := namer(c)
	n.pod = func(x string) (Pod, bool) { return Pod{"shop", "cart-7d9f", "web", "cart", "1.2"}, x == id }
	for name, c := range map[string]struct {
		d    Details
		want map[string]string
	}{
		"by name":      {Details{Name: "worker", Exe: "/usr/bin/worker-bin", Cgroup: "/"}, map[string]string{serviceLabel: "worker-bin"}},
		"by unit":      {Details{Exe: "/usr/sbin/nginx", Cgroup: "/system.slice/web@1.service"}, map[string]string{serviceLabel: "web"}},
		"by pod":       {Details{Exe: "/app", Cgroup: "/kubepods/pod0b9f5a3c-1d2e-4f60-8a7b-9c0d1e2f3a4b/" + id}, map[string]string{serviceLabel: "cart", "namespace": "shop", "pod": "cart-7d9f", "container": "web", "version": "1.2"}},
		"by attribute": {Details{Exe: "/app", Env: map[string]string{resourceVariable: "service.name=from%20attr, service.version=3,service.namespace=ns,x"}}, map[string]string{serviceLabel: "from attr", "version": "3", "namespace": "ns"}},
		"by variable":  {Details{Exe: "/app", Env: map[string]string{serviceVariable: "said", resourceVariable: "service.name=attr"}}, map[string]string{serviceLabel: "said"}},
		"by rule":      {Details{Exe: "/opt/billing/bin/x", Env: map[string]string{serviceVariable: "said"}}, map[string]string{serviceLabel: "app-billing", "team": "payments", "tier": "gold"}},
	} {
		l := n.Labels(&c.d)
		c.want["cluster"], c.want["host"], c.want["cpu_model"] = "west", "h", "cpu"
		if fmt.Sprint(l) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, l, c.want)
		}
	}
}

// Whatever a process says, values are short, printable and not without end in number.
func TestHostileLabels(t *testing.T) {
	c := Defaults()
	c.Series = 20
	n := namer(c)
	seen := map[string]bool{}
	for i := range 1000 {
		for _, s := range []string{"\x1b[31m\x00\n", strings.Repeat("é", 5000), "\xff\xfe\xfd", "  ", strings.Repeat(" ", 300) + "x", "a\u202eb", "x" + fmt.Sprint(i)} {
			l := n.Labels(&Details{Name: s, Exe: "/" + s, Cgroup: "/" + s, Env: map[string]string{serviceVariable: s, resourceVariable: "service.version=" + s}})
			for name, v := range l {
				if !utf8.ValidString(v) || strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) || utf8.RuneCountInString(v) > longestLabelValue {
					t.Fatalf("%s: %q", name, v)
				}
			}
			seen[labelKey(l)] = true
		}
	}
	if len(seen) > c.Series+1 || n.Cut == 0 {
		t.Errorf("%d sets of labels, %d cut, want %d at most", len(seen), n.Cut, c.Series+1)
	}
	n.clock = func() time.Time { return time.Now().Add(25 * time.Hour) }
	if l := n.Labels(&Details{Name: "tomorrow", Exe: "/tomorrow"}); l[serviceLabel] != "tomorrow" {
		t.Errorf("a day later: %v", l)
	}
}

func TestRefuses(t *testing.T) {
	c, err := ParseConfig([]byte("exclude: [{cgroup: '^/secret'}, {labels: {namespace: kube-system}}]\nonly: [{exe: '^/(app|bin)'}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		d      Details
		labels map[string]string
		want   string
	}{
		{Details{Exe: "/app"}, nil, ""},
		{Details{Exe: "/app", Env: map[string]string{"RDX_PROFILE": "OFF"}}, nil, whyAsked},
		{Details{Exe: "/app", Env: map[string]string{"RDX_PROFILE": "on"}}, nil, ""},
		{Details{Exe: "/app", Traced: true}, nil, whyTraced},
		{Details{Exe: "/app", Self: true}, nil, whySelf},
		{Details{Exe: "/app", EnvUnread: os.ErrPermission}, nil, whyUnread},
		{Details{Exe: "/app", Cgroup: "/secret/x"}, nil, whyConfig},
		{Details{Exe: "/app"}, map[string]string{"namespace": "kube-system"}, whyConfig},
		{Details{Exe: "/usr/x"}, nil, whyConfig},
	} {
		if got := c.refuses(&x.d, x.labels); got != x.want {
			t.Errorf("%+v: %q, want %q", x.d, got, x.want)
		}
	}
}

const pods = `{"items":[{"metadata":{"name":"cart-7d9f","namespace":"shop","labels":{"app":"cart"}},"status":{"containerStatuses":[
{"name":"web","containerID":"containerd://` + id + `","image":"registry:5000/shop/cart:1.2@sha256:00"},{"name":"new","containerID":""}]}}]}`

func TestPods(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fail := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fail || r.Header.Get("Authorization") != "Bearer abc" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, pods)
	}))
	defer s.Close()
	l, err := newPodLister(KubernetesConfig{URL: s.URL, TokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	want := Pod{"shop", "cart-7d9f", "web", "cart", "1.2"}
	got, err := l.list(t.Context())
	if err != nil || len(got) != 1 || got[id] != want {
		t.Fatalf("%v: %v", got, err)
	}
	l.pods = got
	fail = true
	l.refresh(t.Context(), zap.NewNop())
	if p, ok := l.pod(id); !ok || p != want {
		t.Error("what was known is lost as the list could not be read")
	}
	if _, err := l.list(t.Context()); err == nil || !strings.Contains(err.Error(), "nodes/pods") {
		t.Errorf("refused: %v", err)
	}
}

func FuzzPods(f *testing.F) {
	f.Add([]byte(pods))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = parsePods(b) })
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("1 (a) b) c) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9 10 11\n"))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = parseStat(b) })
}

func TestStat(t *testing.T) {
	p, err := parseStat([]byte("77 (a) S (b\n) R 12 1 1 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 9 0 4242 10 11\n"))
	if err != nil || p.Name != "a) S (b\n" || p.PID != 77 || p.Parent != 12 || p.CPU != 2*time.Second || p.Threads != 9 || p.Start != 4242 || p.Kernel {
		t.Errorf("%+v: %v", p, err)
	}
	self, err := Proc{"/proc"}.Process(os.Getpid())
	if err != nil || self.PID != os.Getpid() || self.Start == 0 {
		t.Errorf("own: %+v, %v", self, err)
	}
	if kthreadd, err := (Proc{"/proc"}).Process(2); err == nil && kthreadd.Name == "kthreadd" && !kthreadd.Kernel {
		t.Error("kthreadd is no kernel thread")
	}
	d, err := Proc{"/proc"}.Details(os.Getpid(), "PATH")
	if err != nil || !d.Self || d.Env["PATH"] == "" || d.Traced {
		t.Errorf("own: %+v, %v", d, err)
	}
}

func TestDockerNames(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, id), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, id, "config.v2.json"), []byte(`{"Name":"/shop_db","Config":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	name := dockerNames(dir)
	if got := name(id); got != "shop_db" {
		t.Errorf("%q", got)
	}
	if got := name(strings.Repeat("0", 64)); got != "" {
		t.Errorf("unknown: %q", got)
	}
}
