# Prints what a node is, one object or value a line, by the tools of others.
# Left out is what Kubernetes and its runtime keep while pods come and go.
cd /
section() { sed "s|^|$1: |"; }
find etc opt run srv var boot media mnt -xdev \( -path run/containerd -o -path run/netns -o -path run/e2e \
	-o -path var/lib/kubelet -o -path var/lib/containerd -o -path var/lib/etcd -o -path var/lib/cni/results -o -path var/lib/cni/cache \
	-o -path var/log -o -path var/liar -o -path var/lib/app -o -path etc/kubernetes \) -prune \
	-o -printf '%p %y %#m %U:%G %l\n' | sort | section file
find etc opt srv run/foreign var/lib/foreign var/lib/cni -path var/lib/cni/results -prune -o -path etc/kubernetes -prune -o -type f -print 2>/dev/null | sort | xargs -r sha256sum | section content
findmnt -rno TARGET,SOURCE,FSTYPE,OPTIONS,PROPAGATION | grep -vE '^/(run/(containerd|netns)|var/lib/(kubelet|containerd))/' | section mount
find /proc/sys/net -type f -readable 2>/dev/null | grep -vE '/(neigh|route)/|nf_conntrack_count|ipv4/tcp_mem|veth' | sort | while read -r f; do
	echo "$f $(cat $f 2>/dev/null | tr '\n\t' '  ')"
done | section sysctl
ip -o link show | sed -E 's/^[0-9]+: //; s/ (qlen|link-netnsid) [0-9]+//g' | grep -v '^veth' | section link
ip -o address show | sed -E 's/^[0-9]+: //; s/(valid|preferred)_lft [^ ]+//g' | grep -v '^veth' | section address
for family in -4 -6; do
	ip $family route show table all | grep -v ' dev veth' | section "route $family"
	ip $family rule show | section "rule $family"
done
nft -s list ruleset 2>/dev/null | section nft
for tables in iptables-legacy-save ip6tables-legacy-save; do
	$tables 2>/dev/null | sed -E 's/\[[0-9]+:[0-9]+\]//; /^#/d' | section $tables
done
ipset save | section ipset
tc qdisc show | grep -v ' dev veth' | section qdisc
bpftool net show | section bpf
cgroups=/sys/fs/cgroup
[ ! -d $cgroups/unified ] || cgroups=$cgroups/unified
bpftool cgroup tree $cgroups 2>/dev/null | section bpf
find /sys/fs/bpf /run/foreign/bpf 2>/dev/null | sort | section pin
for kind in prog map link; do
	bpftool $kind show 2>/dev/null | grep -E 'name (e2e|cil|cali|slipway)' | sed -E 's/^[0-9]+: //; s/ (uid|loaded_at) .*//' | sort | section "bpf $kind"
done
