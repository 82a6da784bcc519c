# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Slipway Authors
#
# Makes an agent's leftovers, except for its programs.
echo '# ours' > /etc/sysctl.d/99-zzz-override_cilium.conf
echo '{}' > /etc/cni/net.d/05-cilium.conflist
mkdir -p /var/run/cilium/state/1 /var/run/cilium/cgroupv2
echo x > /var/run/cilium/state/1/ep_config.h
mount -t cgroup2 cgroup2 /run/cilium/cgroupv2
ip link add cilium_host type veth peer name cilium_net
ip link set cilium_host addrgenmode none
ip link set cilium_net addrgenmode none
ip link set cilium_host up
ip link set cilium_net up
for i in 1 2 3; do
	ip link add lxc0000$i type veth peer name tmp$i
	tc qdisc add dev lxc0000$i clsact
done
ip rule add fwmark 0x200/0xf00 table 2004 priority 9
ip route add local default dev lo table 2004
