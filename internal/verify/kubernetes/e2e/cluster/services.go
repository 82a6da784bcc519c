// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"context"
	"errors"
	"net"
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
func (c *Cluster) serve(name string, args ...string) error {
	p, err := process.Start(name, exec.Command(name, args...), c.path(filepath.Join(logDir, name+".log")), c.start)
	if err == nil {
		c.services = append(c.services, p)
	}
	return err
}

const apiURL = "https://" + nodeAddress + ":" + apiPort

// users are those that have a kubeconfig on the node.
var users = []realkube.User{realkube.Admin, controllers, scheduler, kubelet}

var (
	controllers = realkube.User{Name: "system:kube-controller-manager"}
	scheduler   = realkube.User{Name: "system:kube-scheduler"}
	kubelet     = realkube.User{Name: "system:node:" + NodeName, Groups: []string{"system:nodes"}}
)

func kubeconfig(user realkube.User) string {
	return credentials + "/" + strings.ReplaceAll(user.Name, ":", "-") + ".conf"
}

// writeCredentials writes certificates, tokens and kubeconfig files on the node.
func (c *Cluster) writeCredentials() error {
	ca, err := realkube.WriteCredentials(c.path(credentials), users, nodeAddress, Outside, serviceAddress, "127.0.0.1", "localhost", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	for _, user := range users {
		if err := c.WriteFile(kubeconfig(user), string(realkube.Kubeconfig(apiURL, ca, user.Token()))); err != nil {
			return err
		}
	}
	c.admin = realkube.NewClient(apiURL, ca, realkube.Admin.Token(), c.dial)
	return nil
}

// dial connects from the node. The address is no name, so nothing but this
// thread is at work.
func (c *Cluster) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = hostns.Do(ctx, filepath.Join(c.node.Proc(), "1"), []string{"net"}, func(ctx context.Context) (err error) {
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
	if err := c.writeCredentials(); err != nil {
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
	if err := c.waitFor(ctx, "kube-apiserver is ready", c.admin.Ready); err != nil {
		return err
	}
	if err := errors.Join(c.serveControllers(), c.serveScheduler(), c.serveKubelet()); err != nil {
		return err
	}
	for _, path := range []string{"/api/v1/nodes/" + NodeName, "/api/v1/namespaces/default/serviceaccounts/default", "/api/v1/namespaces/kube-system/serviceaccounts/default"} {
		if err := c.waitFor(ctx, path+" exists", func(ctx context.Context) error { _, err := c.admin.Get(ctx, path); return err }); err != nil {
			return err
		}
	}
	return nil
}

// waitFor asks until ask returns nil, for two minutes, as long as all services run.
func (c *Cluster) waitFor(ctx context.Context, what string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return process.Until(ctx, what, ask, c.services...)
}

const etcdAddress = "127.0.0.1:2379"

func (c *Cluster) serveEtcd() error {
	return c.serve("etcd", realkube.EtcdFlags("/var/lib/etcd", etcdAddress, "127.0.0.1:2380")...)
}

func (c *Cluster) serveAPI() error {
	return c.serve("kube-apiserver", append(realkube.APIServerFlags(credentials, nodeAddress+":"+apiPort, etcdAddress),
		"--allow-privileged=true", "--authorization-mode=Node", "--kubelet-preferred-address-types=InternalIP")...)
}

// access are the flags by which a part of Kubernetes reaches the API server.
func access(user realkube.User) []string {
	file := kubeconfig(user)
	return []string{
		"--kubeconfig=" + file, "--authentication-kubeconfig=" + file, "--authorization-kubeconfig=" + file,
		"--leader-elect=false", "--bind-address=127.0.0.1",
	}
}

func (c *Cluster) serveControllers() error {
	return c.serve("kube-controller-manager", append(access(controllers),
		"--service-account-private-key-file=/etc/kubernetes/sa.key", "--root-ca-file=/etc/kubernetes/ca.crt",
		"--use-service-account-credentials", "--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16", "--cert-dir=/etc/kubernetes/controllers")...)
}

func (c *Cluster) serveScheduler() error {
	return c.serve("kube-scheduler", append(access(scheduler), "--cert-dir=/etc/kubernetes/scheduler")...)
}

func (c *Cluster) serveKubelet() error {
	return c.serve("kubelet", "--config=/etc/kubernetes/kubelet.yaml", "--kubeconfig="+kubeconfig(kubelet),
		"--hostname-override="+NodeName, "--node-ip="+nodeAddress, "--v=2")
}
