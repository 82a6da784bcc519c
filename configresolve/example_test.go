// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/configresolve"
)

// An agent's defaults are overridden by the environment, except for a key reserved for the
// cluster's administrator.
func Example() {
	resolver := configresolve.Resolver{
		Sources: []configresolve.Source{
			configresolve.Static("defaults", map[string]string{"cluster-id": "7", "mtu": "1500"}),
			configresolve.Optional(configresolve.Dir("/no/such/config-map")),
			configresolve.Env("AGENT_", []string{"AGENT_MTU=9000", "AGENT_CLUSTER_ID=1"}),
		},
		DenyKeys: []string{"cluster-id"},
	}
	config, err := resolver.Resolve(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(config.Lookup("mtu"))
	fmt.Print(config.Explain())
	// Output:
	// 9000 true
	// cluster-id = "7" from static:defaults
	//     denied "1" from env:AGENT_: in the deny list
	// mtu = "9000" from env:AGENT_
	//     overrides "1500" from static:defaults
	// ! missing dir:/no/such/config-map: directory /no/such/config-map: source does not exist
}

// An agent's configuration is decoded into a struct: all errors are reported at once, and
// unknown keys are named.
func ExampleDecode() {
	var settings struct {
		Mode    string        `config:"routing-mode"`
		MTU     int           `config:"mtu,required"`
		Period  time.Duration `config:"gc-interval"`
		Devices []string      `config:"devices"`
	}
	settings.Mode, settings.Period = "tunnel", 5*time.Minute
	config, err := configresolve.Resolve(context.Background(), configresolve.Static("defaults", map[string]string{"mtu": "9000", "devices": "eth0 eth1", "routing-mod": "native"}))
	if err != nil {
		panic(err)
	}
	fmt.Println(configresolve.Decode(config, &settings))
	fmt.Printf("%+v\n", settings)
	for _, unknown := range config.Unknown(&settings) {
		fmt.Println(unknown)
	}
	// Output:
	// <nil>
	// {Mode:tunnel MTU:9000 Period:5m0s Devices:[eth0 eth1]}
	// unknown key "routing-mod" from static:defaults: is not known ("routing-mode" is)
}
