// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"context"
	"os"
)

// prepare makes of a throw-away node one that Kubernetes can run on.
func (c *Cluster) prepare(ctx context.Context) error {
	if err := c.programs.link(c.path(binDir)); err != nil {
		return err
	}
	for _, dir := range []string{logDir, "/var/lib/kubelet", "/etc/cni/net.d", "/opt/cni/bin", "/etc/kubernetes", "/etc/sysctl.d"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return err
		}
	}
	if err := c.WriteFile("/etc/resolv.conf", "nameserver "+Outside+"\n"); err != nil { // pods get a copy; no server answers
		return err
	}
	_, err := c.Run(ctx, "sh", "-euc", network+kernelLog+sysctls)
	return err
}

// Outside is the address of the other end of the node's link, named uplink, which stands
// for the network outside. The API server's certificate is for this address too, where a
// test makes the server answer there.
const Outside = "10.250.0.1"

// nodeAddress is the node's own.
const (
	nodeAddress    = "10.250.0.2"
	serviceAddress = "10.96.0.1"
	apiPort        = "6443"
)

// network has a rule in place of kube-proxy, and the chain by which others see that
// kube-proxy has done its work.
const network = `
ip link add eth0 type veth peer name uplink
ip address add ` + Outside + `/24 dev uplink
ip address add ` + nodeAddress + `/24 dev eth0
ip link set uplink up
ip link set eth0 up
ip route add default via ` + Outside + ` dev eth0
echo 1 > /proc/sys/net/ipv4/ip_forward
for chain in OUTPUT PREROUTING; do
	iptables -t nat -A $chain -d ` + serviceAddress + `/32 -p tcp --dport 443 -j DNAT --to-destination ` + nodeAddress + `:` + apiPort + `
done
iptables -t nat -N KUBE-NODEPORTS
`

// kernelLog is the file that the kubelet watches for processes that were killed for lack
// of memory.
const kernelLog = `
mknod -m 600 /dev/kmsg c 1 11
`

// sysctls are the kernel values that the kubelet and Cilium's agent set. They belong to the
// machine, so the node shows files in their place that already have the wanted values.
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
`
