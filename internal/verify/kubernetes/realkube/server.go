// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// User is one that the API server knows by a token, which is the name again.
type User struct {
	Name   string
	Groups []string
}

// Admin may do everything.
var Admin = User{Name: "admin", Groups: []string{"system:masters"}}

// ServiceAccount is the user that a ServiceAccount is.
func ServiceAccount(namespace, name string) User {
	return User{
		Name:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// Options say what to start. The zero value is a server with the user [Admin].
type Options struct {
	Dir     string    // data, certificates and logs; empty: a temporary one that Close removes
	Users   []User    // beside Admin
	Flags   []string  // more flags of kube-apiserver
	NoAudit bool      // without the audit log, which costs some processor time
	Log     io.Writer // gets a line when something has to be built; nil: nobody
}

// Server is a running API server with its etcd.
type Server struct {
	URL   string
	CAPEM []byte // what its certificate is signed by

	dir, binary     string
	temporary       bool
	options         Options
	etcd, apiserver *process
	port, etcdPort  int
	peerPort        int
	admin           *Client
}

// Start builds what is missing, starts etcd and kube-apiserver on free ports of
// 127.0.0.1, and waits until the API server says that it is ready.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	s := &Server{dir: o.Dir, options: o}
	if s.binary, err = Binary(ctx, o.Log); err != nil {
		return nil, err
	}
	if s.dir == "" {
		s.temporary = true
		if s.dir, err = os.MkdirTemp("", "realkube-"); err != nil {
			return nil, err
		}
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	const attempts = 3 // another process may take a port between the look and the start
	for range attempts {
		if err = s.choosePorts(); err != nil {
			break
		}
		if err = s.startBoth(ctx); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, s.Close())
}

func (s *Server) prepare() (err error) {
	if s.CAPEM, err = credentials(s.dir); err != nil {
		return err
	}
	var tokens strings.Builder
	for _, u := range append([]User{Admin}, s.options.Users...) {
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", u.Token(), u.Name, u.Name, strings.Join(u.Groups, ","))
	}
	return errors.Join(
		os.WriteFile(filepath.Join(s.dir, "tokens.csv"), []byte(tokens.String()), 0o600),
		os.WriteFile(filepath.Join(s.dir, "audit.yaml"), []byte(auditPolicy), 0o600))
}

// Token is the user's bearer token.
func (u User) Token() string { return "token-of-" + strings.ReplaceAll(u.Name, ":", "-") }

func (s *Server) choosePorts() error {
	var listeners []net.Listener
	for _, port := range []*int{&s.port, &s.etcdPort, &s.peerPort} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		listeners = append(listeners, l)
		*port = l.Addr().(*net.TCPAddr).Port
	}
	for _, l := range listeners {
		l.Close()
	}
	s.URL = fmt.Sprintf("https://127.0.0.1:%d", s.port)
	s.admin = s.Client(Admin)
	return nil
}

func (s *Server) startBoth(ctx context.Context) error {
	if err := s.StartEtcd(); err != nil {
		return err
	}
	return s.StartAPIServer(ctx)
}

// StartEtcd starts etcd again, on the data that it had.
func (s *Server) StartEtcd() (err error) {
	s.etcd.end(syscall.SIGKILL)
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", s.etcdPort), fmt.Sprintf("http://127.0.0.1:%d", s.peerPort)
	s.etcd, err = start(s.binary, s.dir, "etcd",
		"--name=one", "--data-dir="+filepath.Join(s.dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=one="+peer)
	return err
}

// StartAPIServer starts the API server again, at the address and on the data
// that it had, and waits until it is ready.
func (s *Server) StartAPIServer(ctx context.Context) (err error) {
	s.apiserver.end(syscall.SIGKILL)
	file := func(name string) string { return filepath.Join(s.dir, name) }
	args := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", s.etcdPort),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.port),
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + file("tls.crt"), "--tls-private-key-file=" + file("tls.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + file("sa.key"), "--service-account-signing-key-file=" + file("sa.key"),
		"--token-auth-file=" + file("tokens.csv"), "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.96.0.0/16", "--profiling=false",
	}
	if !s.options.NoAudit {
		args = append(args, "--audit-policy-file="+file("audit.yaml"), "--audit-log-path="+file(auditFile))
	}
	if s.apiserver, err = start(s.binary, s.dir, "kube-apiserver", append(args, s.options.Flags...)...); err != nil {
		return err
	}
	return s.waitReady(ctx)
}

func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if body, err := s.admin.Do(ctx, http.MethodGet, "/readyz", "", nil); err == nil && string(body) == "ok" {
			return nil
		}
		for name, p := range map[string]*process{"etcd": s.etcd, "kube-apiserver": s.apiserver} {
			if !p.running() {
				return fmt.Errorf("%s has ended before it was ready: %s", name, p.tail())
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready: %w: %s", ctx.Err(), s.apiserver.tail())
		}
	}
}

// Dir is where its data, certificates and logs are.
func (s *Server) Dir() string { return s.dir }

// StopAPIServer lets the API server end by itself (SIGTERM).
func (s *Server) StopAPIServer() { s.apiserver.end(syscall.SIGTERM) }

// KillAPIServer ends the API server at once (SIGKILL).
func (s *Server) KillAPIServer() { s.apiserver.end(syscall.SIGKILL) }

// KillEtcd ends etcd at once (SIGKILL).
func (s *Server) KillEtcd() { s.etcd.end(syscall.SIGKILL) }

// CPU is the processor time that the API server and etcd have used since they
// were started last.
func (s *Server) CPU() (apiserver, etcd time.Duration, err error) {
	apiserver, err1 := s.apiserver.cpu()
	etcd, err2 := s.etcd.cpu()
	return apiserver, etcd, errors.Join(err1, err2)
}

// Close kills both servers and removes a temporary directory.
func (s *Server) Close() error {
	s.apiserver.end(syscall.SIGKILL)
	s.etcd.end(syscall.SIGKILL)
	if s.temporary {
		return os.RemoveAll(s.dir)
	}
	return nil
}

// Kubeconfig writes a kubeconfig file for the user and returns its path. server
// is the URL to write into it; empty: the API server's own.
func (s *Server) Kubeconfig(dir string, u User, server string) (string, error) {
	if server == "" {
		server = s.URL
	}
	return WriteKubeconfig(dir, server, s.CAPEM, u.Token())
}

// WriteKubeconfig writes a kubeconfig file into dir under a name that is not
// taken, and returns its path.
func WriteKubeconfig(dir, server string, caPEM []byte, token string) (string, error) {
	f, err := os.CreateTemp(dir, "kubeconfig-")
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, `apiVersion: v1
kind: Config
clusters:
- name: real
  cluster: {server: %q, certificate-authority-data: %s}
users:
- name: user
  user: {token: %q}
contexts:
- name: real
  context: {cluster: real, user: user}
current-context: real
`, server, base64.StdEncoding.EncodeToString(caPEM), token)
	return f.Name(), errors.Join(err, f.Close())
}
