// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package critest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/containernetworking/cni/libcni"
)

// CRIO is CRI-O 1.36.3 as far as the networks of pods go (cri-o, internal/config/cnimgr;
// ocicni), on the files of a node. It reads its configuration when it starts, which is at the
// first request, and networks each time. It passes over a network that is invalid or lacks a
// plugin. Once its network is ready, it stays so, unless cni_status_grace_period is set: each
// such period is over here.
type CRIO struct {
	Enter func(context.Context, func(context.Context) error) error // the node's namespaces

	mu       sync.Mutex
	settings map[string]string // in TOML; nil: it has not started
	ready    bool
	pods     []string
}

// keys are those of the table crio.network, with their defaults.
var keys = [][2]string{
	{"cni_default_network", `""`}, {"network_dir", `"/etc/cni/net.d/"`}, {"plugin_dirs", `["/opt/cni/bin/"]`}, {"cni_status_grace_period", `"0s"`},
}

var (
	setting = regexp.MustCompile(`(?m)^\s*(\w+)\s*=\s*("[^"]*"|\[[^\]]*\])`) // a list may take several lines
	quoted  = regexp.MustCompile(`"[^"]*"`)
)

// start reads crio.conf and its drop-ins: of a key, the last one counts.
func (c *CRIO) start() {
	c.settings, c.ready = map[string]string{}, false
	for _, k := range keys {
		c.settings[k[0]] = k[1]
	}
	dropIns, _ := filepath.Glob("/etc/crio/crio.conf.d/*") // the pattern is valid
	for _, file := range append([]string{"/etc/crio/crio.conf"}, dropIns...) {
		text, _ := os.ReadFile(file) // a missing one is empty
		for _, s := range setting.FindAllStringSubmatch(string(text), -1) {
			c.settings[s[1]] = s[2]
		}
	}
}

// values are those of a key.
func (c *CRIO) values(key string) (all []string) {
	for _, v := range quoted.FindAllString(c.settings[key], -1) {
		all = append(all, strings.Trim(v, `"`))
	}
	return all
}

// config is the answer at /config, with each list on one line.
func (c *CRIO) config() string {
	text := "[crio]\n  [crio.network]\n"
	for _, k := range keys {
		text += "    " + k[0] + " = " + strings.NewReplacer(",\n]", "]", "\n", "", "\t", " ").Replace(c.settings[k[0]]) + "\n"
	}
	return text
}

func (c *CRIO) cni() *libcni.CNIConfig { return libcni.NewCNIConfig(c.values("plugin_dirs"), nil) }

// network is the one that pods get.
func (c *CRIO) network(ctx context.Context) (*libcni.NetworkConfigList, error) {
	only, dir := c.values("cni_default_network")[0], c.values("network_dir")[0]
	files, _ := libcni.ConfFiles(dir, []string{".conf", ".conflist", ".json"}) // of a directory that is missing, none
	slices.Sort(files)
	for _, file := range files {
		list, err := readNetwork(file)
		if err != nil || only != "" && list.Name != only {
			continue
		}
		if _, err = c.cni().ValidateNetworkList(ctx, list); err == nil {
			return list, nil
		}
	}
	return nil, fmt.Errorf("no CNI configuration file in %s. Has your network provider started?", dir)
}

func readNetwork(file string) (*libcni.NetworkConfigList, error) {
	text, err := os.ReadFile(file)
	if err != nil || filepath.Ext(file) == ".conflist" {
		return libcni.NetworkConfFromBytes(text)
	}
	conf, err := libcni.NetworkPluginConfFromBytes(text)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(conf) //lint:ignore SA1019 CRI-O reads such files
}

// running calls f on the node, once CRI-O runs.
func (c *CRIO) running(ctx context.Context, f func(context.Context) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Enter(ctx, func(ctx context.Context) error {
		if c.settings == nil {
			c.start()
		}
		return f(ctx)
	})
}

// NetworkReady returns why the network is not ready, if it is not.
func (c *CRIO) NetworkReady(ctx context.Context) error { return c.running(ctx, c.isReady) }

func (c *CRIO) isReady(ctx context.Context) error {
	if c.ready && c.values("cni_status_grace_period")[0] == "0s" {
		return nil
	}
	list, err := c.network(ctx)
	if err == nil {
		err = c.cni().GetStatusNetworkList(ctx, list)
	}
	c.ready = err == nil
	return err
}

// RunPod makes a sandbox. It does not wait until the network is ready.
func (c *CRIO) RunPod(ctx context.Context, id string) error {
	return c.running(ctx, func(ctx context.Context) error {
		list, err := c.network(ctx)
		if err == nil {
			err = c.isReady(ctx)
		}
		if err == nil {
			c.pods = append(c.pods, id)
			_, err = c.cni().AddNetworkList(ctx, list, attachment(id))
		}
		return err
	})
}

func attachment(id string) *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: id, NetNS: "/proc/1/ns/net", IfName: "eth0"}
}

// Restart starts it anew. It has lost sandboxes by then, and frees their leases by libcni's
// cached results.
func (c *CRIO) Restart(ctx context.Context, lost ...string) error {
	return c.running(ctx, func(ctx context.Context) (err error) {
		c.start()
		c.pods = slices.DeleteFunc(c.pods, func(id string) bool { return slices.Contains(lost, id) })
		for _, id := range lost {
			attached, _ := c.cni().GetCachedAttachments(id) // without any, there is no lease
			for _, a := range attached {
				var list *libcni.NetworkConfigList
				if list, err = libcni.NetworkConfFromBytes(a.Config); err == nil {
					err = c.cni().DelNetworkList(ctx, list, attachment(id))
				}
			}
		}
		return err
	})
}

// ServeHTTP answers like the runtime.
func (c *CRIO) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r := Runtime{Name: "cri-o", Version: "1.36.3", Info: func() map[string]string { return map[string]string{"config": `{"sandboxImage":"pause"}`} }}
	err := c.running(req.Context(), func(ctx context.Context) error {
		pods := slices.Clone(c.pods)
		r.unready, r.Config, r.Sandboxes = c.isReady(ctx) != nil, c.config(), func() []string { return pods }
		return nil
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.ServeHTTP(w, req)
}
