// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

// protected are names of one kind that only the ownerships of their owners may match.
type protected struct {
	owners string // agents, separated by spaces; empty: the node, whose property cannot be owned
	kind   string
	names  string // apart by spaces; with * any rest; of links and bridges: regular expressions
	source string
}

// The kinds of protected names. A name covers everything below it, as a path does.
const (
	kindAnyLink    = "link"
	kindBridge     = "bridge"
	kindChain      = "chain"
	kindComment    = "comment of iptables"
	kindSet        = "ipset"
	kindTable      = "nftables table"
	kindProgram    = "program"
	kindBPFPin     = "pin"
	kindCNIFile    = "CNI file"    // in a folder for CNI
	kindSysctlFile = "sysctl file" // in sysctl.d
	kindNetwork    = "network"     // of host-local, in /var/lib/cni/networks
	kindFolder     = "folder"      // in run, var/lib or var/log
	kindPath       = "path"
)

// cards are the names that the kernel or udev gives to network cards
// (systemd.net-naming-scheme(7)), those of VLANs, bonds and bridges of cards, and lo.
const cards = `lo|vlan[0-9]{1,4}|(eth|wlan|wwan|bond|team|br|ib|usb)[0-9][0-9A-Za-z_.]*|(en|wl|ww|ib|sl)([abcdopPsuvx]|i[0-9]+n)[0-9A-Za-z_.]*`

