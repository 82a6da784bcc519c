# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Slipway Authors
#
# Makes foreign objects on a node, some of them in our way.
mkdir -p /etc/cni/net.d /etc/sysctl.d /opt/cni/bin
echo '{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"loopback"}]}' > /etc/cni/net.d/10-other.conflist
echo '{}' > /etc/cni/net.d/05-cilium.conflist
printf '#!/bin/sh\n' > /opt/cni/bin/loopback # the node's own: 10-other needs it
chmod 755 /opt/cni/bin/loopback
chmod 644 /etc/cni/net.d/05-cilium.conflist
echo '# an older one' > /etc/sysctl.d/99-zzz-override_cilium.conf
{ echo '#!/bin/sh'; yes '# longer than a page' | head -n 500; } > /opt/cni/bin/test-cni
echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter
touch /run/xtables.lock
