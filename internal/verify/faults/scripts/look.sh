# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Slipway Authors
#
# Lists what a cleanup may change besides files and links.
find /sys/fs/bpf -printf '%p %y %m\n'
tc qdisc show dev eth0
tc filter show dev eth0 ingress | sed 's/ id .*//'
tc filter show dev eth0 egress | sed 's/ id .*//'
ip rule
ip route show table all
