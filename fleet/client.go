package fleet

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// Access says where a server is and how to reach it. Secrets come from files, which are read
// again for every request, so that a token can be renewed; they are in no message of rdx.
type Access struct {
	Server string `yaml:"url"`
	// Tenant is the value of X-Scope-OrgID.
	Tenant       string `yaml:"tenant"`
	TokenFile    string `yaml:"token_file"`
	User         string `yaml:"user"`
	PasswordFile string `yaml:"password_file"`
	// Proxy is a URL; without it HTTPS_PROXY and its kin count.
	Proxy string `yaml:"proxy"`
	// CAFile, CertFile and KeyFile are PEM.
	CAFile     string `yaml:"ca_file"`
	CertFile   string `yaml:"cert_file"`
	KeyFile    string `yaml:"key_file"`
	ServerName string `yaml:"server_name"`
}

// Client speaks to one server. It is for any number of goroutines.
type Client struct {
	access Access
	base   *url.URL
	http   *http.Client
}

// mostAnswer bounds what is read of an answer, in bytes.
const mostAnswer = 512 << 20

// NewClient checks what there is to check without asking the server.
func NewClient(a Access, timeout time.Duration) (*Client, error) {
	base, err := url.Parse(a.Server)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("server %q: want a URL such as http://127.0.0.1:4040", redact(a.Server))
	}
	if base.User != nil {
		return nil, fmt.Errorf("server %q: want no password in the URL, which others can see (use user and password_file)", redact(a.Server))
	}
	if a.TokenFile != "" && (a.User != "" || a.PasswordFile != "") {
		return nil, errors.New("server: a token and a password: want one of them")
	}
	if (a.User == "") != (a.PasswordFile == "") {
		return nil, errors.New("server: user and password_file go together")
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig, err = a.tls()
	if err != nil {
		return nil, err
	}
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	t.ResponseHeaderTimeout, t.MaxIdleConnsPerHost, t.IdleConnTimeout = timeout, 2, time.Minute
	if a.Proxy != "" {
		proxy, err := url.Parse(a.Proxy)
		if err != nil || proxy.Host == "" {
			return nil, fmt.Errorf("proxy %q: want a URL", redact(a.Proxy))
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	c := &Client{access: a, base: base, http: &http.Client{Transport: t, Timeout: timeout,
		// A token must not follow where a server points to.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if _, err := c.authorization(); err != nil {
		return nil, err
	}
	return c, nil
}

// redact leaves out what a URL has of a password.
func redact(s string) string {
	if u, err := url.Parse(s); err == nil {
		return u.Redacted()
	}
	return "(no URL)"
}

func (a Access) tls() (*tls.Config, error) {
	c := &tls.Config{ServerName: a.ServerName, MinVersion: tls.VersionTLS12}
	if a.CAFile != "" {
		pem, err := os.ReadFile(a.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read ca_file: %s holds no certificate in PEM", a.CAFile)
		}
	}
	if (a.CertFile == "") != (a.KeyFile == "") {
		return nil, errors.New("server: cert_file and key_file go together")
	}
	if a.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile); err != nil {
			return nil, fmt.Errorf("read cert_file and key_file: %w", err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // renewed ones too
			cert, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
			return &cert, err
		}
	}
	return c, nil
}

// authorization is the header's value, "" for none.
func (c *Client) authorization() (string, error) {
	switch {
	case c.access.TokenFile != "":
		token, err := secret(c.access.TokenFile)
		if err != nil {
			return "", fmt.Errorf("read token_file: %w", err)
		}
		return "Bearer " + token, nil
	case c.access.PasswordFile != "":
		password, err := secret(c.access.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("read password_file: %w", err)
		}
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth(c.access.User, password)
		return r.Header.Get("Authorization"), nil
	}
	return "", nil
}

func secret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(b))
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", fmt.Errorf("%s: want one line of printable characters", path)
	}
	return s, nil
}

// A StatusError is what a server has answered instead of a result.
type StatusError struct {
	Status  int // of HTTP
	Code    string
	Message string
	// Foreign: it is no answer of Pyroscope's.
	Foreign bool
}

