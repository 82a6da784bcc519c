# Plants what belongs to others, beside where nodeinit and cleanup work, once.
! ip link show lxcbr0 >/dev/null 2>&1 || exit 0
mkdir -p /etc/cni/net.d /opt/cni/bin /var/lib/cni/networks/other /var/lib/foreign /run/foreign/bpf /etc/sysctl.d
echo '{"cniVersion": "0.4.0", "name": "other", "plugins": [{"type": "bridge"}]}' > /etc/cni/net.d/99-other.conflist.disabled
printf '#!/bin/sh\n' > /opt/cni/bin/other && chmod 755 /opt/cni/bin/other
echo 10.244.9.9 > /var/lib/cni/networks/other/last_reserved_ip.0
echo state > /var/lib/foreign/state
echo net.ipv4.conf.all.log_martians = 0 > /etc/sysctl.d/10-other.conf
mount -t tmpfs -o mode=700 foreign /var/lib/foreign
echo kept > /var/lib/foreign/kept
mount -t bpf bpf /run/foreign/bpf
bpftool map create /run/foreign/bpf/e2e_map type array key 4 value 4 entries 1 name e2e_map
ip link add lxcbr0 type bridge
ip address add 192.0.2.1/24 dev lxcbr0
ip link set lxcbr0 up
ip route add 198.51.100.0/24 dev lxcbr0 table 2004
ip rule add from 192.0.2.0/24 lookup 2004 priority 77
echo 2 > /proc/sys/net/ipv4/conf/lxcbr0/rp_filter
nft add table inet foreign
nft 'add chain inet foreign input { type filter hook input priority 0; }'
nft add rule inet foreign input tcp dport 4321 counter accept
for table in nat filter; do
	iptables -t $table -N FOREIGN
done
iptables -t nat -A POSTROUTING -s 192.0.2.0/24 -j FOREIGN
iptables -A FORWARD -s 192.0.2.0/24 -j ACCEPT
iptables-legacy -N FOREIGN
iptables-legacy -A INPUT -s 203.0.113.7/32 -j FOREIGN
ipset create foreign hash:ip
ipset add foreign 203.0.113.7
tc qdisc add dev lxcbr0 clsact
