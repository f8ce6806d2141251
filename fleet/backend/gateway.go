package backend

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Gateway is what stands before a server where not everyone may ask: TLS with client
// certificates, a password or a token, and a proxy as the only way to it.
type Gateway struct {
	// URL has a name that only the proxy knows.
	URL, Proxy string
	// Files with what a client needs, PEM or one line.
	CA, Cert, Key, Password, Token string
	// Others: a certificate of another authority, with its key, and another password.
	OtherCert, OtherKey, OtherPassword string
	User                               string

	Passed, Refused, Tunnels atomic.Int64
	close                    []func()
}

const (
	gatewayName     = "pyroscope.test"
	gatewayUser     = "agent"
	gatewayPassword = "p4ssw0rd-of-gateway"
	gatewayToken    = "t0ken-of-gateway"
)

// NewGateway stands before the server at a URL; its files are below dir.
func NewGateway(dir, to string) (*Gateway, error) {
	target, err := url.Parse(to)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g := &Gateway{User: gatewayUser}
	path := func(name string) string { return filepath.Join(dir, name) }
	g.CA, g.Cert, g.Key, g.OtherCert, g.OtherKey = path("ca.pem"), path("cert.pem"), path("key.pem"), path("other-cert.pem"), path("other-key.pem")
	g.Password, g.Token, g.OtherPassword = path("password"), path("token"), path("other-password")
	authority, server, err := g.certificates()
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	for file, text := range map[string]string{g.Password: gatewayPassword, g.Token: gatewayToken, g.OtherPassword: "guessed"} {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
	}
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	g.URL = "https://" + net.JoinHostPort(gatewayName, port)
	forward := httputil.NewSingleHostReverseProxy(target)
	g.serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority, MinVersion: tls.VersionTLS12}),
		func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			if (user != gatewayUser || password != gatewayPassword) && r.Header.Get("Authorization") != "Bearer "+gatewayToken {
				g.Refused.Add(1)
				http.Error(w, "who are you", http.StatusUnauthorized)
				return
			}
			g.Passed.Add(1)
			forward.ServeHTTP(w, r)
		})
	return g, g.startProxy(l.Addr().String())
}

// startProxy makes tunnels to the gateway, and to nothing else.
func (g *Gateway) startProxy(to string) error {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	g.Proxy = "http://" + l.Addr().String()
	g.serve(l, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || "https://"+r.Host != g.URL {
			http.Error(w, "no way", http.StatusForbidden)
			return
		}
		up, err := net.Dial("tcp", to)
		if err != nil {
			http.Error(w, "gone", http.StatusBadGateway)
			return
		}
		g.Tunnels.Add(1)
		w.WriteHeader(http.StatusOK)
		down, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			up.Close()
			return
		}
		go func() {
			_, _ = io.Copy(up, buffered)
			up.Close()
		}()
		go func() {
			_, _ = io.Copy(down, up)
			down.Close()
		}()
	})
	return nil
}

func (g *Gateway) serve(l net.Listener, h http.HandlerFunc) {
	s := &http.Server{Handler: h, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	g.close = append(g.close, func() { s.Close() })
}

// Close ends it.
func (g *Gateway) Close() {
	for _, f := range g.close {
		f()
	}
}

// certificates writes those of a client and of an impostor, and returns the server's and the
// authority that has signed the first two.
func (g *Gateway) certificates() (*x509.CertPool, tls.Certificate, error) {
	var none tls.Certificate
	ca, caKey, err := certificate("authority", nil, nil)
	if err != nil {
		return nil, none, err
	}
	server, serverKey, err := certificate(gatewayName, ca, caKey)
	if err != nil {
		return nil, none, err
	}
	client, clientKey, err := certificate("client", ca, caKey)
	if err != nil {
		return nil, none, err
	}
	other, otherKey, err := certificate("impostor", nil, nil)
	if err != nil {
		return nil, none, err
	}
	err = errors.Join(writeCertificate(g.CA, "", ca, nil), writeCertificate(g.Cert, g.Key, client, clientKey), writeCertificate(g.OtherCert, g.OtherKey, other, otherKey))
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return pool, tls.Certificate{Certificate: [][]byte{server.Raw}, PrivateKey: serverKey}, err
}

// certificate makes one for an hour, signed by itself where there is no parent.
func certificate(name string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: parent == nil}
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		return nil, nil, err
	}
	signed, err := x509.ParseCertificate(der)
	return signed, key, err
}

func writeCertificate(path, keyPath string, c *x509.Certificate, key *ecdsa.PrivateKey) error {
	err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), 0o600)
	if err != nil || key == nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(keyPath, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// quiet: what a client without a certificate does is no news.
var quiet = log.New(io.Discard, "", 0)
