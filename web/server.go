package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Profile is one that is shown.
type Profile struct {
	Name string
	Raw  *model.Profile // as it was read; not changed here
}

// Server shows profiles to the one who has its URL. Profiles may be exchanged while it runs.
type Server struct {
	o     Options
	token string
	hosts []string // that a browser may have asked for

	mu       sync.Mutex
	profiles []Profile
	version  int // of profiles
	live     bool
	made     map[string]*reply
	data     map[string]*making
	pprof    map[int]map[string]http.Handler
}

// reply is an answer that is made once, with others waiting for it.
type reply struct {
	once   sync.Once
	body   []byte
	packed *packed // instead of body
}

// making is the data of a profile, which is made once.
type making struct {
	whole func() (*Data, error)
	begun chan struct{} // closed once first is there, or nothing will be
	first *Data
}

// NewServer makes a server for profiles.
func NewServer(profiles []Profile, o Options) *Server {
	s := &Server{o: o, token: rand.Text()}
	s.keep(profiles, false)
	return s
}

// Set exchanges the profiles; live says that more will come.
func (s *Server) Set(profiles []Profile, live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.keep(profiles, live)
}

// keep forgets what was made of others.
func (s *Server) keep(profiles []Profile, live bool) {
	s.profiles, s.live = profiles, live
	s.made, s.data, s.pprof = map[string]*reply{}, map[string]*making{}, map[int]map[string]http.Handler{}
}

// URL is where the pages are, for a server that listens at this address.
func (s *Server) URL(at net.Addr) string { return "http://" + at.String() + "/" + s.token + "/" }

