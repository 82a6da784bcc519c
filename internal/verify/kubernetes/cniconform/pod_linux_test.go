// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniconform_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	gocni "github.com/containerd/go-cni"
	"github.com/containernetworking/cni/libcni"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/testns"
)

// referenceDir is where Debian puts the reference plugins.
const referenceDir = "/usr/lib/cni"

const (
	hostPort, podPort = 18080, 8080
	gateway           = "10.88.77.1"
)

// reference installs the reference plugins.
func reference(t *testing.T, n node, config cniinstall.Config) recorded {
	root, err := os.OpenRoot(referenceDir)
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	i := n.install(config)
	i.Plugins = root.FS()
	i.Names = []string{"bridge", "host-local", "portmap", "loopback"}
	return i
}

// enterHost gives the test its own node: iptables locks in /run, and libcni keeps results in
// /var/lib.
func enterHost(t *testing.T) {
	for _, plugin := range []string{"bridge", "host-local", "portmap", "loopback"} {
		if _, err := os.Stat(filepath.Join(referenceDir, plugin)); err != nil {
			testns.Skip(t, "needs the Debian package containernetworking-plugins: "+err.Error())
		}
	}
	testns.Enter(t, testns.Mount|testns.Net)
	for _, dir := range []string{"/run", "/var/lib"} {
		require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	}
}

// bridge is the configuration of the plugin that makes pods' interfaces.
func bridge(state string) string {
	return fmt.Sprintf(`{"type":"bridge","bridge":"cni-slipway","isGateway":true,"ipMasq":false,
 "ipam":{"type":"host-local","dataDir":%q,"ranges":[[{"subnet":"10.88.77.0/24","gateway":%q}]],"routes":[{"dst":"0.0.0.0/0"}]}}`,
		filepath.Join(state, "ipam"), gateway)
}

const portmap = `{"type":"portmap","capabilities":{"portMappings":true},"snat":false}`

// pod is a network namespace, held by a sleeping process.
type pod struct{ netns, proc string }

func newPod(t *testing.T) pod {
	cmd := exec.Command("sleep", "infinity")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	proc := fmt.Sprintf("/proc/%d", cmd.Process.Pid)
	return pod{filepath.Join(proc, "ns/net"), proc}
}

// interfaces maps the pod's interfaces that are up to their first address.
func (p pod) interfaces(t *testing.T) map[string]string {
	found := map[string]string{}
	require.NoError(t, hostns.Do(t.Context(), p.proc, hostns.Net, func(context.Context) error {
		links, err := net.Interfaces()
		for _, link := range links {
			if link.Flags&net.FlagUp == 0 {
				continue
			}
			found[link.Name] = ""
			if addrs, err := link.Addrs(); err == nil && len(addrs) > 0 {
				found[link.Name] = addrs[0].String()
			}
		}
		return err
	}))
	return found
}

// serve answers connections in the pod until the test ends.
func (p pod) serve(t *testing.T) {
	var listener net.Listener
	require.NoError(t, hostns.Do(t.Context(), p.proc, hostns.Net, func(context.Context) (err error) {
		listener, err = net.Listen("tcp4", fmt.Sprint("0.0.0.0:", podPort))
		return err
	}))
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("pod"))
			conn.Close()
		}
	}()
}

