// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package neighbours is a model of a node with several agents: their operations in any
// order, and what each agent may rely on at any time.
//
// A [Scenario] is a node's agents, each with its successive plans. They are real plans of
// real actions, with one journal directory. Plans are applied, killed at each of their
// points, undone, or released, and the node is rebooted in between. After each of these
// the model asks:
//
//   - Does each agent have everything it was told it has, and does its plan find nothing to
//     do, unless another was told to override it?
//   - Was an agent refused only because another wants another state, and did that change
//     nothing?
//   - When none is left, is the node as it was, except for objects left by agents that were
//     released, which are named?
//
// [Scenario.Explore] runs operations in every order on a node in memory, [Scenario.Walk]
// in random orders, on that or on the running kernel.
package neighbours

import (
	"maps"
	"slices"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/sysctl"
)

// Scenario is a node's agents.
type Scenario struct {
	Name   string
	Agents []Agent
}

// Agent is an agent with its versions, which may be applied in any order.
type Agent struct {
	Name     string
	Versions []Version
}

// Version is an agent's wishes, by the names of its plan's steps. Steps of its other
// versions are absent from the plan.
type Version struct {
	Steps    map[string]Want
	Override bool // other agents
}

// steps returns the names of all versions' steps, in the order of the plans.
func (a Agent) steps() []string {
	var names []string
	for _, v := range a.Versions {
		names = slices.AppendSeq(names, maps.Keys(v.Steps))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

const (
	forwarding4   = "net.ipv4.ip_forward"
	forwardingAll = "net.ipv4.conf.all.forwarding"
	forwarding6   = "net.ipv6.conf.all.forwarding"
	ofLink        = "net.ipv4.conf.lo.forwarding"
	redirects     = "net.ipv4.conf.all.send_redirects"
	filter        = "net.ipv4.conf.all.rp_filter"
)

func value(key, to string) Values { return Values{{Key: sysctl.Key(key), Value: to}} }

func wants(steps map[string]Want) Version { return Version{Steps: steps} }

func step(name string, w Want) Version { return wants(map[string]Want{name: w}) }

func insists(v Version) Version {
	v.Override = true
	return v
}

func agents(versions ...[]Version) (all []Agent) {
	for i, v := range versions {
		all = append(all, Agent{Name: []string{"first", "second", "third"}[i], Versions: v})
	}
	return all
}

// Scenarios returns scenarios of one kind of object each, small enough to be explored
// far.
func Scenarios() []Scenario {
	one, two, three := step("a", value(redirects, "0")), step("a", value(redirects, "2")), step("a", value(redirects, "3"))
	mount := step("a", Mount{"run/bpf", "bpf"})
	none := wants(nil)
	return []Scenario{
		{"value", agents([]Version{one, none}, []Version{one, insists(two)})},
		{"value of three", agents([]Version{one}, []Version{insists(two)}, []Version{one, insists(three)})},
		{"mount", agents([]Version{mount, none}, []Version{step("b", Mount{"run/bpf", "bpf"})})},
		{"mount in a shared directory", agents(
			[]Version{step("a", Mount{"run/shared/bpf", "bpf"})},
			[]Version{step("b", Directory{"run/shared"}), step("c", Mount{"run/shared/cgroup", "cgroup2"})},
		)},
		{"directory", agents(
			[]Version{step("a", File{"etc/shared/first", "one"}), step("b", Directory{"etc/shared"})},
			[]Version{step("b", File{"etc/shared/second", "one"})},
		)},
		{"file", agents(
			[]Version{step("a", File{"etc/shared/file", "one"}), none},
			[]Version{step("b", File{"etc/shared/file", "one"}), insists(step("b", File{"etc/shared/file", "two"}))},
		)},
		{"file that existed", agents(
			[]Version{step("a", File{"etc/theirs", "one"}), none},
			[]Version{step("b", File{"etc/theirs", "one"}), insists(step("b", File{"etc/theirs", "two"}))},
		)},
		{"empty file", agents(
			[]Version{step("a", EmptyFile{"etc/lock"})},
			[]Version{step("b", EmptyFile{"etc/lock"}), none},
		)},
		{"drop-in beside a value", agents(
			[]Version{step("a", DropIn{"90-first.conf", filter, "0"}), none},
			[]Version{step("b", value(filter, "0")), insists(step("b", value(filter, "1")))},
		)},
		{"plugin", agents(
			[]Version{step("a", Plugins{"first", "one", cniinstall.Always}), none},
			[]Version{step("b", Plugins{"second", "another", cniinstall.IfMissing})},
		)},
		{"two versions of a plugin", agents(
			[]Version{step("a", Plugins{"first", "one", cniinstall.Always}), none},
			[]Version{insists(step("b", Plugins{"second", "two", cniinstall.Always}))},
		)},
		{"two drop-ins", agents(
			[]Version{step("a", DropIn{"90-first.conf", filter, "0"})},
			[]Version{step("b", DropIn{"91-second.conf", filter, "0"}), none},
		)},
		{"forwarding of two", agents([]Version{step("a", value(forwarding4, "1")), none}, []Version{step("b", value(forwarding4, "1"))})},
		{"forwarding, and that of a link", agents(
			[]Version{step("a", value(forwarding4, "1"))},
			[]Version{step("b", value(ofLink, "1"))},
		)},
		{"forwarding by two names", agents(
			[]Version{step("a", value(forwarding4, "1"))},
			[]Version{step("b", value(forwardingAll, "1"))},
		)},
	}
}

// Whole returns a node of three agents whose plans have all kinds of objects.
func Whole() Scenario {
	main := map[string]Want{
		"a-paths": Directory{"etc/agents"}, "b-mount": Mount{"run/bpf", "bpf"}, "c-values": value(redirects, "0"),
		"d-drop-in": DropIn{"90-first.conf", filter, "0"}, "e-file": File{"etc/agents/first", "one"},
		"g-cni": Plugins{"first", "one", cniinstall.Always},
	}
	later := maps.Clone(main)
	delete(later, "c-values")
	later["e-file"], later["f-cgroup"] = File{"etc/agents/first", "two"}, Mount{"run/agents/cgroup", "cgroup2"}
	chained := map[string]Want{
		"a-cgroup": Mount{"run/agents/cgroup", "cgroup2"}, "b-values": Values{{Key: redirects, Value: "0"}, {Key: forwarding6, Value: "1"}},
		"c-file": File{"etc/agents/second", "one"}, "d-lock": EmptyFile{"etc/lock"},
		"g-cni": Plugins{"second", "another", cniinstall.IfMissing},
	}
	insisting := maps.Clone(chained)
	insisting["b-values"] = Values{{Key: redirects, Value: "2"}, {Key: forwarding6, Value: "1"}}
	insisting["e-theirs"] = File{"etc/theirs", "one"}
	delete(insisting, "d-lock")
	sensor := map[string]Want{
		"a-mount": Mount{"run/bpf", "bpf"}, "b-values": Values{{Key: filter, Value: "0"}, {Key: redirects, Value: "0"}}, "c-lock": EmptyFile{"etc/lock"},
	}
	refused := maps.Clone(sensor)
	refused["d-theirs"] = File{"etc/theirs", "two"}
	return Scenario{"whole", agents(
		[]Version{wants(main), wants(later)},
		[]Version{wants(chained), insists(wants(insisting))},
		[]Version{wants(sensor), wants(refused)},
	)}
}