// Limits of what a client may ask for.
const (
	longestHeader = 16 << 10
	readTimeout   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Serve answers until the context ends. Names that the listener may be called by besides its own address
// are allowed: others are what DNS rebinding makes browsers ask for.
func (s *Server) Serve(ctx context.Context, l net.Listener, allowed ...string) error {
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return fmt.Errorf("serve pages: %w", err)
	}
	s.hosts = []string{l.Addr().String()}
	for _, h := range append([]string{"localhost", "127.0.0.1", "::1"}, allowed...) {
		s.hosts = append(s.hosts, net.JoinHostPort(h, port))
	}
	s.warm()
	h := &http.Server{Handler: s, MaxHeaderBytes: longestHeader, ReadTimeout: readTimeout, IdleTimeout: idleTimeout}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		over, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if h.Shutdown(over) != nil {
			h.Close()
		}
	})
	err = h.Serve(l)
	if !stop() {
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// warm begins with what a page asks for first, while the browser starts. What is live changes before that.
func (s *Server) warm() {
	s.mu.Lock()
	profiles, live, version := s.profiles, s.live, s.version
	s.mu.Unlock()
	if len(profiles) > 0 && !live {
		go func() {
			s.dataOf(asked{&profiles[0], 0, "", version})
			if s.o.Made != nil {
				s.o.Made()
			}
		}()
	}
}

// ServeHTTP answers who has the token, and was not sent by another site.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Security-Policy", "default-src 'none'")
	if !s.isHost(r.Host) {
		http.Error(w, "this server has another name", http.StatusForbidden)
		return
	}
	if o := r.Header.Get("Origin"); o != "" && o != "null" && o != "http://"+r.Host {
		http.Error(w, "asked for by another site", http.StatusForbidden)
		return
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		http.Error(w, "asked for by another site", http.StatusForbidden)
		return
	}
	token, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		http.Error(w, "not found: open the URL that rdx printed", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	s.route(w, r, path)
}

func (s *Server) isHost(host string) bool {
	for _, h := range s.hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}

func (s *Server) route(w http.ResponseWriter, r *http.Request, path string) {
	switch {
	case path == "":
		w.Header().Set("Content-Security-Policy", pagePolicy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := writePage(w, len(s.list().Profiles)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	case path == "app.js" || path == "app.css":
		kind := "text/javascript; charset=utf-8"
		if path == "app.css" {
			kind = "text/css; charset=utf-8"
		}
		w.Header().Set("Content-Type", kind)
		w.Write(bundled(path))
	case path == "list":
		s.answer(w, r, "list", func() (any, error) { return s.list(), nil })
	case path == "first":
		s.serveData(w, r, path, s.firstOf)
	case path == "data":
		s.serveData(w, r, path, s.dataOf)
	case path == "more":
		s.servePart(w, r, path, func(d *Data) any { return &d.more })
	case path == "rest":
		s.servePart(w, r, path, func(d *Data) any { return d.rest() })
	case path == "curve":
		s.serveCurve(w, r)
	case path == "diff":
		s.serveDiff(w, r)
	case path == "time":
		s.answer(w, r, "time", s.time)
	case path == "source":
		s.serveSource(w, r)
	case path == "code":
		s.serveCode(w, r)
	case strings.HasPrefix(path, "pprof/"):
		s.servePprof(w, r, path)
	default:
		http.NotFound(w, r)
	}
}

// listing is what pages know first.
type listing struct {
	Version  int      `json:"version"`
	Live     bool     `json:"live"`
	Profiles []listed `json:"profiles"`
	Models   []string `json:"models"` // by which a curve can be drawn, the one that all else goes by first
	Pprof    bool     `json:"pprof"`
}

type listed struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Start   string   `json:"start"`
	Stacks  []string `json:"stacks"`
}

func (s *Server) list() *listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return listOf(s.profiles, s.version, s.live, true)
}

func listOf(profiles []Profile, version int, live, pprof bool) *listing {
	l := &listing{Version: version, Live: live, Pprof: pprof, Profiles: []listed{}, Models: model.CurveModels}
	for _, p := range profiles {
		x := listed{Name: p.Name, Command: report.Printable(report.Shorten(p.Raw.Command, longestName)), Stacks: stackNames(p.Raw)}
		if !p.Raw.Start.IsZero() {
			x.Start = p.Raw.Start.Local().Format("2006-01-02 15:04:05")
		}
		l.Profiles = append(l.Profiles, x)
	}
	return l
}

// stackNames are the stacks that a profile can be shown in, the one for which it was made first.
func stackNames(p *model.Profile) []string {
	names := []string{}
	for _, k := range p.StackKinds() {
		if k == model.StackPrivate {
			names = append([]string{k.String()}, names...)
		} else {
			names = append(names, k.String())
		}
	}
	return names
}

// answer writes what make returns as JSON; it is made once for each version of the profiles.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, key string, make func() (any, error)) {
	s.mu.Lock()
	a := s.made[key]
	if a == nil {
		a = &reply{}
		s.made[key] = a
	}
	s.mu.Unlock()
	a.once.Do(func() {
		v, err := make()
		if p, ok := v.(*packed); ok && err == nil {
			a.packed = p
			return
		}
		if err == nil {
			a.body, err = json.Marshal(v)
		}
		if err != nil { // that something can't be told is an answer, too
			a.body, _ = json.Marshal(failure{err.Error()})
		}
	})
	if key == "list" {
		s.mu.Lock()
		delete(s.made, key)
		s.mu.Unlock()
	}
	if a.packed != nil {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.FormatInt(a.packed.size, 10))
		if r.Method != http.MethodHead {
			a.packed.WriteTo(w)
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodHead {
		w.Write(a.body)
	}
}

// profile is the one that a parameter numbers, and of which version of all.
func (s *Server) profile(r *http.Request, name string) (p *Profile, i, version int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err = strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || i < 0 || i >= len(s.profiles) {
		return nil, 0, 0, fmt.Errorf("%s: there are profiles 0 to %d", name, len(s.profiles)-1)
	}
	q := s.profiles[i]
	return &q, i, s.version, nil
}

// asked is what a request asks for.
type asked struct {
	profile *Profile
	i       int // its number
	stack   string
	version int
}

func (a *asked) key(what string) string {
	return fmt.Sprintf("%s %d %s %d", what, a.i, a.stack, a.version)
}

// asked says what a request asks for; where that can't be it answers so itself.
func (s *Server) asked(w http.ResponseWriter, r *http.Request) (a asked, ok bool) {
	var err error
	a.profile, a.i, a.version, err = s.profile(r, "profile")
	a.stack = r.URL.Query().Get("stack")
	if _, known := model.ParseStackKind(a.stack); !known && a.stack != "" && err == nil {
		err = errors.New("no such stack")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return a, err == nil
}

func (s *Server) making(a asked) *making {
	key := a.key("")
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.data[key]
	if m == nil {
		m = &making{begun: make(chan struct{})}
		m.whole = sync.OnceValues(func() (*Data, error) {
			begin := sync.OnceFunc(func() { close(m.begun) })
			defer begin()
			d, err := newData(a.profile.Raw, a.profile.Name, a.stack, s.o, func(first *Data) {
				first.Version = a.version
				m.first = first
				begin()
			})
			if err == nil {
				d.Version = a.version
			}
			return d, err
		})
		s.data[key] = m
	}
	return m
}

// dataOf is made once.
func (s *Server) dataOf(a asked) (*Data, error) { return s.making(a).whole() }

// firstOf is what of it is there before the samples.
func (s *Server) firstOf(a asked) (*Data, error) {
	m := s.making(a)
	go m.whole()
	if <-m.begun; m.first != nil {
		return m.first, nil
	}
	return m.whole() // or why there is none
}

func (s *Server) serveData(w http.ResponseWriter, r *http.Request, name string, of func(asked) (*Data, error)) {
	a, ok := s.asked(w, r)
	if !ok {
		return
	}
	s.answer(w, r, a.key(name), func() (any, error) {
		d, err := of(a)
		if err != nil {
			return nil, err
		}
		return pack(d)
	})
}

// servePart answers with what belongs to the data of a version, too.
func (s *Server) servePart(w http.ResponseWriter, r *http.Request, name string, of func(d *Data) any) {
	a, ok := s.asked(w, r)
	if !ok {
		return
	}
	if r.URL.Query().Get("version") != strconv.Itoa(a.version) {
		s.answer(w, r, "outdated", func() (any, error) { return nil, errors.New("there are newer profiles") })
		return
	}
	s.answer(w, r, a.key(name), func() (any, error) {
		d, err := s.dataOf(a)
		if err != nil {
			return nil, err
		}
		return pack(of(d))
	})
}

// serveCurve answers with a curve by another model.
func (s *Server) serveCurve(w http.ResponseWriter, r *http.Request) {
	a, ok := s.asked(w, r)
	if !ok {
		return
	}
	by := r.URL.Query().Get("model")
	if !slices.Contains(model.CurveModels, by) {
		http.Error(w, "no such model", http.StatusBadRequest)
		return
	}
	s.answer(w, r, a.key("curve "+by), func() (any, error) {
		d, err := s.dataOf(a)
		if err != nil {
			return nil, err
		}
		return d.drawBy(a.profile.Raw, a.stack, by)
	})
}

func (s *Server) serveDiff(w http.ResponseWriter, r *http.Request) {
	before, i, version, err := s.profile(r, "before")
	if err == nil {
		var after *Profile
		var k int
		if after, k, _, err = s.profile(r, "after"); err == nil {
			s.answer(w, r, fmt.Sprintf("diff %d %d %d", i, k, version), func() (any, error) { return diff(before, after) })
			return
		}
	}
	http.Error(w, err.Error(), http.StatusBadRequest)
}

// mostChanges are what a comparison lists.
const mostChanges = 500

// diff is what rdx diff --format json prints.
func diff(before, after *Profile) (any, error) {
	a, err := report.Ready(before.Raw, "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", before.Name, err)
	}
	b, err := report.Ready(after.Raw, "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", after.Name, err)
	}
	d, err := report.NewDiff(a, b, nil, model.CurveOptions{}, "misses")
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", before.Name, after.Name, err)
	}
	d.Pairs = d.Pairs[:min(mostChanges, len(d.Pairs))]
	return d, nil
}

// time is what rdx phases --format json prints of all profiles.
func (s *Server) time() (any, error) {
	s.mu.Lock()
	profiles := s.profiles
	s.mu.Unlock()
	return phases(profiles)
}

func phases(profiles []Profile) (any, error) {
	if len(profiles) < 2 {
		return nil, errors.New("one profile has no windows: rdx attach --every 10s writes some")
	}
	var names []string
	var all []*model.Profile
	for _, p := range profiles {
		x, err := report.Ready(p.Raw, "")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		names, all = append(names, p.Name), append(all, x)
	}
	return report.NewPhases(names, all, nil, model.CurveOptions{})
}

// compressed is an answer made small for a file.
func compressed(v any) (string, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed+2)
	if err != nil {
		return "", err
	}
	if p, ok := v.(*packed); ok {
		_, err = p.WriteTo(z)
	} else {
		err = json.NewEncoder(z).Encode(v)
	}
	if err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(out.Bytes()), nil
}
