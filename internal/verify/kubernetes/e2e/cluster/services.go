// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// service is a program that runs as long as the node does.
type service struct {
	cmd  *exec.Cmd
	args []string
	done chan struct{}
}

// serve starts a service, whose output goes to a file in logDir.
func (c *Cluster) serve(name string, args ...string) error {
	log, err := os.OpenFile(c.path(filepath.Join(logDir, name+".log")), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s := &service{cmd: exec.Command(name, args...), args: args, done: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := c.start(s.cmd); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		s.cmd.Wait()
		close(s.done)
	}()
	c.services[name] = s
	return nil
}

// Kill ends a service at once, by the name of its program.
func (c *Cluster) Kill(name string) {
	s := c.services[name]
	s.cmd.Process.Kill()
	<-s.done
}

// Restart starts a service that was killed, on the data that it had.
func (c *Cluster) Restart(ctx context.Context, name string) error {
	if err := c.serve(name, c.services[name].args...); err != nil {
		return err
	}
	if name != "kube-apiserver" {
		return nil
	}
	return c.waitFor(ctx, "kube-apiserver is ready", c.apiReady)
}

const apiURL = "https://" + nodeAddress + ":" + apiPort

// users are the cluster's, with their tokens and groups.
var users = map[string]string{
	"admin": "system:masters", "system:kube-controller-manager": "", "system:kube-scheduler": "", "system:node:" + NodeName: "system:nodes",
}

func token(user string) string { return "token-of-" + strings.ReplaceAll(user, ":", "-") }

func kubeconfig(user string) string {
	return "/etc/kubernetes/" + strings.ReplaceAll(user, ":", "-") + ".conf"
}

// credentials writes certificates, tokens and kubeconfig files on the node.
func (c *Cluster) credentials() (err error) {
	if c.ca, err = realkube.NewAuthority("e2e"); err != nil {
		return err
	}
	until := time.Now().Add(24 * time.Hour)
	cert, key, err := c.ca.Server(until, nodeAddress, serviceAddress, "127.0.0.1", "localhost", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	_, accountKey, err := c.ca.Server(until)
	if err != nil {
		return err
	}
	var tokens strings.Builder
	files := map[string]string{"ca.crt": string(c.ca.PEM), "tls.crt": string(cert), "tls.key": string(key), "sa.key": string(accountKey)}
	for user, group := range users {
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token(user), user, user, group)
		files[filepath.Base(kubeconfig(user))] = fmt.Sprintf(kubeconfigText, apiURL, base64.StdEncoding.EncodeToString(c.ca.PEM), token(user))
	}
	files["tokens.csv"] = tokens.String()
	for name, content := range files {
		if err := c.WriteFile("/etc/kubernetes/"+name, content); err != nil {
			return err
		}
	}
	c.admin = realkube.NewClient(apiURL, c.ca.PEM, token("admin"), c.dial)
	return nil
}

const kubeconfigText = `apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: user, user: {token: %q}}]
contexts: [{name: e2e, context: {cluster: e2e, user: user}}]
current-context: e2e
`

// dial connects from the node. The address is no name, so nothing but this
// thread is at work.
func (c *Cluster) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = hostns.Do(ctx, filepath.Join(c.node.Proc(), "1"), hostns.Net, func(ctx context.Context) (err error) {
		conn, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

const (
	containerdConfig = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + Pause + `"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
`
	kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: ` + nodeAddress + `
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDomain: cluster.local
evictionHard: {memory.available: "50Mi", nodefs.available: "1%", imagefs.available: "1%"}
nodeStatusUpdateFrequency: 2s
syncFrequency: 5s
`
)

func (c *Cluster) startAll(ctx context.Context) error {
	if err := c.credentials(); err != nil {
		return err
	}
	if err := errors.Join(
		c.WriteFile("/etc/containerd/config.toml", containerdConfig), c.WriteFile("/etc/kubernetes/kubelet.yaml", kubeletConfig),
		c.serve("containerd"), c.serveEtcd(), c.serveAPI(),
	); err != nil {
		return err
	}
	if err := c.waitFor(ctx, "containerd answers", func(ctx context.Context) error { _, err := c.Run(ctx, "ctr", "version"); return err }); err != nil {
		return err
	}
	if err := c.importBasics(ctx); err != nil {
		return err
	}
	if err := c.waitFor(ctx, "kube-apiserver is ready", c.apiReady); err != nil {
		return err
	}
	if err := errors.Join(c.serveControllers(), c.serveScheduler(), c.serveKubelet()); err != nil {
		return err
	}
	for _, path := range []string{"/api/v1/nodes/" + NodeName, "/api/v1/namespaces/default/serviceaccounts/default", "/api/v1/namespaces/kube-system/serviceaccounts/default"} {
		if err := c.waitFor(ctx, path+" is there", func(ctx context.Context) error { _, err := c.admin.Get(ctx, path); return err }); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) apiReady(ctx context.Context) error {
	_, err := c.admin.Get(ctx, "/readyz")
	return err
}

// waitFor looks until look returns nil.
func (c *Cluster) waitFor(ctx context.Context, what string, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		for name, s := range c.services {
			select {
			case <-s.done:
				return fmt.Errorf("%s has ended: %s", name, c.tail(name))
			default:
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, err)
		}
	}
}

// tail is the end of a service's log.
func (c *Cluster) tail(name string) string {
	text, err := os.ReadFile(c.path(filepath.Join(logDir, name+".log")))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-3000):])
}

func (c *Cluster) serveEtcd() error {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return c.serve("etcd", "--name=one", "--data-dir=/var/lib/etcd", "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=one="+peer)
}

func (c *Cluster) serveAPI() error {
	const issuer = "https://kubernetes.default.svc"
	return c.serve("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
		"--bind-address="+nodeAddress, "--secure-port="+apiPort, "--advertise-address="+nodeAddress, "--endpoint-reconciler-type=none",
		"--tls-cert-file=/etc/kubernetes/tls.crt", "--tls-private-key-file=/etc/kubernetes/tls.key",
		"--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true", "--authorization-mode=Node,RBAC",
		"--token-auth-file=/etc/kubernetes/tokens.csv", "--service-account-issuer="+issuer,
		"--service-account-key-file=/etc/kubernetes/sa.key", "--service-account-signing-key-file=/etc/kubernetes/sa.key",
		"--kubelet-preferred-address-types=InternalIP", "--profiling=false")
}

// access are the flags by which a part of Kubernetes reaches the API server.
func access(user string) []string {
	file := kubeconfig(user)
	return []string{
		"--kubeconfig=" + file, "--authentication-kubeconfig=" + file, "--authorization-kubeconfig=" + file,
		"--leader-elect=false", "--bind-address=127.0.0.1",
	}
}

func (c *Cluster) serveControllers() error {
	return c.serve("kube-controller-manager", append(access("system:kube-controller-manager"),
		"--service-account-private-key-file=/etc/kubernetes/sa.key", "--root-ca-file=/etc/kubernetes/ca.crt",
		"--use-service-account-credentials", "--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16", "--cert-dir=/etc/kubernetes/controllers")...)
}

func (c *Cluster) serveScheduler() error {
	return c.serve("kube-scheduler", append(access("system:kube-scheduler"), "--cert-dir=/etc/kubernetes/scheduler")...)
}

func (c *Cluster) serveKubelet() error {
	return c.serve("kubelet", "--config=/etc/kubernetes/kubelet.yaml", "--kubeconfig="+kubeconfig("system:node:"+NodeName),
		"--hostname-override="+NodeName, "--node-ip="+nodeAddress, "--v=2")
}