// reach connects from the calling thread's namespace.
func reach(address string) (string, error) {
	conn, err := net.DialTimeout("tcp4", address, 2*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var got bytes.Buffer
	_, err = got.ReadFrom(conn)
	return got.String(), err
}

// requireServed checks that the pod answers at its address and at the host's port.
func requireServed(t *testing.T, ip string) {
	t.Helper()
	for _, address := range []string{fmt.Sprint(ip, ":", podPort), fmt.Sprint(gateway, ":", hostPort)} {
		got, err := reach(address)
		require.NoError(t, err, address)
		require.Equal(t, "pod", got)
	}
}

// leases lists the addresses in use.
func leases(t *testing.T, n node) []string {
	found, err := filepath.Glob(filepath.Join(n.root, "ipam/*/10.88.77.*"))
	require.NoError(t, err)
	return found
}

// With a whole configuration and the reference plugins installed, a pod is added, checked and
// deleted as cnitool does it, before and after a reinstall; then everything is as before.
func TestCNI2_PodThroughLibcni(t *testing.T) {
	enterHost(t)
	n := newNode(t)
	conf := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"podnet","plugins":[%s,%s]}`, bridge(n.root), portmap)
	i := reference(t, n, cniinstall.Whole(conf))
	for range 2 {
		require.NoError(t, i.Apply(t.Context()))
		networks, err := libcni.ConfFiles(n.conf, []string{".conflist"})
		require.NoError(t, err)
		require.Equal(t, []string{filepath.Join(n.conf, "05-cilium.conflist")}, networks)
		network, err := libcni.NetworkConfFromFile(networks[0])
		require.NoError(t, err)
		cni := libcni.NewCNIConfigWithCacheDir([]string{n.bin}, filepath.Join(n.root, "cache"), nil)
		p := newPod(t)
		rt := &libcni.RuntimeConf{ContainerID: "pod", NetNS: p.netns, IfName: "eth0", CapabilityArgs: map[string]any{
			"portMappings": []map[string]any{{"hostPort": hostPort, "containerPort": podPort, "protocol": "tcp"}},
		}}
		result, err := cni.AddNetworkList(t.Context(), network, rt)
		require.NoError(t, err)
		added, err := types100.NewResultFromResult(result)
		require.NoError(t, err)
		require.Len(t, added.IPs, 1)
		ip := added.IPs[0].Address
		require.Equal(t, ip.String(), p.interfaces(t)["eth0"])
		p.serve(t)
		requireServed(t, ip.IP.String())
		checked := *network
		checked.Plugins = network.Plugins[:1] // portmap 1.1.1 looks for IPv6 rules at CHECK that were not requested
		require.NoError(t, cni.CheckNetworkList(t.Context(), &checked, rt))

		require.NoError(t, cni.DelNetworkList(t.Context(), network, rt))
		require.NotContains(t, p.interfaces(t), "eth0")
		require.Empty(t, leases(t, n))
		_, err = reach(fmt.Sprint(gateway, ":", hostPort))
		require.Error(t, err)
		require.NoError(t, i.Revert(t.Context()))
		require.NoDirExists(t, n.bin)
	}
}

// Portmap is chained onto a provider's network: containerd's loader notices, and sets up the
// pod with the chain and a loopback interface.
func TestCNI4_PodThroughContainerdsLoader(t *testing.T) {
	enterHost(t)
	n := newNode(t)
	theirs := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"podnet","plugins":[%s]}`, bridge(n.root))
	n.publish(theirs)
	c := startContainerd(t, nil, n.conf, n.bin)
	c.await("the provider's network", theirs)
	i := reference(t, n, cniinstall.Chained{Plugin: json.RawMessage(portmap)})
	i.Exclusive = true
	content, err := i.Config.Render(t.Context(), n.conf)
	require.NoError(t, err)
	require.NoError(t, i.Apply(t.Context()))
	c.await("the chain", string(content))
	require.NoError(t, c.cni.Status())

	p := newPod(t)
	mapping := gocni.WithCapabilityPortMap([]gocni.PortMapping{{HostPort: hostPort, ContainerPort: podPort, Protocol: "tcp"}})
	result, err := c.cni.SetupSerially(t.Context(), "pod", p.netns, mapping) // on this thread
	require.NoError(t, err)
	ip := result.Interfaces["eth0"].IPConfigs[0].IP
	interfaces := p.interfaces(t)
	require.Equal(t, ip.String()+"/24", interfaces["eth0"])
	require.Equal(t, "127.0.0.1/8", interfaces["lo"])
	p.serve(t)
	requireServed(t, ip.String())
	require.NoError(t, c.cni.Remove(t.Context(), "pod", p.netns, mapping))
	require.Empty(t, leases(t, n))
	require.NotContains(t, p.interfaces(t), "eth0")

	require.NoError(t, i.Revert(t.Context()))
	c.await("uninstalled", theirs)
	left, err := os.ReadDir(n.conf)
	require.NoError(t, err)
	require.Equal(t, []string{"10-provider.conflist"}, slices.Collect(func(yield func(string) bool) {
		for _, e := range left {
			yield(e.Name())
		}
	}))
}
