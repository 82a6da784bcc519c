// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// cluster answers build-config's requests to an API server, for one node.
type cluster struct {
	*httptest.Server
	requests atomic.Int64
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

var clusterObjects = map[string]string{
	"/api/v1/namespaces/ns1/configmaps/cilium-config": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cilium-config","namespace":"ns1"},
		"data":{"debug":"false","mtu":"1500"}}`,
	"/api/v1/nodes/node1": `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"node1",
		"labels":{"zone":"a"},"annotations":{"config.cilium.io/mtu":"9000"}}}`,
	"/apis/cilium.io/v2/namespaces/ns1/ciliumnodeconfigs": `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{},"items":[
		{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"zone-a","namespace":"ns1"},
		 "spec":{"nodeSelector":{"matchLabels":{"zone":"a"}},"defaults":{"debug":"true"}}}]}`,
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.requests.Add(1)
	w.Header().Set("Content-Type", "application/json")
	object, known := clusterObjects[r.URL.Path]
	if !known {
		w.WriteHeader(http.StatusNotFound)
		object = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`
	}
	fmt.Fprint(w, object)
}

// The flags of Cilium's build-config in 1.18, 1.19 or 1.20. make compare reads the list from
// the programs themselves.
func TestCFG14_BuildConfigTakesEachFlagOfCiliums(t *testing.T) {
	c := newCluster(t)
	dest := filepath.Join(t.TempDir(), "config-map")
	o := here(t, nil, "build-config", "--dest="+dest, "--node-name=node1",
		"--source=config-map:ns1/cilium-config cilium-node-config:ns1 node:node1", "--allow-config-keys=debug mtu", "--deny-config-keys=x",
		"--k8s-api-server-urls="+c.URL+" "+c.URL, "--k8s-api-server="+c.URL, "--k8s-kubeconfig-path=",
		"--k8s-client-qps=50.5", "--k8s-client-burst=5", "--k8s-client-connection-timeout=1m", "--k8s-client-connection-keep-alive=1m",
		"--k8s-heartbeat-timeout=0s", "--enable-k8s=true", "--enable-k8s-api-discovery=true", "--enable-k8s-host-firewall-bypass=false",
		"-D", "--host=unix:///x", "--log-driver=syslog", "--log-opt=format=json")
	require.Zero(t, o.code, o.stderr)
	for key, want := range map[string]string{"debug": "true", "mtu": "9000"} {
		value, err := os.ReadFile(filepath.Join(dest, key))
		require.NoError(t, err)
		require.Equal(t, want, string(value))
	}

	o = here(t, []string{"CILIUM_K8S_NAMESPACE=ns1"}, "build-config", "--dest="+dest, "--enable-k8s=false")
	require.Equal(t, 64, o.code)
	require.Contains(t, o.stderr, "source config-map:ns1/cilium-config is in the cluster, and --enable-k8s is false")
}

// If packets are dropped, no connection fails for half a minute: a line says that the program
// waits.
func TestPLAN20_CFG8_AnAPIServerThatIsSilentIsWaitedForAloud(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, "build-config", "--k8s-api-server-urls", "http://"+silent.Addr().String(),
		"--dest", filepath.Join(t.TempDir(), "dest"), "--timeout", "12s")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "K8S_NODE_NAME=node1", "CILIUM_K8S_NAMESPACE=ns1"}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	t.Parallel() // other tests run while it waits
	o := finish(t, cmd.Wait, &stdout, &stderr)
	require.Equal(t, 1, o.code)
	require.Equal(t, 1, strings.Count(o.stderr, "waiting for "), o.stderr)
	require.Contains(t, o.stderr, "waiting for the API server http://"+silent.Addr().String()+" to answer")
	require.Contains(t, o.stderr, "--timeout of 12s is over")
}

// Files and directories among the sources are watched too, without a cluster.
func TestCFG10_WatchFollowsFilesAndDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, dest := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "dest")
	write := func(path, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	write(file, "a: one\n")
	write(filepath.Join(dir, "keys", "b"), "two")
	cmd := exec.Command(binary, "build-config", "--watch", "--source", "file:"+file, "--source", "dir:"+filepath.Join(dir, "keys"), "--dest", dest)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	next := func(want string) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			if strings.Contains(line, want) {
				return
			}
		}
	}
	next(`a = "one"`)
	next(`b = "two"`)
	write(filepath.Join(dir, "keys", "c"), "three")
	next(`c = "three" from dir:`)
	raw, err := os.ReadFile(filepath.Join(dest, "c"))
	require.NoError(t, err)
	require.Equal(t, "three", string(raw))
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait())
}
