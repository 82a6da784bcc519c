// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/internal/verify/process"
)

// Options configure a server. The zero value is a server with the user [Admin].
type Options struct {
	Users   []User    // besides Admin
	Flags   []string  // additional flags of kube-apiserver
	Version string    // of kube-apiserver, as in APIServer; empty means the version of everything else
	NoAudit bool      // without the audit log, which costs some processor time
	Log     io.Writer // gets a line before each build; may be nil
}

// Server is a running API server with its etcd.
type Server struct {
	URL   string
	CAPEM []byte // the authority of its certificate

	dir, binary     string
	apiserverBinary string
	options         Options
	etcd, apiserver *process.Process
	address         string // an IP and a port, like the others
	etcdAddress     string
	peerAddress     string
	admin           *Client
}

// Start builds missing programs, starts etcd and kube-apiserver on free ports of 127.0.0.1, and
// waits until the API server is ready.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	s := &Server{options: o}
	if s.binary, err = Binary(ctx, o.Log); err != nil {
		return nil, err
	}
	if s.apiserverBinary = s.binary; o.Version != "" {
		if s.apiserverBinary, err = APIServer(ctx, o.Log, o.Version); err != nil {
			return nil, err
		}
	}
	if s.dir, err = os.MkdirTemp("", "realkube-"); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	const attempts = 3 // another process may take a port between the search and the start
	for range attempts {
		if err = s.chooseAddresses(); err != nil {
			break
		}
		if err = s.startBoth(ctx); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, s.Close())
}

func (s *Server) prepare() (err error) {
	if s.CAPEM, err = WriteCredentials(s.dir, append([]User{Admin}, s.options.Users...), "127.0.0.1", "localhost"); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "audit.yaml"), []byte(auditPolicy), 0o600)
}

func (s *Server) chooseAddresses() error {
	for _, address := range []*string{&s.address, &s.etcdAddress, &s.peerAddress} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() // after the loop, so that no port is found twice
		*address = l.Addr().String()
	}
	s.URL = "https://" + s.address
	s.admin = s.Client(Admin)
	return nil
}

func (s *Server) startBoth(ctx context.Context) error {
	if err := s.StartEtcd(); err != nil {
		return err
	}
	return s.StartAPIServer(ctx)
}

// StartEtcd restarts etcd on its data.
func (s *Server) StartEtcd() (err error) {
	s.etcd.End(syscall.SIGKILL)
	s.etcd, err = s.start(s.binary, "etcd", EtcdFlags(filepath.Join(s.dir, "etcd"), s.etcdAddress, s.peerAddress))
	return err
}

// start runs a part of Kubernetes.
func (s *Server) start(binary, role string, flags []string) (*process.Process, error) {
	cmd := exec.Command(binary, flags...)
	cmd.Args[0], cmd.Dir = role, s.dir
	return process.Start(role, cmd, filepath.Join(s.dir, role+".log"), nil)
}

// StartAPIServer restarts the API server at its address and on its data, and waits until it is
// ready.
func (s *Server) StartAPIServer(ctx context.Context) (err error) {
	s.apiserver.End(syscall.SIGKILL)
	flags := APIServerFlags(s.dir, s.address, s.etcdAddress)
	if !s.options.NoAudit {
		flags = append(flags, "--audit-policy-file="+filepath.Join(s.dir, "audit.yaml"), "--audit-log-path="+filepath.Join(s.dir, auditFile))
	}
	if s.apiserver, err = s.start(s.apiserverBinary, "kube-apiserver", append(flags, s.options.Flags...)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return process.Until(ctx, "kube-apiserver is ready", s.admin.Ready, s.etcd, s.apiserver)
}

// Dir is the directory of its data, certificates and logs, until Close.
func (s *Server) Dir() string { return s.dir }

// StopAPIServer lets the API server end by itself (SIGTERM).
func (s *Server) StopAPIServer() { s.apiserver.End(syscall.SIGTERM) }

// KillAPIServer ends the API server at once (SIGKILL).
func (s *Server) KillAPIServer() { s.apiserver.End(syscall.SIGKILL) }

// KillEtcd ends etcd at once (SIGKILL).
func (s *Server) KillEtcd() { s.etcd.End(syscall.SIGKILL) }

// Close kills both servers and removes the directory.
func (s *Server) Close() error {
	s.apiserver.End(syscall.SIGKILL)
	s.etcd.End(syscall.SIGKILL)
	return os.RemoveAll(s.dir)
}

// Kubeconfig writes a kubeconfig file for the user and returns its path. server is the URL to
// write into it; if it is empty, the API server's own.
func (s *Server) Kubeconfig(dir string, u User, server string) (string, error) {
	if server == "" {
		server = s.URL
	}
	return WriteKubeconfig(dir, server, s.CAPEM, u.Token())
}
