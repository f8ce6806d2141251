package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/rdx-profiler/rdx/model"
)

//go:generate ./ui/build.sh static

//go:embed static/app.js static/app.css static/page.html static/report.html
var static embed.FS

// bundled is a file of the bundle, which is there.
func bundled(name string) []byte {
	b, err := static.ReadFile("static/" + name)
	if err != nil {
		panic(err)
	}
	return b
}

// pagePolicy lets pages run the bundle, ask this server, and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var templates = template.Must(template.ParseFS(static, "static/page.html", "static/report.html"))

// writePage tells pages how many profiles they can ask for at once.
func writePage(w io.Writer, profiles int) error {
	return templates.ExecuteTemplate(w, "page.html", profiles)
}

// fileReport is what a file has inside.
type fileReport struct {
	Title  string
	Policy string
	Style  template.CSS
	Script template.JS
	Data   []named
}

type named struct{ ID, Packed string }

// WriteFile writes the pages of profiles as one HTML file that needs nothing else: what a server
// would answer is inside, as text that no browser runs.
func WriteFile(w io.Writer, profiles []Profile, o Options) error {
	f := fileReport{Style: template.CSS(bundled("app.css")), Script: template.JS(bundled("app.js")), Title: "rdx"}
	if len(profiles) == 1 {
		f.Title = profiles[0].Name + " - rdx"
	}
	f.Policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data: blob:; base-uri 'none'; form-action 'none'",
		hashOf(f.Script), hashOf(f.Style))
	add := func(id string, v any) error {
		p, err := compressed(v)
		if err == nil {
			f.Data = append(f.Data, named{id, p})
		}
		return err
	}
	if err := add("list", listOf(profiles, 0, false, false)); err != nil {
		return err
	}
	for i, p := range profiles {
		for _, stack := range append([]string{""}, stackNames(p.Raw)...) {
			if stack != "" && len(p.Raw.StackKinds()) < 2 {
				continue
			}
			d, err := New(p.Raw, p.Name, stack, o)
			if err != nil {
				return err
			}
			for _, part := range []struct {
				id string
				v  any
			}{{"data?profile=%d&stack=%s", d}, {"more?profile=%d&stack=%s&version=0", &d.more}, {"rest?profile=%d&stack=%s&version=0", d.rest()}} {
				columns, err := pack(part.v)
				if err == nil {
					err = add(fmt.Sprintf(part.id, i, stack), columns)
				}
				if err != nil {
					return err
				}
			}
			if err := d.addCurves(p.Raw, i, stack, add); err != nil {
				return err
			}
			if err := d.addCode(i, stack, o.Source, add); err != nil {
				return err
			}
			if err := d.addFiles(i, o.Source, add); err != nil {
				return err
			}
		}
		for k := range profiles {
			if k == i || len(profiles) > mostCompared {
				continue
			}
			d, err := diff(&profiles[i], &profiles[k])
			if err != nil {
				d = failure{err.Error()}
			}
			if err := add(fmt.Sprintf("diff?before=%d&after=%d", i, k), d); err != nil {
				return err
			}
		}
	}
	if len(profiles) > 1 {
		t, err := phases(profiles)
		if err != nil {
			t = failure{err.Error()}
		}
		if err := add("time", t); err != nil {
			return err
		}
	}
	return templates.ExecuteTemplate(w, "report.html", f)
}

// addCurves adds those by other models.
func (d *Data) addCurves(raw *model.Profile, profile int, stack string, add func(id string, v any) error) error {
	if d.Curve == nil || d.Exact {
		return nil
	}
	for _, by := range model.CurveModels[1:] {
		c, err := d.drawBy(raw, stack, by)
		if err != nil {
			return err
		}
		if err := add(fmt.Sprintf("curve?profile=%d&stack=%s&model=%s", profile, stack, by), c); err != nil {
			return err
		}
	}
	return nil
}

// mostCompared is how many profiles a file may have for each to be compared with each.
const mostCompared = 6

// failure is an answer that could not be made.
type failure struct {
	Error string `json:"error"`
}

// hashOf is how a policy names an inline script or style.
func hashOf[S ~string](text S) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