func (e *StatusError) Error() string {
	text := e.Message
	if text == "" {
		text = http.StatusText(e.Status)
	}
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return fmt.Sprintf("the server refuses access, HTTP status %d: %s (consider another token, password or tenant)", e.Status, text)
	case e.Status == http.StatusTooManyRequests:
		return fmt.Sprintf("the server takes no more for now, HTTP status 429: %s", text)
	case e.Foreign:
		return fmt.Sprintf("this is no Pyroscope server, or a proxy has answered in its place, HTTP status %d: %s", e.Status, text)
	}
	return fmt.Sprintf("the server says, HTTP status %d: %s", e.Status, text)
}

// call posts one request of the Connect protocol.
func (c *Client) call(ctx context.Context, method string, body []byte) ([]byte, error) {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + method
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base.Host, err)
	}
	req.Header.Set("Content-Type", "application/proto")
	req.Header.Set("Connect-Protocol-Version", "1")
	req.Header.Set("User-Agent", "rdx")
	if c.access.Tenant != "" {
		req.Header.Set("X-Scope-OrgID", c.access.Tenant)
	}
	auth, err := c.authorization()
	if err != nil {
		return nil, err
	}
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the address is said once
		}
		return nil, fmt.Errorf("ask %s: %w", c.base.Host, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.base.Host, err)
	}
	if len(answer) > mostAnswer {
		return nil, fmt.Errorf("read the answer of %s: more than %d MiB (take a shorter range)", c.base.Host, mostAnswer>>20)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp.StatusCode, answer)
	}
	if t := resp.Header.Get("Content-Type"); !strings.HasPrefix(t, "application/proto") {
		return nil, &StatusError{Status: resp.StatusCode, Foreign: true, Message: "an answer of type " + clean(shortened(t))}
	}
	return answer, nil
}

// ask is a query, tried again where a node of several may just have gone.
func (c *Client) ask(ctx context.Context, method string, body []byte) ([]byte, error) {
	const tries = 4
	pause := 200 * time.Millisecond
	for try := 1; ; try++ {
		answer, err := c.call(ctx, "/querier.v1.QuerierService/"+method, body)
		var e *StatusError
		if err == nil || try == tries || !errors.As(err, &e) || e.Status < 500 || e.Foreign {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
			pause *= 2
		}
	}
}

// statusError reads Connect's error, or whatever there is.
func statusError(status int, answer []byte) error {
	var e struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &e) == nil && e.Code != "" {
		return &StatusError{Status: status, Code: clean(shortened(e.Code)), Message: clean(shortened(e.Message))}
	}
	text := strings.TrimSpace(string(answer))
	foreign := status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status/100 == 3 || strings.HasPrefix(text, "<")
	if strings.HasPrefix(text, "<") {
		text = http.StatusText(status)
	}
	return &StatusError{Status: status, Message: clean(shortened(text)), Foreign: foreign}
}

func shortened(s string) string {
	const most = 400
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// Push sends series. What was sent before, with the same labels and time, is not counted
// twice.
func (c *Client) Push(ctx context.Context, series []Series) error {
	return c.PushRequest(ctx, EncodePush(series))
}

// merge asks for the sum of one column. It is nil if there is nothing.
func (c *Client) merge(ctx context.Context, typeID, selector string, from, to time.Time) (*profile.Profile, error) {
	answer, err := c.ask(ctx, "SelectMergeProfile", mergeRequest(typeID, selector, from, to))
	if err != nil || len(answer) == 0 {
		return nil, err
	}
	p, err := profile.ParseUncompressed(answer)
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.base.Host, err)
	}
	return p, nil
}

// Series lists the sets of values that the named labels have.
func (c *Client) Series(ctx context.Context, selector string, names []string, from, to time.Time) ([][]Label, error) {
	var out [][]Label
	err := split(from, to, func(from, to time.Time) error {
		answer, err := c.ask(ctx, "Series", seriesRequest(selector, names, from, to))
		if err != nil {
			return err
		}
		part, err := parseSeries(answer)
		out = append(out, part...)
		return err
	})
	return out, err
}

// PushRequest sends what EncodePush made.
func (c *Client) PushRequest(ctx context.Context, request []byte) error {
	_, err := c.call(ctx, "/push.v1.PusherService/Push", request)
	return err
}

// EncodePush is a request with these series, to be kept and sent later.
func EncodePush(series []Series) []byte { return pushRequest(series) }
