package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/fleet/backend"
)

// gateway stands before a server that takes pushes and asks for a tenant.
func gateway(t *testing.T, to string) (*backend.Gateway, Access) {
	t.Helper()
	g, err := backend.NewGateway(t.TempDir(), to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g, Access{Server: g.URL, Proxy: g.Proxy, CAFile: g.CA, CertFile: g.Cert, KeyFile: g.Key, User: g.User, PasswordFile: g.Password, Tenant: "blue"}
}

// A server behind TLS with client certificates, a password or a token, and a proxy is reached
// with all of them, and not where one is missing or another's; no secret is in what is said then.
func TestAccess(t *testing.T) {
	tenants := make(chan string, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenants <- r.Header.Get("X-Scope-OrgID")
		w.Header().Set("Content-Type", "application/proto")
	}))
	defer s.Close()
	g, all := gateway(t, s.URL)
	for name, c := range map[string]struct {
		change func(a *Access)
		want   string // of the error
	}{
		"a password":              {func(*Access) {}, ""},
		"a token":                 {func(a *Access) { a.User, a.PasswordFile, a.TokenFile = "", "", g.Token }, ""},
		"no certificate":          {func(a *Access) { a.CertFile, a.KeyFile = "", "" }, "certificate required"},
		"another's certificate":   {func(a *Access) { a.CertFile, a.KeyFile = g.OtherCert, g.OtherKey }, "unknown certificate authority"},
		"an authority of its own": {func(a *Access) { a.CAFile = g.OtherCert }, "certificate signed by unknown authority"},
		"the system's ones":       {func(a *Access) { a.CAFile = "" }, "certificate signed by unknown authority"},
		"another name":            {func(a *Access) { a.ServerName = "other.test" }, "not other.test"},
		"another password":        {func(a *Access) { a.PasswordFile = g.OtherPassword }, "refuses access"},
		"neither":                 {func(a *Access) { a.User, a.PasswordFile = "", "" }, "refuses access"},
		"no proxy":                {func(a *Access) { a.Proxy = "" }, "pyroscope.test"},
		"a proxy that is none":    {func(a *Access) { a.Proxy = "http://127.0.0.1:1" }, "connection refused"},
	} {
		a := all
		c.change(&a)
		client, err := NewClient(a, time.Minute)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		passed := g.Passed.Load()
		err = client.PushRequest(t.Context(), []byte("x"))
		if c.want == "" {
			if err != nil || g.Passed.Load() != passed+1 {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := <-tenants; got != "blue" {
				t.Errorf("%s: tenant %q", name, got)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || g.Passed.Load() != passed {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		for _, secret := range []string{"p4ssw0rd", "t0ken", "guessed", "Basic ", "PRIVATE"} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: a secret is told: %v", name, err)
			}
		}
	}
	if g.Tunnels.Load() == 0 {
		t.Error("nothing went by the proxy")
	}
}

// The same before a real server that keeps tenants apart: what one has pushed another does not see.
func TestTenants(t *testing.T) { // needs Pyroscope
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	s := startServers(t, 1, backend.Options{Args: []string{"-auth.multitenancy-enabled=true"}})[0]
	_, blue := gateway(t, s.URL)
	green, none := blue, blue
	green.Tenant, none.Tenant = "green", ""
	ask := func(a Access) error {
		c, err := NewClient(a, 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = c.Profile(ctx, Query{Labels: []string{"service_name=checkout"}, From: time.Now().Add(-time.Hour), To: time.Now()})
		return err
	}
	c, err := NewClient(blue, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	w := Window{Profile: someWindows[0].Profile(), Weight: 1, Time: time.Now().Add(-time.Minute)}
	if err := c.Push(t.Context(), series(t, w, Label{"service_name", "checkout"}, Label{"host", "a"})); err != nil {
		t.Fatal(err)
	}
	if err := ask(blue); err != nil {
		t.Errorf("its own: %v", err)
	}
	if _, empty := errors.AsType[*ErrEmpty](ask(green)); !empty {
		t.Errorf("another's: %v", ask(green))
	}
	if err := ask(none); err == nil || !strings.Contains(err.Error(), "refuses access") {
		t.Errorf("without a tenant: %v", err)
	}
}
