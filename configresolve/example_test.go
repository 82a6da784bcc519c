// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/slipway-dev/slipway/configresolve"
)

// An agent's defaults, overridden by the environment, except for a key that
// belongs to the administrator of the cluster.
func Example() {
	resolver := configresolve.Resolver{
		Sources: []configresolve.Source{
			configresolve.Static{Name: "defaults", Values: map[string]string{"cluster-id": "7", "mtu": "1500"}},
			configresolve.Optional(configresolve.Dir{Path: "/no/such/config-map"}),
			configresolve.Env{Prefix: "AGENT_", Environ: []string{"AGENT_MTU=9000", "AGENT_CLUSTER_ID=1"}},
		},
		DenyKeys: []string{"cluster-id"},
	}
	config, err := resolver.Resolve(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	mtu, err := configresolve.Get(config, "mtu", strconv.Atoi)
	fmt.Println(mtu, err)
	fmt.Print(config.Explain())
	// Output:
	// 9000 <nil>
	// cluster-id = "7" from static:defaults
	//     denied "1" from env:AGENT_: in the deny list
	// mtu = "9000" from env:AGENT_
	//     overrides "1500" from static:defaults
	// ! missing dir:/no/such/config-map: directory /no/such/config-map: source does not exist
}

func ExampleWriteDir() {
	dir, err := os.MkdirTemp("", "config")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	config, err := configresolve.Resolve(context.Background(), configresolve.Static{Values: map[string]string{"mtu": "1500"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		fmt.Println(configresolve.WriteDir(context.Background(), dir, config))
	}
	mtu, err := os.ReadFile(dir + "/mtu")
	fmt.Println(string(mtu), err)
	// Output:
	// true <nil>
	// false <nil>
	// 1500 <nil>
}
