package web

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/pprofout"
)

// pprofPolicy is for pprof's own pages, whose scripts and styles are inline. They run in an origin of
// their own, so that whatever they run cannot read our pages.
const pprofPolicy = "sandbox allow-scripts allow-forms allow-popups allow-downloads; default-src 'none'; script-src 'unsafe-inline'; " +
	"style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'"

// pprofing keeps the driver to one profile at a time while it sets up: its configuration is global.
var pprofing sync.Mutex

// servePprof answers pprof/PROFILE/PAGE with pprof's own pages of a profile.
func (s *Server) servePprof(w http.ResponseWriter, r *http.Request, path string) {
	number, page, ok := strings.Cut(strings.TrimPrefix(path, "pprof/"), "/")
	i, err := strconv.Atoi(number)
	s.mu.Lock()
	inside := err == nil && ok && i >= 0 && i < len(s.profiles)
	var raw Profile
	var pages map[string]http.Handler
	if inside {
		raw, pages = s.profiles[i], s.pprof[i]
	}
	s.mu.Unlock()
	if !inside {
		http.NotFound(w, r)
		return
	}
	if page == "saveconfig" || page == "deleteconfig" { // these write to the user's home
		http.Error(w, "pprof's configuration is not kept here", http.StatusForbidden)
		return
	}
	if pages == nil {
		if pages, err = pprofPages(&raw, s.o.Source); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		s.mu.Lock()
		s.pprof[i] = pages
		s.mu.Unlock()
	}
	if page == "" {
		page = "flamegraph"
	}
	h := pages["/"+page]
	if h == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", pprofPolicy)
	h.ServeHTTP(w, r)
}

// pprofPages are pprof's handlers for a profile. pprof opens whatever files a profile names; so it gets
// one that names none but source below the roots, and tools of ours to look into programs with.
func pprofPages(p *Profile, source *Source) (map[string]http.Handler, error) {
	var b bytes.Buffer
	if err := pprofout.Write(&b, p.Raw); err != nil {
		return nil, err
	}
	pp, err := profile.Parse(&b)
	if err != nil {
		return nil, err
	}
	for _, f := range pp.Function {
		f.Filename = source.known(f.Filename)
	}
	programs := &pprofPrograms{source: source, known: map[string]*profile.Mapping{}}
	for _, m := range pp.Mapping {
		m.File = programs.add(m)
		// All that can be said has been: nothing is to be looked for.
		m.HasFunctions, m.HasFilenames, m.HasLineNumbers, m.HasInlineFrames = true, true, true, true
	}
	pprofing.Lock()
	defer pprofing.Unlock()
	var pages map[string]http.Handler
	flags := &pprofFlags{flag.NewFlagSet("pprof", flag.ContinueOnError)}
	err = driver.PProf(&driver.Options{
		Flagset: flags, Fetch: fetched{pp}, Sym: noSymbols{}, Obj: programs, UI: silent{},
		HTTPServer: func(a *driver.HTTPServerArgs) error {
			pages = a.Handlers
			return nil
		},
	})
	if err == nil && pages == nil {
		err = errors.New("no pages were made")
	}
	if err != nil {
		return nil, fmt.Errorf("pprof: %w", err)
	}
	return pages, nil
}

// known is the path of a file below a root, or a name that no file has.
func (s *Source) known(file string) string {
	if f, at, err := s.open(file); err == nil {
		f.Close()
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return real
		}
	}
	if file == "" {
		return ""
	}
	return "[no source]/" + strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == 0 {
			return '_'
		}
		return r
	}, filepath.Base(file))
}

type pprofFlags struct{ *flag.FlagSet }

func (f *pprofFlags) StringList(name, def, usage string) *[]*string {
	return &[]*string{f.String(name, def, usage)}
}
func (*pprofFlags) ExtraUsage() string   { return "" }
func (*pprofFlags) AddExtraUsage(string) {}
func (f *pprofFlags) Parse(func()) []string {
	if f.FlagSet.Parse([]string{"-http=localhost:1", "-no_browser", "-symbolize=none", "profile"}) != nil {
		return nil
	}
	return f.Args()
}

type fetched struct{ p *profile.Profile }

func (f fetched) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return f.p, "", nil
}

type noSymbols struct{}

func (noSymbols) Symbolize(string, driver.MappingSources, *profile.Profile) error { return nil }

type silent struct{}

func (silent) ReadLine(string) (string, error)     { return "", errors.New("no terminal") }
func (silent) Print(...any)                        {}
func (silent) PrintErr(...any)                     {}
func (silent) IsTerminal() bool                    { return false }
func (silent) WantBrowser() bool                   { return false }
func (silent) SetAutoComplete(func(string) string) {}
