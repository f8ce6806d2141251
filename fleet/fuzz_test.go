package fleet

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// FuzzAnswer: whatever a server answers, a query ends with a profile or an error.
func FuzzAnswer(f *testing.F) {
	b, err := Window{Profile: someWindows[0].Profile(), Weight: 2, Time: time.Unix(1.8e9, 0)}.Pack()
	if err != nil {
		f.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		f.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain[:min(len(plain), 3000)])
	f.Add([]byte{})
	f.Add([]byte("\x12\x02\x08\x01"))
	var answer []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/proto")
		_, _ = w.Write(answer)
	}))
	defer s.Close()
	c, err := NewClient(Access{Server: s.URL}, 10*time.Second)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		answer = b
		q := Query{From: time.Unix(1.8e9, 0), To: time.Unix(1.8e9+60, 0)}
		if p, err := c.Profile(t.Context(), q); err == nil && p == nil {
			t.Error("neither a profile nor an error")
		}
		_, _ = c.LabelSets(t.Context(), q, "host")
	})
}
