// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/flock"
	"github.com/slipway-dev/slipway/internal/hosttool"
)

// patience is far longer than an undisturbed operation takes.
const patience = 2 * time.Second

// identityTargets are the targets of the second kind of attacker. He succeeds if an operation
// believes him, or if he delays it.
func identityTargets() []target {
	return []target{{
		name: "which kubelet", lie: "kubelet", node: true, rare: true, setup: runtimes, try: find, naive: findByComm,
	}, {
		name: "which kubelet, of a pod", lie: "kubelet of a pod", node: true, rare: true, setup: runtimes, try: find, naive: findByComm,
	}, {
		name: "which folder, as a runtime says", setup: nowhere, try: choose, naive: chooseAsTold,
	}, {
		name: "run a plugin for its version", pairs: []pair{{"p", "his"}}, setup: pluginBesideHis, slow: true,
		try: func(a *arena) error { return asked(a).Apply(a.ctx) }, naive: runIfRoots,
	}, {
		name: "execute a program", pairs: []pair{{"p", "his"}}, setup: pluginBesideHis, slow: true, naive: runIfRoots,
		try: func(a *arena) error {
			err := hosttool.Command{Path: a.path("pub/p/x"), Args: []string{"x"}}.Run(a.ctx)
			if errors.Is(err, hosttool.ErrUntrusted) {
				return nil
			}
			return err
		},
	}, {
		name: "what a key destroys", setup: nowhere, try: destroy, naive: destroyAsTold,
	}, {
		name: "write a configuration, beside locks", lie: "locks", slow: true, setup: lockable,
		try: func(a *arena) error {
			return a.within(func(ctx context.Context) error {
				a.ctx = ctx
				return configure(a, "run/config", fmt.Sprint(rand.Uint64()))
			})
		},
		naive: func(a *arena) error { return a.locks("run/config", unix.O_RDONLY|unix.O_DIRECTORY) },
	}, {
		name: "take the node's lock, beside locks", lie: "locks", slow: true, setup: lockable,
		try: func(a *arena) error {
			return a.within(func(ctx context.Context) error {
				unlock, err := flock.File{Path: a.path("run/lock")}.Lock(ctx)
				if err != nil {
					return err
				}
				return unlock()
			})
		},
		naive: func(a *arena) error { return a.locks("run/naive", unix.O_RDWR) },
	}, {
		name: "claim a node, beside locks", lie: "locks", slow: true, setup: lockable, try: claim,
		naive: func(a *arena) error { return a.locks("run/naive", unix.O_RDWR) },
	}, {
		name: "is an agent alive, that is not", lie: "agent", node: true, rare: true, setup: stalePidFile, try: notAlive, naive: notAliveByComm,
	}, {
		name: "is an agent alive, that is", lie: "agent", node: true, rare: true, setup: liveAgent, try: alive, naive: aliveByLock,
	}}
}

func nowhere(*arena) {}

// within counts an operation as delayed if it does not end in time, or fails.
func (a *arena) within(f func(context.Context) error) error {
	before := a.ctx
	ctx, cancel := context.WithTimeout(before, patience)
	defer cancel()
	err := f(ctx)
	if a.ctx = before; err != nil {
		a.fooled = "held up: " + err.Error()
	}
	return nil
}

// on calls f on the node.
func (a *arena) on(f func(context.Context) error) error { return a.node.Do(a.ctx, f) }

// runtimes makes a runtime listen at the usual place, and mostly another one, named by the
// kubelet, that starts and ends from time to time.
func runtimes(a *arena) {
	n := a.node
	if a.err == nil && n.wants == "" {
		a.do(n.serve(usual))
		n.wants = usual
	}
	switch {
	case a.err != nil:
	case n.kubelet == nil && sometimes(4):
		l, err := n.Listen(named)
		if a.do(err); err != nil {
			return
		}
		n.kubelet, err = n.stand(asRoot, programs+"/kubelet", "--container-runtime-endpoint=unix://"+named)
		a.do(err)
		n.wants = named
		end := n.kubelet
		n.kubelet = func() error {
			return errors.Join(end(), l.Close(), a.on(func(context.Context) error { return os.Remove(named) }))
		}
	case n.kubelet != nil && sometimes(4):
		a.do(n.kubelet())
		n.kubelet, n.wants = nil, usual
	}
}

func find(a *arena) error {
	return a.within(func(ctx context.Context) error {
		found, err := cri.Find(ctx, a.node.Proc())
		if err == nil && found.Path != a.node.wants {
			err = fmt.Errorf("the runtime is at %s, not at %s", found.Path, a.node.wants)
		}
		if err == nil && found.Path == usual { // the kubelet's does not answer
			_, err = found.SandboxIDs(ctx)
		}
		return err
	})
}

