# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Slipway Authors
#
# Makes objects beside an agent's leftovers, which stay. The sysctl drop-in and the
# configuration in our place are the agent's.
rm /etc/sysctl.d/99-zzz-override_cilium.conf /etc/cni/net.d/05-cilium.conflist
mount -t bpf bpf /sys/fs/bpf
mkdir -p /run/other
ip link add eth0 type veth peer name eth1
ip link set eth0 addrgenmode none
ip link set eth1 addrgenmode none
tc qdisc add dev eth0 clsact
ip route add blackhole 10.9.0.0/16 proto static
ip rule add fwmark 0x1/0xf table 77 priority 99
