// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
	"github.com/slipway-dev/slipway/internal/verify/process"
)

// serve starts a service, a program that runs as long as the node does. Its output goes
// to a file in logDir.
func (n *Node) serve(name string, args ...string) error {
	p, err := process.Start(name, exec.Command(name, args...), n.path(filepath.Join(logDir, name+".log")), n.start)
	if err == nil {
		n.services = append(n.services, p)
	}
	return err
}

var (
	controllers = realkube.User{Name: "system:kube-controller-manager"}
	scheduler   = realkube.User{Name: "system:kube-scheduler"}
)

// kubelet is the user of a node's kubelet.
func (n *Node) kubelet() realkube.User {
	return realkube.User{Name: "system:node:" + n.Name, Groups: []string{"system:nodes"}}
}

func kubeconfig(user realkube.User) string {
	return credentials + "/" + strings.ReplaceAll(user.Name, ":", "-") + ".conf"
}

func (c *Cluster) apiURL() string { return "https://" + c.Address() + ":" + apiPort }

// writeCredentials writes certificates, tokens and kubeconfig files on the first node.
func (c *Cluster) writeCredentials() (err error) {
	users := []realkube.User{realkube.Admin, controllers, scheduler}
	all := users
	for _, name := range Names {
		all = append(all, (&Node{Name: name}).kubelet())
	}
	if c.ca, err = realkube.WriteCredentials(c.path(credentials), all, c.Address(), Outside, serviceAddress, "127.0.0.1", "localhost", "kubernetes.default.svc"); err != nil {
		return err
	}
	for _, user := range users {
		if err := c.writeKubeconfig(c.Node, user); err != nil {
			return err
		}
	}
	c.admin = realkube.NewClient(c.apiURL(), c.ca, realkube.Admin.Token(), c.dial)
	return nil
}

func (c *Cluster) writeKubeconfig(n *Node, user realkube.User) error {
	return n.WriteFile(kubeconfig(user), string(realkube.Kubeconfig(c.apiURL(), c.ca, user.Token())))
}

// dial connects from the node. The address is no name, so nothing but this
// thread is at work.
func (n *Node) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = hostns.Do(ctx, filepath.Join(n.node.Proc(), "1"), []string{"net"}, func(ctx context.Context) (err error) {
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

// startControlPlane starts the other services of the first node, and gives it the images that
// every node has.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	if err := c.writeCredentials(); err != nil {
		return err
	}
	const etcd = "127.0.0.1:2379"
	if err := errors.Join(
		c.serve("etcd", realkube.EtcdFlags("/var/lib/etcd", etcd, "127.0.0.1:2380")...),
		c.serve("kube-apiserver", append(realkube.APIServerFlags(credentials, c.Address()+":"+apiPort, etcd),
			"--allow-privileged=true", "--authorization-mode=Node", "--kubelet-preferred-address-types=InternalIP")...),
		c.importBasics(ctx), c.waitFor(ctx, "kube-apiserver is ready", c.admin.Ready),
		c.serve("kube-controller-manager", append(access(controllers),
			"--service-account-private-key-file=/etc/kubernetes/sa.key", "--root-ca-file=/etc/kubernetes/ca.crt",
			"--use-service-account-credentials", "--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16", "--cert-dir=/etc/kubernetes/controllers")...),
		c.serve("kube-scheduler", append(access(scheduler), "--cert-dir=/etc/kubernetes/scheduler")...),
	); err != nil {
		return err
	}
	for _, path := range []string{"/api/v1/namespaces/default/serviceaccounts/default", "/api/v1/namespaces/kube-system/serviceaccounts/default"} {
		if err := c.waitFor(ctx, path+" exists", func(ctx context.Context) error { _, err := c.admin.Get(ctx, path); return err }); err != nil {
			return err
		}
	}
	return nil
}

// waitFor asks until ask returns nil, for two minutes, as long as all services run.
func (n *Node) waitFor(ctx context.Context, what string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return process.Until(ctx, what, ask, n.services...)
}

func (n *Node) serveContainerd(ctx context.Context) error {
	if err := errors.Join(n.WriteFile("/etc/containerd/config.toml", containerdConfig), n.serve("containerd")); err != nil {
		return err
	}
	return n.waitFor(ctx, "containerd answers", func(ctx context.Context) error { _, err := n.Run(ctx, "ctr", "version"); return err })
}

// access are the flags by which a part of Kubernetes reaches the API server.
func access(user realkube.User) []string {
	file := kubeconfig(user)
	return []string{
		"--kubeconfig=" + file, "--authentication-kubeconfig=" + file, "--authorization-kubeconfig=" + file,
		"--leader-elect=false", "--bind-address=127.0.0.1",
	}
}

// serveKubelet starts a node's kubelet, and returns when it has told the API server of this
// boot.
func (c *Cluster) serveKubelet(ctx context.Context, n *Node) error {
	boot, err := os.ReadFile(n.path("/proc/sys/kernel/random/boot_id"))
	if err != nil {
		return err
	}
	if err := errors.Join(c.writeKubeconfig(n, n.kubelet()), n.WriteFile("/etc/kubernetes/kubelet.yaml", kubeletConfig),
		n.serve("kubelet", "--config=/etc/kubernetes/kubelet.yaml", "--kubeconfig="+kubeconfig(n.kubelet()),
			"--address="+n.Address(), "--hostname-override="+n.Name, "--node-ip="+n.Address(), "--v=2")); err != nil {
		return err
	}
	return n.waitFor(ctx, n.Name+" has reported its boot", func(ctx context.Context) error {
		answer, err := c.admin.Get(ctx, "/api/v1/nodes/"+n.Name)
		if err == nil && !bytes.Contains(answer, bytes.TrimSpace(boot)) {
			err = errors.New("it has not")
		}
		return err
	})
}