// findByComm takes a root process named kubelet for the kubelet.
func findByComm(a *arena) error {
	proc := a.node.Proc()
	entries, err := os.ReadDir(proc)
	for _, e := range entries {
		dir := filepath.Join(proc, e.Name())
		info, errDir := os.Stat(dir)
		if comm, err := os.ReadFile(dir + "/comm"); err != nil || errDir != nil || string(comm) != "kubelet\n" || info.Sys().(*syscall.Stat_t).Uid != 0 {
			continue
		}
		line, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			continue
		}
		if _, path, named := strings.Cut(string(line), "unix://"); named && strings.TrimRight(path, "\x00") != a.node.wants {
			a.fooled = "the runtime is at " + path
		}
		return nil
	}
	return err
}

// told is where a lying runtime claims to look.
func lyingRuntime() cniinstall.Runtime {
	dirs := []string{
		"/etc/ssh/sshd_config.d", "/etc/sudoers.d", "/etc/cron.d", "/etc/sysctl.d", "/etc", "/", "/root/.ssh", "/usr/lib/systemd/system",
		"/etc/cni/net.d/../../cron.d", "/etc/cnix/conf.d", "/opt/cni/../../etc/sudoers.d",
	}
	pick := func() string { return dirs[rand.IntN(len(dirs))] }
	r := cniinstall.Runtime{ConfDir: pick()}
	for range rand.IntN(3) {
		r.PluginDirs = append(r.PluginDirs, pick())
	}
	return r
}

// choose is fooled if it returns a folder that is not for CNI.
func choose(a *arena) error {
	i, err := cniinstall.Install{}.For(a.ctx, lyingRuntime(), nil)
	if err == nil {
		a.fooled = fmt.Sprintf("configurations go to %s, and plugins to %s", i.ConfDir, i.BinDir)
	}
	return nil
}

func chooseAsTold(a *arena) error {
	if dir := lyingRuntime().ConfDir; filepath.IsAbs(dir) {
		a.fooled = "configurations go to " + dir
	}
	return nil
}

// pluginBesideHis makes a plugin of root's in a folder of root's, and the attacker's in
// his own. The folder with both is his.
func pluginBesideHis(a *arena) {
	a.dir("pub/p", 0o755, 0)
	a.file("pub/p/x", script, 0o755, 0)
	a.dir("pub/his", 0o755, nobody)
	a.file("pub/his/x", "#!/bin/sh\necho his >"+a.path("victim/ran")+"\n"+strings.TrimPrefix(script, "#!/bin/sh\n"), 0o755, nobody)
}

// asked is an installation that asks the plugin for its versions, if that is safe.
func asked(a *arena) cniinstall.Install {
	return cniinstall.Install{
		Config: cniinstall.Whole(conflist), ConfName: ours, ConfDir: a.path("state/net.d"), BinDir: a.path("pub/p"), Optional: []string{"loopback"},
	}
}

// runIfRoots runs the plugin if it is root's, and so is its folder.
func runIfRoots(a *arena) error {
	for _, name := range []string{"pub/p", "pub/p/x"} {
		info, err := os.Stat(a.path(name))
		if err != nil {
			return err
		}
		if info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode()&0o022 != 0 {
			return errRefused
		}
	}
	return exec.Command(a.path("pub/p/x")).Run()
}

// said is a source that stands for one in a cluster.
type said struct {
	kind   string
	values map[string]string
}

func (s said) Ref() configresolve.Ref { return configresolve.Ref{Kind: s.kind, Name: "x"} }

func (s said) Read(context.Context) ([]configresolve.Layer, error) {
	return []configresolve.Layer{{Ref: s.Ref(), Part: "annotations", Values: s.values}}, nil
}

const destroys = "clean-cilium-state"

// lyingCluster is a configuration in which a source other than the first, which is not a
// node, has set a destructive key.
func lyingCluster(a *arena) (*configresolve.Config, error) {
	kinds := []string{configresolve.KindNode, configresolve.KindNodeConfig, configresolve.KindConfigMap, "dir", "file"}
	own := map[string]string{"debug": "false"}
	if sometimes(2) {
		own[destroys] = "false"
	}
	sources := []configresolve.Source{said{configresolve.KindConfigMap, own}}
	if sometimes(3) {
		sources[0] = said{configresolve.KindNode, map[string]string{destroys: "true"}}
	}
	for range 1 + rand.IntN(3) {
		sources = append(sources, said{kinds[rand.IntN(len(kinds))], map[string]string{destroys: "true", "debug": "true"}})
	}
	return configresolve.Resolve(a.ctx, sources...)
}

