// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"context"
	"fmt"
	"os"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
)

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "config")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	config, err := configresolve.Resolve(context.Background(), configresolve.Static("", map[string]string{"mtu": "1500"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		fmt.Println(configdir.Write(context.Background(), dir, config))
	}
	mtu, err := os.ReadFile(dir + "/mtu")
	fmt.Println(string(mtu), err)
	// Output:
	// true <nil>
	// false <nil>
	// 1500 <nil>
}
