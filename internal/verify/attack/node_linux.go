// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
	"github.com/slipway-dev/slipway/internal/testns"
)

// Places on a throw-away node.
const (
	programs = "/opt/attack" // of root's, each is this one: attack, kubelet, cilium-agent, and su, which is set-user-id
	liars    = "/var/liar"   // the attacker's
	his      = liars + "/his.sock"
	usual    = "/run/containerd/containerd.sock"
	named    = "/run/acme/acme.sock" // by a kubelet
	pidFile  = "/run/cilium/cilium.pid"
)

// standIn is the variable that makes this program another one, which reports that it
// runs, and waits for the end of its standard input. Its value is what it does first.
const (
	standIn = "SLIPWAY_ATTACK_STAND_IN"
	asRoot  = "root"  // becomes root in full, if it can
	asAgent = "agent" // writes its pid file as Cilium's agent does, and takes no lock
)

func playStandIn(part string) error {
	var err error
	switch part {
	case asRoot:
		_ = syscall.Setresgid(0, 0, 0) // without the set-user-id bit it keeps its user
		_ = syscall.Setresuid(0, 0, 0)
	case asAgent:
		unix.Umask(0o026)
		err = os.WriteFile(pidFile, fmt.Appendln(nil, os.Getpid()), 0o666)
	}
	fmt.Println("running", err)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// node is the throw-away node with the lying processes and sockets, for all attempts at one
// target.
type node struct {
	*testns.Node
	ends    []func() error
	kubelet func() error // ends root's; nil if there is none
	agent   func() error
	wants   string // the endpoint to be found
}

func startNode() (*node, error) {
	started, err := testns.StartNode(context.Background(), testns.NodeOptions{})
	if err != nil {
		return nil, err
	}
	n := &node{Node: started}
	if err := n.Do(context.Background(), equip); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// equip makes the folders and the programs.
func equip(context.Context) error {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	for _, dir := range []string{programs, liars + "/su", liars + "/plain", filepath.Dir(usual), filepath.Dir(named), filepath.Dir(pidFile)} {
		err = errors.Join(err, os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755))
	}
	for name, mode := range map[string]os.FileMode{"attack": 0o755, "su": 0o755 | os.ModeSetuid} {
		path := filepath.Join(programs, name)
		err = errors.Join(err, os.WriteFile(path, self, 0o755), os.Chmod(path, mode))
	}
	for _, name := range []string{"kubelet", "cilium-agent"} {
		err = errors.Join(err,
			os.Link(programs+"/attack", filepath.Join(programs, name)),
			os.Symlink(programs+"/su", filepath.Join(liars, "su", name)),
			os.Symlink(programs+"/attack", filepath.Join(liars, "plain", name)))
	}
	return errors.Join(err, os.Chmod(filepath.Dir(programs), 0o755), os.Chmod(filepath.Dir(liars), 0o755), os.Chown(liars, nobody, nobody))
}

func (n *node) close() error {
	var err error
	for _, end := range append(n.ends, n.kubelet, n.agent) {
		if end != nil {
			err = errors.Join(err, end())
		}
	}
	return errors.Join(err, n.Close())
}

// serve starts a runtime of root's.
func (n *node) serve(path string) error {
	l, err := n.Listen(path)
	if err != nil {
		return err
	}
	n.ends = append(n.ends, serve(l, critest.Runtime{Info: critest.Containerd("/etc/cni/net.d", "/opt/cni/bin")}))
	return nil
}

// stand starts a stand-in of root's, and returns its end.
func (n *node) stand(part string, args ...string) (end func() error, err error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), standIn + "=" + part}
	return waiting(cmd, n.StartCommand)
}

// waiting starts a stand-in, and returns when it reports that it runs.
func waiting(cmd *exec.Cmd, start func(*exec.Cmd) error) (end func() error, err error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := start(cmd); err != nil {
		return nil, err
	}
	end = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil || said != "running <nil>\n" {
		return nil, errors.Join(fmt.Errorf("%s said %q: %w", cmd, said, err), end())
	}
	return end, nil
}

// serve serves until it is ended.
func serve(l net.Listener, handler http.Handler) (end func() error) {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: &protocols}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return func() error {
		_ = server.Close() // clients may have disconnected
		<-ended
		return nil
	}
}

// sometimes is true once in n times.
func sometimes(n int) bool { return rand.IntN(n) == 0 }