// protectedNames is the table. Of several names for one thing, the longest counts.
func protectedNames() []protected {
	return []protected{
		// Property of the node.
		{"", kindAnyLink, cards, "systemd.net-naming-scheme(7)"},
		{"", kindChain, "PREROUTING INPUT FORWARD OUTPUT POSTROUTING", "iptables(8)"},
		{"", kindTable, "filter nat mangle raw security broute", "iptables-nft(8), ebtables-nft(8)"},
		{"", kindProgram, "sd_*", "systemd: src/core/bpf-*.c"},
		{"", kindBPFPin, "systemd", "systemd: src/nsresourced/userns-restrict.c"},
		{"", kindCNIFile, "net.d bin conf.d cache results networks", "containernetworking/cni: libcni; host-local"},
		{"", kindSysctlFile, "99-sysctl.conf README*", "sysctl.d(5), procps"},
		{"", kindFolder, "kubelet kubernetes pods containers etcd", "kubelet --root-dir, --pod-logs-dir; etcd --data-dir"},
		{"", kindFolder, "containerd docker* dockershim cri-dockerd crio runc nri libpod", "container runtimes' state"},
		{"", kindFolder, "rancher k3s rke2 k0s snapd", "Kubernetes distributions: docs.k3s.io, docs.k0sproject.io"},
		{"", kindFolder, "systemd dbus udev netns lock user private mount secrets journal audit", "file-hierarchy(7), ip-netns(8)"},
		{"", kindFolder, "ssh* sudo NetworkManager dhclient dhcp dpkg apt rpm dnf cloud", "hier(7), packages of distributions"},
		{"", kindPath, "/bin /sbin /lib /lib32 /lib64 /usr /boot /root /proc /sys /dev", "hier(7)"},
		{"", kindPath, "/etc/passwd* /etc/shadow* /etc/group* /etc/gshadow* /etc/sub* /etc/sudo* /etc/pam* /etc/security /etc/ssh /etc/ssl /etc/pki /etc/selinux", "passwd(5), pam.conf(5), sshd(8)"},
		{"", kindPath, "/etc/systemd /etc/init* /etc/fstab /etc/cron* /etc/profile* /etc/default /etc/ld.so* /etc/mod* /etc/udev /etc/machine-id /etc/sysctl*", "systemd(1), hier(7)"},
		{"", kindPath, "/etc/host* /etc/resolv.conf /etc/nsswitch.conf /etc/net* /etc/NetworkManager /etc/sysconfig /etc/iptables /etc/nftables*", "hosts(5), resolv.conf(5), interfaces(5)"},
		{"", kindPath, "/etc/kubernetes /etc/rancher /etc/containerd /etc/containers /etc/crio /etc/docker", "kubeadm and container runtimes' configuration"},
		{"", kindPath, "/var/lib/cni/cache /var/lib/cni/results /var/cache /var/spool /var/mail", "containernetworking/cni: libcni/api.go; hier(7)"},

		// Property of Kubernetes, container runtimes and firewalls.
		{"kube-proxy", kindChain, "KUBE-*", "kubernetes: pkg/proxy/iptables/proxier.go, pkg/kubelet/kubelet_network_linux.go"},
		{"kube-proxy", kindComment, "kubernetes*", "kubernetes: pkg/proxy/iptables/proxier.go"},
		{"kube-proxy", kindSet, "KUBE-*", "kubernetes: pkg/proxy/ipvs/ipset.go"},
		{"kube-proxy", kindTable, "kube-proxy", "kubernetes: pkg/proxy/nftables/proxier.go"},
		{"kube-proxy", kindAnyLink, "kube-ipvs0", "kubernetes: pkg/proxy/ipvs/proxier.go"},
		{"node-local-dns", kindAnyLink, "nodelocaldns", "kubernetes/dns: cmd/node-cache/main.go"},
		{"docker", kindChain, "DOCKER*", "moby: daemon/libnetwork/drivers/bridge/internal/iptabler"},
		{"docker", kindTable, "docker-bridges", "moby: daemon/libnetwork/drivers/bridge/internal/nftabler/nftabler.go"},
		{"docker", kindBridge, "docker0 docker_gwbridge br-[0-9a-f]{12}", "moby: daemon/libnetwork/drivers/bridge"},
		{"docker", kindAnyLink, "veth[0-9a-f]{7}", "moby: daemon/libnetwork/drivers/bridge/bridge_linux.go"},
		{"podman", kindChain, "NETAVARK*", "containers/netavark: src/firewall/varktables/types.rs"},
		{"podman", kindTable, "netavark", "containers/netavark: src/firewall/nft.rs"},
		{"podman", kindBridge, "podman[0-9]+ cni-podman[0-9]+", "containers/common: libnetwork"},
		{"podman", kindCNIFile, "87-podman*", "containers/podman: cni"},
		{"podman", kindNetwork, "podman*", "containers/podman: cni"},
		{"cri-o", kindCNIFile, "10-crio* 11-crio* 100-crio* 200-loopback.conf*", "cri-o: contrib/cni"},
		{"containerd", kindCNIFile, "10-containerd-net.conf*", "containerd: script/setup/install-cni"},
		{"libvirt", kindChain, "LIBVIRT_*", "libvirt: src/network/network_iptables.c"},
		{"libvirt", kindTable, "libvirt_network", "libvirt: src/network/network_nftables.c"},
		{"libvirt", kindBridge, "virbr[0-9]+", "libvirt: src/network/network.conf"},
		{"lxc", kindBridge, "lxcbr[0-9]+ lxdbr[0-9]+", "lxc: config/init/common/lxc-net.in; lxd"},
		{"ufw", kindChain, "ufw*", "ufw: src/backend_iptables.py"},
		{"fail2ban", kindChain, "f2b-* fail2ban-*", "fail2ban: config/action.d/iptables.conf"},
		{"fail2ban", kindSet, "f2b-*", "fail2ban: config/action.d/iptables-ipset.conf"},
		{"fail2ban", kindTable, "f2b-table", "fail2ban: config/action.d/nftables.conf"},
		{"firewalld", kindChain, "INPUT_* FORWARD_* OUTPUT_* PREROUTING_* POSTROUTING_* IN_* FWD* PRE_* POST_*", "firewalld: src/firewall/core/ipXtables.py"},
		{"firewalld", kindTable, "firewalld", "firewalld: src/firewall/core/nftables.py"},
		{"tailscale", kindChain, "ts-*", "tailscale: util/linuxfw/iptables_runner.go"},
		{"tailscale", kindAnyLink, "tailscale[0-9]+", "tailscale: cmd/tailscaled/tailscaled.go"},
		{"istio", kindChain, "ISTIO_*", "istio: tools/istio-iptables/pkg/constants"},
		{"istio", kindCNIFile, "istio-cni* ZZZ-istio-cni-kubeconfig", "istio: cni/pkg/install"},
		{"ip-masq-agent", kindChain, "IP-MASQ*", "kubernetes-sigs/ip-masq-agent: cmd/ip-masq-agent/ip-masq-agent.go"},
		{"ip-masq-agent", kindComment, "ip-masq-agent*", "kubernetes-sigs/ip-masq-agent: cmd/ip-masq-agent/ip-masq-agent.go"},
		{"openvswitch", kindAnyLink, "ovs-system ovs-netdev", "openvswitch: lib/dpif-netlink.c"},
		{"openvswitch", kindFolder, "openvswitch ovn", "openvswitch: lib/dirs.c.in"},

		// Property of the reference plugins of CNI.
		{"cni-plugins", kindChain, "CNI-*", "containernetworking/plugins: pkg/utils/utils.go"},
		{"cni-plugins", kindTable, "cni_*", "containernetworking/plugins: plugins/meta/portmap/portmap_nftables.go, pkg/ip/ipmasq_nftables_linux.go"},
		{"cni-plugins", kindAnyLink, "veth[0-9a-f]{8}", "containernetworking/plugins: pkg/ip/link_linux.go"},
		{"cni-plugins", kindCNIFile, "bandwidth bridge dhcp dummy firewall host-device host-local ipvlan loopback macvlan portmap ptp sbr static tap tuning vlan vrf 99-loopback.conf*", "containernetworking/plugins: plugins"},
		{"cni-plugins", kindFolder, "cni", "containernetworking/cni: libcni/api.go"},

		// Property of one agent.
		{"cilium", kindChain, "CILIUM_* OLD_CILIUM_*", "cilium: pkg/datapath/iptables/iptables.go"},
		{"cilium", kindComment, "cilium*", "cilium: pkg/datapath/iptables/iptables.go"},
		{"cilium", kindSet, "cilium_*", "cilium: pkg/datapath/ipset"},
		{"cilium", kindAnyLink, `cilium_[a-z0-9_]+ lxc_health lxc[0-9a-f]{5,12}`, "cilium: pkg/defaults/node.go, pkg/datapath/connector"},
		{"cilium", kindProgram, "cil_*", "cilium: bpf"},
		{"cilium", kindBPFPin, "cilium tc/globals/cilium_*", "cilium: pkg/bpf/bpffs_linux.go"},
		{"cilium", kindCNIFile, "00-cilium* 04-cilium* 05-cilium* 10-cilium* cilium-*", "cilium: install/kubernetes/cilium/values.yaml"},
		{"cilium", kindSysctlFile, "99-zzz-override_cilium.conf", "cilium: tools/sysctlfix/main.go"},
		{"cilium", kindFolder, "cilium", "cilium: pkg/defaults/defaults.go"},
		{"tetragon", kindBPFPin, "tetragon", "cilium/tetragon: pkg/bpf"},
		{"tetragon", kindFolder, "tetragon", "cilium/tetragon: pkg/defaults"},
		{"calico", kindChain, "cali* felix-*", "calico: felix/rules/rule_defs.go"},
		{"calico", kindComment, "cali:*", "calico: felix/rules/rulesdefs/rulesdefs.go"},
		{"calico", kindSet, "cali* felix-*", "calico: felix/ipsets/ipset_defs.go"},
		{"calico", kindTable, "calico*", "calico: felix/dataplane/linux/int_dataplane.go"},
		{"calico", kindAnyLink, `cali[0-9a-f]{11} tunl0 vxlan(-v6)?\.calico wireguard\.cali wg-v6\.cali bpf(in|out)\.cali`, "calico: felix/dataplane/linux/dataplanedefs/dataplane_defs.go"},
		{"calico", kindProgram, "cali_* calico_*", "calico: felix/bpf-gpl"},
		{"calico", kindBPFPin, "calico tc/globals/cali_* ctlb/calico_* tcx/cali* netkit/cali*", "calico: felix/bpf/bpfdefs/defs.go"},
		{"calico", kindCNIFile, "10-calico* calico*", "calico: cni-plugin/pkg/install/install.go"},
		{"calico", kindNetwork, "k8s-pod-network", "calico: manifests/calico.yaml"},
		{"calico", kindFolder, "calico nodeagent", "calico: manifests/calico.yaml"},
		{"flannel", kindChain, "FLANNEL-*", "flannel: pkg/trafficmngr/iptables/iptables.go"},
		{"flannel", kindComment, "flannel*", "flannel: pkg/trafficmngr/iptables/iptables.go"},
		{"flannel", kindTable, "flannel-ipv4 flannel-ipv6", "flannel: pkg/trafficmngr/nftables/nftables.go"},
		{"flannel", kindBridge, "cni0", "flannel: Documentation/kube-flannel.yml; containernetworking/plugins: plugins/main/bridge/bridge.go"},
		{"flannel", kindAnyLink, `flannel[0-9]+ flannel(-v6)?\.([0-9]+|ipip) flannel-wg(-v6)?`, "flannel: pkg/backend"},
		{"flannel", kindCNIFile, "10-flannel* flannel*", "flannel: Documentation/kube-flannel.yml"},
		{"flannel", kindNetwork, "cbr0", "flannel: Documentation/kube-flannel.yml"},
		{"flannel", kindFolder, "flannel", "flannel: main.go"},
		{"kube-router", kindChain, "KUBE-ROUTER-* KUBE-POD-FW-* KUBE-NWPLCY-*", "kube-router: pkg/controllers/netpol/network_policy_controller.go"},
		{"kube-router", kindComment, "kube-router*", "kube-router: pkg/controllers/netpol/network_policy_controller.go"},
		{"kube-router", kindSet, "kube-router-* KUBE-SRC-* KUBE-DST-* inet6:kube-router-* inet6:KUBE-*", "kube-router: pkg/controllers/netpol, pkg/utils/ipset.go"},
		{"kube-router", kindTable, "kube-router-*", "kube-router: pkg/controllers/netpol/npc_nftables.go"},
		{"kube-router", kindAnyLink, "kube-bridge kube-dummy-if kube-tunnel-(if|v6) tun-[0-9a-f]{11}", "kube-router: pkg/controllers/proxy/network_services_controller.go, pkg/tunnels/linux_tunnels.go"},
		{"kube-router", kindCNIFile, "10-kuberouter*", "kube-router: daemonset/kubeadm-kuberouter.yaml"},
		{"kube-router", kindFolder, "kube-router", "kube-router: daemonset/kubeadm-kuberouter.yaml"},
		{"antrea", kindChain, "ANTREA-*", "antrea: pkg/agent/route/route_linux.go"},
		{"antrea", kindSet, "ANTREA-* CLUSTER-NODE-IP*", "antrea: pkg/agent/route/route_linux.go"},
		{"antrea", kindTable, "antrea*", "antrea: pkg/agent/nftables"},
		{"antrea", kindAnyLink, `antrea-[a-z0-9-]+`, "antrea: cmd/antrea-agent/options.go, pkg/agent/agent.go"},
		{"antrea", kindCNIFile, "10-antrea* antrea", "antrea: build/images/scripts/install_cni"},
		{"antrea", kindNetwork, "antrea", "antrea: build/charts/antrea/conf/antrea-cni.conflist"},
		{"antrea", kindFolder, "antrea", "antrea: build/yamls/antrea.yml"},
		{"aws-vpc-cni", kindChain, "AWS-* CNI-E4-* CNI-E6-*", "amazon-vpc-cni-k8s: pkg/networkutils/network.go, cmd/egress-cni-plugin/main.go"},
		{"aws-vpc-cni", kindComment, "AWS*", "amazon-vpc-cni-k8s: pkg/networkutils/network.go"},
		{"aws-vpc-cni", kindTable, "aws-cni", "amazon-vpc-cni-k8s: pkg/networkutils/nftables_connmark.go"},
		{"aws-vpc-cni", kindAnyLink, `eni[0-9a-f]{11} vlan[0-9a-f]{11} vlan\.eth\.[0-9]+`, "amazon-vpc-cni-k8s: pkg/networkutils/names.go, pkg/sgpp/utils.go"},
		{"aws-vpc-cni", kindBPFPin, "globals/aws", "aws-network-policy-agent: pkg/ebpf"},
		{"aws-vpc-cni", kindCNIFile, "10-aws* aws-cni* egress-*", "amazon-vpc-cni-k8s: cmd/aws-vpc-cni/main.go"},
		{"aws-vpc-cni", kindFolder, "aws-node aws-routed-eni", "amazon-vpc-cni-k8s: config/master/aws-k8s-cni.yaml"},
		{"weave", kindChain, "WEAVE*", "weave: common/chains/npc.go, net/bridge.go"},
		{"weave", kindSet, "weave-* weaver-*", "weave: npc/constants.go, net/bridge.go"},
		{"weave", kindAnyLink, "weave datapath vethwe[-0-9a-z]+ vxlan-[0-9]+", "weave: net/bridge.go, net/veth.go, router/fastdp.go"},
		{"weave", kindCNIFile, "10-weave* weave-*", "weave: weave"},
		{"weave", kindFolder, "weave", "weave: prog/weave-kube/weave-daemonset-k8s-1.11.yaml"},
		{"kindnet", kindChain, "KIND-MASQ-AGENT", "kubernetes-sigs/kind: images/kindnetd"},
		{"kindnet", kindCNIFile, "10-kindnet*", "kubernetes-sigs/kind: images/kindnetd"},
		{"kindnet", kindNetwork, "kindnet", "kubernetes-sigs/kind: images/kindnetd"},
		{"ovn-kubernetes", kindChain, "OVN-KUBE-*", "ovn-kubernetes: go-controller/pkg/node/gateway_iptables.go"},
		{"ovn-kubernetes", kindTable, "ovn-kubernetes*", "ovn-kubernetes: go-controller/pkg/node/nftables"},
		{"ovn-kubernetes", kindAnyLink, "br-ex br-local ovn-k8s-mp[0-9]+", "ovn-kubernetes: go-controller/pkg/types/const.go"},
		{"ovn-kubernetes antrea", kindAnyLink, "br-int genev_sys_[0-9]+", "ovn-kubernetes: go-controller/pkg/types/const.go; antrea: cmd/antrea-agent/options.go"},
		{"ovn-kubernetes", kindCNIFile, "10-ovn-kubernetes* ovn-k8s-*", "ovn-kubernetes: go-controller/pkg/config"},
		{"multus", kindCNIFile, "00-multus* multus*", "multus-cni: deployments"},
		{"whereabouts", kindCNIFile, "whereabouts*", "whereabouts: doc/crds/daemonset-install.yaml"},
	}
}

// sharedPins are the directories of a BPF file system that iproute2 makes for
// everybody.
func sharedPins() []string {
	return []string{"tc", "tc/globals", "ip", "ip/globals", "xdp", "xdp/globals"}
}

// nftNameBytes is how long a name of nftables can be (NFT_NAME_MAXLEN - 1).
const nftNameBytes = 255
