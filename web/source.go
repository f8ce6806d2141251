package web

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Source finds source files below folders that the user has named, and nowhere else: paths in
// a profile are the profiled program's.
type Source struct {
	roots []sourceRoot
}

type sourceRoot struct {
	name string // absolute
	dir  *os.Root
}

// NewSource opens the folders.
func NewSource(folders []string) (*Source, error) {
	s := &Source{}
	for _, f := range folders {
		name, err := filepath.Abs(f)
		if err != nil {
			return nil, fmt.Errorf("source folder %s: %w", f, err)
		}
		if real, err := filepath.EvalSymlinks(name); err == nil {
			name = real
		}
		dir, err := os.OpenRoot(name)
		if err != nil {
			return nil, fmt.Errorf("source folder: %w", err)
		}
		s.roots = append(s.roots, sourceRoot{name, dir})
	}
	return s, nil
}

const (
	longestSource = 1 << 20 // bytes of a file that are shown
	mostSources   = 64      // files that a report has inside
	mostAncestors = 64      // parts of a path that are tried
)

// Read is a source file by the path in a line table: the one at that path, if it lies below a root,
// else one below a root that has the same end of the path, the longest that there is. How says which.
func (s *Source) Read(path string) (text, how string, err error) {
	f, how, err := s.open(path)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", "", err
	}
	if !fi.Mode().IsRegular() {
		return "", "", fmt.Errorf("%s is no regular file", how)
	}
	b, err := io.ReadAll(io.LimitReader(f, longestSource+1))
	if err != nil {
		return "", "", err
	}
	if len(b) > longestSource {
		return "", "", fmt.Errorf("%s has more than %s", how, report.Bytes(longestSource))
	}
	if strings.IndexByte(string(b), 0) >= 0 {
		return "", "", fmt.Errorf("%s is no text", how)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), how, nil
}

func (s *Source) open(path string) (*os.File, string, error) {
	if s == nil || len(s.roots) == 0 {
		return nil, "", errors.New("no source folder was named")
	}
	path = filepath.Clean(path)
	if path == "." || strings.ContainsRune(path, 0) {
		return nil, "", errors.New("no file name")
	}
	for _, r := range s.roots {
		if rel, err := filepath.Rel(r.name, path); filepath.IsAbs(path) && err == nil && filepath.IsLocal(rel) {
			if f, err := openRegular(r.dir, rel); err == nil {
				return f, filepath.Join(r.name, rel), nil
			}
		}
	}
	parts := strings.Split(strings.Trim(filepath.ToSlash(path), "/"), "/")
	if n := len(parts); n > mostAncestors {
		parts = parts[n-mostAncestors:]
	}
	for i := range parts {
		rel := filepath.Join(parts[i:]...)
		if !filepath.IsLocal(rel) {
			continue
		}
		for _, r := range s.roots {
			if f, err := openRegular(r.dir, rel); err == nil {
				return f, filepath.Join(r.name, rel), nil
			}
		}
	}
	return nil, "", fs.ErrNotExist
}

// openRegular opens what is a file: opening a pipe or a device may wait or do something.
func openRegular(dir *os.Root, rel string) (*os.File, error) {
	fi, err := dir.Stat(rel)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	return dir.Open(rel)
}

// findSource marks the files whose source can be had.
func (d *Data) findSource(s *Source) {
	d.SourceFiles = []int32{}
	d.source = map[int32]string{}
	seen := map[int32]bool{}
	for _, i := range d.PlaceTable.File {
		if i == 0 || seen[i] {
			continue
		}
		seen[i] = true
		if f, _, err := s.open(d.Strings[i]); err == nil {
			f.Close()
			d.source[i] = d.Strings[i]
			d.SourceFiles = append(d.SourceFiles, i)
		}
	}
}

type sourceText struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// has says whether the line tables of the profile name the file.
func (p *Profile) has(file string) bool {
	for i := range p.Raw.Records {
		r := &p.Raw.Records[i]
		for _, stack := range [][]*model.Location{r.Use, r.Reuse} {
			for _, l := range stack {
				for _, ln := range l.Lines {
					if report.Printable(report.Shorten(ln.File, longestName)) == file {
						return true
					}
				}
			}
		}
	}
	return false
}

func (s *Server) serveSource(w http.ResponseWriter, r *http.Request) {
	p, i, _, err := s.profile(r, "profile")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	file := r.URL.Query().Get("file")
	if s.o.Source == nil || len(file) > 4*longestName || !p.has(file) {
		http.Error(w, "no line of the profile is in that file", http.StatusNotFound)
		return
	}
	text, path, err := s.o.Source.Read(file)
	if err != nil {
		http.Error(w, "source: "+err.Error(), http.StatusNotFound)
		return
	}
	s.answer(w, r, "source "+strconv.Itoa(i)+" "+file, func() (any, error) { return sourceText{path, text}, nil })
}

// addFiles adds the source of the files where most is missed.
func (d *Data) addFiles(profile int, s *Source, add func(id string, v any) error) error {
	if s == nil {
		return nil
	}
	for k, i := range d.SourceFiles {
		if k == mostSources {
			break
		}
		text, path, err := s.Read(d.Strings[i])
		if err != nil {
			continue
		}
		if err := add(fmt.Sprintf("source?profile=%d&file=%s", profile, d.Strings[i]), sourceText{path, text}); err != nil {
			return err
		}
	}
	return nil
}
