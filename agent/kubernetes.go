package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// podLister asks for the node's pods, at most once a period.
type podLister struct {
	config KubernetesConfig
	http   *http.Client

	mu     sync.Mutex
	asking bool
	pods   map[string]Pod // by the ID of a container
}

const mostPods = 64 << 20 // bytes of an answer

func newPodLister(c KubernetesConfig) (*podLister, error) {
	l := &podLister{config: c, pods: map[string]Pod{}}
	if c.URL == "" {
		return l, nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("kubernetes: url %q: want a URL such as https://127.0.0.1:10250/pods", redactURL(c.URL))
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Insecure}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("kubernetes: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("kubernetes: %s holds no certificate in PEM", c.CAFile)
		}
	}
	l.http = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: t, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return l, nil
}

func redactURL(s string) string {
	if u, err := url.Parse(s); err == nil {
		return u.Redacted()
	}
	return "(no URL)"
}

func (l *podLister) pod(id string) (Pod, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.pods[id]
	return p, ok
}

// refresh asks beside what else goes on, and keeps what it had if the list can't be read.
func (l *podLister) refresh(ctx context.Context, log *zap.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.http == nil || l.asking {
		return
	}
	l.asking = true
	go func() {
		pods, err := l.list(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asking = false
		if err != nil {
			log.Warn("pods can't be listed: their labels are missing or old", zap.Error(err))
			return
		}
		l.pods = pods
	}()
}

func (l *podLister) list(ctx context.Context) (map[string]Pod, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.config.URL, nil)
	if err != nil {
		return nil, err
	}
	if l.config.TokenFile != "" {
		token, err := readAtMost(l.config.TokenFile, 1<<16)
		if err != nil {
			return nil, fmt.Errorf("read token_file: %w", err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := l.http.Do(r)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostPods))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d (the service account needs get on nodes/pods, or list on pods)", resp.StatusCode)
	}
	return parsePods(b)
}

// parsePods reads a v1.PodList, the kubelet's or the API server's.
func parsePods(b []byte) (map[string]Pod, error) {
	type status struct {
		Name        string `json:"name"`
		ContainerID string `json:"containerID"`
		Image       string `json:"image"`
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name      string            `json:"name"`
				Namespace string            `json:"namespace"`
				Labels    map[string]string `json:"labels"`
			} `json:"metadata"`
			Status struct {
				Containers []status `json:"containerStatuses"`
				Init       []status `json:"initContainerStatuses"`
				Ephemeral  []status `json:"ephemeralContainerStatuses"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("read pods: %w", err)
	}
	out := map[string]Pod{}
	for _, p := range list.Items {
		for _, group := range [][]status{p.Status.Containers, p.Status.Init, p.Status.Ephemeral} {
			for _, c := range group {
				_, id, ok := strings.Cut(c.ContainerID, "://")
				if !ok || id == "" {
					continue // not running yet
				}
				pod := Pod{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, Container: c.Name,
					App: p.Metadata.Labels["app.kubernetes.io/name"], Version: p.Metadata.Labels["app.kubernetes.io/version"]}
				if pod.App == "" {
					pod.App = p.Metadata.Labels["app"]
				}
				if pod.Version == "" {
					pod.Version = imageTag(c.Image)
				}
				out[id] = pod
			}
		}
	}
	return out, nil
}

// imageTag is that of REGISTRY:PORT/NAME:TAG@DIGEST, "" if there is none.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	last := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, _ := strings.Cut(last, ":")
	return tag
}

// dockerNames reads names of containers where Docker keeps them.
func dockerNames(dir string) func(id string) string {
	known := map[string]string{}
	return func(id string) string {
		if name, ok := known[id]; ok || dir == "" {
			return name
		}
		name := ""
		if b, err := readAtMost(filepath.Join(dir, id, "config.v2.json"), 4<<20); err == nil {
			var c struct{ Name string }
			if json.Unmarshal(b, &c) == nil {
				name = strings.TrimPrefix(c.Name, "/")
			}
		}
		if len(known) > 10_000 {
			clear(known)
		}
		known[id] = name
		return name
	}
}