func destroy(a *arena) error {
	config, err := lyingCluster(a)
	if err != nil {
		return err
	}
	if value, ok := config.Trusted(destroys); ok && value == "true" {
		a.fooled = "the state is removed"
	}
	return nil
}

func destroyAsTold(a *arena) error {
	config, err := lyingCluster(a)
	if err != nil {
		return err
	}
	if value, _ := config.Lookup(destroys); value == "true" {
		a.fooled = "the state is removed"
	}
	return nil
}

// lockable makes in run the files that every user can reach: a configuration, a lock, a
// claimed journal, and a lock that every user may open.
func lockable(a *arena) {
	a.dir("run", 0o755, 0)
	a.dir("run/config", 0o755, 0)
	a.do(configure(a, "run/config", "earlier"))
	unlock, err := flock.File{Path: a.path("run/lock")}.Lock(a.ctx)
	if a.do(err); err == nil {
		a.do(unlock())
	}
	a.dir("run/journal", 0o755, 0) // as an administrator may have made it
	a.do(claim(a))
	a.file("run/naive", "", 0o644, 0)
}

func claim(a *arena) error {
	return a.within(func(ctx context.Context) error {
		j, err := (&journal.Node{Dir: a.path("run/journal"), Agent: "agent", Owner: "root's"}).Open(ctx, nil)
		if err != nil {
			return err
		}
		_, leave, err := j.Enter(ctx, "apply")
		if err != nil {
			return errors.Join(err, j.Close())
		}
		return errors.Join(leave(), j.Close())
	})
}

// locks locks a file that every user may open.
func (a *arena) locks(name string, flags int) error {
	f, err := os.OpenFile(a.path(name), flags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		a.fooled = "held up: " + err.Error()
	}
	return nil
}

// agents is the evidence that Cilium's agent is alive.
func agents() cleanup.Ownership {
	own := cleanup.Cilium()
	return cleanup.Ownership{Agent: own.Agent, StateDirs: own.StateDirs, PidFiles: []string{pidFile}, Executables: own.Executables, Sockets: own.Sockets}
}

// stalePidFile makes a stale pid file that every user may read.
func stalePidFile(a *arena) {
	a.do(a.on(func(context.Context) error { return os.WriteFile(pidFile, []byte("4194303\n"), 0o644) }))
}

// pidFileOfHis makes the stale file name the attacker's process, which now has that pid.
func pidFileOfHis(a *arena) error {
	return a.on(func(context.Context) error { return os.WriteFile(pidFile, fmt.Appendln(nil, a.about), 0o644) })
}

func notAlive(a *arena) error {
	if err := pidFileOfHis(a); err != nil {
		return err
	}
	return a.within(func(ctx context.Context) error {
		return a.node.Do(ctx, func(ctx context.Context) error { return agents().AgentAlive(ctx, nil) })
	})
}

// notAliveByComm trusts the name of the process with that pid, if it is root's.
func notAliveByComm(a *arena) error {
	if err := pidFileOfHis(a); err != nil {
		return err
	}
	dir := filepath.Join(a.node.Proc(), strconv.FormatUint(a.about, 10))
	comm, err := os.ReadFile(dir + "/comm")
	info, errDir := os.Stat(dir)
	if err == nil && errDir == nil && string(comm) == "cilium-agent\n" && info.Sys().(*syscall.Stat_t).Uid == 0 {
		a.fooled = "held up: the agent is alive"
	}
	return nil
}

// liveAgent runs in a pod, and restarts from time to time.
func liveAgent(a *arena) {
	n := a.node
	if a.err == nil && n.agent != nil && sometimes(8) {
		a.do(n.agent())
		n.agent = nil
	}
	if a.err == nil && n.agent == nil {
		var err error
		n.agent, err = n.stand(asAgent, "unshare", "--mount", "--pid", "--fork", "--kill-child", programs+"/cilium-agent")
		a.do(err)
	}
}

func alive(a *arena) error {
	err := a.on(func(ctx context.Context) error { return agents().AgentAlive(ctx, nil) })
	if !errors.Is(err, cleanup.ErrAgentAlive) {
		a.fooled = fmt.Sprintf("the state of a live agent can be removed: %v", err)
	}
	return nil
}

// aliveByLock assumes that the agent has locked its pid file.
func aliveByLock(a *arena) error {
	return a.on(func(context.Context) error {
		f, err := os.Open(pidFile)
		if err != nil {
			return err
		}
		defer f.Close()
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			a.fooled = "the state of a live agent can be removed"
		}
		return nil
	})
}
