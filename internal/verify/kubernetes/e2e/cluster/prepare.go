// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/slipway-dev/slipway/internal/verify/process"
)

// prepare makes of a throw-away node one that Kubernetes can run on.
func (n *Node) prepare(ctx context.Context) error {
	if err := n.programs.link(n.path(binDir)); err != nil {
		return err
	}
	if _, err := n.Run(ctx, "sh", "-euc", mountDisk); err != nil {
		return err
	}
	for _, dir := range []string{logDir, "/var/lib/kubelet", "/etc/cni/net.d", "/opt/cni/bin", "/etc/kubernetes", "/etc/sysctl.d"} {
		if err := os.MkdirAll(n.path(dir), 0o755); err != nil {
			return err
		}
	}
	if err := n.WriteFile("/etc/resolv.conf", "nameserver "+Outside+"\n"); err != nil { // pods get a copy; no server answers
		return err
	}
	if err := n.WriteFile("/etc/hostname", n.Name+"\n"); err != nil {
		return err
	}
	_, err := n.Run(ctx, "sh", "-euc", kernelLog+sysctls)
	return err
}

// mountDisk shows directories that a reboot keeps, on no file system that is known to be lost
// then. The runtime puts overlays of its own on one of them, which is none itself.
const mountDisk = `
for dir in etc opt var; do
	mkdir -p ` + diskDir + `/$dir ` + ownDir + `/work/$dir
	mount -t overlay -o lowerdir=/$dir,upperdir=` + diskDir + `/$dir,workdir=` + ownDir + `/work/$dir disk /$dir
done
mkdir -p ` + diskDir + `/containerd /var/lib/containerd
mount --bind ` + diskDir + `/containerd /var/lib/containerd
`

// Outside is the address of the other end of the nodes' links, named uplink, which stands
// for the network outside. The API server's certificate is for this address too, where a
// test makes the server answer there.
const Outside = "10.250.0.1"

// OutsideNamespace is the first node's file of the network namespace with uplink, a bridge.
const OutsideNamespace = ownDir + "/outside"

const (
	serviceAddress = "10.96.0.1"
	apiPort        = "6443"
)

// makeOutside makes the network outside.
const makeOutside = `touch ` + OutsideNamespace + `
unshare --net=` + OutsideNamespace + ` true
nsenter --net=` + OutsideNamespace + ` sh -euc 'ip link add uplink type bridge; ip address add ` + Outside + `/24 dev uplink; ip link set uplink up'`

// connect connects a node with the network outside. The end there of a node that was removed
// may go a moment after it. On the node there is a rule in place of kube-proxy, and the chain by
// which others see that kube-proxy has done its work.
func (c *Cluster) connect(ctx context.Context, n *Node) error {
	if n == c.Node {
		if _, err := n.Run(ctx, "sh", "-euc", makeOutside); err != nil {
			return err
		}
	}
	link := exec.CommandContext(ctx, "nsenter", "--net="+c.path(OutsideNamespace), "sh", "-euc", `
ip link del `+n.Name+` 2>/dev/null || true
ip link add `+n.Name+` type veth peer name eth0 netns `+filepath.Join(n.Proc(), "1/ns/net")+`
ip link set `+n.Name+` master uplink up`)
	if _, err := process.Output(link, nil); err != nil {
		return err
	}
	_, err := n.Run(ctx, "sh", "-euc", `
ip address add `+n.Address()+`/24 dev eth0
ip link set eth0 up
ip route add default via `+Outside+` dev eth0
echo 1 > /proc/sys/net/ipv4/ip_forward
for chain in OUTPUT PREROUTING; do
	iptables -t nat -A $chain -d `+serviceAddress+`/32 -p tcp --dport 443 -j DNAT --to-destination `+c.Address()+`:`+apiPort+`
done
iptables -t nat -N KUBE-NODEPORTS`)
	return err
}

// kernelLog is the file that the kubelet watches for processes that were killed for lack
// of memory.
const kernelLog = `
mknod -m 600 /dev/kmsg c 1 11
`

// sysctls are the kernel values that the kubelet and Cilium's agent set. They belong to the
// machine, so the node shows files in their place that already have the wanted values; and so
// does the boot's identity.
const sysctls = `
show() {
	file=` + ownDir + `/sysctl/$(echo $1 | tr / .)
	mkdir -p ` + ownDir + `/sysctl
	echo $2 > $file
	mount --bind $file /proc/sys/$1
}
show kernel/panic 10
show kernel/panic_on_oops 1
show vm/overcommit_memory 1
show vm/panic_on_oom 0
show kernel/keys/root_maxkeys 1000000
show kernel/keys/root_maxbytes 25000000
for name in kernel/timer_migration kernel/unprivileged_bpf_disabled; do
	show $name $(cat /proc/sys/$name)
done
show kernel/random/boot_id $(cat /proc/sys/kernel/random/uuid)
`
